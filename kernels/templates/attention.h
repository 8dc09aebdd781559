/* SPDX-License-Identifier: MIT
 *
 * Attention of one head by blocks of 64 keys with an online softmax (Milakov and Gimelshein 2018;
 * Rabe and Staats 2021; Dao et al. 2022). For query i and key block b, keys ascending:
 *
 *   s_j = scale * (chain over dh of q_i, k_j) [+ bias_ij];  -Inf for keys that i does not see
 *         with a soft cap: cap * tanh(scale * (chain)) [+ bias_ij], scale being divided by it
 *   m' = max(m, s_j);  p_j = exp(s_j - m');  c = exp(m - m')         m = -Inf at the beginning
 *   l = fma(l, c, (t0 + t2) + (t1 + t3)),  t_r = ascending sum of p_j with j mod 4 = r
 *   o = o * c + (chain over j of p_j, v_j)
 *
 * and in the end o * (1/l) + 0. Two ways to lay the lanes give the same bits: many queries put
 * queries in the lanes (scores are K Q^T, so maximum and sum go down the vectors without any
 * shuffle, and the exponentials are already the left operand of the product with V); few queries,
 * as in decoding, put keys in the lanes. A single query can take its keys as rows.
 *
 * A key that a row does not see has p = 0 and is multiplied all the same when a neighbour in the
 * strip sees it: that changes nothing (the final + 0 evens out the sign of zeros) unless V is not
 * finite there. Then a NaN shows up in the output, and the block is computed again row by row,
 * leaving out what is not seen.
 *
 * With a window the first blocks that no query sees are left out. The others begin where they
 * always do: a block that a query does not see changes nothing for it, so it has the same bits with
 * any other queries.
 */

/* Rows of the strips that cut n rows evenly. Sums of 64 steps are short: strips of fewer rows begin
 * and end faster. */
static inline size_t strip_rows(size_t n) {
    const size_t most = GEMM_DIRECT_MR;
    size_t strips = (n + most - 1) / most;
    return strips ? (n + strips - 1) / strips : 0;
}

/* Rows with gaps between them, where the hardware prefetches none, and of which queries, keys,
 * values and results together are too many for L2. */
static inline int is_strided(size_t ld, size_t rows, size_t n) {
    return ld > n && rows > ISO_L2_FLOATS / 4 / ld;
}

static inline size_t keys_seen(const struct iso_attention *t, size_t query) {
    return t->causal && t->see + query < t->nk ? t->see + query : t->nk;
}

/* The first key that a query sees, and the block of keys that it begins with. */
static inline size_t first_seen(const struct iso_attention *t, size_t query) {
    const size_t k = keys_seen(t, query);
    return t->window && k > t->window ? k - t->window : 0;
}
static inline size_t first_block(const struct iso_attention *t, size_t query) {
    return first_seen(t, query) / ISO_KEY_BLOCK * ISO_KEY_BLOCK;
}

/* How many of the n keys from j0 on lie before the first one that a query sees. */
static inline size_t hidden_of(const struct iso_attention *t, size_t query, size_t j0, size_t n) {
    const size_t k = first_seen(t, query);
    return k <= j0 ? 0 : k - j0 < n ? k - j0 : n;
}

/* How many of the n keys from j0 on precede the last one that a query sees, and it itself. */
static inline size_t seen_of(const struct iso_attention *t, size_t query, size_t j0, size_t n) {
    const size_t k = keys_seen(t, query);
    return k <= j0 ? 0 : k - j0 < n ? k - j0 : n;
}

/* The same for lane i of a block of nq queries; lanes beyond them are computed like the rest. */
static inline size_t lane_sees(const struct iso_attention *t, size_t q0, size_t nq, size_t i,
                               size_t j0, size_t n) {
    return i < nq ? seen_of(t, q0 + i, j0, n) : n;
}

/* o[i] *= c[i], where that does anything: for rows that are listed first, because a branch for each
 * would be mispredicted for many. */
static ISO_ONE_COPY void attention_rescale(float *o, const float *c, size_t nq, size_t dh) {
    size_t rows[ISO_QUERY_BLOCK], count = 0;
    for (size_t i = 0; i < nq; i++) {
        rows[count] = i;
        count += c[i] != 1.0f;
    }
    for (size_t r = 0; r < count; r++) {
        const vf f = vf_set1(c[rows[r]]);
        float *row = o + rows[r] * dh;
        size_t j = 0;
        for (; j + 4 * VF_N <= dh; j += 4 * VF_N)
            ISO_UNROLLED (i, 4)
                vf_store(row + j + i * VF_N, vf_mul(vf_load(row + j + i * VF_N), f));
        for (; j < dh; j += VF_N) {
            size_t w = dh - j < VF_N ? dh - j : VF_N;
            store_w(row + j, vf_mul(load_w(row + j, w), f), w);
        }
    }
}

