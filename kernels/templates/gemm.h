/* SPDX-License-Identifier: MIT
 *
 * Packing, and the epilogue of a matrix product. The product itself is gemm_strip.
 */

#define PACK_ROWS 8 /* of a row-major matrix that are read at a time */
#define PACK_FEW 2  /* rows that are faster without a square of their own */
/* The floats of a strip of A in whole vectors, and strips of a transposed A that are packed at a
 * time: the hardware prefetches along its rows, and the strips may alias in L1. */
#define PACK_NARROW ((GEMM_MR + VF_N - 1) / VF_N * VF_N)
#define PACK_PANELS 4

/* n vectors into a panel that is `width` wide. */
static ISO_ONE_COPY void pack_panel(float *dst, const float *src, size_t si, size_t sp, size_t n,
                                    size_t k, size_t width) {
    if (si == 1) { /* rows of the panel lie contiguous */
        for (size_t p = 0; p < k; p++) {
            size_t j = 0;
            for (; j + VF_N <= n; j += VF_N)
                vf_store(dst + p * width + j, vf_load(src + p * sp + j));
            if (j < n)
                vf_store_n(dst + p * width + j, vf_load_n(src + p * sp + j, n - j), n - j);
        }
        return;
    }
    size_t transposed = 0;
    if (sp == 1 && k >= VF_N) { /* columns lie contiguous: transpose squares, a few whole columns at
                                   a time, which may alias in L1 */
        transposed = n % VF_N <= PACK_FEW ? n - n % VF_N : n;
        for (size_t j = 0; j < transposed; j += ISO_PANEL)
            for (size_t done = 0; done < k;) {
                const size_t end = transposed - j < ISO_PANEL ? transposed : j + ISO_PANEL;
                const size_t p = done + VF_N < k ? done : k - VF_N; /* may overlap the last one */
                for (size_t i = j; i < end; i += VF_N)
                    vf_transpose(dst + p * width + i, width, src + i * si + p, si,
                                 end - i < VF_N ? end - i : VF_N);
                done = p + VF_N;
            }
    }
    for (size_t p = 0; p < k && transposed < n; p++)
        for (size_t i = transposed; i < n; i++)
            dst[p * width + i] = src[i * si + p * sp];
}

/* `rows` steps of k of n columns, which lie contiguous, into whole panels. */
static inline __attribute__((always_inline)) void pack_rows(float *dst, const float *src, size_t sp,
                                                            size_t n, size_t k, const size_t rows) {
    for (size_t j = 0; n - j >= ISO_PANEL; j += ISO_PANEL, dst += k * ISO_PANEL) {
        const float *from = src + j;
        ISO_UNROLLED (r, rows) {
            ISO_UNROLLED (l, ISO_PANEL / VF_N)
                vf_store(dst + r * ISO_PANEL + l * VF_N, vf_load(from + l * VF_N));
            ISO_NEXT_ROW(from, sp, r, rows);
        }
    }
}

/* k steps of so many panels of `width` side by side, whose columns lie contiguous, in whole
 * vectors: what these write beyond the end of a step, the next one overwrites. Of a single panel
 * `present` columns are there, and zeros are the others. */
static inline __attribute__((always_inline)) void pack_narrow(float *dst, const float *src,
                                                              size_t sp, size_t k, size_t width,
                                                              size_t present, const size_t panels) {
    size_t p = 0;
    for (; (k - p) * width >= PACK_NARROW; p++, src += sp, dst += width) {
        const float *from = src;
        float *to = dst;
        ISO_UNROLLED (j, panels) {
            ISO_UNROLLED (i, PACK_NARROW / VF_N) {
                const size_t l = i * VF_N;
                vf_store(to + l, panels > 1 || present >= l + VF_N ? vf_load(from + l)
                                 : present > l ? vf_load_n(from + l, present - l)
                                               : vf_set1(0));
            }
            from += width, to += k * width;
        }
    }
    for (; p < k; p++, src += sp, dst += width)
        for (size_t j = 0; j < panels; j++)
            for (size_t l = 0; l < width; l++)
                dst[j * k * width + l] = panels > 1 || l < present ? src[j * width + l] : 0;
}

static ISO_ONE_COPY void gemm_pack(float *dst, const float *src, size_t si, size_t sp, size_t n,
                                   size_t k, size_t width) {
    ISO_REQUIRE(width > 0);
    size_t j = 0, p = 0;
    if (si == 1 && width <= GEMM_MR) {
        for (; n - j >= (PACK_PANELS - 1) * width + PACK_NARROW; j += PACK_PANELS * width)
            pack_narrow(dst + j * k, src + j, sp, k, width, 0, PACK_PANELS);
        for (; j < n; j += width)
            pack_narrow(dst + j * k, src + j, sp, k, width, n - j, 1);
        return;
    }
    if (si == 1 && width == ISO_PANEL) { /* along the rows, as the hardware prefetches */
        for (; k - p >= PACK_ROWS; p += PACK_ROWS)
            pack_rows(dst + p * width, src + p * sp, sp, n, k, PACK_ROWS);
        for (; p < k; p++)
            pack_rows(dst + p * width, src + p * sp, sp, n, k, 1);
        j = n - n % width;
    }
    for (; j < n; j += width) {
        const size_t present = n - j < width ? n - j : width;
        if (present < width)
            memset(dst + j * k, 0, k * width * sizeof(float));
        pack_panel(dst + j * k, src + j * si, si, sp, present, k, width);
    }
}

