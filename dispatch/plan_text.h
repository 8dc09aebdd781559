/* SPDX-License-Identifier: MIT */
#ifndef ISOBIT_PLAN_TEXT_H
#define ISOBIT_PLAN_TEXT_H

#include "gemm/plan.h"

/* A text that grows in a buffer; `used` is how long it is, or would be. */
struct iso_text {
    char *text;
    size_t bytes, used;
};

/* "B in place; tasks 1; strips of rows 8 8" */
void iso_gemm_plan_text(struct iso_text *t, const struct iso_gemm_shape *shape,
                        const struct iso_gemm_plan *plan, const struct iso_gemm_machine *machine)
    __attribute__((cold));

/* The plan of such a product, and why: "...; B of 73728 KiB from memory; packing it pays for more
 * than 7 rows of A". */
void iso_gemm_say(char *text, size_t bytes, const struct iso_gemm_shape *shape,
                  const struct iso_gemm_machine *machine) __attribute__((cold));

#endif
