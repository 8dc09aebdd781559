/* SPDX-License-Identifier: MIT
 *
 * The trampoline of x86-64 (System V). It keeps all that it needs in iso_check_abi_state, because
 * after the call no register can be relied on; abi.c looks at what it recorded.
 */
#if defined(__x86_64__)
#include "abi_layout.h"

    .text

/* iso_check_abi_stub_N: r11 = N; the caller has put the arguments of a kernel where they belong. */
    .p2align 4
    .globl iso_check_abi_stubs
    .hidden iso_check_abi_stubs
    .type iso_check_abi_stubs, @function
iso_check_abi_stubs:
    .set i, 0
    .rept ABI_STUBS
    .p2align 4
    movl $i, %r11d
    jmp checked_call
    .set i, i + 1
    .endr

    .p2align 4
    .type checked_call, @function
checked_call:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    leaq iso_check_abi_state(%rip), %rbx
    movq %r11, ABI_INDEX(%rbx)
    imulq $ABI_ENTRY_BYTES, %r11, %r11
    leaq iso_check_abi_entries(%rip), %r12
    addq %r11, %r12
    movq %rsp, ABI_SAVED_SP(%rbx)
    leaq 56(%rsp), %r13                 /* the arguments on the stack */
    testb $ABI_HAS_AVX, ABI_FEATURES(%rbx)
    jz 1f
    vzeroupper                          /* what is dirty afterwards is the kernel's */
1:  movq ABI_STACK_TOP(%rbx), %r14
    testq %r14, %r14
    jnz 2f
    leaq -128(%rsp), %r14               /* no stack of its own: some way below ours */
2:  andq $-64, %r14
    subq $64, %r14
    movq %r14, ABI_CANARY_AT(%rbx)
    movq ABI_CANARY(%rbx), %rax
    .set at, 0
    .rept 8
    movq %rax, at(%r14)
    .set at, at + 8
    .endr
    movq ABI_ENTRY_WORDS(%r12), %r15
    leaq 1(%r15), %rax
    andq $-2, %rax
    shlq $3, %rax
    subq %rax, %r14
    movq %r14, %rsp
    xorl %ebp, %ebp
3:  cmpq %r15, %rbp
    jae 4f
    movq (%r13,%rbp,8), %rax
    orq ABI_ENTRY_HIGH_STACK(%r12,%rbp,8), %rax
    movq %rax, (%rsp,%rbp,8)
    incq %rbp
    jmp 3b
4:  orq ABI_ENTRY_HIGH(%r12), %rdi      /* the upper half of an int is anything */
    orq ABI_ENTRY_HIGH+8(%r12), %rsi
    orq ABI_ENTRY_HIGH+16(%r12), %rdx
    orq ABI_ENTRY_HIGH+24(%r12), %rcx
    orq ABI_ENTRY_HIGH+32(%r12), %r8
    orq ABI_ENTRY_HIGH+40(%r12), %r9
    movq %rsp, ABI_CALLEE_SP(%rbx)
    movq ABI_ENTRY_TARGET(%r12), %rax
    movq %rax, ABI_TARGET(%rbx)
    movq ABI_GARBAGE(%rbx), %rax
    movq %rax, %r10
    movq %rax, %r11
    movq ABI_FILL+8(%rbx), %rbp
    movq ABI_FILL+16(%rbx), %r12
    movq ABI_FILL+24(%rbx), %r13
    movq ABI_FILL+32(%rbx), %r14
    movq ABI_FILL+40(%rbx), %r15
    movq ABI_FILL(%rbx), %rbx
    call *iso_check_abi_state+ABI_TARGET(%rip)
    movq %rbx, iso_check_abi_state+ABI_AFTER(%rip)
    leaq iso_check_abi_state(%rip), %rbx
    movq %rbp, ABI_AFTER+8(%rbx)
    movq %r12, ABI_AFTER+16(%rbx)
    movq %r13, ABI_AFTER+24(%rbx)
    movq %r14, ABI_AFTER+32(%rbx)
    movq %r15, ABI_AFTER+40(%rbx)
    movq %rsp, ABI_AFTER_SP(%rbx)
    movq %rax, ABI_RESULT(%rbx)
    movsd %xmm0, ABI_RESULT+8(%rbx)
    movq ABI_SAVED_SP(%rbx), %rsp
    pushfq
    popq ABI_FLAGS(%rbx)
    cld
    testb $ABI_HAS_IN_USE, ABI_FEATURES(%rbx)
    jz 5f
    movl $1, %ecx
    xgetbv
    movl %eax, ABI_IN_USE(%rbx)
5:  testb $ABI_HAS_AVX, ABI_FEATURES(%rbx)
    jz 6f
    vzeroupper
6:  stmxcsr ABI_FLOAT_CONTROL(%rbx)
    fnstenv ABI_X87(%rbx)               /* this masks the exceptions of the x87 */
    fldenv ABI_X87(%rbx)
    movq %rsp, %rbp
    cmpq $0, ABI_STACK_TOP(%rbx)
    jne 7f
    movq ABI_CALLEE_SP(%rbx), %rsp      /* not over the canary */
7:  andq $-16, %rsp
    call iso_check_abi_verify
    movq %rbp, %rsp
    movq ABI_RESULT(%rbx), %rax
    movsd ABI_RESULT+8(%rbx), %xmm0
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size checked_call, . - checked_call

#endif
    .section .note.GNU-stack, "", %progbits
