/* SPDX-License-Identifier: MIT
 *
 * What abi.c and the trampolines in assembly share: byte offsets into iso_check_abi_state and
 * iso_check_abi_entries. abi.c asserts that they are those of its structs.
 */
#ifndef ISOBIT_CHECK_ABI_LAYOUT_H
#define ISOBIT_CHECK_ABI_LAYOUT_H

#define ABI_STUBS 64
#define ABI_STACK_WORDS 16 /* most words of arguments on the stack */

/* iso_check_abi_state */
#define ABI_STACK_TOP 0
#define ABI_SAVED_SP 8
#define ABI_CALLEE_SP 16
#define ABI_AFTER_SP 24
#define ABI_INDEX 32
#define ABI_TARGET 40
#define ABI_CANARY 48
#define ABI_CANARY_AT 56
#define ABI_GARBAGE 64
#define ABI_FEATURES 72
#define ABI_FLAGS 80
#define ABI_IN_USE 88
#define ABI_RESULT 96 /* integer, then floating point */
#define ABI_FLOAT_CONTROL 112
#define ABI_X87 120 /* 28 bytes */
#define ABI_FILL 152
#define ABI_AFTER 320 /* 21 words each */

/* iso_check_abi_entries[] */
#define ABI_ENTRY_TARGET 0
#define ABI_ENTRY_WORDS 8
#define ABI_ENTRY_HIGH 16
#define ABI_ENTRY_HIGH_STACK 80
#define ABI_ENTRY_BYTES 208

/* bits of ABI_FEATURES */
#define ABI_HAS_AVX 1
#define ABI_HAS_IN_USE 2 /* XGETBV with ECX = 1 */

#endif
