/* SPDX-License-Identifier: MIT
 *
 * Functions of one vector, written on the vocabulary: exp and the activations.
 *
 * exp: x = n ln 2 + r, |r| <= ln(2)/2, e^r by a polynomial of degree 6 (minimax of the relative
 * error, 3e-9), scaled by 2^n with one rounding, so subnormal results are right too. At most
 * 1 ULP over all floats (tests/suites/unary.c). It is inlined, because a call to a library spills
 * every vector register of the caller: softmax is about 1.6 times as fast for it.
 */

/* e^x = p 2^n for x in [-128, 89], p in [0.7, 1.42]. NaN gives NaN in p. */
static inline __attribute__((always_inline)) vf exp_parts(vf x, vf *n_out) {
    const vf magic = vf_set1(0x1.8p23f); /* adding it rounds to an integer, to nearest even */
    vf n = vf_sub(vf_fma(x, vf_set1(0x1.715476p+0f), magic), magic);
    vf r = vf_fma(n, vf_set1(-0x1.62e430p-1f), x);
    r = vf_fma(n, vf_set1(0x1.05c610p-29f), r);
    vf p = vf_set1(0x1.6a2434p-10f);
    p = vf_fma(p, r, vf_set1(0x1.1239e2p-7f));
    p = vf_fma(p, r, vf_set1(0x1.5558f2p-5f));
    p = vf_fma(p, r, vf_set1(0x1.555492p-3f));
    p = vf_fma(p, r, vf_set1(0x1.fffffcp-2f));
    p = vf_fma(p, r, vf_set1(1.0f));
    *n_out = n;
    return vf_fma(p, r, vf_set1(1.0f));
}

static inline __attribute__((always_inline)) vf exp_clamped(vf x) {
    vf n, p = exp_parts(x, &n);
    return vf_ldexp(p, n);
}

/* Beyond the clamps the result is 0 or Inf. Their order of arguments lets NaN through. */
static inline __attribute__((always_inline)) vf vf_exp(vf x) {
    return exp_clamped(vf_min(vf_set1(89.0f), vf_max(vf_set1(-104.0f), x)));
}
/* For x <= 0 or NaN. */
static inline __attribute__((always_inline)) vf vf_exp_neg(vf x) {
    return exp_clamped(vf_max(vf_set1(-104.0f), x));
}

static inline vf vf_neg(vf x) { return vf_sub(vf_set1(-0.0f), x); }

/*
 * x / (1 + exp(-y)), without overflow: with e = exp(-|y|) it is x / (1 + e) for y >= 0, and
 * z e / (1 + e) below, z = x there. z e is rounded once, after the scaling, so the result keeps
 * its accuracy where e alone is subnormal. z must be bounded, so that z e^-128 is 0.
 */
static inline vf times_sigmoid(vf x, vf z, vf y) {
    vf n, down = vf_min(y, vf_neg(y)); /* -|y|; the minimum of NaN is its second argument */
    vf p = exp_parts(vf_max(vf_set1(-128.0f), down), &n);
    vf top = vf_select(vf_lt(y, vf_set1(0)), vf_ldexp(vf_mul(z, p), n), x);
    return vf_div(top, vf_add(vf_set1(1.0f), vf_ldexp(p, n)));
}

static inline vf vf_relu(vf x) { return vf_max(vf_set1(0), x); }
static inline vf vf_silu(vf x) { return times_sigmoid(x, vf_max(vf_set1(-128.0f), x), x); }
static inline vf vf_gelu_erf(vf x) {
    vf e = vf_erf(vf_mul(x, vf_set1(0x1.6a09e6p-1f)));
    vf y = vf_mul(vf_mul(vf_set1(0.5f), x), vf_add(vf_set1(1.0f), e));
    return vf_select(vf_eq(x, vf_set1(-__builtin_inff())), vf_set1(-0.0f), y);
}
/* 0.5 (1 + tanh z) = 1 / (1 + exp(-2z)), and 2z = x (c1 x^2 + c0). */
static inline vf vf_gelu_tanh(vf x) {
    const float c0 = 0x1.988454p+0f, c1 = 0x1.2444f2p-4f; /* 2 sqrt(2/pi), 0.044715 of it */
    vf big = vf_set1(16.0f); /* there the result is x or 0 already; keeps x^3 from overflowing */
    vf z = vf_min(big, vf_max(vf_neg(big), x));
    vf y = vf_mul(z, vf_fma(vf_mul(z, z), vf_set1(c1), vf_set1(c0)));
    return times_sigmoid(x, z, y);
}

static inline __attribute__((always_inline)) vf vf_activation(vf x, const int act) {
    switch (act) {
    case 1: return vf_relu(x);
    case 2: return vf_silu(x);
    case 3: return vf_gelu_erf(x);
    case 4: return vf_gelu_tanh(x);
    case 5: return vf_tanh(x);
    default: return x;
    }
}
