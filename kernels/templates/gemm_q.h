/* SPDX-License-Identifier: MIT
 *
 * Weights of 4 or 8 bits in groups with a scale, and maybe an offset (kernels.h). gemm_q makes
 * floats of them in registers, gemm_dequantise panels of floats. A weight has one rounding in both,
 * so sums have the bits that they have with those floats.
 *
 * gemm_tile.h says how many vectors of columns a tile of m rows takes: GEMM_VECTORS_Q(m), a part of
 * a panel or some panels; at most GEMM_Q_MR rows. Scales stay in registers for a group, or
 * compilers put them onto the stack, where the multiplication reads them; words of 8 numbers of 4
 * bits for 8 steps.
 *
 * Without an offset a weight is a product, or the same with an offset of -0, which changes no
 * number: so one kernel of 8 bits does for both. GEMM_KINDS_Q: of 4 bits there are 2 kernels; 1,
 * with an offset always; or 0: of either there is one that asks the type each time, since an fma
 * costs much more.
 */
#define Q_VECTORS 4 /* of a tile's columns, at most */
_Static_assert(GEMM_VECTORS_Q(1) <= Q_VECTORS, "the fewest rows take the most");
#if GEMM_Q_MR == 4
#define Q_EACH(X) X(1) X(2) X(3) X(4)
#else
#define Q_EACH(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif

/* Words of so many steps of a panel. */
ISO_INLINE size_t q_step_words(const int bits) {
    return ISO_Q_STEPS * ISO_PANEL * (size_t)bits / 32;
}

/* What weights have: no offsets; any; or what the type says, while the program runs. */
enum { Q_PRODUCT, Q_SUM, Q_EITHER };
#define Q_OF_8 (GEMM_KINDS_Q == 0 ? Q_EITHER : Q_SUM)
#define Q_OF_4 (GEMM_KINDS_Q == 2 ? Q_PRODUCT : Q_OF_8)

ISO_INLINE vf q_offset(const uint32_t *head, const uint32_t *group, size_t chunk, const int kind,
                       int type) {
    return kind != Q_PRODUCT && type & ISO_Q_OFFSETS ? q_factor(head, group, 1, chunk, type)
                                                     : vf_set1(-0.0f);
}

ISO_INLINE vf q_weight(vf number, vf scale, vf offset, const int kind, int type) {
    return kind == Q_PRODUCT || (kind == Q_EITHER && !(type & ISO_Q_OFFSETS))
               ? vf_mul(number, scale)
               : vf_fma(number, scale, offset);
}

/* Whether numbers of 4 bits have a sign: known beforehand where there are two kernels of them. */
ISO_INLINE int q_sign(const int kind, int type) {
    return GEMM_KINDS_Q == 2 ? kind == Q_PRODUCT : !(type & ISO_Q_OFFSETS);
}

ISO_INLINE vf q_load_s8(const uint32_t *step, size_t chunk) {
    return vf_load_s8((const int8_t *)(const void *)step + chunk * VF_N);
}

/* Weights of a step from their numbers and scales, then their products. */
ISO_INLINE void q_step(vf *t, const float **four, size_t lda, size_t three, vf *bv, const vf *s,
                       const vf *o, const size_t m, const size_t vectors, const int kind,
                       int type) {
    ISO_UNROLLED (q, vectors)
        bv[q] = q_weight(bv[q], s[q], o[q], kind, type);
    direct_step(t, four, lda, three, bv, m, vectors);
    direct_next(four, m, t[m * vectors - 1]);
}

/* Sums of m rows and `vectors` vectors, the first of which is `chunk` of its panel. B is prefetched
 * so many words ahead, also by few rows, which take as long as memory does. rolled: steps are a
 * loop, with less code and, where that needs constants, fewer registers. */