/* The result of one row; returns whether it holds a NaN. */
static int attention_finish(float *out, const float *o, float l, size_t dh) {
    const vf inverse = vf_set1(l == 0 ? 0 : 1.0f / l), zero = vf_set1(0);
    vf nan = zero;
    for (size_t j = 0; j < dh; j += VF_N) {
        size_t w = dh - j < VF_N ? dh - j : VF_N;
        vf v = l == 0 ? zero : vf_add(vf_mul(load_w(o + j, w), inverse), zero);
        nan = vf_select(vf_eq(v, v), nan, v);
        store_w(out + j, v, w);
    }
    return !vm_all(vf_eq(nan, nan));
}

/*
 * One row's product with V that leaves out the keys whose bit in `seen` is 0: the same chain, over
 * runs of keys that are seen. p has stride ps; acc is scratch of dh floats. v is in panels, as the
 * B of gemm_strip, or row-major with vps = 16.
 */
static ISO_ONE_COPY void attention_careful(float *o, float *acc, const float *p, size_t ps,
                                           uint64_t seen, const float *v, size_t ldv, size_t vps,
                                           size_t nk, size_t dh, int first) {
    int begun = 0;
    for (size_t j = 0; j < nk;) {
        size_t end = j;
        while (end < nk && (seen >> end & 1))
            end++;
        if (end > j) {
            gemm_strip(acc, dh, p + j * ps, ps, v + j * ldv, ldv, vps, 1, dh, end - j,
                       begun ? ISO_STRIP_CONTINUE : ISO_STRIP_ASSIGN);
            begun = 1;
        }
        j = end + 1;
    }
    for (size_t c = 0; c < dh; c++) {
        float a = begun ? acc[c] : 0;
        o[c] = first ? a : o[c] + a;
    }
}

/* s = cap tanh(scale s), of n vectors of scores `step` floats apart, and of `tail` scores behind
 * them. */
static ISO_ONE_COPY void softcap_scores(float *s, size_t n, size_t step, size_t tail, float scale,
                                        float cap) {
    const vf f = vf_set1(scale), c = vf_set1(cap);
    vf v[VF_TOGETHER];
    for (; n >= VF_TOGETHER; n -= VF_TOGETHER, s += VF_TOGETHER * step) {
        ISO_UNROLLED (r, VF_TOGETHER)
            v[r] = vf_mul(f, vf_load(s + r * step));
        vf_tanhs(v, v, VF_TOGETHER);
        ISO_UNROLLED (r, VF_TOGETHER)
            vf_store(s + r * step, vf_mul(c, v[r]));
    }
    for (size_t r = 0; r < n + (tail > 0); r++, s += step) {
        const size_t w = r < n ? VF_N : tail;
        *v = vf_mul(f, load_w(s, w));
        vf_tanhs(v, v, 1);
        store_w(s, vf_mul(c, *v), w);
    }
}

#include "attention_columns.h"

/* weights = exp(s - m) / l, from the scores that stand there; 0 for keys before k0 and from nk on.
 */
static ISO_ONE_COPY void attention_weights(float *w, size_t k0, size_t nk, size_t columns, float m,
                                           float l) {
    const vf base = vf_set1(m == -__builtin_inff() ? 0 : m),
             inverse = vf_set1(l == 0 ? 0 : 1.0f / l);
    for (size_t j = 0; j < k0; j++)
        w[j] = 0;
    for (size_t j = k0; j < nk; j += VF_N) {
        size_t n = nk - j < VF_N ? nk - j : VF_N;
        vf e = vf_mul(vf_exp_neg(vf_sub(load_w(w + j, n), base)), inverse);
        store_w(w + j, l == 0 ? vf_set1(0) : e, n);
    }
    for (size_t j = nk; j < columns; j++)
        w[j] = 0;
}

/* The scores of a query and whole panels of keys; returns how many. One panel after the other:
 * memory is read in sequence, and out-of-order cores begin the next panels while a chain waits. */
