/* SPDX-License-Identifier: MIT
 *
 * Weights of 4 and 8 bits in groups: packing, products and embeddings have the bits of the f32
 * functions on numbers times scales, or with an offset, with every set, number of threads and way;
 * nothing outside of the operands is touched; what is refused.
 */
#include "few_bits.h"

#include "packed_weights.h"
#include "sanitized.h"

/* ------------------------------------------------------------------------------------- formats */

static const iso_q_format formats[] = {
    {8, 32, ISOBIT_SCALE_F16},        {4, 32, ISOBIT_SCALE_F16},
    {8, 64, ISOBIT_SCALE_F32},        {4, 128, ISOBIT_SCALE_F32},
    {8, 128, ISOBIT_SCALE_F16},       {4, 64, ISOBIT_SCALE_F32},
    {4, 32, ISOBIT_SCALE_F16_OFFSET}, {8, 32, ISOBIT_SCALE_F16_OFFSET},
    {4, 32, ISOBIT_SCALE_I8_OFFSET},  {8, 32, ISOBIT_SCALE_I8_OFFSET},
    {8, 16, ISOBIT_SCALE_I8},         {4, 16, ISOBIT_SCALE_I8_OFFSET},
    {4, 16, ISOBIT_SCALE_F32},        {4, 128, ISOBIT_SCALE_F32_OFFSET},
    {8, 64, ISOBIT_SCALE_F32_OFFSET}, {4, 128, ISOBIT_SCALE_I8}};
static const iso_q_format q8_0 = {8, 32, ISOBIT_SCALE_F16}, q4_0 = {4, 32, ISOBIT_SCALE_F16};

static int has_offset(const iso_q_format *f) { return f->scale >= ISOBIT_SCALE_F16_OFFSET; }
static int is_i8(const iso_q_format *f) {
    return f->scale == ISOBIT_SCALE_I8 || f->scale == ISOBIT_SCALE_I8_OFFSET;
}
static int is_f32(const iso_q_format *f) {
    return f->scale == ISOBIT_SCALE_F32 || f->scale == ISOBIT_SCALE_F32_OFFSET;
}
static size_t factors(const iso_q_format *f) { return has_offset(f) ? 2 : 1; }
/* Of a scale with its offset, at the beginning of a block; weights of a block; and its bytes. */
static size_t scale_bytes(const iso_q_format *f) { return is_f32(f) ? 4 : 2; }
static size_t block_of(const iso_q_format *f) { return is_i8(f) ? 256 : f->group; }
static size_t block_bytes(const iso_q_format *f) {
    const size_t small = is_i8(f) && f->group ? 256 / f->group : 0;
    return factors(f) * (scale_bytes(f) + small) + block_of(f) * f->bits / 8;
}

/* F16 by definition. */
static float half_value(uint16_t half) {
    const int exponent = half >> 10 & 31;
    const double fraction = half & 1023;
    const double value =
        ldexp(exponent ? fraction + 1024 : fraction, (exponent ? exponent : 1) - 25);
    return (float)(half >> 15 ? -value : value);
}

/* How blocks are filled: what models have; or the ends of every range. */
enum { PLAIN, EXTREME };

/* A scale or an offset, and where it lies. */
static float make_scale(unsigned char *to, const iso_q_format *f, int kind) {
    static const uint16_t halves[] = {0, 0x8000, 1, 0x8001, 0x7bff, 0xfbff, 0x3c00, 0x03ff};
    static const float singles[] = {0,     -0.0f,  0x1p-149f, -0x1p-126f,
                                    3e38f, -3e38f, 1,         0x1.fffffep-3f};
    const uint32_t r = draw();
    uint16_t half = (uint16_t)(0x2000 + r % 0x1000) | (uint16_t)(draw() % 2 << 15);
    float single = (float)(int32_t)(r % 20001 - 10000) * 1.7e-5f;
    if (kind == EXTREME)
        half = halves[r % 8], single = singles[r % 8];
    if (!is_f32(f))
        single = half_value(half);
    memcpy(to, is_f32(f) ? (void *)&single : (void *)&half, scale_bytes(f));
    return single;
}

