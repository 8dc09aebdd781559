/* SPDX-License-Identifier: MIT
 *
 * A library that goes wrong in several ways, for the test of isobit_ab: libisobit with these
 * functions in place of its own.
 */
#include <isobit/ops.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Other results: where the operands lie in a page. */
iso_status iso_softmax_f32(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                           const iso_softmax_options *options, const iso_context *context) {
    const float places[2] = {(float)((uintptr_t)x % 4096), (float)((uintptr_t)y % 4096)};
    (void)ldx, (void)options, (void)context;
    if (getenv("ISOBIT_VERBOSE")) {
        ssize_t written = write(STDERR_FILENO, "other\n", 6);
        (void)written;
    }
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < n; j++)
            y[i * ldy + j] = places[j % 2];
    return ISOBIT_OK;
}

/* More than is needed. */
iso_status iso_attention_f32_workspace_bytes(size_t *bytes, const iso_attention_shape *shape,
                                             const iso_attention_options *options,
                                             const iso_context *context) {
    (void)shape, (void)options, (void)context;
    *bytes = (size_t)64 << 20;
    return ISOBIT_OK;
}

/* An older header, whose options are shorter. */
iso_status iso_layernorm_f32(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                             size_t n, const iso_norm_options *options,
                             const iso_context *context) {
    (void)y, (void)ldy, (void)x, (void)ldx, (void)rows, (void)n, (void)context;
    return options->size < sizeof *options ? ISOBIT_OK : ISOBIT_E_SIZE;
}

/* Another layout: nothing of the weights. */
iso_status iso_pack_f32(iso_packed *p, void *packed, size_t packed_bytes, const float *w,
                        size_t ldw, size_t n, size_t k, int trans_w, const iso_context *context) {
    (void)w, (void)ldw, (void)trans_w, (void)context;
    memset(packed, 0, packed_bytes);
    *p = (iso_packed){.data = packed, .n = n, .k = k};
    return ISOBIT_OK;
}

/* One call of many fails. */
iso_status iso_gemv_f32(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                        int trans_w, const iso_context *context) {
    static int calls;
    (void)w, (void)ldw, (void)x, (void)k, (void)trans_w, (void)context;
    for (size_t i = 0; i < n; i++)
        y[i] = 0;
    return ++calls == 50 ? ISOBIT_E_NOMEM : ISOBIT_OK;
}

iso_status iso_rmsnorm_f32(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                           const iso_norm_options *options, const iso_context *context) {
    (void)y, (void)ldy, (void)x, (void)ldx, (void)rows, (void)n, (void)options, (void)context;
    abort();
}

iso_status iso_embed_f32(float *y, size_t ldy, const uint32_t *ids, size_t count,
                         const float *table, size_t vocabulary, size_t d, float scale,
                         const float *positions, const uint32_t *position_rows,
                         size_t position_count, const iso_context *context) {
    (void)y, (void)ldy, (void)ids, (void)count, (void)table, (void)vocabulary, (void)d;
    (void)scale, (void)positions, (void)position_rows, (void)position_count, (void)context;
    for (;;)
        pause();
}