static ISO_ONE_COPY size_t panel_scores(float *s, const float *q, const float *k, size_t n,
                                        size_t dh) {
    enum { VECTORS = ISO_PANEL / VF_N, STEPS = 8 };
    size_t j = 0;
    for (; n - j >= ISO_PANEL; j += ISO_PANEL) {
        vf t[VECTORS];
        size_t d = 0;
        ISO_UNROLLED (l, VECTORS)
            t[l] = vf_set1(0);
#define PANEL_STEPS(steps)                                                                         \
    for (; dh - d >= (steps); d += (steps), k += (steps)*ISO_PANEL)                                \
        ISO_UNROLLED (r, (steps))                                                                  \
            ISO_UNROLLED (l, VECTORS)                                                              \
                t[l] = vf_fma(vf_set1(q[d + r]), vf_load(k + r * ISO_PANEL + l * VF_N), t[l]);
        PANEL_STEPS(STEPS)
        PANEL_STEPS(1)
#undef PANEL_STEPS
        ISO_UNROLLED (l, VECTORS)
            vf_store(s + j + l * VF_N, t[l]);
    }
    return j;
}

/* Scores, not scaled yet, of the block of keys that begins at j0. */
static inline void attention_scores(float *s, const struct iso_attention *t, const float *qp,
                                    size_t nq, size_t j0, size_t nk) {
    const size_t dh = t->dh, n = nk - j0 < ISO_KEY_BLOCK ? nk - j0 : ISO_KEY_BLOCK;
    if (is_strided(t->ldv, nk, dh))
        prefetch_rows(t->v + j0 * t->ldv, t->ldv, n, dh);
    const float *k = t->key_panels + j0 * dh;
    const size_t done = VF_N > 1 && nq == 1 ? panel_scores(s, qp, k, n, dh) : 0;
    if (done < n)
        gemm_strip(s + done, ISO_KEY_BLOCK, qp, nq, k + done * dh, ISO_PANEL, dh * ISO_PANEL, nq,
                   n - done, dh, ISO_STRIP_ASSIGN);
}

/* What a query keeps from one block of keys to the next, besides its sums. */
struct row {
    float m, l;
};

/*
 * The scores of a query and a block of n keys, of which it sees those from `hidden` to `visible`,
 * become exponentials; rows of bias and of weights may be NULL. `seen`, unless it is NULL: bit j is
 * whether score j is not -Inf. Returns the factor of its sums so far.
 */
static ISO_ONE_COPY float attention_row(struct row *row, float *s, size_t n, size_t hidden,
                                        size_t visible, float scale, const float *bias,
                                        float *weights, uint64_t *seen) {
    const vf minus_inf = vf_set1(-__builtin_inff());
    vf top = minus_inf;
    for (size_t j = 0; j < n; j += VF_N) {
        size_t w = visible <= j ? 0 : visible - j < VF_N ? visible - j : VF_N;
        vf x = minus_inf;
        if (w) {
            x = vf_mul(vf_set1(scale), load_w(s + j, w));
            if (bias) { /* -Inf removes the key, even one that is NaN */
                vf b = load_w(bias + j, w);
                x = vf_select(vf_eq(b, minus_inf), minus_inf, vf_add(x, b));
            }
            if (w < VF_N)
                x = vf_select(vm_first(w), x, minus_inf);
            if (hidden > j)
                x = vf_select(vm_first(hidden - j < VF_N ? hidden - j : VF_N), minus_inf, x);
        }
        vf_store(s + j, x);
        top = vf_max(x, top);
    }
    if (weights)
        memcpy(weights, s, visible * sizeof(float));
    if (seen)
        for (size_t j = (size_t)(*seen = 0); j < n; j++)
            *seen |= (uint64_t)(s[j] != -__builtin_inff()) << j;

    const float block = vf_hmax(top), now = block > row->m ? block : row->m;
    const float base = now == -__builtin_inff() ? 0 : now;
    float factor[VF_N], sum[4] = {0, 0, 0, 0};
    vf_store(factor, vf_exp_neg(vf_set1(row->m - base)));
    size_t j = 0;
    for (; j + VF_TOGETHER * VF_N <= n; j += VF_TOGETHER * VF_N) {
        vf e[VF_TOGETHER];
        ISO_UNROLLED (r, VF_TOGETHER)
            e[r] = vf_sub(vf_load(s + j + r * VF_N), vf_set1(base));
        vf_exps_neg(e, e, VF_TOGETHER);
        ISO_UNROLLED (r, VF_TOGETHER)
            vf_store(s + j + r * VF_N, e[r]);
    }
    for (; j < n; j += VF_N)
        vf_store(s + j, vf_exp_neg(vf_sub(vf_load(s + j), vf_set1(base))));
    for (j = 0; j + 4 <= n; j += 4)
        ISO_UNROLLED (r, 4)
            sum[r] += s[j + r];
    ISO_UNROLLED (r, 3)
        if (j + r < n)
            sum[r] += s[j + r];
    row->m = now;
    row->l = fma_one(row->l, factor[0], (sum[0] + sum[2]) + (sum[1] + sum[3]));
    return factor[0];
}

