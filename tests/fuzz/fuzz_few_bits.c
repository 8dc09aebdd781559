/* SPDX-License-Identifier: MIT
 *
 * The operations on 16, 8 and 4 bits, for fuzz_ops.
 */
#include "fuzz_ops.h"

#include <string.h>

enum {
    LINEAR_W16,
    LINEAR_Q,
    LINEAR_S8,
    QUANTIZE_S8,
    EMBED_W16,
    EMBED_Q,
    ATTENTION_W16,
    CACHES_W16,
    ROUND_W16,
    LINEAR_Q_S8
};

static iso_w16 type;
static iso_q_format format;
static uint16_t *keys, *values;
static iso_packed_w16 w16;
static iso_packed_q wq;
static iso_packed_s8 s8;

/* Numbers of about 1, or any bits. */
static uint16_t *halves(int i, size_t count, unsigned fill) {
    uint16_t *to = place_bytes(i, count * sizeof *to);
    for (size_t k = 0; k < count && !too_large; k++) {
        const uint32_t r = next();
        const uint32_t about_1 = type == ISOBIT_BF16 ? (r & 0x807f) | (124 + r % 5) << 7
                                                     : (r & 0x83ff) | (13 + r % 5) << 10;
        to[k] = (uint16_t)(fill % 5 == 4 || (fill % 5 == 3 && r % 8 == 0) ? r >> 16 : about_1);
    }
    return to;
}

/* Weights of a block of the format. */
static size_t block_of(void) {
    const int i8 = format.scale == ISOBIT_SCALE_I8 || format.scale == ISOBIT_SCALE_I8_OFFSET;
    return i8 ? 256 : format.group;
}

/* Blocks whose scales and offsets are about 1, or any bits. */
static unsigned char *blocks(int i, size_t count, unsigned fill) {
    const int f32 = format.scale == ISOBIT_SCALE_F32 || format.scale == ISOBIT_SCALE_F32_OFFSET;
    const size_t scale = f32 ? 4 : 2, each = block_of();
    const size_t factors = format.scale >= ISOBIT_SCALE_F16_OFFSET ? 2 : 1;
    const size_t small = each == format.group ? 0 : each / format.group;
    const size_t bytes = factors * (scale + small) + each * format.bits / 8;
    unsigned char *to = place_bytes(i, count * bytes);
    for (size_t k = 0; k < count && !too_large; k++) {
        for (size_t f = 0; f < factors; f++) {
            const uint32_t r = next();
            const uint32_t one = f32 ? (r & 0x807fffff) | 0x3f800000 : (r & 0x83ff) | 0x3c00;
            const uint32_t bits = fill % 5 == 4 && r % 64 == 0 ? next() : one;
            const uint16_t low = (uint16_t)bits;
            memcpy(to + k * bytes + f * scale, f32 ? (const void *)&bits : (const void *)&low,
                   scale);
        }
        for (size_t b = factors * scale; b < bytes; b++)
            to[k * bytes + b] = (unsigned char)(next() >> 24);
    }
    return to;
}

/* Aligned memory for a packed matrix, at the end of its region. */
static void *room(size_t bytes) {
    char *to = place_bytes(6, (bytes + 63) / 64 * 64);
    return too_large ? NULL : to;
}