ISO_INLINE void q_tile(float *c, size_t ldc, const float *a, size_t lda, const uint32_t *b,
                       size_t bps, size_t chunk, const size_t m, const size_t vectors, size_t k,
                       int add, const int bits, const int kind, int type, size_t distance,
                       const int rolled) {
    const size_t panels = (vectors + Q_CHUNKS - 1) / Q_CHUNKS, group = iso_q_group(type);
    const int sign = q_sign(kind, type);
    const uint32_t *head = b;
    vf t[GEMM_SUMS];
    const float *four[GEMM_DIRECT_TALL / 4 + 1], *end = a + k;
    size_t two = 2 * bps, three = 3 * lda;
    ISO_OPAQUE(two);
    ISO_OPAQUE(three);
    ISO_UNROLLED (i, m * vectors)
        t[i] = vf_set1(0);
    ISO_UNROLLED (i, (m + 3) / 4)
        four[i] = a + 4 * i * lda;
#define Q_PANEL(q) (b + DIRECT_PANEL(q / Q_CHUNKS))
#define Q_HEAD(q) (head + DIRECT_PANEL(q / Q_CHUNKS))
#define Q_CHUNK(q) (chunk + q % Q_CHUNKS)
    for (size_t groups = 0; four[0] != end; groups--) {
        vf s[Q_VECTORS], o[Q_VECTORS];
        if (type & ISO_Q_I8 && groups == 0) {
            head = b;
            groups = ISO_Q_BLOCK / group;
            b += iso_q_head_words(type);
        }
        if (GEMM_KINDS_Q == 0) /* less code */
            ISO_NOT_UNROLLED
        for (size_t q = 0; q < vectors; q++) {
            s[q] = q_factor(Q_HEAD(q), Q_PANEL(q), 0, Q_CHUNK(q), type);
            o[q] = q_offset(Q_HEAD(q), Q_PANEL(q), Q_CHUNK(q), kind, type);
        }
        else ISO_UNROLLED (q, vectors) {
            s[q] = q_factor(Q_HEAD(q), Q_PANEL(q), 0, Q_CHUNK(q), type);
            o[q] = q_offset(Q_HEAD(q), Q_PANEL(q), Q_CHUNK(q), kind, type);
        }
        b += iso_q_scale_words(type);
        for (size_t left = group; left > 0; left -= ISO_Q_STEPS) {
            vf bv[Q_VECTORS];
            ISO_UNROLLED (j, panels * q_step_words(bits) / Q_LINE)
                __builtin_prefetch(b + DIRECT_PANEL(j % panels) + j / panels * Q_LINE + distance, 0,
                                   2);
            vw w[Q_VECTORS];
            if (bits == 4) {
                ISO_UNROLLED (q, vectors)
                    w[q] = vw_load(Q_PANEL(q) + Q_CHUNK(q) * VF_N);
                b += q_step_words(bits);
            }
            if (bits == 4 && !rolled) {
                ISO_UNROLLED (step, ISO_Q_STEPS) {
                    ISO_UNROLLED (q, vectors)
                        bv[q] = vw_number4(w[q], (int)step, sign);
                    q_step(t, four, lda, three, bv, s, o, m, vectors, kind, type);
                }
                continue;
            }
            ISO_NOT_UNROLLED
            for (size_t step = 0; step < ISO_Q_STEPS; step++) {
                if (bits == 4)
                    ISO_UNROLLED (q, vectors)
                        bv[q] = vw_number4(w[q], 0, sign), w[q] = vw_next4(w[q]);
                else
                    ISO_UNROLLED (q, vectors)
                        bv[q] = q_load_s8(Q_PANEL(q), Q_CHUNK(q));
                q_step(t, four, lda, three, bv, s, o, m, vectors, kind, type);
                if (bits == 8)
                    b += q_step_words(bits) / ISO_Q_STEPS;
            }
        }
    }
#undef Q_PANEL
#undef Q_HEAD
#undef Q_CHUNK
    ISO_UNROLLED (i, m) {
        ISO_UNROLLED (v, vectors) {
            float *q = c + (chunk + v) * VF_N;
            const vf sum = t[i * vectors + v];
            vf_store(q, add ? vf_add(vf_load(q), sum) : sum);
        }
        ISO_NEXT_ROW(c, ldc, i, m);
    }
}

ISO_INLINE void q_rows(float *c, size_t ldc, const float *a, size_t lda, const uint32_t *b,
                       size_t bps, const size_t m, size_t n, size_t k, int mode, const int bits,
                       const int kind, int type) {
    const int several = GEMM_VECTORS_Q(m) > Q_CHUNKS;
    const size_t panels = several ? GEMM_VECTORS_Q(m) / Q_CHUNKS : 1;
    const size_t vectors = GEMM_VECTORS_Q(m) < Q_CHUNKS ? GEMM_VECTORS_Q(m) : Q_CHUNKS;
    const size_t ahead = mode & ISO_DIRECT_BEYOND_L2 ? PREFETCH_LINES * Q_LINE : 0;
    const int add = mode & ISO_DIRECT_ADD, rolled = GEMM_ROLLED_Q;
    if (several)
        for (; n >= panels * ISO_PANEL; n -= panels * ISO_PANEL) {
            q_tile(c, ldc, a, lda, b, bps, 0, m, panels * Q_CHUNKS, k, add, bits, kind, type,
                   ahead / panels, rolled);
            c += panels * ISO_PANEL, b += panels * bps;
        }
    while (n > 0) {
        float sums[GEMM_Q_MR * ISO_PANEL];
        const int part = n < ISO_PANEL;
        for (size_t chunk = 0; chunk < Q_CHUNKS; chunk += vectors)
            q_tile(part ? sums : c, part ? ISO_PANEL : ldc, a, lda, b, bps, chunk, m, vectors, k,
                   part ? 0 : add, bits, kind, type, ahead, several || rolled);
        if (part) {
            panel_part(c, ldc, sums, ISO_PANEL, m, n, add);
            break;
        }
        n -= ISO_PANEL, c += ISO_PANEL, b += bps;
    }
}

