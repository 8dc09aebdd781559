/* SPDX-License-Identifier: MIT */
#include "parts.h"

#include "check.h"
#include "verbose.h"

enum {
    ROWS = 64,     /* of what goes through an epilogue at a time (32 by 48: 1.01 to 1.11 of the */
    COLUMNS = 96,  /* time with VNNI, 512x2048x512 and alike, Zen 4) */
    OWN_ROWS = 32, /* the same through the stack, of which there is little */
    OWN_COLUMNS = 48
};

void iso_parts_run(const struct iso_parts *t, size_t y_row, size_t m, size_t column, size_t n) {
    const int epilogue = t->e.act != ISO_UNARY_NONE || t->e.residual;
    const int apart = t->e.residual == t->y; /* it is read before y is written */
    const size_t rows = apart ? OWN_ROWS : epilogue ? ROWS : m;
    const size_t columns = apart ? OWN_COLUMNS : epilogue ? COLUMNS : n;
    float own[OWN_ROWS * OWN_COLUMNS];
    for (size_t j = column; j < column + n; j += columns)
        for (size_t i = 0; i < m; i += rows) {
            const size_t width = column + n - j < columns ? column + n - j : columns;
            const size_t height = m - i < rows ? m - i : rows;
            float *y = t->y + (y_row + i) * t->ldy + j;
            float *to = apart ? own : y;
            const size_t ld = apart ? OWN_COLUMNS : t->ldy;
            t->product(t->arg, to, ld, i, height, j, width);
            if (epilogue) {
                struct iso_epilogue e = t->e;
                e.residual = e.residual ? e.residual + (y_row + i) * e.ldr + j : NULL;
                t->kernels->gemm_epilogue(y, t->ldy, to, ld, height, width, &e);
            }
        }
}

iso_status iso_parts_options(struct iso_parts *t, const float **bias,
                             const iso_linear_options *options) {
    iso_linear_options own;
    t->e = (struct iso_epilogue){.alpha = 1};
    *bias = NULL;
    if (!options)
        return ISOBIT_OK;
    if (!(options = ISO_OPTIONS(options, own, ldr)))
        return ISOBIT_E_SIZE;
    *bias = options->bias;
    t->e.act = (int)options->act, t->e.residual = options->residual, t->e.ldr = options->ldr;
    return ISOBIT_OK;
}

void iso_parts_tell(uint64_t begin, const struct iso_parts_call *call, const iso_context *context,
                    iso_status status) {
    static const iso_linear_options none;
    iso_linear_options own;
    const uint64_t end = iso_verbose_clock();
    const iso_linear_options *o = ISO_OPTIONS_OR(call->options, own, ldr, &none);
    iso_verbose_end(begin, end, call->name, context, status, call->way,
                    "m%zun%zuk%zu:ldx%zu:ldy%zu%s%s%s", call->m, call->n, call->k, call->ldx,
                    call->ldy, o->bias ? ":bias" : "", iso_verbose_act((int)o->act),
                    o->residual ? ":residual" : "");
}
