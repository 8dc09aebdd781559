/* SPDX-License-Identifier: MIT
 *
 * Kernels that break one rule of the calling convention of x86-64 each, for the self-test.
 */
#if defined(__x86_64__)
    .text

/* Kernels that do their work and break a rule. None has arguments on the stack. */
.macro SPOIL name
    .p2align 4
    .globl iso_spoil_\name
    .hidden iso_spoil_\name
    .type iso_spoil_\name, @function
iso_spoil_\name:
    subq $8, %rsp
    call *iso_spoil_target(%rip)
    addq $8, %rsp
.endm

    SPOIL rbx
    notq %rbx
    ret
    SPOIL rbp
    incq %rbp
    ret
    SPOIL r12
    xorl %r12d, %r12d
    ret
    SPOIL r13
    shrq $1, %r13
    ret
    SPOIL r14
    decq %r14
    ret
    SPOIL r15
    movl %r15d, %r15d
    ret
    SPOIL direction
    std
    ret
    SPOIL mxcsr                         /* denormals are zero */
    stmxcsr -8(%rsp)
    orl $0x40, -8(%rsp)
    ldmxcsr -8(%rsp)
    ret
    SPOIL x87_control                   /* 24 bits of precision */
    fnstcw -8(%rsp)
    andw $0xfcff, -8(%rsp)
    fldcw -8(%rsp)
    ret
    SPOIL x87_stack                     /* MMX without emms */
    movd %eax, %mm3
    ret
    SPOIL ymm
    vcmpps $15, %ymm9, %ymm9, %ymm9
    ret
    SPOIL zmm
    vpternlogd $255, %zmm9, %zmm9, %zmm9
    ret
    SPOIL tiles                         /* configured, and not released */
    .byte 0xc4, 0xe2, 0x78, 0x49, 0x05  /* ldtilecfg 1f(%rip) */
    .long 1f - (. + 4)
    ret
    .section .rodata
    .balign 64
1:  .byte 1                             /* palette 1; a tile of one row of four bytes */
    .zero 15
    .short 4
    .zero 30
    .byte 1
    .zero 15
    .text
    SPOIL illegal
    ud2
    SPOIL canary                        /* above the return address */
    movl $0, 16(%rsp)
    ret
    SPOIL stack
    movq %rbp, -9000(%rsp)
    ret

/* Takes the whole register for an int. */
    .p2align 4
    .globl iso_spoil_int_width
    .hidden iso_spoil_int_width
    .type iso_spoil_int_width, @function
iso_spoil_int_width:
    movl %ecx, %eax
    cmpq %rax, %rcx
    je 1f
    xorl %edx, %edx                     /* does nothing when the upper half is not zero */
1:  jmp *iso_spoil_target(%rip)

/* Reads its input with an instruction that wants an aligned address. */
    .p2align 4
    .globl iso_spoil_aligned
    .hidden iso_spoil_aligned
    .type iso_spoil_aligned, @function
iso_spoil_aligned:
    cmpq $4, %rdx
    jb 1f
    movaps (%rsi), %xmm1
1:  jmp *iso_spoil_target(%rip)

#endif
    .section .note.GNU-stack, "", %progbits