/* clang-format off */
#define Q_ROWS_OF(NAME, M, BITS, KIND)                                                             \
    static ISO_ONE_COPY void NAME##_##M(float *c, size_t ldc, const float *a, size_t lda,          \
                                        const uint32_t *b, size_t bps, size_t n, size_t k,         \
                                        int type, int mode) {                                      \
        q_rows(c, ldc, a, lda, b, bps, M, n, k, mode, BITS, KIND, type);                           \
    }
#define Q_CASE_OF(NAME, M) case M: NAME##_##M(c, ldc, a, lda, b, bps, n, k, type, mode); break;
#define Q8_ROWS(M) Q_ROWS_OF(q8_rows, M, 8, Q_OF_8)
#define Q8_CASE(M) Q_CASE_OF(q8_rows, M)
#define Q4_ROWS(M) Q_ROWS_OF(q4_rows, M, 4, Q_OF_4)
#define Q4_CASE(M) Q_CASE_OF(q4_rows, M)
#define Q4_SUM_ROWS(M) Q_ROWS_OF(q4_sum_rows, M, 4, Q_SUM)
#define Q4_SUM_CASE(M) Q_CASE_OF(q4_sum_rows, M)
Q_EACH(Q8_ROWS)
Q_EACH(Q4_ROWS)
#if GEMM_KINDS_Q == 2
Q_EACH(Q4_SUM_ROWS)
#endif
/* clang-format on */

static void gemm_q(float *c, size_t ldc, const float *a, size_t lda, const uint32_t *b, size_t bps,
                   size_t m, size_t n, size_t k, int type, int mode) {
    ISO_REQUIRE(m <= GEMM_Q_MR && (m <= 1 || ldc >= n) && k % iso_q_block(type) == 0);
    if (!(type & ISO_Q_4))
        switch (m) {
            Q_EACH(Q8_CASE)
        default: break;
        }
#if GEMM_KINDS_Q == 2
    else if (type & ISO_Q_OFFSETS)
        switch (m) {
            Q_EACH(Q4_SUM_CASE)
        default: break;
        }
#endif
    else
        switch (m) {
            Q_EACH(Q4_CASE)
        default: break;
        }
}

/* Weights of a step, of 4 bits number `place` of w. */
ISO_INLINE void q_store(float *to, const uint32_t *from, const vw *w, size_t step, const int place,
                        size_t chunk, const int bits, const int kind, int type, vf s, vf o) {
    const int sign = q_sign(kind, type);
    const vf number =
        bits == 4 ? vw_number4(*w, place, sign) : q_load_s8(from + step * (ISO_PANEL / 4), chunk);
    vf_store(to + step * ISO_PANEL, q_weight(number, s, o, kind, type));
}

/* A group of a panel, chunk by chunk. */
ISO_INLINE void q_dequantise(float *panel, const uint32_t *head, const uint32_t *b, const int bits,
                             const int kind, int type) {
    const size_t group = iso_q_group(type);
    for (size_t chunk = 0; chunk < Q_CHUNKS; chunk++) {
        const uint32_t *from = b + iso_q_scale_words(type);
        const vf s = q_factor(head, b, 0, chunk, type), o = q_offset(head, b, chunk, kind, type);
        float *to = panel + chunk * VF_N;
        for (size_t left = group; left > 0; left -= ISO_Q_STEPS) {
            vw w = vw_load(from + (bits == 4 ? chunk * VF_N : 0));
            if (VF_N == 1) /* less code */
                ISO_NOT_UNROLLED
            for (size_t step = 0; step < ISO_Q_STEPS; step++, w = vw_next4(w))
                q_store(to, from, &w, step, 0, chunk, bits, kind, type, s, o);
            else ISO_UNROLLED (step, ISO_Q_STEPS)
                q_store(to, from, &w, step, (int)step, chunk, bits, kind, type, s, o);
            to += ISO_Q_STEPS * ISO_PANEL, from += q_step_words(bits);
        }
    }
}

static void gemm_dequantise(float *panels, const uint32_t *b, size_t bps, size_t n, size_t k,
                            int type) {
    const size_t group = iso_q_group(type), block = iso_q_block(type);
    const size_t words = iso_q_scale_words(type) + group * (type & ISO_Q_4 ? 2 : 4);
    ISO_REQUIRE(k % block == 0);
    for (size_t j = 0; j < n; j += ISO_PANEL, b += bps) {
        const uint32_t *from = b, *head = b;
        for (size_t p = 0; p < k; p += group, from += words, panels += group * ISO_PANEL) {
            if (p % block == 0) {
                head = from;
                from += iso_q_head_words(type);
            }
            if (!(type & ISO_Q_4))
                q_dequantise(panels, head, from, 8, Q_OF_8, type);
            else if (GEMM_KINDS_Q == 2 && type & ISO_Q_OFFSETS)
                q_dequantise(panels, head, from, 4, Q_SUM, type);
            else
                q_dequantise(panels, head, from, 4, Q_OF_4, type);
        }
    }
}