static int draw_number(int least, int most, int kind) {
    const int q = least + (int)(draw() % (unsigned)(most - least + 1));
    if (kind == EXTREME && draw() % 2)
        return draw() % 3 == 0 ? 0 : draw() % 2 ? least : most;
    return q;
}

/* A block, and its weights: first half of a group in low halves of bytes, the rest in high ones. */
static void make_block(unsigned char *to, float *weights, const iso_q_format *f, int kind) {
    const float scale = make_scale(to, f, kind);
    const float offset = has_offset(f) ? make_scale(to + scale_bytes(f), f, kind) : 0;
    const size_t groups = block_of(f) / f->group;
    unsigned char *small = to + factors(f) * scale_bytes(f);
    unsigned char *numbers = small + (is_i8(f) ? factors(f) * groups : 0);
    const int least = f->bits == 8 ? -128 : has_offset(f) ? 0 : -8;
    const int most = f->bits == 8 ? 127 : least + 15;
    memset(numbers, 0, block_of(f) * f->bits / 8);
    for (size_t g = 0; g < groups; g++, weights += f->group, numbers += f->group * f->bits / 8) {
        const int of_scale = is_i8(f) ? draw_number(-128, 127, kind) : 1;
        const int of_offset = is_i8(f) ? draw_number(-128, 127, kind) : 1;
        if (is_i8(f))
            small[g] = (unsigned char)of_scale;
        if (is_i8(f) && has_offset(f))
            small[groups + g] = (unsigned char)of_offset;
        const float s = scale * (float)of_scale, o = offset * (float)of_offset;
        for (size_t i = 0; i < f->group; i++) {
            const int q = draw_number(least, most, kind);
            const int stored = f->bits == 4 && !has_offset(f) ? q + 8 : q;
            weights[i] = has_offset(f) ? fmaf((float)q, s, o) : (float)q * s;
            if (f->bits == 8)
                numbers[i] = (unsigned char)q;
            else if (i < f->group / 2)
                numbers[i] |= (unsigned char)stored;
            else
                numbers[i - f->group / 2] |= (unsigned char)(stored << 4);
        }
    }
}

/* Rows of blocks, and their weights; and both packed. */
struct matrix {
    size_t n, k, ld;
    unsigned char *blocks;
    float *wide;
    iso_packed_q packed;
    iso_packed packed_wide;
};

static void make_rows(unsigned char *to, float *wide, size_t rows, size_t k, size_t ld,
                      const iso_q_format *f, int kind) {
    for (size_t i = 0; i < rows; i++) {
        unsigned char *block = to + i * ld * block_bytes(f);
        for (size_t p = 0; p < k; p += block_of(f), block += block_bytes(f))
            make_block(block, wide + i * k + p, f, kind);
    }
}

static struct matrix make(size_t n, size_t k, const iso_q_format *f, int kind) {
    const size_t blocks = k / block_of(f);
    struct matrix m = {.n = n, .k = k, .ld = blocks + 1};
    const size_t extent = (k ? (n - 1) * m.ld + blocks : 0) * block_bytes(f);
    size_t bytes, bytes_wide;
    m.blocks = guarded(extent);
    m.wide = floats(n * k);
    memset(m.blocks, 0xff, extent); /* gaps are scales that are refused */
    make_rows(m.blocks, m.wide, n, k, m.ld, f, kind);
    assert_ok(iso_pack_q_bytes(&bytes, n, k, f));
    assert_ok(iso_pack_f32_bytes(&bytes_wide, n, k));
    assert_int_equal(bytes, (n + 15) / 16 * blocks * 16 * block_bytes(f));
    void *to = guarded((bytes + 63) / 64 * 64);
    memset(to, 0xa5, bytes);
    assert_ok(iso_pack_q(&m.packed, to, bytes, m.blocks, m.ld, n, k, f, NULL));
    assert_ok(
        iso_pack_f32(&m.packed_wide, guarded(bytes_wide), bytes_wide, m.wide, k, n, k, 0, NULL));
    return m;
}

/* --------------------------------------------------------------------------------------- tests */

/* A scale (which 0) or an offset of column c of a group; `block`: where its block begins. */
static float packed_factor(const iso_q_format *f, const unsigned char *block,
                           const unsigned char *group, size_t which, size_t c) {
    const size_t at = which * 16 + c;
    float value;
    uint16_t half;
    if (is_f32(f)) {
        memcpy(&value, group + 4 * at, 4);
        return value;
    }
    memcpy(&half, (is_i8(f) ? block : group) + 2 * at, 2);
    return half_value(half) * (is_i8(f) ? (float)(signed char)group[at] : 1);
}

