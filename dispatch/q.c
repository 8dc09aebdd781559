/* SPDX-License-Identifier: MIT
 *
 * Weights of 4 or 8 bits in groups: their formats, packing, and embeddings. Their products are in
 * linear.c.
 */
#include "q.h"

#include "embed_rows.h"
#include "verbose.h"

#include <stdatomic.h>
#include <stdio.h>

int iso_q_type(const iso_q_format *f) {
    const int group = f->group == 32    ? 0
                      : f->group == 64  ? ISO_Q_64
                      : f->group == 128 ? ISO_Q_128
                                        : -1;
    if (group < 0 || (f->bits != 4 && f->bits != 8) || f->scale > ISOBIT_SCALE_F32)
        return -1;
    return group | (f->bits == 4 ? ISO_Q_4 : 0) | (f->scale == ISOBIT_SCALE_F32 ? ISO_Q_F32 : 0);
}

static size_t scale_bytes(int type) { return type & ISO_Q_F32 ? 4 : 2; }
static size_t block_bytes(int type) {
    return scale_bytes(type) + (type & ISO_Q_4 ? iso_q_group(type) / 2 : iso_q_group(type));
}

/* The numbers of a block; of 4 bits low halves of bytes come first, then the high ones, 8 more than
 * they mean. */
static int number(const unsigned char *block, size_t i, int type) {
    const unsigned char *numbers = block + scale_bytes(type);
    const size_t half = iso_q_group(type) / 2;
    if (!(type & ISO_Q_4))
        return (int8_t)numbers[i];
    return (i < half ? numbers[i] & 15 : numbers[i - half] >> 4) - 8;
}

static float scale_of(const unsigned char *block, int type) {
    float value;
    uint16_t half;
    if (!(type & ISO_Q_F32)) {
        memcpy(&half, block, sizeof half);
        return iso_f16_value(half);
    }
    memcpy(&value, block, sizeof value);
    return value;
}

/* Rows of blocks, `ld` blocks between them: as iso_check_matrix. */
static iso_status check_blocks(const void *p, size_t rows, size_t blocks, size_t ld, int type) {
    size_t extent;
    if (rows == 0 || blocks == 0)
        return ISOBIT_OK;
    if (ld < blocks)
        return ISOBIT_E_LD;
    if (__builtin_mul_overflow(rows, ld, &extent) || extent > PTRDIFF_MAX / block_bytes(type))
        return ISOBIT_E_OVERFLOW;
    return p ? ISOBIT_OK : ISOBIT_E_NULL;
}

/* ------------------------------------------------------------------------------------- packing */

struct packing {
    uint32_t *packed;
    const unsigned char *w;
    size_t ld, n, groups, tasks; /* ld in bytes */
    int type;
    atomic_int bad; /* a scale is not finite */
};

/* A block of column j into its group. */
static void pack_block(uint32_t *group, const unsigned char *block, size_t j, int type) {
    unsigned char *scale = (unsigned char *)group + j * scale_bytes(type);
    uint32_t *numbers = group + iso_q_scale_words(type);
    memcpy(scale, block, scale_bytes(type));
    for (size_t i = 0; i < iso_q_group(type); i++)
        if (!(type & ISO_Q_4))
            ((unsigned char *)numbers)[i * ISO_PANEL + j] = (unsigned char)number(block, i, type);
        else
            numbers[i / ISO_Q_STEPS * ISO_PANEL + j] |= ((uint32_t)number(block, i, type) & 15)
                                                        << (28 - 4 * (i % ISO_Q_STEPS));
}

static void pack_panel(struct packing *t, size_t panel) {
    const size_t words = iso_q_words(t->type), left = t->n - panel * ISO_PANEL;
    const size_t n = left < ISO_PANEL ? left : ISO_PANEL;
    uint32_t *to = t->packed + panel * t->groups * words;
    for (size_t g = 0; g < t->groups; g++, to += words) {
        memset(to, 0, words * sizeof *to);
        for (size_t j = 0; j < n; j++) {
            const unsigned char *block =
                t->w + (panel * ISO_PANEL + j) * t->ld + g * block_bytes(t->type);
            const float scale = scale_of(block, t->type);
            if (!(scale - scale == 0)) /* infinite, or NaN */
                atomic_store_explicit(&t->bad, 1, memory_order_relaxed);
            pack_block(to, block, j, t->type);
        }
    }
}

static void pack_some(void *arg, size_t task) {
    struct packing *t = arg;
    const size_t panels = (t->n + ISO_PANEL - 1) / ISO_PANEL;
    for (size_t i = panels * task / t->tasks; i < panels * (task + 1) / t->tasks; i++)
        pack_panel(t, i);
}

