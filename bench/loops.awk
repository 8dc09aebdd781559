# SPDX-License-Identifier: MIT
#
# The innermost loops of compiled functions. Reads what a compiler wrote with -S; each straight
# piece of code that ends with a jump to its own first instruction becomes a file
# <out>/<function>.<number>.s. Prints for each: function, multiply-adds, instructions, uses of the
# stack by vectors, other uses of the stack, file.
#
# Set by the caller: patterns of a multiply-add (fma), of an operand on the stack (stack) and of a
# vector register (vector); a folder (out).

/^[A-Za-z_][A-Za-z0-9_.]*:/ { name = $1; sub(/[:.].*/, "", name); label = ""; next }
/^\.L[A-Za-z0-9_.$]*:/ { label = $1; sub(/:.*/, "", label); n = 0; next }
/^[ \t]*\./ || /^[ \t]*(#|\/\/)/ || /^[ \t]*$/ { next }
label != "" {
    line[n++] = $0
    if ($1 !~ /^(j.*|call.*|retq?)$/ && $1 !~ /^(b|bl|br|blr|b\.[a-z]*|cbn?z|tbn?z)$/ &&
        $1 !~ /^b(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)$/)
        next
    if ($NF == label)
        write_loop()
    label = ""
}
function write_loop(    i, fmas, vectors, others, file) {
    for (i = 0; i < n; i++) {
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
    for (i = 0; i < n; i++)
        print line[i] > file
    close(file)
    print name, fmas, n, vectors + 0, others + 0, file
}