/* The softmax of a block of keys from j0 on, of nq queries: their scores become probabilities, c
 * what sums before them are multiplied with. Returns whether any of it is not 1. */
ISO_INLINE int attention_block(const struct iso_attention *t, size_t q0, size_t nq, size_t j0,
                               size_t n, float *s, struct row *rows, float *c, uint64_t *seen) {
    const int capped = t->softcap != 0;
    int rescale = 0;
    for (size_t i = 0; i < nq; i++) {
        const size_t visible = seen_of(t, q0 + i, j0, n);
        if (capped)
            softcap_scores(s + i * ISO_KEY_BLOCK, visible / VF_N, VF_N, visible % VF_N, t->scale,
                           t->softcap);
        c[i] = attention_row(
            rows + i, s + i * ISO_KEY_BLOCK, n, hidden_of(t, q0 + i, j0, n), visible,
            capped ? 1 : t->scale, t->bias ? t->bias + (ptrdiff_t)(q0 + i) * t->ldb + j0 : NULL,
            t->weights ? t->weights + (q0 + i) * t->ldw + j0 : NULL, seen ? seen + i : NULL);
        rescale |= c[i] != 1.0f;
    }
    return rescale;
}

/* What is left once all keys are seen. Returns whether a NaN came out. */
ISO_INLINE int attention_end(const struct iso_attention *t, size_t q0, size_t nq, const float *o,
                             const struct row *rows) {
    int nan = 0;
    for (size_t i = 0; i < nq; i++) {
        nan |= attention_finish(t->o + (q0 + i) * t->ldo, o + i * t->dh, rows[i].l, t->dh);
        if (t->weights)
            attention_weights(t->weights + (q0 + i) * t->ldw, first_seen(t, q0 + i),
                              keys_seen(t, q0 + i), t->nk_weights, rows[i].m, rows[i].l);
    }
    return nan;
}

/* Keys in the lanes: at most GEMM_MR queries. The scores of a block are computed before those of
 * the block before it meet the values: the latency of few exponentials is hidden by the product.
 * Returns whether a NaN came out. */
static ISO_ONE_COPY int attention_rows(const struct iso_attention *t, size_t q0, size_t nq,
                                       int careful) {
    const size_t dh = t->dh;
    float *packed = t->scratch, *o = packed + ISO_QUERY_BLOCK * dh;
    float *const first = o + ISO_QUERY_BLOCK * dh;
    float *const scores[2] = {first, first + GEMM_MR * ISO_KEY_BLOCK};
    float *pt = scores[1] + GEMM_MR * ISO_KEY_BLOCK, *acc = pt + GEMM_MR * ISO_KEY_BLOCK;
    _Static_assert(3 * GEMM_MR * ISO_KEY_BLOCK + ISO_K_BLOCK <= ISO_QUERY_BLOCK * ISO_KEY_BLOCK,
                   "they fit into the scratch of the scores of many queries");
    struct row rows[GEMM_MR];
    float c[GEMM_MR];
    const size_t k0 = first_block(t, q0), nk = keys_seen(t, q0 + nq - 1);

    const float *qp = t->q + q0 * t->ldq; /* one query is a strip as it lies */
    if (nq > 1) {
        gemm_pack(packed, qp, t->ldq, 1, nq, dh, nq);
        qp = packed;
    }
    for (size_t i = 0; i < nq; i++)
        rows[i] = (struct row){-__builtin_inff(), 0};

    if (nk)
        attention_scores(scores[k0 / ISO_KEY_BLOCK % 2], t, qp, nq, k0, nk);
    for (size_t j0 = k0; j0 < nk; j0 += ISO_KEY_BLOCK) {
        const size_t n = nk - j0 < ISO_KEY_BLOCK ? nk - j0 : ISO_KEY_BLOCK;
        const float *v = t->v + j0 * t->ldv;
        float *s = scores[j0 / ISO_KEY_BLOCK % 2];
        uint64_t seen[GEMM_MR];
        const int rescale = attention_block(t, q0, nq, j0, n, s, rows, c, careful ? seen : NULL);

        if (j0 + n == nk && t->nk_after) {
            prefetch_rows(t->k_after, ISO_PANEL, (t->nk_after + ISO_PANEL - 1) / ISO_PANEL * dh,
                          ISO_PANEL);
            prefetch_rows(t->v_after, t->ldv, t->nk_after, dh);
        }
        if (j0 + n < nk)
            attention_scores(scores[(j0 / ISO_KEY_BLOCK + 1) % 2], t, qp, nq, j0 + n, nk);
        if (j0 > k0 && rescale)
            attention_rescale(o, c, nq, dh);
        if (careful) {
            for (size_t i = 0; i < nq; i++)
                attention_careful(o + i * dh, acc, s + i * ISO_KEY_BLOCK, 1, seen[i], v, t->ldv,
                                  ISO_PANEL, n, dh, j0 == k0);
            continue;
        }
        for (size_t i = 0; i < nq && nq > 1; i++)
            for (size_t j = 0; j < n; j++)
                pt[j * nq + i] = s[i * ISO_KEY_BLOCK + j];
        gemm_strip(o, dh, nq > 1 ? pt : s, nq, v, t->ldv, ISO_PANEL, nq, dh, n,
                   j0 > k0 ? ISO_STRIP_ADD : ISO_STRIP_ASSIGN);
    }

    return attention_end(t, q0, nq, o, rows);
}

