# SPDX-License-Identifier: MIT
#
# The innermost loops of compiled functions. Reads what a compiler wrote with -S; each straight
# piece of code that ends with a jump to its own first instruction, wherever it is entered, becomes
# a file <out>/<function>.<number>.s. Prints for each: function, multiply-adds, instructions, uses of
# the stack by vectors, other uses of the stack, file.
#
# Set by the caller: patterns of a multiply-add (fma), of an operand on the stack (stack) and of a
# vector register (vector); a folder (out).

/^[A-Za-z_][A-Za-z0-9_.]*:/ { name = $1; sub(/[:.].*/, "", name); forget(); next }
/^\.L[A-Za-z0-9_.$]*:/ { label = $1; sub(/:.*/, "", label); start[label] = n; open = 1; next }
/^[ \t]*\./ || /^[ \t]*(#|\/\/)/ || /^[ \t]*$/ { next }
open {
    line[n++] = $0
    if ($1 !~ /^(j.*|call.*|retq?)$/ && $1 !~ /^(b|bl|br|blr|b\.[a-z]*|cbn?z|tbn?z)$/ &&
        $1 !~ /^b(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)$/)
        next
    if ($NF in start)
        write_loop(start[$NF])
    forget()
}
function forget() {
    split("", start)
    open = n = 0
}
function write_loop(from,    i, fmas, vectors, others, file) {
    for (i = from; i < n; i++) {
        fmas += line[i] ~ fma
        if (line[i] ~ stack) {
            if (line[i] ~ vector)
                vectors++
            else
                others++
        }
    }
    if (!fmas)
        return
    file = out "/" name "." (++loops) ".s"
    for (i = from; i < n; i++)
        print line[i] > file
    close(file)
    print name, fmas, n - from, vectors + 0, others + 0, file
}
