/* SPDX-License-Identifier: MIT
 *
 * Functions of single elements, also as gates, embeddings, position tables, and the FMA peak.
 */

ISO_INLINE void load_group(vf *v, const float *x) {
    ISO_UNROLLED (j, VF_TOGETHER)
        v[j] = vf_load(x + j * VF_N);
}

#define GROUP (VF_TOGETHER * VF_N)

/* How many floats ahead something is prefetched into L1, since the hardware prefetches too late
 * where a stream is worked on for a while, most of all one that is written. 0: it is there.
 * residual: or what a gate is multiplied by. */
struct ahead {
    size_t x, y, residual;
};
#define AHEAD_FLOATS 512
#define LINE_FLOATS 16

/* Of a matrix: the same column some rows further, or where rows follow each other or are long, that
 * many floats. */
static size_t ahead_in(size_t ld, size_t n) {
    return ld == n || n > 4 * AHEAD_FLOATS ? AHEAD_FLOATS : (AHEAD_FLOATS + n - 1) / n * ld;
}

/* Prefetches the lines of elements i .. i+floats-1. */
ISO_INLINE void prefetch_lines(const float *p, size_t i, const size_t floats) {
    if (floats >= LINE_FLOATS || i % LINE_FLOATS < floats)
        for (size_t j = 0; j < floats; j += LINE_FLOATS)
            __builtin_prefetch(p + i + j, 0, 3);
}

/* Prefetches the first n elements of each row into L2. */
static inline void prefetch_rows(const float *x, size_t ld, size_t rows, size_t n) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < n; j += LINE_FLOATS)
            __builtin_prefetch(x + i * ld + j, 0, 2);
}

/* b: a third stream, or NULL. */
ISO_INLINE void prefetch_ahead(const float *y, const float *x, const float *b, size_t i,
                               const struct ahead *ahead, const size_t floats) {
    if (ahead->x) {
        prefetch_lines(x + ahead->x, i, floats);
        prefetch_lines(y + ahead->y, i, floats);
        if (b)
            prefetch_lines(b + ahead->residual, i, floats);
    }
}

/*
 * Below y = f(x), or, unless b is NULL, the gate y = f(x) b. b is a constant NULL in the functions
 * that have none, so these are compiled as if it were not there.
 */

/* GELU of whole groups. The first part of a group comes before the second part of the group before
 * it: two groups of such long chains do not fit into the scheduler of a core. */
ISO_INLINE void gelu_groups(float *y, const float *x, const float *b, size_t n,
                            const struct ahead *ahead) {
    vf v[VF_TOGETHER], h[VF_TOGETHER], next[VF_TOGETHER];
    load_group(v, x);
    gelus_begin(h, v, VF_TOGETHER);
    for (size_t i = 0; i < n; i += GROUP) {
        prefetch_ahead(y, x, b, i, ahead, GROUP);
        /* The last one begins twice: that is faster than a branch. */
        load_group(v, x + (i + GROUP < n ? i + GROUP : i));
        gelus_begin(next, v, VF_TOGETHER);
        load_group(v, x + i);
        gelus_end(v, v, h, VF_TOGETHER);
        ISO_UNROLLED (j, VF_TOGETHER) {
            if (b)
                v[j] = vf_mul(v[j], vf_load(b + i + j * VF_N));
            vf_store(y + i + j * VF_N, v[j]);
            h[j] = next[j];
        }
    }
}

ISO_INLINE void unary_group(float *y, const float *x, const float *b, size_t i, const int function,
                            const struct ahead *ahead, const size_t k) {
    vf v[VF_MOST];
    prefetch_ahead(y, x, b, i, ahead, k * VF_N);
    ISO_UNROLLED (j, k)
        v[j] = vf_load(x + i + j * VF_N);
    vf_functions(v, v, function, k);
    if (b)
        ISO_UNROLLED (j, k)
            v[j] = vf_mul(v[j], vf_load(b + i + j * VF_N));
    ISO_UNROLLED (j, k)
        vf_store(y + i + j * VF_N, v[j]);
}

/* Groups of vectors, then single ones: only the last of these may be short. */
ISO_INLINE void unary_each(float *y, const float *x, const float *b, size_t n, const int function,
                           const struct ahead *ahead) {
    size_t i = 0;
    if (VF_TOGETHER > 1 && function == ISO_UNARY_GELU_ERF && n >= 3 * GROUP) {
        i = n / GROUP * GROUP;
        gelu_groups(y, x, b, i, ahead);
    }
    /* Two groups at once: each waits for its divisions. */
    if (function == ISO_UNARY_GELU_TANH || (function == ISO_UNARY_SILU && VF_TOGETHER == 2))
        for (; i + 2 * GROUP <= n; i += 2 * GROUP)
            unary_group(y, x, b, i, function, ahead, 2 * VF_TOGETHER);
    for (; VF_TOGETHER > 1 && i + GROUP <= n; i += GROUP)
        unary_group(y, x, b, i, function, ahead, VF_TOGETHER);
    for (; i < n; i += VF_N) {
        size_t w = n - i < VF_N ? n - i : VF_N;
        vf v = load_w(x + i, w);
        vf_functions(&v, &v, function, 1);
        if (b)
            v = vf_mul(v, load_w(b + i, w));
        store_w(y + i, v, w);
    }
}
#undef GROUP