/*
 * The scores of n rows of keys for each head: VF_N, or twice that with one head, or fewer in the
 * end. Two heads, or the two halves of the keys, go together: their chains of FMAs hide each
 * other's latency.
 */
static inline void heads_scores(float *s, const struct iso_attention *t, const float *k, size_t n) {
    const size_t dh = t->dh, one = t->heads == 1, parts = one ? 2 : t->heads;
    const size_t s_next = one ? VF_N : ISO_KEY_BLOCK, q_next = one ? 0 : t->q_head;
    const size_t k_next = one ? VF_N * t->ldk : t->k_head;
    const float *q = t->q;
    size_t h = 0;
    if (n == VF_N * (1 + one) && dh % VF_TRANSPOSED == 0) {
        for (; h + 2 <= parts; h += 2) {
            vf sum[2] = {vf_set1(0), vf_set1(0)};
            for (size_t d = 0; d < dh; d += VF_TRANSPOSED)
                ISO_UNROLLED (i, 2)
                    direct_steps_bt(sum + i, NULL, q + i * q_next + d, 1, k + i * k_next + d,
                                    t->ldk, 1, 1, 1, VF_N, 1, 0, VF_TRANSPOSED);
            ISO_UNROLLED (i, 2)
                vf_store(s + i * s_next, sum[i]);
            s += 2 * s_next, q += 2 * q_next, k += 2 * k_next;
        }
    }
    for (; h < t->heads; h++, s += s_next, q += q_next, k += k_next)
        gemm_strip_bt(s, ISO_KEY_BLOCK, q, 1, k, t->ldk, 1, n, dh, 0);
}

#define HEADS_ROWS 16

/*
 * One query of each of some heads, keys as rows. The heads of a row are usually adjacent, so a
 * few rows are used for all of them before the next: memory is read as it lies.
 */
