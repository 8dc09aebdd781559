/* SPDX-License-Identifier: MIT
 *
 * Weights of 4 or 8 bits in groups: their formats, packing, and embeddings. Their products are in
 * linear.c.
 */
#include "q.h"

#include "embed_rows.h"
#include "verbose.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

int iso_q_type(const iso_q_format *f) {
    static const int kinds[] = {[ISOBIT_SCALE_F16] = 0,
                                [ISOBIT_SCALE_F32] = ISO_Q_F32,
                                [ISOBIT_SCALE_I8] = ISO_Q_I8,
                                [ISOBIT_SCALE_F16_OFFSET] = ISO_Q_OFFSETS,
                                [ISOBIT_SCALE_F32_OFFSET] = ISO_Q_F32 | ISO_Q_OFFSETS,
                                [ISOBIT_SCALE_I8_OFFSET] = ISO_Q_I8 | ISO_Q_OFFSETS};
    const int group = f->group == 16    ? ISO_Q_16
                      : f->group == 32  ? 0
                      : f->group == 64  ? ISO_Q_64
                      : f->group == 128 ? ISO_Q_128
                                        : -1;
    if (group < 0 || (f->bits != 4 && f->bits != 8) || f->scale >= sizeof kinds / sizeof *kinds)
        return -1;
    return group | (f->bits == 4 ? ISO_Q_4 : 0) | kinds[f->scale];
}

/* A block begins with its scale and its offset, of `wide` bytes each, and those of its groups,
 * where these have some of one byte. */
static size_t wide_bytes(int type) { return type & ISO_Q_F32 ? 4 : 2; }
static size_t factors(int type) { return type & ISO_Q_OFFSETS ? 2 : 1; }
static size_t narrow_bytes(int type) {
    return type & ISO_Q_I8 ? ISO_Q_BLOCK / iso_q_group(type) : 0;
}
static size_t first_bytes(int type) {
    return factors(type) * (wide_bytes(type) + narrow_bytes(type));
}
static size_t block_bytes(int type) {
    return first_bytes(type) + iso_q_block(type) / (type & ISO_Q_4 ? 2 : 1);
}

/* The numbers of a group; of 4 bits low halves of bytes come first, then the high ones, 8 more than
 * they mean where there are no offsets. */
static const unsigned char *numbers_of(const unsigned char *block, size_t group, int type) {
    return block + first_bytes(type) + group * iso_q_group(type) / (type & ISO_Q_4 ? 2 : 1);
}
static int number(const unsigned char *numbers, size_t i, int type) {
    const size_t half = iso_q_group(type) / 2;
    if (!(type & ISO_Q_4))
        return (int8_t)numbers[i];
    return (i < half ? numbers[i] & 15 : numbers[i - half] >> 4) - (type & ISO_Q_OFFSETS ? 0 : 8);
}

/* The scale of a block, or (which 1) its offset. */
static float wide_factor(const unsigned char *block, size_t which, int type) {
    float value;
    uint16_t half;
    if (!(type & ISO_Q_F32)) {
        memcpy(&half, block + which * sizeof half, sizeof half);
        return iso_f16_value(half);
    }
    memcpy(&value, block + which * sizeof value, sizeof value);
    return value;
}
static const unsigned char *narrow_factor(const unsigned char *block, size_t which, size_t group,
                                          int type) {
    return block + factors(type) * wide_bytes(type) + which * narrow_bytes(type) + group;
}
static float factor(const unsigned char *block, size_t which, size_t group, int type) {
    const float wide = wide_factor(block, which, type);
    return type & ISO_Q_I8 ? wide * (float)(int8_t)*narrow_factor(block, which, group, type) : wide;
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
    size_t ld, n, blocks, tasks; /* ld in bytes */
    int type;
    atomic_int bad; /* a scale or an offset is not finite */
};

_Static_assert(ISO_Q_STEPS == 8, "numbers of 4 bits of a word");

/* The numbers of 4 bits of a group, a word for each 8 of them, the first one in its highest bits.
 * Half of a group is a multiple of 8, so a word has low halves of bytes, or high ones. */
static void pack_4(uint32_t *to, const unsigned char *numbers, size_t group, int type) {
    const uint32_t less_8 = type & ISO_Q_OFFSETS ? 0 : 0x88888888; /* in 4 bits */
    for (size_t i = 0; i < group; i += ISO_Q_STEPS, to += ISO_PANEL) {
        const int high = i >= group / 2;
        const unsigned char *from = numbers + (high ? i - group / 2 : i);
        uint64_t x = 0;
        for (size_t s = 0; s < ISO_Q_STEPS; s++)
            x = x << 8 | from[s];
        x = x >> (high ? 4 : 0) & 0x0f0f0f0f0f0f0f0f;
        x = (x | x >> 4) & 0x00ff00ff00ff00ff;
        x = (x | x >> 8) & 0x0000ffff0000ffff;
        *to = (uint32_t)(x | x >> 16) ^ less_8;
    }
}

static int is_finite(const unsigned char *block, size_t which, int type) {
    uint32_t bits;
    uint16_t half;
    if (!(type & ISO_Q_F32)) {
        memcpy(&half, block + which * sizeof half, sizeof half);
        return (half & 0x7c00) != 0x7c00;
    }
    memcpy(&bits, block + which * sizeof bits, sizeof bits);
    return (bits & 0x7f800000) != 0x7f800000;
}

