/* SPDX-License-Identifier: MIT
 *
 * Kernels that break one rule of the calling convention of AArch64 each, for the self-test.
 */
#if defined(__aarch64__)
    .text

/* Kernels that do their work and break a rule. None has arguments on the stack. */
.macro SPOIL name
    .p2align 4
    .globl iso_spoil_\name
    .hidden iso_spoil_\name
    .type iso_spoil_\name, %function
iso_spoil_\name:
    str x30, [sp, #-16]!
    adrp x9, iso_spoil_target
    ldr x9, [x9, :lo12:iso_spoil_target]
    blr x9
    ldr x30, [sp], #16
.endm

    SPOIL x19
    mvn x19, x19
    ret
    SPOIL x28
    add x28, x28, #1
    ret
    SPOIL x29
    mov x29, #0
    ret
    SPOIL d8
    fneg d8, d8
    ret
    SPOIL d15
    movi v15.2d, #0
    ret
    SPOIL fpcr                          /* flush to zero */
    mrs x9, fpcr
    orr x9, x9, #0x1000000
    msr fpcr, x9
    ret
    SPOIL illegal
    .inst 0
    SPOIL canary
    str xzr, [sp, #8]
    ret
    SPOIL stack
    sub x9, sp, #2, lsl #12
    sub x9, x9, #816
    str x29, [x9]
    ret

/* Takes the whole register for an int. */
    .p2align 4
    .globl iso_spoil_int_width
    .hidden iso_spoil_int_width
    .type iso_spoil_int_width, %function
iso_spoil_int_width:
    lsr x9, x3, #32
    cbz x9, 1f
    mov x2, #0                          /* does nothing when the upper half is not zero */
1:  adrp x9, iso_spoil_target
    ldr x9, [x9, :lo12:iso_spoil_target]
    br x9

#endif
    .section .note.GNU-stack, "", %progbits
