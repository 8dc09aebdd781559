/* SPDX-License-Identifier: MIT
 *
 * Committed hashes and errors as part of the program, so that `isobit check` needs no file.
 */
    .section .rodata
    .globl iso_committed_golden
    .hidden iso_committed_golden
iso_committed_golden:
    .incbin "golden.txt"
    .byte 0
    .globl iso_committed_errors
    .hidden iso_committed_errors
iso_committed_errors:
    .incbin "errors.txt"
    .byte 0
    .section .note.GNU-stack, "", %progbits