/* Step s of column j, where isobit/ops.h says that it lies. */
struct weight {
    float number, scale, offset;
};
static struct weight packed_weight(const iso_packed_q *p, size_t j, size_t s) {
    const iso_q_format *f = &p->format;
    const size_t group = f->group, each = block_of(f), head = is_i8(f) ? 32 * factors(f) : 0;
    const size_t scales = factors(f) * 16 * (is_i8(f) ? 1 : scale_bytes(f));
    const size_t group_bytes = scales + 2 * group * f->bits, c = j % 16, step = s % group;
    const unsigned char *block =
        (const unsigned char *)p->data + (j / 16 * (p->k / each) + s / each) * 16 * block_bytes(f);
    const unsigned char *at = block + head + s % each / group * group_bytes;
    const unsigned char *numbers = at + scales;
    struct weight w = {.scale = packed_factor(f, block, at, 0, c)};
    if (has_offset(f))
        w.offset = packed_factor(f, block, at, 1, c);
    if (f->bits == 8) {
        w.number = (signed char)numbers[step * 16 + c];
    } else {
        uint32_t word;
        memcpy(&word, numbers + (step / 8 * 16 + c) * 4, 4);
        word = word >> (28 - step % 8 * 4) & 15;
        w.number = (float)word - (word >= 8 && !has_offset(f) ? 16 : 0);
    }
    return w;
}

/* Scales and numbers lie where isobit/ops.h says; beyond n there are zeros. */
static void layout_is_as_written(void **unused) {
    (void)unused;
    static const size_t shapes[][2] = {{1, 256}, {16, 256}, {31, 256}, {33, 768}};
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (size_t of = 0; of < COUNT(formats); of++) {
            const size_t n = shapes[i][0], k = shapes[i][1];
            const iso_q_format *f = &formats[of];
            const struct matrix m = make(n, k, f, PLAIN);
            for (size_t w = 0; w < way_count; w++) {
                size_t bytes;
                iso_packed_q p;
                assert_ok(iso_pack_q_bytes(&bytes, n, k, f));
                void *to = guarded((bytes + 63) / 64 * 64);
                memset(to, 0xa5, bytes);
                assert_ok(iso_pack_q(&p, to, bytes, m.blocks, m.ld, n, k, f, &ways[w]));
                for (size_t j = 0; j < (n + 15) / 16 * 16; j++)
                    for (size_t s = 0; s < k; s++) {
                        const struct weight at = packed_weight(&p, j, s);
                        const float weight = has_offset(f) ? fmaf(at.number, at.scale, at.offset)
                                                           : at.number * at.scale;
                        assert_true(weight == (j < n ? m.wide[j * k + s] : 0));
                    }
                release_one();
            }
            release();
        }
}

/* Under an emulator or a sanitizer. */
static bool slow(void) { return SANITIZED || getenv("ISOBIT_EMULATED"); }

static iso_status linear(float *y, size_t ldy, const float *x, size_t ldx, const void *packed,
                         size_t m, const iso_linear_options *options, const iso_context *context) {
    return iso_linear_q(y, ldy, x, ldx, packed, m, options, context);
}
static iso_status workspace_bytes(size_t *bytes, const void *packed, size_t m,
                                  const iso_context *context) {
    return iso_linear_q_workspace_bytes(bytes, packed, m, context);
}

