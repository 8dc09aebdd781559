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

/* Bit j of seen[i]: whether score j of query i (lanes i, stride of a query block) is not -Inf. */
static void attention_seen(uint64_t *seen, const float *s, size_t n, size_t lanes) {
    for (size_t i = 0; i < lanes; i++) {
        seen[i] = 0;
        for (size_t j = 0; j < n; j++)
            seen[i] |= (uint64_t)(s[j * ISO_QUERY_BLOCK + i] != -__builtin_inff()) << j;
    }
}

/* Scales the scores of four keys; returns the maximum of `top` and them. */
ISO_INLINE vf attention_scale_four(float *s, vf top, vf scale) {
    ISO_UNROLLED (r, 4) {
        vf x = vf_mul(scale, vf_load(s + r * ISO_QUERY_BLOCK));
        vf_store(s + r * ISO_QUERY_BLOCK, x);
        top = vf_max(x, top);
    }
    return top;
}

/* exp(s - base) of n keys, a multiple of four, each added to a sum of its own. While exponentials
 * wait for each other, the next ones begin, and the scores `next` are scaled, unless it is NULL. */
ISO_INLINE vf attention_exps(vf *sum, float *s, vf base, size_t n, float *next, vf top, vf scale) {
    struct exps e[2];
    vf v[EXPS_STEP];
#define BEGIN(e, from)                                                                             \
    do {                                                                                           \
        ISO_UNROLLED (r, EXPS_STEP)                                                                \
            v[r] = vf_load((from) + r * ISO_QUERY_BLOCK);                                          \
        exps_begin(e, v, base, EXPS_STEP);                                                         \
    } while (0)
    if (n > 0)
        BEGIN(e, s);
    for (size_t j = 0; j < n; j += 4) {
        ISO_UNROLLED (h, 4 / EXPS_STEP) {
            float *here = s + h * EXPS_STEP * ISO_QUERY_BLOCK;
            /* The last ones begin twice: that is faster than a branch. */
            const size_t again = (h + 1) * EXPS_STEP == 4 && j + 4 == n;
            BEGIN(e + (h + 1) % 2, here + (1 - again) * EXPS_STEP * ISO_QUERY_BLOCK);
            exps_end(v, e + h % 2, EXPS_STEP);
            ISO_UNROLLED (r, EXPS_STEP) {
                vf_store(here + r * ISO_QUERY_BLOCK, v[r]);
                sum[h * EXPS_STEP + r] = vf_add(sum[h * EXPS_STEP + r], v[r]);
            }
        }
        s += 4 * ISO_QUERY_BLOCK;
        if (next) {
            top = attention_scale_four(next, top, scale);
            next += 4 * ISO_QUERY_BLOCK;
        }
    }
#undef BEGIN
    return top;
}

/* The same for the keys from j to `any`; -Inf from `limit` on and, unless it is NULL, before
 * `begin`, if they are not below `all`. */