static void plan_linear(unsigned op, unsigned fill) {
    const int turned = p.flags >> 1 & 1; /* W is [k][n] */
    size_t bytes = 0;
    p.m = dim();
    p.n = dim();
    p.k = op == LINEAR_Q || op == LINEAR_Q_S8 ? byte() % 4 * block_of() : dim();
    p.lda = stride(p.k);
    p.ldc = stride(p.n);
    p.ldr = stride(p.n);
    p.ldb = (turned ? p.n : p.k) + byte() % 3;
    output(0, extent(p.m, p.n, p.ldc));
    p.a = place(2, extent(p.m, p.k, p.lda), fill);
    const size_t elements = turned ? extent(p.k, p.n, p.ldb) : extent(p.n, p.k, p.ldb);
    iso_status status = ISOBIT_OK;
    if (op == LINEAR_Q || op == LINEAR_Q_S8) {
        const size_t groups = p.k / block_of(), ld = groups + byte() % 3;
        const unsigned char *w = blocks(3, extent(p.n, groups, ld), fill);
        FUZZ_CHECK(iso_pack_q_bytes(&bytes, p.n, p.k, &format) == ISOBIT_OK);
        void *to = room(bytes);
        if (to)
            status = iso_pack_q(&wq, to, bytes, w, ld, p.n, p.k, &format, NULL);
        if (status == ISOBIT_E_RANGE) { /* a scale that is not finite */
            too_large = 1;
            return;
        }
    } else if (op == LINEAR_W16) {
        const uint16_t *w = halves(3, elements, fill);
        FUZZ_CHECK(iso_pack_w16_bytes(&bytes, p.n, p.k) == ISOBIT_OK);
        void *to = room(bytes);
        if (to)
            status = iso_pack_w16(&w16, to, bytes, w, p.ldb, p.n, p.k, turned, type, NULL);
    } else {
        const float *w = place(3, elements, fill);
        FUZZ_CHECK(iso_pack_s8_bytes(&bytes, p.n, p.k) == ISOBIT_OK);
        void *to = room(bytes);
        if (to)
            status = iso_pack_s8(&s8, to, bytes, w, p.ldb, p.n, p.k, turned, NULL);
    }
    FUZZ_CHECK(status == ISOBIT_OK);
    if (p.flags & 32)
        p.bias = place(4, p.n, fill);
    if (p.flags & 64)
        p.residual = place(5, extent(p.m, p.n, p.ldr), fill);
}

static void plan_quantize(unsigned fill) {
    p.m = dim();
    p.n = p.flags & 1 ? dim() * 5 : dim();
    p.lda = stride(p.n);
    p.ldc = stride(p.n);
    p.exact = 1;
    output(0, (extent(p.m, p.n, p.ldc) + 3) / 4); /* bytes */
    output(1, p.m);
    p.a = place(2, extent(p.m, p.n, p.lda), fill);
}

static void plan_embed(unsigned op, unsigned fill) {
    p.m = dim();                                           /* count */
    p.n = op == EMBED_Q ? byte() % 4 * block_of() : dim(); /* d */
    p.k = dim(); /* the vocabulary; positions are as many */
    p.ldc = stride(p.n);
    output(0, extent(p.m, p.n, p.ldc));
    if (op == EMBED_Q)
        p.a = (float *)(void *)blocks(2, p.k * (p.n / block_of()), fill);
    else
        p.a = (float *)(void *)halves(2, p.k * p.n, fill);
    p.b = place(3, p.k * p.n, fill);
    choose_ids();
}

static void plan_attention(unsigned fill) {
    iso_attention_shape *s = &p.shape;
    iso_attention_options *o = &p.attention;
    *s = (iso_attention_shape){.B = byte() % 3, .H = byte() % 4};
    s->Sq = dim() % 6;
    s->Sk = dim();
    s->dh = dim();
    const size_t q = stride(s->dh), y = stride(s->dh), heads = s->B * s->H;
    const size_t k = iso_keys_w16_elements(s->Sk, s->dh), wide = (s->dh + 31) / 32 * 32;
    const size_t v = wide + byte() % 2 * 32;
    s->q = (iso_strides){s->H * s->Sq * q, s->Sq * q, q};
    s->k = (iso_strides){s->H * k, k, 0};
    s->v = (iso_strides){s->H * s->Sk * v, s->Sk * v, v};
    s->o = (iso_strides){s->H * s->Sq * y, s->Sq * y, y};
    choose_attention();
    output(0, extent(heads * s->Sq, s->dh, y));
    p.a = place(2, extent(heads * s->Sq, s->dh, q), fill);
    keys = halves(3, heads * k, fill);
    values = halves(4, s->dh ? extent(heads * s->Sk, wide, v) : 0, fill);
    if (p.flags & 16) {
        o->bias = place(5, s->Sq * s->Sk, fill);
        o->bias_strides = (iso_strides){0, 0, s->Sk};
    }
}

