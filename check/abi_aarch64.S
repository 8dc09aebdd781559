/* SPDX-License-Identifier: MIT
 *
 * The trampoline of 64-bit Arm (AAPCS64). As on x86-64, all that it needs lies in iso_check_abi_state.
 * x18 is a temporary register on Linux and compilers use it as one, so it is not looked at.
 */
#if defined(__aarch64__)
#include "abi_layout.h"

    .text

    .p2align 4
    .globl iso_check_abi_stubs
    .hidden iso_check_abi_stubs
    .type iso_check_abi_stubs, %function
iso_check_abi_stubs:
    .set i, 0
    .rept ABI_STUBS
    .p2align 4
    mov x16, #i
    b checked_call
    .set i, i + 1
    .endr

    .p2align 4
    .type checked_call, %function
checked_call:
    stp x29, x30, [sp, #-160]!
    stp x19, x20, [sp, #16]
    stp x21, x22, [sp, #32]
    stp x23, x24, [sp, #48]
    stp x25, x26, [sp, #64]
    stp x27, x28, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    adrp x19, iso_check_abi_state
    add x19, x19, :lo12:iso_check_abi_state
    str x16, [x19, #ABI_INDEX]
    adrp x20, iso_check_abi_entries
    add x20, x20, :lo12:iso_check_abi_entries
    mov x9, #ABI_ENTRY_BYTES
    madd x20, x16, x9, x20
    mov x9, sp
    str x9, [x19, #ABI_SAVED_SP]
    add x21, sp, #160                   /* the arguments on the stack */
    ldr x22, [x19, #ABI_STACK_TOP]
    cbnz x22, 2f
    mov x22, sp
2:  and x22, x22, #-64
    sub x22, x22, #64
    str x22, [x19, #ABI_CANARY_AT]
    ldr x9, [x19, #ABI_CANARY]
    stp x9, x9, [x22]
    stp x9, x9, [x22, #16]
    stp x9, x9, [x22, #32]
    stp x9, x9, [x22, #48]
    ldr x23, [x20, #ABI_ENTRY_WORDS]
    add x10, x23, #1
    and x10, x10, #-2
    sub x22, x22, x10, lsl #3
    mov sp, x22
    mov x11, #0
    add x24, x20, #ABI_ENTRY_HIGH_STACK
3:  cmp x11, x23
    b.hs 4f
    ldr x9, [x21, x11, lsl #3]
    ldr x12, [x24, x11, lsl #3]
    orr x9, x9, x12
    str x9, [x22, x11, lsl #3]
    add x11, x11, #1
    b 3b
4:  ldp x9, x10, [x20, #ABI_ENTRY_HIGH] /* the upper half of an int is anything */
    orr x0, x0, x9
    orr x1, x1, x10
    ldp x9, x10, [x20, #ABI_ENTRY_HIGH+16]
    orr x2, x2, x9
    orr x3, x3, x10
    ldp x9, x10, [x20, #ABI_ENTRY_HIGH+32]
    orr x4, x4, x9
    orr x5, x5, x10
    ldp x9, x10, [x20, #ABI_ENTRY_HIGH+48]
    orr x6, x6, x9
    orr x7, x7, x10
    str x22, [x19, #ABI_CALLEE_SP]
    ldr x17, [x20, #ABI_ENTRY_TARGET]
    ldr x9, [x19, #ABI_GARBAGE]
    mov x10, x9
    mov x11, x9
    mov x12, x9
    mov x13, x9
    mov x14, x9
    mov x15, x9
    ldp x20, x21, [x19, #ABI_FILL+8]
    ldp x22, x23, [x19, #ABI_FILL+24]
    ldp x24, x25, [x19, #ABI_FILL+40]
    ldp x26, x27, [x19, #ABI_FILL+56]
    ldp x28, x29, [x19, #ABI_FILL+72]
    ldp d8, d9, [x19, #ABI_FILL+88]
    ldp d10, d11, [x19, #ABI_FILL+104]
    ldp d12, d13, [x19, #ABI_FILL+120]
    ldp d14, d15, [x19, #ABI_FILL+136]
    ldr x19, [x19, #ABI_FILL]
    blr x17
    adrp x16, iso_check_abi_state
    add x16, x16, :lo12:iso_check_abi_state
    stp x19, x20, [x16, #ABI_AFTER]
    stp x21, x22, [x16, #ABI_AFTER+16]
    stp x23, x24, [x16, #ABI_AFTER+32]
    stp x25, x26, [x16, #ABI_AFTER+48]
    stp x27, x28, [x16, #ABI_AFTER+64]
    str x29, [x16, #ABI_AFTER+80]
    add x17, x16, #ABI_AFTER+88
    stp d8, d9, [x17]
    stp d10, d11, [x17, #16]
    stp d12, d13, [x17, #32]
    stp d14, d15, [x17, #48]
    mov x9, sp
    str x9, [x16, #ABI_AFTER_SP]
    str x0, [x16, #ABI_RESULT]
    str d0, [x16, #ABI_RESULT+8]
    mrs x9, fpcr
    str x9, [x16, #ABI_FLOAT_CONTROL]
    mov x19, x16
    ldr x20, [x19, #ABI_SAVED_SP]
    ldr x9, [x19, #ABI_STACK_TOP]
    cbz x9, 5f                          /* then not over the canary */
    mov sp, x20
5:  bl iso_check_abi_verify
    mov sp, x20
    ldr x0, [x19, #ABI_RESULT]
    ldr d0, [x19, #ABI_RESULT+8]
    ldp d14, d15, [sp, #144]
    ldp d12, d13, [sp, #128]
    ldp d10, d11, [sp, #112]
    ldp d8, d9, [sp, #96]
    ldp x27, x28, [sp, #80]
    ldp x25, x26, [sp, #64]
    ldp x23, x24, [sp, #48]
    ldp x21, x22, [sp, #32]
    ldp x19, x20, [sp, #16]
    ldp x29, x30, [sp], #160
    ret
    .size checked_call, . - checked_call

#endif
    .section .note.GNU-stack, "", %progbits