ISO_INLINE vf attention_scale(float *s, vf top, vf scale, const float *limit, const float *begin,
                              size_t j, size_t all, size_t any) {
    for (; j + 4 <= all; j += 4)
        top = attention_scale_four(s + j * ISO_QUERY_BLOCK, top, scale);
    for (; j < any; j++) {
        vf x = vf_mul(scale, vf_load(s + j * ISO_QUERY_BLOCK));
        if (j >= all)
            x = vf_select(vf_lt(vf_set1((float)j), vf_load(limit)), x, vf_set1(-__builtin_inff()));
        if (begin)
            x = vf_select(vf_lt(vf_set1((float)j), vf_load(begin)), vf_set1(-__builtin_inff()), x);
        vf_store(s + j * ISO_QUERY_BLOCK, x);
        top = vf_max(x, top);
    }
    return top;
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

/* A block of queries in the lanes, and what it keeps from one block of keys to the next. */
struct columns {
    size_t q0, nq, lanes, k0, nk;
    float *qp, *o, *m, *l;
};

static ISO_ONE_COPY void columns_begin(struct columns *b, const struct iso_attention *t, size_t q0,
                                       float *scratch) {
    b->q0 = q0;
    b->nq = t->nq - q0 < ISO_QUERY_BLOCK ? t->nq - q0 : ISO_QUERY_BLOCK;
    b->lanes = (b->nq + ISO_PANEL - 1) / ISO_PANEL * ISO_PANEL;
    b->k0 = first_block(t, q0);
    b->nk = keys_seen(t, q0 + b->nq - 1);
    b->qp = scratch;
    b->o = b->qp + ISO_QUERY_BLOCK * t->dh;
    b->m = b->o + ISO_QUERY_BLOCK * t->dh;
    b->l = b->m + ISO_QUERY_BLOCK;
    gemm_pack(b->qp, t->q + q0 * t->ldq, t->ldq, 1, b->nq, t->dh, ISO_PANEL);
    for (size_t i = 0; i < b->lanes; i += VF_N)
        vf_store(b->m + i, vf_set1(-__builtin_inff())), vf_store(b->l + i, vf_set1(0));
}

/* The bias of VF_N queries, or the first m of them, and VF_TRANSPOSED keys, or the first n:
 * [n][VF_N], with the queries in the lanes. */
static ISO_ONE_COPY void bias_transposed(float *out, const float *bias, size_t ld, size_t m,
                                         size_t n) {
    float tile[VF_N * VF_TRANSPOSED];
    vf x[VF_TRANSPOSED];
    if (m < VF_N || n < VF_TRANSPOSED) { /* there is nothing beyond them */
        memset(tile, 0, sizeof tile);
        for (size_t i = 0; i < m && i < VF_N; i++)
            memcpy(tile + i * VF_TRANSPOSED, bias + i * ld, n * sizeof *tile);
        bias = tile, ld = VF_TRANSPOSED;
    }
    vf_load_transposed(x, bias, ld);
    ISO_UNROLLED (r, VF_TRANSPOSED)
        vf_store(out + r * VF_N, x[r]);
}

/* A score scaled, with its bias. */
ISO_INLINE void bias_add(float *s, const float *bias, vf scale, int careful) {
    const vf minus_inf = vf_set1(-__builtin_inff()), b = vf_load(bias);
    vf x = vf_add(vf_mul(scale, vf_load(s)), b);
    if (careful)
        x = vf_select(vf_eq(b, minus_inf), minus_inf, x);
    vf_store(s, x);
}

/*
 * Scales the scores of the n keys from j0 on, and adds their bias. Where it depends only on the
 * distance, a vector of it is a piece of a row, backwards. `careful`: -Inf removes a key, even one
 * whose score is NaN; else such a score is left to show up in the output.
 */
static ISO_ONE_COPY void columns_bias(const struct columns *b, const struct iso_attention *t,
                                      size_t j0, size_t n, float *s, float factor, int careful) {
    const size_t q0 = b->q0, nq = b->nq;
    const float *bias = t->bias + (ptrdiff_t)q0 * t->ldb + j0;
    const vf scale = vf_set1(factor);
    float transposed[VF_TRANSPOSED * VF_N], line[ISO_KEY_BLOCK + ISO_QUERY_BLOCK] = {0};
    float *const zero = line + ISO_KEY_BLOCK; /* key j of query j */
    if (t->ldb == -1) {
        const float *from = bias + n;
        float *to = zero + 1 - n;
        for (size_t i = 1; i < n + nq; i++) {
            ISO_OPAQUE(to); /* vectors would be more code than they are worth */
            *to++ = *--from;
        }
    }
    for (size_t i = 0; i < nq; i += VF_N) {
        const size_t any = lane_sees(t, q0, nq, i + VF_N - 1, j0, n);
        const float *x = zero + i;
        ptrdiff_t next = -1;
        float *si = s + i;
        for (size_t j = 0, here = any; j < any; j += here) {
            if (t->ldb != -1) {
                here = any - j < VF_TRANSPOSED ? any - j : VF_TRANSPOSED;
                bias_transposed(transposed, bias + (ptrdiff_t)i * t->ldb + j, (size_t)t->ldb,
                                nq - i, here);
                x = transposed, next = VF_N;
            }
            size_t r = 0;
            for (; r + 4 <= here; r += 4, x += 4 * next, si += 4 * ISO_QUERY_BLOCK)
                ISO_UNROLLED (u, 4)
                    bias_add(si + u * ISO_QUERY_BLOCK, x + (ptrdiff_t)u * next, scale, careful);
            for (; r < here; r++, x += next, si += ISO_QUERY_BLOCK)
                bias_add(si, x, scale, careful);
        }
    }
}

/* The block of keys from j0 on. `prefetch`: the next one is prefetched. */
static ISO_ONE_COPY void columns_block(const struct columns *b, const struct iso_attention *t,
                                       size_t j0, float *scratch, int careful, int prefetch) {
    const size_t dh = t->dh, q0 = b->q0, nq = b->nq, lanes = b->lanes, nk = b->nk;
    float *const qp = b->qp, *const o = b->o, *const m = b->m, *const l = b->l;
    float *s = scratch, *c = s + ISO_QUERY_BLOCK * ISO_KEY_BLOCK, *limit = c + ISO_QUERY_BLOCK;
    float *acc = limit + ISO_QUERY_BLOCK;
    const vf minus_inf = vf_set1(-__builtin_inff());
    float to_scale = t->scale; /* of scores that are not scaled yet; then 1 */
    const size_t nk_all = keys_seen(t, q0);
    const size_t n = nk - j0 < ISO_KEY_BLOCK ? nk - j0 : ISO_KEY_BLOCK, after = nk - j0 - n;
    const float *panels = t->key_panels ? t->key_panels + j0 * dh : NULL, *v = t->v + j0 * t->ldv;
    const int begins = j0 < first_seen(t, q0 + nq - 1); /* not for all queries */
    const int partial = j0 + n > nk_all || begins;
    float begin[ISO_QUERY_BLOCK + VF_N];
    uint64_t seen[ISO_QUERY_BLOCK];
    vm rescale = vm_first(0);

    /* A strip of keys in panels lies in one of them. */
    const size_t whole = t->key_panels ? ISO_PANEL : n, most = strip_rows(whole);
    for (size_t j = 0, rows; j < n; j += rows) {
        /* queries before it see none of these keys */
        const size_t first = j0 + j >= nk_all ? j0 + j + 1 - nk_all : 0;
        const size_t from = first / ISO_PANEL * ISO_PANEL, at = j % whole;
        const size_t left = n - j < whole - at ? n - j : whole - at;
        rows = left < most ? left : most;
        if (from < lanes && !t->key_panels)
            gemm_direct(s + j * ISO_QUERY_BLOCK + from, ISO_QUERY_BLOCK, t->k + (j0 + j) * t->ldk,
                        t->ldk, qp + from * dh, ISO_PANEL, dh * ISO_PANEL, rows, lanes - from, dh,
                        0);
        else if (from < lanes)
            gemm_strip(s + j * ISO_QUERY_BLOCK + from, ISO_QUERY_BLOCK, panels + (j - at) * dh + at,
                       ISO_PANEL, qp + from * dh, ISO_PANEL, dh * ISO_PANEL, rows, lanes - from, dh,
                       ISO_STRIP_ASSIGN);
        if (prefetch && after && t->key_panels)
            prefetch_rows(panels + (ISO_KEY_BLOCK + j) * dh, dh, rows, dh);
        if (!after && j < nq)
            prefetch_rows(t->o + (q0 + j) * t->ldo, t->ldo, nq - j < rows ? nq - j : rows, dh);
    }
    if (t->softcap != 0) {
        for (size_t i = 0; i < lanes; i += VF_N)
            softcap_scores(s + i, lane_sees(t, q0, nq, i + VF_N - 1, j0, n), ISO_QUERY_BLOCK, 0,
                           to_scale, t->softcap);
        to_scale = 1;
    }
    if (t->bias) {
        columns_bias(b, t, j0, n, s, to_scale, careful);
        to_scale = 1;
    }
    const vf scale = vf_set1(to_scale);
    for (size_t i = 0; partial && i < lanes; i++)
        limit[i] = (float)lane_sees(t, q0, nq, i, j0, n);
    for (size_t i = 0; begins && i < lanes + VF_N; i++)
        begin[i] = (float)(i < nq ? hidden_of(t, q0 + i, j0, n) : 0);

    /* The keys that all lanes of a vector see, and those that any does. */
    size_t all = begins ? 0 : lane_sees(t, q0, nq, 0, j0, n);
    size_t any = careful ? n : lane_sees(t, q0, nq, VF_N - 1, j0, n);
    vf top = attention_scale(s, vf_load(m), scale, limit, begins ? begin : NULL, 0, all, any);
    for (size_t i = 0; i < lanes; i += VF_N) {
        const size_t seen_here = any, next_lane = i + VF_N;
        all = any = 0;
        if (next_lane < lanes) {
            all = begins ? 0 : lane_sees(t, q0, nq, next_lane, j0, n);
            any = careful ? n : lane_sees(t, q0, nq, next_lane + VF_N - 1, j0, n);
        }
        float *si = s + i, *next = si + VF_N;
        const vf old = vf_load(m + i), now = top;
        const vf base = vf_select(vf_eq(now, minus_inf), vf_set1(0), now);
        const vf factor = vf_exp_neg(vf_sub(old, base));
        vf sum[4] = {vf_set1(0), vf_set1(0), vf_set1(0), vf_set1(0)};
        if (careful)
            attention_seen(seen + i, si, n, VF_N);
        const size_t scaled = (all < seen_here ? all : seen_here) / 4 * 4;
        top = attention_exps(sum, si, base, scaled, next, vf_load(m + next_lane), scale);
        size_t j = seen_here / 4 * 4;
        attention_exps(sum, si + scaled * ISO_QUERY_BLOCK, base, j - scaled, NULL, top, scale);
        top = attention_scale(next, top, scale, limit + next_lane,
                              begins ? begin + next_lane : NULL, scaled, all, any);
        ISO_UNROLLED (r, 3) {
            if (j + r < seen_here) {
                float *p = si + (j + r) * ISO_QUERY_BLOCK;
                vf e = vf_exp_neg(vf_sub(vf_load(p), base));
                vf_store(p, e);
                sum[r] = vf_add(sum[r], e);
            }
        }
        /* A strip that begins with these rows may end with ones that see more. */
        for (j = seen_here; j < n && j < seen_here + GEMM_MR; j++)
            vf_store(si + j * ISO_QUERY_BLOCK, vf_set1(0));
        const vf total = vf_add(vf_add(sum[0], sum[2]), vf_add(sum[1], sum[3]));
        vf_store(l + i, vf_fma(vf_load(l + i), factor, total));
        vf_store(m + i, now);
        vf_store(c + i, factor);
        rescale = vm_or(rescale, vf_lt(factor, vf_set1(1.0f)));
    }

    if (j0 > b->k0 && vm_any(rescale))
        attention_rescale(o, c, nq, dh);
    if (careful) {
        for (size_t i = 0; i < nq; i++)
            attention_careful(o + i * dh, acc, s + i, ISO_QUERY_BLOCK, seen[i], v, t->ldv,
                              ISO_PANEL, n, dh, j0 == b->k0);
        return;
    }
    /* The bias of the next keys: the hardware does not prefetch so many rows. */
    const int there = t->bias && t->ldb != -1 && after >= ISO_KEY_BLOCK;
    const float *bias_after = there ? t->bias + q0 * (size_t)t->ldb + j0 + n : NULL;
    for (size_t i = 0, rows = strip_rows(nq); i < nq; i += rows) {
        const size_t here = nq - i < rows ? nq - i : rows;
        const size_t keys = partial ? seen_of(t, q0 + i + here - 1, j0, n) : n;
        if (keys)
            gemm_strip(o + i * dh, dh, s + i, ISO_QUERY_BLOCK, v, t->ldv, ISO_PANEL, here, dh, keys,
                       j0 > b->k0 ? ISO_STRIP_ADD : ISO_STRIP_ASSIGN);
        if (bias_after)
            prefetch_rows(bias_after + i * (size_t)t->ldb, (size_t)t->ldb, here, ISO_KEY_BLOCK);
        if (prefetch && after > i)
            prefetch_rows(v + (n + i) * t->ldv, t->ldv, after - i < rows ? after - i : rows, dh);
        if (q0 + nq == t->nq && !after && i < t->nq_after)
            prefetch_rows(t->q + (t->nq + i) * t->ldq, t->ldq,
                          t->nq_after - i < rows ? t->nq_after - i : rows, dh);
    }
}

/* Queries in the lanes, each block of keys for all of them. Returns whether a NaN came out. */
static ISO_ONE_COPY int attention_columns(const struct iso_attention *t, int careful) {
    struct columns blocks[ISO_QUERY_BLOCKS];
    float *states = t->scratch + ISO_COLUMNS_SCRATCH(t->dh);
    size_t count = 0;
    do {
        columns_begin(blocks + count, t, count * ISO_QUERY_BLOCK,
                      states + count * ISO_COLUMNS_STATE(t->dh));
    } while (++count * ISO_QUERY_BLOCK < t->nq);
    const struct columns *last = blocks + count - 1;

    /* The last block sees the most keys. It prefetches the next ones, unless L2 has them. */
    const int exceed_l2 = iso_keys_exceed_l2(last->nk, t->dh);
    for (size_t j0 = blocks->k0; j0 < last->nk; j0 += ISO_KEY_BLOCK)
        for (const struct columns *b = blocks; b <= last; b++)
            if (b->k0 <= j0 && j0 < b->nk)
                columns_block(b, t, j0, t->scratch, careful, b == last && exceed_l2);

    int nan = 0;
    for (const struct columns *b = blocks; b <= last; b++)
        for (size_t i = 0; i < b->nq; i++)
            nan |= attention_finish(t->o + (b->q0 + i) * t->ldo, b->o + i * t->dh, b->l[i], t->dh);
    return nan;
}

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
