/* SPDX-License-Identifier: MIT
 *
 * Attention with queries in the lanes: the part of attention.h, which includes this, for many
 * queries.
 */
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