iso_status iso_pack_q_bytes(size_t *bytes, size_t n, size_t k, const iso_q_format *format) {
    size_t groups;
    if (!bytes || !format)
        return ISOBIT_E_NULL;
    const int type = iso_q_type(format);
    if (type < 0)
        return ISOBIT_E_OPTION;
    if (k % iso_q_group(type))
        return ISOBIT_E_DIM;
    if (n > SIZE_MAX - ISO_PANEL ||
        __builtin_mul_overflow((n + ISO_PANEL - 1) / ISO_PANEL, k / iso_q_group(type), &groups) ||
        groups > PTRDIFF_MAX / sizeof(uint32_t) / iso_q_words(type))
        return ISOBIT_E_OVERFLOW;
    *bytes = groups * iso_q_words(type) * sizeof(uint32_t);
    return ISOBIT_OK;
}

static iso_status pack_call(iso_packed_q *p, void *packed, size_t packed_bytes, const void *w,
                            size_t ldw, size_t n, size_t k, const iso_q_format *format,
                            const iso_context *context) {
    const struct iso_kernels *kernels;
    size_t bytes;
    if (!p)
        return ISOBIT_E_NULL;
    iso_status status = iso_pack_q_bytes(&bytes, n, k, format);
    if (status)
        return status;
    const int type = iso_q_type(format);
    const size_t groups = k / iso_q_group(type), block = block_bytes(type);
    if ((status = check_blocks(w, n, groups, ldw, type)))
        return status;
    if ((status = iso_check_packed(&kernels, packed, packed_bytes, bytes, w,
                                   iso_extent(n, groups, ldw, block), context)))
        return status;
    if (bytes) {
        struct packing t = {.packed = packed,
                            .w = w,
                            .ld = ldw * block,
                            .n = n,
                            .groups = groups,
                            .tasks = iso_context_threads(context),
                            .type = type};
        atomic_init(&t.bad, 0);
        iso_parallel(context, t.tasks, pack_some, &t);
        if (atomic_load(&t.bad))
            return ISOBIT_E_RANGE;
    }
    *p = (iso_packed_q){packed, n, k, *format};
    return ISOBIT_OK;
}

/* "q4g32:f16" and the like. */
struct format_text {
    char text[32];
};
static struct format_text say_format(const iso_q_format *f) {
    struct format_text t = {"none"};
    if (f)
        (void)snprintf(t.text, sizeof t.text, "q%ug%u:%s", f->bits, f->group,
                       f->scale == ISOBIT_SCALE_F32 ? "f32" : "f16");
    return t;
}

iso_status iso_pack_q(iso_packed_q *p, void *packed, size_t packed_bytes, const void *w, size_t ldw,
                      size_t n, size_t k, const iso_q_format *format, const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    const iso_status status = pack_call(p, packed, packed_bytes, w, ldw, n, k, format, context);
    if (begin)
        iso_verbose_end(begin, iso_verbose_clock(), "pack_q", context, status, NULL,
                        "n%zuk%zu:ldw%zu:%s", n, k, ldw, say_format(format).text);
    return status;
}

/* ---------------------------------------------------------------------------------- embeddings */

/* Whole groups. */
static void dequantise(float *to, const void *row, size_t first, size_t n, int type) {
    const size_t group = iso_q_group(type), bytes = block_bytes(type);
    const unsigned char *block = (const unsigned char *)row + first / group * bytes;
    for (size_t i = 0; i < n; i += group, block += bytes) {
        const float scale = scale_of(block, type);
        for (size_t e = 0; e < group; e++)
            to[i + e] = (float)number(block, e, type) * scale;
    }
}
_Static_assert(ISO_EMBED_FLOATS % 128 == 0, "whole groups are dequantised");

static iso_status embed_call(struct iso_embedding *t, const iso_q_format *format, size_t vocabulary,
                             size_t position_count, const iso_context *context) {
    if (!format)
        return ISOBIT_E_NULL;
    t->type = iso_q_type(format);
    if (t->type < 0)
        return ISOBIT_E_OPTION;
    if (t->d % iso_q_group(t->type))
        return ISOBIT_E_DIM;
    t->row_bytes = t->d / iso_q_group(t->type) * block_bytes(t->type);
    return iso_embed_rows(t, vocabulary, position_count, context);
}

iso_status iso_embed_q(float *y, size_t ldy, const uint32_t *ids, size_t count, const void *table,
                       const iso_q_format *format, size_t vocabulary, size_t d, float scale,
                       const float *positions, const uint32_t *position_rows, size_t position_count,
                       const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    struct iso_embedding t = {.y = y,
                              .ldy = ldy,
                              .ids = ids,
                              .count = count,
                              .table = table,
                              .d = d,
                              .floats = dequantise,
                              .scale = scale,
                              .positions = positions,
                              .position_rows = position_rows};
    const iso_status status = embed_call(&t, format, vocabulary, position_count, context);
    if (begin)
        iso_verbose_end(begin, iso_verbose_clock(), "embed_q", context, status, NULL,
                        "count%zud%zu:vocabulary%zu:ldy%zu:%s%s%s", count, d, vocabulary, ldy,
                        say_format(format).text, positions ? ":positions" : "",
                        position_rows ? ":position_rows" : "");
    return status;
}
