/* SPDX-License-Identifier: MIT
 *
 * Rows of floats to int8: the largest magnitude, then one product and one rounding each. Some short
 * rows go through one pass and then through the other, as divisions take long to answer.
 */
#define S8_TOGETHER 4
#define S8_SHORT 1024 /* elements, so that they stay in L1 */

/* What the row is multiplied with. */
static ISO_ONE_COPY float s8_inverse(float *scale, const float *x, size_t n) {
    s8m most[LANE_REGS];
    ISO_UNROLLED (r, LANE_REGS)
        most[r] = S8_NONE;
#define S8_MOST(r, i, w) most[r] = s8_most(most[r], load_w(x + (i), w))
    LANES_EACH_COMPACT(n, S8_MOST);
#undef S8_MOST
    union {
        uint32_t bits;
        float value;
    } all = {0}, lane;
    for (size_t r = 0; r < LANE_REGS; r++)
        if ((lane.bits = s8_most_of(most[r])) > all.bits)
            all = lane;
    return iso_s8_inverse(scale, all.value, all.bits < 0x7f800000);
}

static ISO_ONE_COPY void s8_round(int8_t *q, const float *x, size_t n, float inverse, int flip) {
    const vf times = vf_set1(inverse);
    size_t j = 0;
    for (; j + S8_FOUR * VF_N <= n; j += S8_FOUR * VF_N) {
        vf v[S8_FOUR];
        ISO_UNROLLED (e, S8_FOUR)
            v[e] = vf_mul(vf_load(x + j + e * VF_N), times);
        s8_store(q + j, v, flip);
    }
    if (j < n) {
        int8_t last[S8_FOUR * VF_N];
        vf v[S8_FOUR];
        ISO_UNROLLED (e, S8_FOUR) {
            const size_t at = j + e * VF_N;
            v[e] =
                at < n ? vf_mul(load_w(x + at, n - at < VF_N ? n - at : VF_N), times) : vf_set1(0);
        }
        s8_store(last, v, flip);
        for (size_t e = 0; j + e < n; e++)
            q[j + e] = last[e];
    }
}

static void quantize_s8(int8_t *q, size_t ldq, float *scales, const float *x, size_t ldx,
                        size_t rows, size_t n, size_t padded, int flip) {
    ISO_REQUIRE(padded >= n && (rows <= 1 || (ldq >= padded && ldx >= n)));
    for (size_t i = 0, some; i < rows; i += some) {
        float inverse[S8_TOGETHER];
        some = n > S8_SHORT ? 1 : rows - i < S8_TOGETHER ? rows - i : S8_TOGETHER;
        for (size_t r = 0; r < some; r++)
            inverse[r] = s8_inverse(&scales[i + r], x + r * ldx, n);
        for (size_t r = 0; r < some; r++, q += ldq, x += ldx) {
            const size_t from = inverse[r] == 0 ? 0 : n;
            if (from > 0)
                s8_round(q, x, n, inverse[r], flip);
            memset(q + from, flip, padded - from);
        }
    }
}