static void products_have_the_bits_of_f32(void **unused) {
    (void)unused;
    static const size_t shapes[][3] = {
        {1, 1, 128},    {1, 16, 128},   {3, 17, 256},   {2, 40, 128},  {6, 130, 128},
        {7, 64, 384},   {13, 65, 128},  {25, 200, 128}, {8, 300, 640}, {33, 164, 1152},
        {130, 97, 128}, {40, 600, 640}, {5, 7, 0},      {4, 1200, 640}};
    int met[COUNT(formats)] = {0};
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (size_t of = 0; of < 2 * COUNT(formats); of++) {
            const size_t m = shapes[i][0], n = shapes[i][1], each = block_of(&formats[of / 2]);
            const size_t k = (shapes[i][2] + each - 1) / each * each;
            /* There all formats with all shapes take minutes; each meets a large one at least. */
            const int large = m * n * k > 200000;
            if (slow() && (of + i) % (large ? 8 : 2) != 0)
                continue;
            met[of / 2] |= large;
            const struct matrix w = make(n, k, &formats[of / 2], of % 2 ? EXTREME : PLAIN);
            const struct few_linear few = {&w.packed, linear, workspace_bytes};
            has_the_bits_of_f32(&few, &w.packed_wide, m,
                                of % 3 ? ISOBIT_ACT_RELU : ISOBIT_ACT_GELU_ERF);
            release();
        }
    for (size_t f = 0; f < COUNT(formats); f++)
        assert_true(met[f]);
}

/* A block of a row as isobit/ops.h defines it. */
static float round_block(int *q, const float *x, size_t n) {
    double most = 0;
    int finite = 1;
    for (size_t s = 0; s < n; s++) {
        finite &= isfinite(x[s]);
        most = fabs((double)x[s]) > most ? fabs((double)x[s]) : most;
    }
    const int some = finite && most >= ldexp(1, -119);
    const float inverse = some ? (float)(127 / most) : 0;
    for (size_t s = 0; s < n; s++)
        q[s] = some ? (int)rint((double)(float)((double)x[s] * (double)inverse)) : 0;
    return finite ? some ? (float)(most / 127) : 0 : NAN;
}

static void times_int8(float *y, size_t ldy, const float *x, size_t ldx, const void *packed,
                       size_t m, const iso_linear_options *o) {
    const iso_packed_q *p = packed;
    const iso_q_format *f = &p->format;
    const size_t steps = f->group == 16 ? 16 : 32; /* that have a sum of their own */
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < p->n; j++) {
            float sum = 0;
            for (size_t s = 0; s < p->k; s += steps) {
                int q[32], product = 0, all = 0;
                const size_t first = s / 32 * 32, left = p->k - first;
                const float scale = round_block(q, x + i * ldx + first, left < 32 ? left : 32);
                struct weight w = {0};
                for (size_t e = s; e < s + steps; e++) {
                    w = packed_weight(p, j, e);
                    product += (int)w.number * q[e - first];
                    all += q[e - first];
                }
                sum = fmaf((float)product, w.scale * scale, sum);
                if (has_offset(f))
                    sum = fmaf(w.offset, (float)all * scale, sum);
            }
            if (o->bias)
                sum += o->bias[j];
            if (o->act == ISOBIT_ACT_RELU)
                sum = sum > 0 ? sum : 0;
            y[i * ldy + j] = o->residual ? sum + o->residual[i * o->ldr + j] : sum;
        }
}

static iso_status linear_int8(float *y, size_t ldy, const float *x, size_t ldx, const void *packed,
                              size_t m, const iso_linear_options *options,
                              const iso_context *context) {
    return iso_linear_q_s8(y, ldy, x, ldx, packed, m, options, context);
}
static iso_status bytes_int8(size_t *bytes, const void *packed, size_t m,
                             const iso_context *context) {
    return iso_linear_q_s8_workspace_bytes(bytes, packed, m, context);
}

/* Rows in several blocks, k in several parts, columns for all threads. */
static void products_with_int8_have_the_bits_of_the_formula(void **unused) {
    (void)unused;
    static const size_t shapes[][3] = {{1, 1, 128},   {1, 16, 128},   {3, 17, 256}, {6, 130, 128},
                                       {13, 65, 128}, {33, 100, 640}, {5, 7, 0},    {4, 600, 640},
                                       {9, 40, 2304}, {70, 24, 8192}, {2, 33, 1040}};
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (size_t of = 0; of < COUNT(formats); of++) {
            const iso_q_format *f = &formats[of];
            const size_t m = shapes[i][0], n = shapes[i][1], each = block_of(f);
            const size_t k = (shapes[i][2] + each - 1) / each * each, work = m * n * k;
            if ((slow() || work > 2000000) && (of + i) % (slow() ? 8 : 4) != 0 && work > 200000)
                continue;
            const struct matrix w = make(n, k, f, PLAIN);
            const struct few_linear few = {&w.packed, linear_int8, bytes_int8};
            has_the_bits(&few, times_int8, &w.packed, n, k, m,
                         of % 3 ? ISOBIT_ACT_RELU : ISOBIT_ACT_NONE);
            release();
        }
}

