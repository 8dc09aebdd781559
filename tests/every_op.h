/* SPDX-License-Identifier: MIT
 *
 * Each public operation once, on inputs that never change: for tests that want all of them to run
 * somewhere (in a child, beside signals, under a system-call filter) and to give the same bits.
 */
#ifndef ISOBIT_TESTS_EVERY_OP_H
#define ISOBIT_TESTS_EVERY_OP_H

#include <isobit/ops.h>

#include <stdbool.h>

enum { EVERY_OP_COUNT = 35, EVERY_OP_FLOATS = 130 * 96, EVERY_OP_WORKSPACE = 16 << 20 };

/* Makes the inputs; before anything else, once. */
void every_op_init(void);
const char *every_op_name(size_t op);
/*
 * Runs operation number `op` and writes its results to out[EVERY_OP_FLOATS], aligned to 64 bytes,
 * of which it clears the rest. Allocates nothing itself and may be called from several threads at
 * once.
 */
iso_status every_op(float *out, size_t op, const iso_context *context);
/* All of them into out[EVERY_OP_COUNT][EVERY_OP_FLOATS]; false when one failed. */
bool every_op_all(float *out, const iso_context *context);

#endif
