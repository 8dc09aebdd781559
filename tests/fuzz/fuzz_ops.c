/* SPDX-License-Identifier: MIT
 *
 * Input: one call of an operation: which, sizes, strides, flags, and what the operands hold. The
 * operands lie against pages that cannot be touched, at their end or at their beginning. Every
 * instruction set of this machine must give the status of the scalar one, and its bits (a NaN
 * being any NaN), also in the gaps between rows, which nobody may write.
 */
#include "fuzz_ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { REGIONS = 8, REGION_FLOATS = 1 << 16 };

static float *region[REGIONS];

static void make_regions(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = REGION_FLOATS * sizeof(float);
    char *at = mmap(NULL, REGIONS * (bytes + page) + page, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    FUZZ_CHECK(at != MAP_FAILED);
    for (int i = 0; i < REGIONS; i++) {
        char *start = at + page + (size_t)i * (bytes + page);
        FUZZ_CHECK(mprotect(start, bytes, PROT_READ | PROT_WRITE) == 0);
        region[i] = (float *)(void *)start;
    }
}

/* ----------------------------------------------------------------------------------- the input */

static const uint8_t *at, *end;
static uint64_t state;
static unsigned left; /* a bit for each region: flush left */

unsigned byte(void) { return at < end ? *at++ : 0; }

size_t dim(void) {
    const unsigned b = byte();
    return b < 220 ? b % 34 : 30 + byte() % 70;
}

size_t stride(size_t n) {
    const unsigned b = byte();
    return b < 150 ? n : b < 252 ? n + b % 19 : n ? n - 1 : 0;
}

uint32_t next(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

static float value(unsigned fill) {
    static const float special[] = {0.0f,       -0.0f, INFINITY, -INFINITY, NAN,    0x1p-149f,
                                    -0x1p-130f, 88.7f, -104.0f,  0x1p127f,  -1e30f, 1.0f};
    const uint32_t r = next();
    const float uniform = (float)(int32_t)r * 0x1p-31f;
    switch (fill % 5) {
    case 0: return uniform;
    case 1: return uniform * 20;
    case 2: return (float)((int)(r % 9) - 4);
    case 3: return r % 8 ? uniform : special[r / 8 % 12];
    default: {
        float any;
        const uint32_t bits = next();
        memcpy(&any, &bits, sizeof any);
        return any;
    }
    }
}

int too_large;

void *place_bytes(int i, size_t bytes) {
    if (bytes > REGION_FLOATS * sizeof(float)) {
        too_large = 1;
        return region[i];
    }
    char *first = (char *)region[i];
    return left >> i & 1 ? first : first + (REGION_FLOATS * sizeof(float) - bytes);
}

float *place(int i, size_t floats, unsigned fill) {
    float *to = place_bytes(i, floats <= REGION_FLOATS ? floats * sizeof(float) : SIZE_MAX);
    for (size_t k = 0; k < floats && floats <= REGION_FLOATS; k++)
        to[k] = value(fill);
    return to;
}

size_t extent(size_t rows, size_t n, size_t ld) {
    return rows && n ? (rows - 1) * (ld > n ? ld : n) + n : 0;
}

/* ------------------------------------------------------------------------------- the operations */

enum {
    GEMM,
    LINEAR,
    GEMV,
    SOFTMAX,
    LAYERNORM,
    RMSNORM,
    ELTWISE,
    ATTENTION,
    EMBED,
    POSITIONS,
    PANELS,
    LOGSUMEXP,
    GATE,
    ROPE,
    ROPE_TABLE,
    FEW_BITS, /* the first of those of fuzz_few_bits.c */
    OPS = FEW_BITS + FEW_BITS_OPS
};

plan p;

void output(int i, size_t floats) {
    p.out[i] = place(i, floats, 2);
    p.out_floats[i] = floats;
}

static void plan_matrices(unsigned fill) {
    p.m = dim();
    p.n = dim();
    p.k = dim();
    const int ta = p.flags & 1, tb = p.flags >> 1 & 1;
    p.lda = stride(ta ? p.m : p.k);
    p.ldb = stride(tb ? p.k : p.n);
    p.ldc = stride(p.n);
    p.ldr = stride(p.n);
    if (p.op == GEMV) {
        /* y [n], W [n][k] or [k][n], x [k] */
        p.ldb = stride(tb ? p.n : p.k);
        output(0, p.n);
        p.a = place(2, tb ? extent(p.k, p.n, p.ldb) : extent(p.n, p.k, p.ldb), fill);
        p.b = place(3, p.k, fill);
        return;
    }
    output(0, extent(p.m, p.n, p.ldc));
    p.a = place(2, ta ? extent(p.k, p.m, p.lda) : extent(p.m, p.k, p.lda), fill);
    p.b = place(3, tb ? extent(p.n, p.k, p.ldb) : extent(p.k, p.n, p.ldb), fill);
    if (p.op == LINEAR) {
        /* W as a packed matrix; x is never transposed. */
        size_t bytes = 0;
        p.lda = p.lda < p.k && !ta ? p.lda : p.k + p.lda % 3;
        p.a = place(2, extent(p.m, p.k, p.lda), fill);
        FUZZ_CHECK(iso_pack_f32_bytes(&bytes, p.n, p.k) == ISOBIT_OK);
        if (bytes > REGION_FLOATS * sizeof(float) || p.ldb < (tb ? p.k : p.n)) {
            too_large = 1;
            return;
        }
        float *to = region[6]; /* aligned */
        FUZZ_CHECK(iso_pack_f32(&p.packed, to, bytes, p.b, p.ldb, p.n, p.k, !tb, NULL) ==
                   ISOBIT_OK);
    }
}

static void plan_rows(unsigned fill) {
    p.m = dim();
    p.n = p.flags & 1 ? dim() * 5 : dim();
    p.lda = stride(p.n);
    p.ldb = stride(p.n);
    p.ldc = stride(p.n);
    p.ldr = stride(p.n);
    if (p.n > 130)
        p.m %= 20;
    output(0, extent(p.m, p.n, p.ldc));
    output(1, extent(p.m, p.n, p.ldb));
    p.a = place(2, extent(p.m, p.n, p.lda), fill);
    p.b = place(3, p.n, fill);
    for (size_t i = 0; i < sizeof p.mask; i++)
        p.mask[i] = (uint8_t)(next() >> 29);
    for (size_t i = 0; i < MOST_IDS; i++)
        p.lengths[i] = next() % (p.n + 1);
    if (byte() > 250)
        p.lengths[next() % 4] = p.n + 1; /* refused, if there is such a row */
}

void choose_attention(void) {
    static const float caps[] = {0, 0, 0, 0, 5, 50, 1e-3f, -1}; /* the last one is refused */
    const iso_attention_shape *s = &p.shape;
    iso_attention_options *o = &p.attention;
    *o = (iso_attention_options){.size = sizeof *o,
                                 .scale = p.flags & 64 ? 1 : 0.3f,
                                 .causal = p.flags & 1,
                                 .past = p.flags & 1 ? byte() % 40 : 0,
                                 .window = p.flags & 128 ? byte() : 0,
                                 .softcap = caps[byte() % 8]};
    if (p.flags & 2)
        o->key_lengths = p.lengths;
    for (size_t i = 0; i < 4; i++)
        p.lengths[i] = next() % (s->Sk + 1 + (byte() > 250));
    output(1, s->B * s->H * s->Sq * s->Sk);
    if (p.flags & 8) {
        o->weights = p.out[1];
        o->weights_strides = (iso_strides){s->H * s->Sq * s->Sk, s->Sq * s->Sk, s->Sk};
    }
}

void choose_ids(void) {
    const uint32_t most = (uint32_t)p.k + (byte() > 240);
    for (size_t i = 0; i < MOST_IDS; i++) {
        p.ids[i] = most ? next() % most : 0;
        p.rows[i] = most ? next() % most : 0;
    }
}

static void plan_attention(unsigned fill) {
    iso_attention_shape *s = &p.shape;
    iso_attention_options *o = &p.attention;
    *s = (iso_attention_shape){.B = byte() % 3, .H = byte() % 4};
    s->Sq = dim() % 20;
    s->Sk = dim();
    s->dh = dim();
    const size_t q = stride(s->dh), k = stride(s->dh), v = stride(s->dh), y = stride(s->dh);
    s->q = (iso_strides){s->H * s->Sq * q, s->Sq * q, q};
    s->k = (iso_strides){s->H * s->Sk * k, s->Sk * k, k};
    s->v = (iso_strides){s->H * s->Sk * v, s->Sk * v, v};
    s->o = (iso_strides){s->H * s->Sq * y, s->Sq * y, y};
    choose_attention();
    size_t key_floats = extent(s->B * s->H * s->Sk, s->dh, k);
    if (p.flags & 4) {
        const size_t panel = iso_key_panels_floats(s->Sk, s->dh);
        o->key_panels = 1;
        s->k = (iso_strides){s->H * panel, panel, 0};
        key_floats = s->B * s->H * panel;
    }
    output(0, extent(s->B * s->H * s->Sq, s->dh, y));
    p.a = place(2, extent(s->B * s->H * s->Sq, s->dh, q), fill);
    p.b = place(3, key_floats, fill);
    p.c = place(4, extent(s->B * s->H * s->Sk, s->dh, v), fill);
    if (p.flags & 16) {
        o->bias = place(5, s->Sq * s->Sk, fill);
        o->bias_strides = (iso_strides){0, 0, s->Sk};
        if (s->Sq && p.flags & 128) {
            o->bias = place(5, s->Sq - 1 + s->Sk, fill) + (s->Sq - 1);
            o->bias_strides.seq = ISOBIT_BY_DISTANCE;
        }
    }
}

static void plan_ids(unsigned fill) {
    p.m = dim(); /* count */
    p.n = dim(); /* d */
    p.k = dim(); /* the vocabulary; positions are as many */
    p.ldc = stride(p.n);
    output(0, extent(p.m, p.n, p.ldc));
    p.a = place(2, p.k * p.n, fill);
    p.b = place(3, p.k * p.n, fill);
    choose_ids();
    p.lda = (size_t)byte() << 12; /* the first position */
}

static void plan_panels(unsigned fill) {
    p.m = dim();
    p.n = dim();
    p.k = dim(); /* the first key */
    p.lda = stride(p.n);
    output(0, iso_key_panels_floats(p.k + p.m, p.n));
    p.a = place(2, extent(p.m, p.n, p.lda), fill);
}

static void plan_logsumexp(unsigned fill) {
    p.m = dim();
    p.n = dim() * (p.flags & 1 ? 5 : 1);
    p.lda = stride(p.n);
    output(0, p.m); /* the largest elements */
    output(1, p.m); /* the logarithms of the sums */
    p.a = place(2, extent(p.m, p.n, p.lda), fill);
}

/* b apart, or the second half of each row of a; y apart, or a, or b. */
static void plan_gate(unsigned fill) {
    p.m = dim();
    p.n = dim();
    p.lda = stride(p.flags & 1 ? 2 * p.n : p.n);
    p.ldb = p.flags & 1 ? p.lda : stride(p.n);
    p.ldc = stride(p.n);
    p.a = place(2, extent(p.m, p.flags & 1 ? 2 * p.n : p.n, p.lda), fill);
    p.b = p.flags & 1 ? p.a + p.n : place(3, extent(p.m, p.n, p.ldb), fill);
    output(0, extent(p.m, p.n, p.ldc));
    if (p.flags & 6) {
        p.out[0] = p.flags & 2 ? p.a : p.b;
        p.ldc = p.flags & 2 ? p.lda : p.ldb;
        p.out_floats[0] = extent(p.m, p.n, p.ldc);
    }
}

/* m rows of k heads that are n wide, of which ldr elements turn; the table has 40 rows or so. */
static void plan_rope(unsigned fill) {
    p.m = dim();
    p.n = dim();
    p.k = byte() % 5;
    p.ldr = byte() > 240 ? dim() : p.n / 2 * 2 - (p.n > 7 ? byte() % 4 * 2 : 0);
    p.lda = stride(p.k * p.n);
    p.ldb = stride(p.ldr);
    p.ldc = p.flags & 4 ? p.lda : stride(p.k * p.n);
    p.positions = p.flags & 2 ? 40 : p.m;
    const uint32_t most = (uint32_t)p.positions + (byte() > 240);
    for (size_t i = 0; i < MOST_IDS; i++)
        p.rows[i] = next() % (most ? most : 1);
    p.a = place(2, extent(p.m, p.k * p.n, p.lda), fill);
    p.b = place(3, extent(p.positions, p.ldr, p.ldb), fill);
    output(0, extent(p.m, p.k * p.n, p.ldc));
    if (p.flags & 4) /* in place */
        p.out[0] = p.a;
}

static void plan_rope_table(unsigned fill) {
    p.m = dim();
    p.n = byte() > 240 ? dim() : dim() / 2 * 2;
    const unsigned shift = byte() % 26;
    p.lda = (size_t)byte() << shift; /* the first position */
    p.ldc = stride(p.n);
    p.a = place(2, p.n / 2, fill);
    output(0, extent(p.m, p.n, p.ldc));
}

static iso_status run(const iso_context *context) {
    const iso_gemm_options gemm = {.size = sizeof gemm,
                                   .trans_a = p.flags & 1,
                                   .trans_b = p.flags >> 1 & 1,
                                   .alpha = p.scalars[0],
                                   .beta = p.scalars[1],
                                   .bias = p.bias,
                                   .act = p.act,
                                   .residual = p.residual,
                                   .ldr = p.ldr};
    const iso_linear_options linear = {
        .size = sizeof linear, .bias = p.bias, .act = p.act, .residual = p.residual, .ldr = p.ldr};
    const iso_eltwise_options eltwise = {
        .size = sizeof eltwise, .bias = p.bias, .act = p.act, .residual = p.residual, .ldr = p.ldr};
    const iso_softmax_options softmax = {.size = sizeof softmax,
                                         .log = p.flags >> 1 & 1,
                                         .safe = p.flags >> 2 & 1,
                                         .lengths = p.flags & 8 ? p.lengths : NULL,
                                         .mask = p.flags & 16 && p.n <= 130 ? p.mask : NULL,
                                         .ldm = p.n};
    const iso_norm_options norm = {.size = sizeof norm,
                                   .gamma = p.flags & 2 ? p.b : NULL,
                                   .beta = p.bias,
                                   .eps = p.flags & 4 ? 0 : 1e-5f,
                                   .residual = p.residual,
                                   .ldr = p.ldr,
                                   .sum = p.flags & 8 ? p.out[1] : NULL,
                                   .lds = p.ldb};
    if (p.op >= FEW_BITS)
        return few_bits_run(p.op - FEW_BITS, context);
    switch (p.op) {
    case GEMM:
        return iso_gemm_f32(p.out[0], p.ldc, p.a, p.lda, p.b, p.ldb, p.m, p.n, p.k, &gemm, context);
    case LINEAR:
        return iso_linear_f32(p.out[0], p.ldc, p.a, p.lda, &p.packed, p.m, &linear, context);
    case GEMV: return iso_gemv_f32(p.out[0], p.a, p.ldb, p.b, p.n, p.k, gemm.trans_b, context);
    case SOFTMAX: return iso_softmax_f32(p.out[0], p.ldc, p.a, p.lda, p.m, p.n, &softmax, context);
    case LAYERNORM: return iso_layernorm_f32(p.out[0], p.ldc, p.a, p.lda, p.m, p.n, &norm, context);
    case RMSNORM: return iso_rmsnorm_f32(p.out[0], p.ldc, p.a, p.lda, p.m, p.n, &norm, context);
    case ELTWISE: return iso_eltwise_f32(p.out[0], p.ldc, p.a, p.lda, p.m, p.n, &eltwise, context);
    case ATTENTION:
        return iso_attention_f32(p.out[0], p.a, p.b, p.c, &p.shape,
                                 p.flags & 32 ? NULL : &p.attention, context);
    case EMBED:
        return iso_embed_f32(p.out[0], p.ldc, p.ids, p.m, p.a, p.k, p.n, p.scalars[0],
                             p.flags & 1 ? p.b : NULL, p.flags & 2 ? p.rows : NULL, p.k, context);
    case POSITIONS:
        return iso_positions_f32(p.out[0], p.ldc, p.lda, p.m, p.n,
                                 (iso_position_layout)(p.flags % 4), context);
    case LOGSUMEXP: return iso_logsumexp_f32(p.out[0], p.out[1], p.a, p.lda, p.m, p.n, context);
    case GATE:
        return iso_gate_f32(p.out[0], p.ldc, p.a, p.lda, p.b, p.ldb, p.m, p.n, p.act, context);
    case ROPE:
        return iso_rope_f32(p.out[0], p.ldc, p.a, p.lda, p.m, p.k, p.n, p.ldr,
                            (iso_rope_layout)(p.flags >> 3 & (p.flags & 1 ? 3 : 1)), p.b, p.ldb,
                            p.flags & 2 ? p.rows : NULL, p.positions, context);
    case ROPE_TABLE:
        return iso_rope_table_f32(p.out[0], p.ldc, p.lda, p.m, p.a, p.n, p.scalars[0], context);
    default: return iso_key_panels_append(p.out[0], p.k, p.a, p.lda, p.m, p.n, context);
    }
}

/* ------------------------------------------------------------------------------- the comparison */

static int same(const float *x, const float *y, size_t count) {
    if (fuzz_equal(x, y, count * sizeof *x))
        return 1;
    for (size_t i = 0; i < count; i++)
        if (!fuzz_equal(&x[i], &y[i], sizeof *x) && !(isnan(x[i]) && isnan(y[i])))
            return 0;
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static float before[2][REGION_FLOATS], expected[2][REGION_FLOATS];
    if (!region[0])
        make_regions();
    at = data;
    end = data + bytes;
    too_large = 0;
    p.op = byte() % OPS;
    p.flags = byte();
    left = byte();
    const unsigned fill = byte();
    state = byte() * 0x9e3779b97f4a7c15u + 1;
    p.act = (iso_activation)(byte() % 7); /* the last one does not exist */
    const float scalars[] = {1, 0, 0.5f, -1, 3};
    p.scalars[0] = scalars[byte() % 5];
    p.scalars[1] = scalars[(byte() + 1) % 5];
    p.out_floats[0] = p.out_floats[1] = 0;
    p.exact = 0;
    p.bias = p.residual = NULL;
    if (p.op >= FEW_BITS)
        few_bits_plan(p.op - FEW_BITS, fill);
    else if (p.op <= GEMV)
        plan_matrices(fill);
    else if (p.op <= ELTWISE)
        plan_rows(fill);
    else if (p.op == ATTENTION)
        plan_attention(fill);
    else if (p.op <= POSITIONS)
        plan_ids(fill);
    else if (p.op == PANELS)
        plan_panels(fill);
    else if (p.op == LOGSUMEXP)
        plan_logsumexp(fill);
    else if (p.op == GATE)
        plan_gate(fill);
    else if (p.op == ROPE)
        plan_rope(fill);
    else
        plan_rope_table(fill);
    if (p.op <= ELTWISE && p.op != GEMV) {
        if (p.flags & 32)
            p.bias = place(4, p.n, fill);
        if (p.flags & 64)
            p.residual = place(5, extent(p.m, p.n, p.ldr), fill);
    }
    if (too_large)
        return 0;
    for (int i = 0; i < 2; i++)
        if (p.out_floats[i])
            memcpy(before[i], p.out[i], p.out_floats[i] * sizeof(float));
    /* The scalar set is the last one. */
    iso_status first = ISOBIT_OK;
    for (size_t n = iso_isa_count(), i = n; i-- > 0;) {
        const iso_isa *isa = iso_isa_get(i);
        if (iso_isa_missing(isa))
            continue;
        const iso_context context = {.size = sizeof context, .isa = isa};
        iso_status status = run(&context);
        if (i == n - 1)
            first = status;
        FUZZ_CHECK(status == first && status != ISOBIT_E_INTERNAL);
        for (int k = 0; k < 2; k++) {
            const size_t floats = p.out_floats[k];
            if (!floats)
                continue;
            if (i == n - 1)
                memcpy(expected[k], p.out[k], floats * sizeof(float));
            FUZZ_CHECK(p.exact ? fuzz_equal(p.out[k], expected[k], floats * sizeof(float))
                               : same(p.out[k], expected[k], floats));
            if (status) /* what is refused writes nothing */
                FUZZ_CHECK(fuzz_equal(p.out[k], before[k], floats * sizeof(float)));
            memcpy(p.out[k], before[k], floats * sizeof(float));
        }
    }
    return 0;
}
