/* SPDX-License-Identifier: MIT
 *
 * Attention with keys and values of 16 bits, as caches hold them: the orders of attention.h with
 * keys in the lanes, and its bits for the widened keys and values. Both are read by the tiles of
 * gemm_w16.h, which widen in registers: keys in wide panels, values in rows whose every 32 columns
 * lie as a step of a wide panel. Queries and probabilities are rows as they are, so nothing is
 * packed.
 */

/* At most GEMM_W16_MR queries. The scores of a block are computed before those of the block before
 * it meet the values, as in attention_rows. Returns whether a NaN came out. */
static ISO_ONE_COPY int attention_rows_w16(const struct iso_attention *t, size_t q0, size_t nq,
                                           int careful) {
    const size_t dh = t->dh, panels = (dh + ISO_PANEL - 1) / ISO_PANEL;
    const int type = t->type16;
    float *const values = t->scratch, *const o = values + ISO_KEY_BLOCK * panels * ISO_PANEL;
    float *const first = o + GEMM_W16_MR * dh;
    float *const scores[2] = {first, first + GEMM_W16_MR * ISO_KEY_BLOCK};
    float *const acc = scores[1] + GEMM_W16_MR * ISO_KEY_BLOCK;
    _Static_assert(ISO_KEY_BLOCK * (ISO_PANEL - 1) + 2 * GEMM_W16_MR * ISO_KEY_BLOCK <=
                           ISO_QUERY_BLOCK * ISO_KEY_BLOCK &&
                       ISO_KEY_BLOCK + GEMM_W16_MR + 1 <= 2 * ISO_QUERY_BLOCK,
                   "they fit into the scratch of many queries");
    struct row rows[GEMM_W16_MR];
    float c[GEMM_W16_MR];
    uint64_t seen[GEMM_W16_MR];
    const size_t k0 = first_block(t, q0), nk = keys_seen(t, q0 + nq - 1);
    const float *q = t->q + q0 * t->ldq;
    for (size_t i = 0; i < nq; i++)
        rows[i] = (struct row){-__builtin_inff(), 0};

#define BLOCK_SCORES(j0)                                                                           \
    w16_strip(scores[(j0) / ISO_KEY_BLOCK % 2], ISO_KEY_BLOCK, q, t->ldq, t->k16 + (j0)*dh,        \
              ISO_WIDE_PANEL, dh * ISO_WIDE_PANEL, nq,                                             \
              nk - (j0) < ISO_KEY_BLOCK ? nk - (j0) : ISO_KEY_BLOCK, dh, type, 0)
    if (nk)
        BLOCK_SCORES(k0);
    for (size_t j0 = k0; j0 < nk; j0 += ISO_KEY_BLOCK) {
        const size_t n = nk - j0 < ISO_KEY_BLOCK ? nk - j0 : ISO_KEY_BLOCK;
        const uint16_t *v = t->v16 + j0 * t->ldv;
        float *s = scores[j0 / ISO_KEY_BLOCK % 2];
        const int rescale = attention_block(t, q0, nq, j0, n, s, rows, c, careful ? seen : NULL);
        if (j0 + n == nk && t->nk_after) { /* a line is 16 floats */
            prefetch_rows(t->k_after, ISO_PANEL,
                          (t->nk_after + ISO_WIDE_PANEL - 1) / ISO_WIDE_PANEL * dh, ISO_PANEL);
            prefetch_rows(t->v_after, t->ldv / 2, t->nk_after, (dh + 1) / 2);
        }
        if (j0 + n < nk)
            BLOCK_SCORES(j0 + n);
        if (j0 > k0 && rescale)
            attention_rescale(o, c, nq, dh);
        if (careful) {
            w16_widen(values, v, t->ldv, ISO_WIDE_PANEL, dh, n, type);
            for (size_t i = 0; i < nq; i++)
                attention_careful(o + i * dh, acc, s + i * ISO_KEY_BLOCK, 1, seen[i], values,
                                  ISO_PANEL, n * ISO_PANEL, n, dh, j0 == k0);
            continue;
        }
        w16_strip(o, dh, s, ISO_KEY_BLOCK, v, t->ldv, ISO_WIDE_PANEL, nq, dh, n, type,
                  j0 > k0 ? ISO_DIRECT_ADD : 0);
    }
#undef BLOCK_SCORES

    return attention_end(t, q0, nq, o, rows);
}

static void attention_w16(const struct iso_attention *t) {
    ISO_REQUIRE(t->nq <= ISO_QUERY_BLOCK && (!t->causal || t->see > 0) && !t->heads);
    ISO_REQUIRE(t->dh <= ISO_K_BLOCK && (t->nk <= 1 || t->ldv >= t->dh));
    const size_t strips = (t->nq + GEMM_W16_MR - 1) / GEMM_W16_MR;
    for (size_t i = 0, strip = 0; strip < strips; strip++) {
        const size_t end = t->nq * (strip + 1) / strips;
        if (attention_rows_w16(t, i, end - i, 0))
            attention_rows_w16(t, i, end - i, 1);
        i = end;
    }
}