/* `vectors` vectors from column j on, of which the last holds `last` columns. scaled: 0 where alpha
 * is known to be 1, and beta 0. */
ISO_INLINE void epilogue_vectors(float *c, const float *t, size_t j, const struct iso_epilogue *e,
                                 const float *residual, const struct ahead *ahead, const int act,
                                 const int scaled, const size_t vectors, const size_t last,
                                 const int stream) {
    vf v[VF_MOST];
    prefetch_ahead(c, t, NULL, j, ahead, vectors * VF_N);
    if (residual && ahead->x)
        prefetch_lines(residual + ahead->residual, j, vectors * VF_N);
#define WIDTH (i + 1 < vectors ? VF_N : last)
    ISO_UNROLLED (i, vectors)
        v[i] = load_w(t + j + i * VF_N, WIDTH);
    if (scaled && e->alpha != 1.0f)
        ISO_UNROLLED (i, vectors)
            v[i] = vf_mul(vf_set1(e->alpha), v[i]);
    if (scaled && e->beta != 0.0f)
        ISO_UNROLLED (i, vectors)
            v[i] = vf_fma(vf_set1(e->beta), load_w(c + j + i * VF_N, WIDTH), v[i]);
    if (e->bias)
        ISO_UNROLLED (i, vectors)
            v[i] = vf_add(v[i], load_w(e->bias + j + i * VF_N, WIDTH));
    vf_functions(v, v, act, vectors);
    if (residual)
        ISO_UNROLLED (i, vectors)
            v[i] = vf_add(v[i], load_w(residual + j + i * VF_N, WIDTH));
    ISO_UNROLLED (i, vectors)
        stream_w(c + j + i * VF_N, v[i], WIDTH, stream);
#undef WIDTH
}

/* *e is read again for each group of vectors: with copies of its members compilers make a loop for
 * each combination of them. */
ISO_INLINE void epilogue_rows(float *c, size_t ldc, const float *t, size_t ldt, size_t m, size_t n,
                              const struct iso_epilogue *e, const struct ahead *ahead,
                              const int act, const int scaled) {
    for (size_t i = 0; i < m; i++, c += ldc, t += ldt) {
        const float *residual = e->residual ? e->residual + i * e->ldr : NULL;
        size_t j = 0;
        if (VF_TOGETHER == 2 && (act == ISO_UNARY_SILU || act == ISO_UNARY_GELU_TANH))
            for (; j + 2 * VF_TOGETHER * VF_N <= n;
                 j += 2 * VF_TOGETHER * VF_N) /* see unary_each */
                epilogue_vectors(c, t, j, e, residual, ahead, act, scaled, 2 * VF_TOGETHER, VF_N,
                                 0);
        for (; VF_TOGETHER > 1 && j + VF_TOGETHER * VF_N <= n; j += VF_TOGETHER * VF_N)
            epilogue_vectors(c, t, j, e, residual, ahead, act, scaled, VF_TOGETHER, VF_N, 0);
        for (; j < n; j += VF_N)
            epilogue_vectors(c, t, j, e, residual, ahead, act, scaled, 1,
                             n - j < VF_N ? n - j : VF_N, 0);
    }
}

static struct ahead epilogue_ahead(size_t ldc, size_t ldt, size_t n, const struct iso_epilogue *e) {
    struct ahead ahead = {.x = 0};
    if (e->beyond_l2 && n > 0)
        ahead = (struct ahead){ahead_in(ldt, n), ahead_in(ldc, n), ahead_in(e->ldr, n)};
    return ahead;
}

/* Without a function, or with ReLU: so short that asking for alpha and beta takes time. A function
 * of which gcc knows nothing: after a call of one that it knows to leave upper halves of registers
 * untouched gcc 12 takes them as clean, though epilogue_in_steps may have used them to copy *e. */
#if defined(__GNUC__) && !defined(__clang__)
__attribute__((noipa))
#endif
static ISO_ONE_COPY void
epilogue_light(float *c, size_t ldc, const float *t, size_t ldt, size_t m, size_t n,
               const struct iso_epilogue *e) {
    const struct ahead ahead = epilogue_ahead(ldc, ldt, n, e);
    const int scaled = VF_N == 1 || e->alpha != 1.0f || e->beta != 0.0f;
    if (e->act == ISO_UNARY_RELU) {
        if (scaled)
            epilogue_rows(c, ldc, t, ldt, m, n, e, &ahead, ISO_UNARY_RELU, 1);
        else
            epilogue_rows(c, ldc, t, ldt, m, n, e, &ahead, ISO_UNARY_RELU, 0);
    } else {
        if (scaled)
            epilogue_rows(c, ldc, t, ldt, m, n, e, &ahead, ISO_UNARY_NONE, 1);
        else
            epilogue_rows(c, ldc, t, ldt, m, n, e, &ahead, ISO_UNARY_NONE, 0);
    }
}

