/* SPDX-License-Identifier: MIT */
#ifndef ISOBIT_GEMM_TEXT_H
#define ISOBIT_GEMM_TEXT_H

#include "plan.h"

/* A text that grows in a buffer; `used` is how long it is, or would be. */
struct iso_text {
    char *text;
    size_t bytes, used;
};
void iso_text_add(struct iso_text *t, const char *format, ...)
    __attribute__((cold, format(printf, 2, 3)));

const char *iso_gemm_way_text(enum iso_gemm_way way) __attribute__((cold));

/* "B in place; tasks 1; strips of rows 8 8" */
void iso_gemm_plan_text(struct iso_text *t, const struct iso_gemm_shape *shape,
                        const struct iso_gemm_plan *plan, const struct iso_gemm_machine *machine)
    __attribute__((cold));

/* "; B of 73728 KiB from memory; packing it pays for more than 7 rows of A" */
void iso_gemm_why_text(struct iso_text *t, const struct iso_gemm_shape *shape,
                       const struct iso_gemm_plan *plan, const struct iso_gemm_machine *machine)
    __attribute__((cold));

#endif