static void plan_caches(unsigned fill) {
    p.m = dim();
    p.n = dim();
    p.k = dim(); /* the first key */
    p.lda = stride(p.n);
    p.exact = 1;
    const size_t elements = p.flags & 1 ? iso_keys_w16_elements(p.k + p.m, p.n)
                                        : iso_values_w16_elements(p.k + p.m, p.n);
    output(0, (elements + 1) / 2);
    p.a = place(2, extent(p.m, p.n, p.lda), fill);
}

static void plan_round(unsigned fill) {
    p.m = dim();
    p.n = dim();
    p.lda = stride(p.n);
    p.ldc = p.flags & 4 ? p.lda : stride(p.n);
    p.a = place(2, extent(p.m, p.n, p.lda), fill);
    output(0, extent(p.m, p.n, p.ldc));
    if (p.flags & 4) /* in place */
        p.out[0] = p.a;
}

void few_bits_plan(unsigned op, unsigned fill) {
    const unsigned which = byte();
    type = which & 1 ? ISOBIT_BF16 : ISOBIT_F16;
    format = (iso_q_format){which & 2 ? 4 : 8, 16u << which / 4 % 4, (iso_q_scale)(which / 16 % 6)};
    switch (op) {
    case QUANTIZE_S8: plan_quantize(fill); break;
    case EMBED_W16:
    case EMBED_Q: plan_embed(op, fill); break;
    case ATTENTION_W16: plan_attention(fill); break;
    case CACHES_W16: plan_caches(fill); break;
    case ROUND_W16: plan_round(fill); break;
    default: plan_linear(op, fill);
    }
}

iso_status few_bits_run(unsigned op, const iso_context *context) {
    const iso_linear_options linear = {
        .size = sizeof linear, .bias = p.bias, .act = p.act, .residual = p.residual, .ldr = p.ldr};
    const float *positions = p.flags & 1 ? p.b : NULL;
    const uint32_t *rows = p.flags & 2 ? p.rows : NULL;
    float *y = p.out[0];
    switch (op) {
    case LINEAR_W16: return iso_linear_w16(y, p.ldc, p.a, p.lda, &w16, p.m, &linear, context);
    case LINEAR_Q: return iso_linear_q(y, p.ldc, p.a, p.lda, &wq, p.m, &linear, context);
    case LINEAR_Q_S8: return iso_linear_q_s8(y, p.ldc, p.a, p.lda, &wq, p.m, &linear, context);
    case LINEAR_S8: return iso_linear_s8(y, p.ldc, p.a, p.lda, &s8, p.m, &linear, context);
    case QUANTIZE_S8:
        return iso_quantize_s8((int8_t *)(void *)y, p.ldc, p.out[1], p.a, p.lda, p.m, p.n, context);
    case EMBED_W16:
        return iso_embed_w16(y, p.ldc, p.ids, p.m, (const uint16_t *)(const void *)p.a, type, p.k,
                             p.n, p.scalars[0], positions, rows, p.k, context);
    case EMBED_Q:
        return iso_embed_q(y, p.ldc, p.ids, p.m, p.a, &format, p.k, p.n, p.scalars[0], positions,
                           rows, p.k, context);
    case ATTENTION_W16:
        return iso_attention_w16(y, p.a, keys, values, type, &p.shape,
                                 p.flags & 32 ? NULL : &p.attention, context);
    case CACHES_W16: {
        uint16_t *to = (uint16_t *)(void *)y;
        return p.flags & 1 ? iso_keys_w16_append(to, p.k, p.a, p.lda, p.m, p.n, type, context)
                           : iso_values_w16_append(to, p.k, p.a, p.lda, p.m, p.n, type, context);
    }
    default: return iso_round_w16(y, p.ldc, p.a, p.lda, p.m, p.n, type, context);
    }
}