/* Where a function by itself works on more vectors at a time than there are registers for with all
 * else: first the arguments of the function, then the function, then the residual. */
#define EPILOGUE_STEPS(f)                                                                          \
    (VF_TOGETHER < 2 || (VF_TOGETHER == 2 && ((f) == ISO_UNARY_GELU_ERF || (f) == ISO_UNARY_TANH)))
#define EPILOGUE_FLOATS 512
static void epilogue_in_steps(float *c, size_t ldc, const float *t, size_t ldt, size_t m, size_t n,
                              const struct iso_epilogue *e) {
    float part_sums[EPILOGUE_FLOATS];
    for (size_t i = 0; i < m; i++, c += ldc, t += ldt)
        for (size_t j = 0, w; j < n; j += w) {
            w = n - j < EPILOGUE_FLOATS ? n - j : EPILOGUE_FLOATS;
            float *to = e->residual ? part_sums : c + j;
            if (e->residual && e->beta != 0.0f)
                memcpy(part_sums, c + j, w * sizeof(float));
            struct iso_epilogue part = *e;
            part.act = ISO_UNARY_NONE, part.residual = NULL;
            part.bias = e->bias ? e->bias + j : NULL;
            epilogue_light(to, w < n ? w : ldc, t + j, w < n ? w : ldt, 1, w, &part);
            unary(to, to, w, e->act);
            if (e->residual) {
                part =
                    (struct iso_epilogue){.alpha = 1.0f, .residual = e->residual + i * e->ldr + j};
                epilogue_light(c + j, 0, part_sums, 0, 1, w, &part);
            }
        }
}

static ISO_ONE_COPY void epilogue(float *c, size_t ldc, const float *t, size_t ldt, size_t m,
                                  size_t n, const struct iso_epilogue *e) {
    const struct ahead ahead = epilogue_ahead(ldc, ldt, n, e);
    if (e->alpha == 1.0f && e->beta == 0.0f && !e->bias && !e->residual) {
        for (size_t i = 0; i < m; i++)
            unary_ahead(c + i * ldc, t + i * ldt, n, e->act, &ahead);
        return;
    }
    switch (e->act) {
#define ACTIVATION(NAME, ...)                                                                      \
    case ISO_UNARY_##NAME:                                                                         \
        if (ISO_UNARY_##NAME == ISO_UNARY_RELU)                                                    \
            goto light;                                                                            \
        if (EPILOGUE_STEPS(ISO_UNARY_##NAME))                                                      \
            epilogue_in_steps(c, ldc, t, ldt, m, n, e);                                            \
        else                                                                                       \
            epilogue_rows(c, ldc, t, ldt, m, n, e, &ahead, ISO_UNARY_##NAME, 1);                   \
        break;
#include "activations.def"
#undef ACTIVATION
    default:
    light:
        epilogue_light(c, ldc, t, ldt, m, n, e);
        break;
    }
}

/* Non-temporal stores for the whole lines of a row, not for what is before and after them. */
ISO_INLINE void epilogue_stream(float *c, size_t ldc, const float *t, size_t ldt, size_t m,
                                size_t n, const struct iso_epilogue *e, const int act) {
    static const struct ahead none;
    struct iso_epilogue part = *e;
    for (size_t i = 0; i < m; i++, c += ldc, t += ldt) {
        const float *residual = e->residual ? e->residual + i * e->ldr : NULL;
        const size_t over = (uintptr_t)c / sizeof(float) % LINE_FLOATS;
        size_t head = over ? LINE_FLOATS - over : 0, j;
        if (head > n || (uintptr_t)c % sizeof(float))
            head = n;
        part.bias = e->bias, part.residual = residual;
        epilogue(c, 0, t, 0, 1, head, &part);
        for (j = head; n - j >= LINE_FLOATS; j += LINE_FLOATS)
            epilogue_vectors(c, t, j, e, residual, &none, act, 1, LINE_FLOATS / VF_N, VF_N, 1);
        part.bias = e->bias ? e->bias + j : NULL, part.residual = residual ? residual + j : NULL;
        epilogue(c + j, 0, t + j, 0, 1, n - j, &part);
    }
    vf_streamed();
}

static void gemm_epilogue(float *c, size_t ldc, const float *t, size_t ldt, size_t m, size_t n,
                          const struct iso_epilogue *e) {
    if (VF_STREAMS && e->stream && e->act == ISO_UNARY_NONE)
        epilogue_stream(c, ldc, t, ldt, m, n, e, ISO_UNARY_NONE);
    else if (VF_STREAMS && e->stream && e->act == ISO_UNARY_RELU)
        epilogue_stream(c, ldc, t, ldt, m, n, e, ISO_UNARY_RELU);
    else
        epilogue(c, ldc, t, ldt, m, n, e);
}