/* One row, and one block of another, is not finite; others are small or zero. */
static void rows_of_any_numbers_times_int8(void **unused) {
    (void)unused;
    enum { M = 7, N = 20, K = 96 };
    static const float values[M] = {1, NAN, INFINITY, -INFINITY, 0, 0x1p-140f, 3e38f};
    for (size_t of = 0; of < 2; of++) {
        const struct matrix w = make(N, K, of ? &q8_0 : &q4_0, PLAIN);
        float *x = random_floats(M * K), *expect = floats(M * N), *y = floats(M * N);
        const iso_linear_options o = {.size = sizeof o};
        for (size_t i = 0; i < M; i++)
            for (size_t s = 32; s < K; s += isfinite(values[i]) ? 1 : 64)
                x[i * K + s] = values[i];
        times_int8(expect, N, x, K, &w.packed, M, &o);
        for (size_t v = 0; v < way_count; v++) {
            assert_ok(iso_linear_q_s8(y, N, x, K, &w.packed, M, NULL, &ways[v]));
            assert_true(same(y, N, expect, N, M, N));
            for (size_t i = 1; i < 4; i++)
                assert_true(isnan(y[i * N]) && isnan(y[i * N + N - 1]));
            assert_true(isfinite(y[0]) && isfinite(y[4 * N]) && isfinite(y[5 * N]));
        }
        release();
    }
}

/* Whatever the core, as other kinds of cores would compute it: in registers and in blocks. */
static void all_ways_have_the_same_bits(void **unused) {
    (void)unused;
    static const size_t rows[] = {1, 5, 8, 9, 12, 13, 33, 100};
    enum { N = 230, K = 768 };
    static const iso_q_format of_k = {4, 32, ISOBIT_SCALE_I8_OFFSET};
    static const struct {
        const iso_q_format *format;
        int type;
    } some[] = {{&q8_0, 0}, {&q4_0, ISO_Q_4}, {&of_k, ISO_Q_4 | ISO_Q_I8 | ISO_Q_OFFSETS}};
    for (size_t of = 0; of < COUNT(some); of++) {
        const iso_q_format *f = some[of].format;
        const struct matrix w = make(N, K, f, PLAIN);
        float *x = random_floats((size_t)100 * K), *bias = random_floats(N);
        float *expect = floats((size_t)100 * N), *y = floats((size_t)100 * N);
        const iso_linear_options o = {.size = sizeof o, .bias = bias, .act = ISOBIT_ACT_RELU};
        assert_ok(iso_linear_f32(expect, N, x, K, &w.packed_wide, 100, &o, NULL));
        for (size_t v = 0; v < way_count; v++)
            for (size_t i = 0; i < COUNT(rows) * ISO_GEMM_CLASSES * 2; i++) {
                if (slow() && (v / set_count + i / 3) % 2) /* every other way */
                    continue;
                const struct iso_kernels *kernels;
                const struct iso_epilogue e = {
                    .alpha = 1, .bias = bias, .act = (int)ISOBIT_ACT_RELU};
                const int type = some[of].type;
                const struct iso_weights few = {w.packed.data, N, K, 0, (int)f->bits, type, NULL};
                assert_ok(iso_context_kernels(&kernels, &ways[v]));
                struct iso_product t = {
                    .machine = iso_gemm_machine_of(kernels, (enum iso_gemm_class)(i % 3)),
                    .m = rows[i / 3 % COUNT(rows)],
                    .n = N,
                    .k = K,
                    .c = y,
                    .ldc = N,
                    .a = x,
                    .ai = K,
                    .ap = 1,
                    .bs = ISO_PANEL,
                    .bps = iso_weights_panel(&few),
                    .w = &few,
                    .e = &e};
                struct iso_gemm_shape s = {.m = t.m,
                                           .n = N,
                                           .k = K,
                                           .threads = iso_context_threads(&ways[v]),
                                           .panels = 1,
                                           .q = (int)f->bits};
                struct iso_gemm_tuning other = *t.machine.tuning;
                for (size_t c = 0; c < ISO_GEMM_CLASSES; c++) /* in registers, whatever m is */
                    other.rows_q4[c] = other.rows_q8[c] = 1000;
                if (i >= COUNT(rows) * ISO_GEMM_CLASSES)
                    t.machine.tuning = &other;
                t.plan = iso_gemm_plan(&s, &t.machine);
                memset(y, 0, sizeof(float) * t.m * N);
                assert_ok(iso_product_run(&ways[v], &t));
                assert_true(same(y, N, expect, N, t.m, N));
            }
        release();
    }
}

