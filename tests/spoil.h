/* SPDX-License-Identifier: MIT
 *
 * Kernels in assembly that break the calling convention (spoil_*.S): each calls iso_spoil_target
 * with its up to four arguments, then breaks one rule.
 */
#ifndef ISOBIT_TESTS_SPOIL_H
#define ISOBIT_TESTS_SPOIL_H

#include <stddef.h>

extern void (*iso_spoil_target)(void);
#define ISO_SPOIL(name) void iso_spoil_##name(float *y, const float *x, size_t n, int function)
ISO_SPOIL(illegal);
ISO_SPOIL(canary);
ISO_SPOIL(stack);
#if defined(__x86_64__)
ISO_SPOIL(rbx);
ISO_SPOIL(rbp);
ISO_SPOIL(r12);
ISO_SPOIL(r13);
ISO_SPOIL(r14);
ISO_SPOIL(r15);
ISO_SPOIL(direction);
ISO_SPOIL(mxcsr);
ISO_SPOIL(x87_control);
ISO_SPOIL(x87_stack);
ISO_SPOIL(ymm);
ISO_SPOIL(zmm);
ISO_SPOIL(tiles);
ISO_SPOIL(int_width);
ISO_SPOIL(aligned);
#elif defined(__aarch64__)
ISO_SPOIL(x19);
ISO_SPOIL(x28);
ISO_SPOIL(x29);
ISO_SPOIL(d8);
ISO_SPOIL(d15);
ISO_SPOIL(fpcr);
ISO_SPOIL(int_width);
#endif

#endif