/* A block of column j into that of its panel; 0: a scale or an offset is not finite. */
static inline __attribute__((always_inline)) int
pack_block(uint32_t *to, const unsigned char *block, size_t j, int type) {
    const size_t wide = wide_bytes(type), group = iso_q_group(type);
    int finite = 1;
    for (size_t f = 0; f < factors(type); f++) {
        finite &= is_finite(block, f, type);
        memcpy((unsigned char *)to + (f * ISO_PANEL + j) * wide, block + f * wide, wide);
    }
    to += iso_q_head_words(type);
    for (size_t g = 0; g < iso_q_block(type) / group; g++) {
        const unsigned char *numbers = numbers_of(block, g, type);
        if (type & ISO_Q_I8)
            for (size_t f = 0; f < factors(type); f++)
                ((unsigned char *)to)[f * ISO_PANEL + j] = *narrow_factor(block, f, g, type);
        to += iso_q_scale_words(type);
        if (type & ISO_Q_4)
            pack_4(to + j, numbers, group, type);
        else
            for (size_t i = 0; i < group; i++)
                ((unsigned char *)to)[i * ISO_PANEL + j] = numbers[i];
        to += group * (type & ISO_Q_4 ? 2 : 4);
    }
    return finite;
}

static inline __attribute__((always_inline)) void pack_columns(struct packing *t, size_t panel,
                                                               int type) {
    const size_t words = iso_q_words(type), left = t->n - panel * ISO_PANEL;
    const size_t n = left < ISO_PANEL ? left : ISO_PANEL;
    uint32_t *to = t->packed + panel * t->blocks * words;
    for (size_t g = 0; g < t->blocks; g++, to += words) {
        memset(to, 0, words * sizeof *to);
        for (size_t j = 0; j < n; j++) {
            const unsigned char *block =
                t->w + (panel * ISO_PANEL + j) * t->ld + g * block_bytes(type);
            if (!pack_block(to, block, j, type))
                atomic_store_explicit(&t->bad, 1, memory_order_relaxed);
        }
    }
}

/* Of the types of most files the compiler knows all sizes. */
static void pack_panel(struct packing *t, size_t panel) {
    if (t->type == ISO_Q_4)
        pack_columns(t, panel, ISO_Q_4);
    else if (t->type == 0)
        pack_columns(t, panel, 0);
    else
        pack_columns(t, panel, t->type);
}

static void pack_some(void *arg, size_t task) {
    struct packing *t = arg;
    const size_t panels = (t->n + ISO_PANEL - 1) / ISO_PANEL;
    for (size_t i = panels * task / t->tasks; i < panels * (task + 1) / t->tasks; i++)
        pack_panel(t, i);
}

iso_status iso_pack_q_bytes(size_t *bytes, size_t n, size_t k, const iso_q_format *format) {
    size_t blocks;
    if (!bytes || !format)
        return ISOBIT_E_NULL;
    const int type = iso_q_type(format);
    if (type < 0)
        return ISOBIT_E_OPTION;
    if (k % iso_q_block(type))
        return ISOBIT_E_DIM;
    if (n > SIZE_MAX - ISO_PANEL ||
        __builtin_mul_overflow((n + ISO_PANEL - 1) / ISO_PANEL, k / iso_q_block(type), &blocks) ||
        blocks > PTRDIFF_MAX / sizeof(uint32_t) / iso_q_words(type))
        return ISOBIT_E_OVERFLOW;
    *bytes = blocks * iso_q_words(type) * sizeof(uint32_t);
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
    const size_t blocks = k / iso_q_block(type), block = block_bytes(type);
    if ((status = check_blocks(w, n, blocks, ldw, type)))
        return status;
    if ((status = iso_check_packed(&kernels, packed, packed_bytes, bytes, w,
                                   iso_extent(n, blocks, ldw, block), context)))
        return status;
    if (bytes) {
        struct packing t = {.packed = packed,
                            .w = w,
                            .ld = ldw * block,
                            .n = n,
                            .blocks = blocks,
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

/* "q4g32:f16", "q4g32:i8+" with offsets, and the like. */
struct format_text {
    char text[32];
};
static struct format_text say_format(const iso_q_format *f) {
    struct format_text t = {"none"};
    static const char *const scales[] = {"f16", "f32", "i8", "f16+", "f32+", "i8+"};
    if (f && f->scale < sizeof scales / sizeof *scales)
        (void)snprintf(t.text, sizeof t.text, "q%ug%u:%s", f->bits, f->group, scales[f->scale]);
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

/* Whole blocks. */
static void dequantise(float *to, const void *row, size_t first, size_t n, int type) {
    const size_t group = iso_q_group(type), each = iso_q_block(type), bytes = block_bytes(type);
    const unsigned char *block = (const unsigned char *)row + first / each * bytes;
    for (size_t i = 0; i < n; i += group) {
        const size_t g = i % each / group;
        const unsigned char *numbers = numbers_of(block, g, type);
        const float scale = factor(block, 0, g, type);
        if (type & ISO_Q_OFFSETS) {
            const float offset = factor(block, 1, g, type);
            for (size_t e = 0; e < group; e++)
                to[i + e] = fmaf((float)number(numbers, e, type), scale, offset);
        } else {
            for (size_t e = 0; e < group; e++)
                to[i + e] = (float)number(numbers, e, type) * scale;
        }
        if ((i + group) % each == 0)
            block += bytes;
    }
}
_Static_assert(ISO_EMBED_FLOATS % ISO_Q_BLOCK == 0, "whole blocks are dequantised");

static iso_status embed_call(struct iso_embedding *t, const iso_q_format *format, size_t vocabulary,
                             size_t position_count, const iso_context *context) {
    if (!format)
        return ISOBIT_E_NULL;
    t->type = iso_q_type(format);
    if (t->type < 0)
        return ISOBIT_E_OPTION;
    if (t->d % iso_q_block(t->type))
        return ISOBIT_E_DIM;
    t->row_bytes = t->d / iso_q_block(t->type) * block_bytes(t->type);
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
