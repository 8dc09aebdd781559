/* SPDX-License-Identifier: MIT
 *
 * Rows of floats to int8: the largest magnitude, then one product and one rounding each. A row that
 * holds a NaN or an infinity is told by a sum of zeros, which these make NaN.
 */
static void quantize_s8(int8_t *q, size_t ldq, float *scales, const float *x, size_t ldx,
                        size_t rows, size_t n, size_t padded, int flip) {
    ISO_REQUIRE(padded >= n && (rows <= 1 || (ldq >= padded && ldx >= n)));
    for (size_t i = 0; i < rows; i++, q += ldq, x += ldx) {
        vf most[LANE_REGS], zeros[LANE_REGS];
        ISO_UNROLLED (r, LANE_REGS)
            most[r] = zeros[r] = vf_set1(0);
#define S8_MOST(r, i, w)                                                                           \
    do {                                                                                           \
        const vf v_ = load_w(x + (i), w);                                                          \
        most[r] = vf_max(vf_with_sign(v_, vf_set1(0)), most[r]);                                   \
        zeros[r] = vf_add(zeros[r], vf_mul(v_, vf_set1(0)));                                       \
    } while (0)
        LANES_EACH_COMPACT(n, S8_MOST);
#undef S8_MOST
        vf m = most[0];
        for (size_t r = 1; r < LANE_REGS; r++)
            m = vf_max(most[r], m);
        const float zero = lanes_tree(zeros);
        const float inverse = iso_s8_inverse(&scales[i], vf_hmax(m), zero == 0);
        if (inverse == 0) {
            memset(q, flip, padded);
            continue;
        }
        const vf times = vf_set1(inverse);
        size_t j = 0;
        for (; j + VF_N <= n; j += VF_N)
            s8_store(q + j, vf_mul(vf_load(x + j), times), flip);
        if (j < n) {
            int8_t last[VF_N];
            s8_store(last, vf_mul(vf_load_n(x + j, n - j), times), flip);
            for (size_t e = 0; j + e < n; e++)
                q[j + e] = last[e];
        }
        memset(q + n, flip, padded - n);
    }
}
