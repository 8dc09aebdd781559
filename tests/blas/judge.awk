# SPDX-License-Identifier: MIT
#
# Reads what a test program of the reference BLAS has printed and wants every line to be one that a
# passing run prints: whatever else it says is a failure. Needs
#   level    1, 2 or 3
#   names    the routines that must pass, with blanks between them, in capitals
#   layouts  1 for a program that tests both layouts
# Prints what is wrong; the exit code is 1 then.
function wrong(text) {
    print "    " text
    bad = 1
}
BEGIN {
    count = split(names, list, " ")
    for (i = 1; i <= count; i++)
        wanted[list[i]] = 1
}
{
    line = toupper($0)
    gsub(/[ \t\r]+/, " ", line)
    sub(/^ /, "", line)
    sub(/ $/, "", line)
}
line == "" { next }

level == 1 && line ~ /^REAL C?BLAS TEST PROGRAM RESULTS$/ { next }
level == 1 && line ~ /^TEST OF SUBPROGRAM NUMBER [0-9]+ / {
    current = $NF
    next
}
level == 1 && line == "----- PASS -----" && current != "" {
    computed[toupper(current)]++
    current = ""
    next
}

level > 1 && line == "TESTS OF THE REAL LEVEL " level " BLAS" { next }
level > 1 && line == "THE FOLLOWING PARAMETER VALUES WILL BE USED:" { next }
level > 1 && line ~ /^FOR (N|K|INCX AND INCY|ALPHA|BETA) [-0-9. ]+$/ { next }
level > 1 && line ~ /^[-0-9. ]+$/ { next } # such a list goes on
level > 1 && line ~ /^ROUTINES PASS COMPUTATIONAL TESTS IF TEST RATIO IS LESS THAN 16.00$/ { next }
level > 1 && line == "COLUMN-MAJOR AND ROW-MAJOR DATA LAYOUTS ARE TESTED" { next }
level > 1 && line ~ /^RELATIVE MACHINE PRECISION IS TAKEN TO BE 1.2E-07$/ { next }
level > 1 && line ~ /^[A-Z0-9_]+ PASSED THE TESTS OF ERROR-EXITS$/ {
    exits[toupper($1)]++
    next
}
level > 1 && line ~ /^[A-Z0-9_]+ PASSED THE ((COLUMN|ROW)-MAJOR )?COMPUTATIONAL TESTS \(.*\)$/ &&
    line ~ /\( ?[1-9][0-9]* CALLS\)$/ {
    computed[toupper($1)]++
    next
}
level > 1 && line ~ /^[A-Z0-9_]+ WAS NOT TESTED$/ && !(toupper($1) in wanted) { next }
level > 1 && line == "END OF TESTS" {
    ended++
    next
}
{ wrong($0) }

END {
    for (name in wanted) {
        if (computed[name] != 1 + (layouts && level > 1))
            wrong("no line says that " name " has passed its computational tests")
        if (level > 1 && exits[name] != 1)
            wrong("no line says that " name " has passed its tests of bad arguments")
    }
    if (count == 0)
        wrong("no routine is enabled")
    if (level > 1 && ended != 1)
        wrong("the tests did not come to their end")
    exit bad
}