static ISO_ONE_COPY void unary_ahead(float *y, const float *x, size_t n, int function,
                                     const struct ahead *ahead) {
    switch (function) {
#define ACTIVATION(NAME, ...)                                                                      \
    case ISO_UNARY_##NAME:                                                                         \
        unary_each(y, x, NULL, n, ISO_UNARY_##NAME, ahead);                                        \
        break;
#include "activations.def"
#undef ACTIVATION
    case ISO_UNARY_EXP: unary_each(y, x, NULL, n, ISO_UNARY_EXP, ahead); break;
    case ISO_UNARY_ERF: unary_each(y, x, NULL, n, ISO_UNARY_ERF, ahead); break;
    default: unary_each(y, x, NULL, n, ISO_UNARY_NONE, ahead); break;
    }
}

static void unary(float *y, const float *x, size_t n, int function) {
    static const struct ahead none;
    unary_ahead(y, x, n, function, &none);
}

static ISO_ONE_COPY void gate_row(float *y, const float *a, const float *b, size_t n, int act,
                                  const struct ahead *ahead) {
    switch (act) {
#define ACTIVATION(NAME, ...)                                                                      \
    case ISO_UNARY_##NAME:                                                                         \
        unary_each(y, a, b, n, ISO_UNARY_##NAME, ahead);                                           \
        break;
#include "activations.def"
#undef ACTIVATION
    default: unary_each(y, a, b, n, ISO_UNARY_NONE, ahead); break;
    }
}

static void gate(float *y, size_t ldy, const float *a, size_t lda, const float *b, size_t ldb,
                 size_t rows, size_t n, int act, int beyond_l2) {
    struct ahead ahead = {.x = 0};
    if (beyond_l2 && n > 0)
        ahead = (struct ahead){ahead_in(lda, n), ahead_in(ldy, n), ahead_in(ldb, n)};
    for (size_t i = 0; i < rows; i++)
        gate_row(y + i * ldy, a + i * lda, b + i * ldb, n, act, &ahead);
}

/* y = scale * table[id] + position, by fma; without positions one multiplication. */
static void embed(float *y, size_t ldy, const uint32_t *ids, size_t count, const float *table,
                  size_t d, float scale, const float *positions, const uint32_t *rows, int stream) {
    const vf s = vf_set1(scale);
    stream = stream && lies_in_vectors(y, ldy);
    for (size_t t = 0; t < count; t++, y += ldy) {
        const float *e = table + (size_t)ids[t] * d;
        const float *p = positions ? positions + (rows ? (size_t)rows[t] : t) * d : NULL;
        size_t i = 0;
        if (p)
            for (; i + VF_N <= d; i += VF_N)
                stream_w(y + i, vf_fma(vf_load(e + i), s, vf_load(p + i)), VF_N, stream);
        else
            for (; i + VF_N <= d; i += VF_N)
                stream_w(y + i, vf_mul(vf_load(e + i), s), VF_N, stream);
        if (i < d) {
            vf v = vf_load_n(e + i, d - i);
            vf_store_n(y + i, p ? vf_fma(v, s, vf_load_n(p + i, d - i)) : vf_mul(v, s), d - i);
        }
    }
    if (stream)
        vf_streamed();
}

/*
 * Sinusoidal positions in double, rounded once. SLEEF's functions without FMA in plain C give the
 * same doubles everywhere; a libm does not.
 */
static void positions(float *y, size_t ldy, size_t first, size_t count, size_t d, int layout) {
    const size_t sines = layout == 2 ? d / 2 : (d + 1) / 2;
    for (size_t i = 0; i < sines; i++) {
        double exponent = layout == 2 ? (sines > 1 ? (double)i / (double)(sines - 1) : 0)
                                      : (double)(2 * i) / (double)d;
        double f = Sleef_cinz_powd1_u10purec(10000.0, exponent);
        const size_t s = layout == 0 ? 2 * i : i, c = layout == 0 ? 2 * i + 1 : sines + i;
        for (size_t t = 0; t < count; t++) {
            double angle = (double)(first + t) / f;
            y[t * ldy + s] = (float)Sleef_cinz_sind1_u10purec(angle);
            if (c < d)
                y[t * ldy + c] = (float)Sleef_cinz_cosd1_u10purec(angle);
        }
    }
    if (layout == 2 && d % 2)
        for (size_t t = 0; t < count; t++)
            y[t * ldy + d - 1] = 0;
}

/* Independent chains of FMAs in registers: as many as the machine can do. */
static float fma_peak(size_t rounds) {
    vf t[VF_FMA_CHAINS];
    /* Sums that stay what they are, rounded: as quick as others, and no number ever gets extreme.
     * The sum comes last because it is what an FMA of Arm's overwrites. Compilers may not know the
     * factor: GCC adds constants itself, sees that no sum changes, and leaves the loop out. */
    const volatile float tiny = 0x1p-20f;
    const vf a = vf_set1(tiny), b = vf_set1(tiny);
    ISO_UNROLLED (i, VF_FMA_CHAINS)
        t[i] = vf_set1((float)(i + 1));
    for (size_t r = 0; r < rounds; r++)
        ISO_UNROLLED (i, VF_FMA_CHAINS)
            t[i] = vf_fma(a, b, t[i]);
    vf s = t[0];
    ISO_UNROLL
    for (size_t i = 1; i < VF_FMA_CHAINS; i++)
        s = vf_add(s, t[i]);
    return vf_tree(s);
}