static ISO_ONE_COPY int attention_heads(const struct iso_attention *t, int careful) {
    const size_t dh = t->dh, heads = t->heads, all = heads * dh;
    const size_t k0 = first_block(t, 0), nk = keys_seen(t, 0);
    const size_t keys = heads == 1 ? 2 * VF_N : VF_N;
    float *const s = t->scratch, *const o = s + ISO_HEADS * ISO_KEY_BLOCK;
    float *const acc = o + ISO_HEADS_FLOATS;
    _Static_assert(ISO_HEADS * ISO_KEY_BLOCK + 2 * ISO_HEADS_FLOATS <= ISO_COLUMNS_SCRATCH(0),
                   "they fit into the scratch of the scores of many queries");
    struct row rows[ISO_HEADS];
    float c[ISO_HEADS];
    uint64_t seen[ISO_HEADS];
    for (size_t h = 0; h < heads; h++)
        rows[h] = (struct row){-__builtin_inff(), 0};

    for (size_t j0 = k0; j0 < nk; j0 += ISO_KEY_BLOCK) {
        const size_t n = nk - j0 < ISO_KEY_BLOCK ? nk - j0 : ISO_KEY_BLOCK;
        const float *k = t->k + j0 * t->ldk, *v = t->v + j0 * t->ldv;
        for (size_t j = 0; j < n; j += keys)
            heads_scores(s + j, t, k + j * t->ldk, n - j < keys ? n - j : keys);
        int rescale = 0;
        for (size_t h = 0; h < heads; h++) {
            if (t->softcap != 0)
                softcap_scores(s + h * ISO_KEY_BLOCK, n / VF_N, VF_N, n % VF_N, t->scale,
                               t->softcap);
            c[h] = attention_row(rows + h, s + h * ISO_KEY_BLOCK, n, hidden_of(t, 0, j0, n), n,
                                 t->softcap != 0 ? 1 : t->scale,
                                 t->bias ? t->bias + h * t->bias_head + j0 : NULL,
                                 t->weights ? t->weights + h * t->weights_head + j0 : NULL,
                                 careful ? seen + h : NULL);
            rescale |= c[h] != 1.0f;
        }
        if (j0 > k0 && rescale)
            attention_rescale(o, c, heads, dh);
        if (careful) {
            for (size_t h = 0; h < heads; h++)
                attention_careful(o + h * dh, acc, s + h * ISO_KEY_BLOCK, 1, seen[h],
                                  v + h * t->v_head, t->ldv, ISO_PANEL, n, dh, j0 == k0);
            continue;
        }
        float *sum = j0 > k0 ? acc : o;
        for (size_t j = 0; j < n; j += HEADS_ROWS)
            for (size_t h = 0; h < heads; h++)
                gemm_strip(sum + h * dh, dh, s + h * ISO_KEY_BLOCK + j, 1,
                           v + j * t->ldv + h * t->v_head, t->ldv, ISO_PANEL, 1, dh,
                           n - j < HEADS_ROWS ? n - j : HEADS_ROWS,
                           j ? ISO_STRIP_CONTINUE : ISO_STRIP_ASSIGN);
        for (size_t i = 0; i < all && j0 > k0; i += VF_N) {
            const size_t w = all - i < VF_N ? all - i : VF_N;
            store_w(o + i, vf_add(load_w(o + i, w), load_w(acc + i, w)), w);
        }
    }

    int nan = 0;
    for (size_t h = 0; h < heads; h++) {
        nan |= attention_finish(t->o + h * t->o_head, o + h * dh, rows[h].l, dh);
        if (t->weights)
            attention_weights(t->weights + h * t->weights_head, first_seen(t, 0), nk, t->nk_weights,
                              rows[h].m, rows[h].l);
    }
    return nan;
}

static void attention(const struct iso_attention *t) {
    ISO_REQUIRE(t->nq <= ISO_QUERY_BLOCKS * ISO_QUERY_BLOCK && (!t->causal || t->see > 0));
    ISO_REQUIRE(t->dh <= ISO_K_BLOCK && t->ldv >= (t->nk > 1 ? t->dh : 0));
    if (t->heads) {
        ISO_REQUIRE(t->nq == 1 && t->heads <= ISO_HEADS && t->heads * t->dh <= ISO_HEADS_FLOATS);
        if (attention_heads(t, 0))
            attention_heads(t, 1);
        return;
    }
    /* Below half a vector of queries the lanes are better used by keys. */
    _Static_assert(VF_N / 2 <= ISO_QUERIES_FEW && 4 <= ISO_QUERIES_FEW, "else they have lanes");
    if (t->nq > VF_N / 2 && t->nq > 4 && !t->weights) {
        if (attention_columns(t, 0))
            attention_columns(t, 1);
        return;
    }
    ISO_REQUIRE(t->key_panels || t->nk == 0);
    for (size_t i = 0; i < t->nq; i += GEMM_MR) {
        size_t n = t->nq - i < GEMM_MR ? t->nq - i : GEMM_MR;
        if (attention_rows(t, i, n, 0))
            attention_rows(t, i, n, 1);
    }
}

/* Keys into panels of 16, each [dh][16]. */
static void key_panels(float *panels, size_t first, const float *k, size_t ldk, size_t count,
                       size_t dh) {
    const int strided = is_strided(ldk, count, dh);
    while (count > 0) {
        size_t at = first % ISO_PANEL, n = ISO_PANEL - at;
        if (n > count)
            n = count;
        if (strided)
            prefetch_rows(k + n * ldk, ldk, count - n < ISO_PANEL ? count - n : ISO_PANEL, dh);
        pack_panel(panels + (first - at) * dh + at, k, ldk, 1, n, dh, ISO_PANEL);
        first += n, k += n * ldk, count -= n;
    }
}