static iso_status embed(float *y, size_t ldy, const uint32_t *ids, size_t count,
                        const struct few_table *table, size_t vocabulary, size_t d, float scale,
                        const float *positions, const uint32_t *position_rows,
                        size_t position_count, const iso_context *context) {
    return iso_embed_q(y, ldy, ids, count, table->table, table->format, vocabulary, d, scale,
                       positions, position_rows, position_count, context);
}

static void embeddings_have_the_bits_of_f32(void **unused) {
    (void)unused;
    static const size_t widths[] = {128, 512, 640, 2176};
    for (size_t i = 0; i < COUNT(widths); i++)
        for (size_t of = 0; of < 2 * COUNT(formats); of++) {
            const iso_q_format *f = &formats[of / 2];
            const size_t d = (widths[i] + block_of(f) - 1) / block_of(f) * block_of(f);
            const size_t groups = d / block_of(f);
            unsigned char *table = guarded(FEW_VOCABULARY * groups * block_bytes(f));
            float *wide = floats(FEW_VOCABULARY * d);
            make_rows(table, wide, FEW_VOCABULARY, d, groups, f, of % 2 ? EXTREME : PLAIN);
            embeds_as_f32(&(struct few_table){.table = table, .embed = embed, .format = f}, wide, d,
                          of & 2);
            release();
        }
}

/* A scale that is not finite, wherever it is, of either kind. */
static void wrong_scales_are_refused(void **unused) {
    (void)unused;
    static const uint16_t halves[] = {0x7c00, 0xfc00, 0x7e00, 0x7c01};
    static const float singles[] = {INFINITY, -INFINITY, NAN, -NAN};
    enum { N = 35, K = 256 };
    for (size_t of = 0; of < COUNT(formats); of++) {
        const iso_q_format *f = &formats[of];
        const struct matrix m = make(N, K, f, PLAIN);
        size_t bytes;
        assert_ok(iso_pack_q_bytes(&bytes, N, K, f));
        void *to = guarded((bytes + 63) / 64 * 64);
        for (size_t at = 0; at < (N - 1) * m.ld + K / block_of(f); at++) {
            const size_t which = at % factors(f);
            unsigned char *block = m.blocks + at * block_bytes(f) + which * scale_bytes(f), kept[4];
            iso_packed_q p = {.n = 77};
            if (at % m.ld == K / block_of(f))
                continue; /* a gap */
            memcpy(kept, block, 4);
            memcpy(block,
                   is_f32(f) ? (const void *)&singles[at / 2 % 4]
                             : (const void *)&halves[at / 2 % 4],
                   scale_bytes(f));
            assert_int_equal(
                iso_pack_q(&p, to, bytes, m.blocks, m.ld, N, K, f, &ways[at % way_count]),
                ISOBIT_E_RANGE);
            assert_int_equal(p.n, 77);
            memcpy(block, kept, 4);
        }
        release();
    }
}

/* test_q_refused.c */
void wrong_arguments_are_refused(void **unused);

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_is_as_written),
        cmocka_unit_test(products_have_the_bits_of_f32),
        cmocka_unit_test(all_ways_have_the_same_bits),
        cmocka_unit_test(embeddings_have_the_bits_of_f32),
        cmocka_unit_test(wrong_scales_are_refused),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    const struct CMUnitTest of_int8[] = {
        /* levels differ in these alone */
        cmocka_unit_test(products_with_int8_have_the_bits_of_the_formula),
        cmocka_unit_test(rows_of_any_numbers_times_int8),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const int failed = cmocka_run_group_tests(tests, make_ways, drop_ways);
    return failed + cmocka_run_group_tests(of_int8, make_ways_with_levels, drop_ways);
}
