/* SPDX-License-Identifier: MIT
 *
 * Functions of one vector, written on the vocabulary: exp and the activations.
 *
 * exp: x = n ln 2 + r, |r| <= ln(2)/2, e^r by a polynomial of degree 6 (minimax of the relative
 * error, 3e-9), scaled by 2^n with one rounding, so subnormal results are right too. At most
 * 1 ULP over all floats (tests/suites/unary.c). It is inlined, because a call to a library spills
 * every vector register of the caller: softmax is about 1.6 times as fast for it.
 */

/* e^x = p 2^n for x in [-128, 89], p in [0.7, 1.42], t as vf_ldexp_down wants it. NaN gives NaN in
 * p. */
static inline __attribute__((always_inline)) vf exp_parts(vf x, vf *n_out, vf *t_out) {
    const vf magic = vf_set1(0x1.8p23f); /* adding it rounds to an integer, to nearest even */
    vf t = vf_fma(x, vf_set1(0x1.715476p+0f), magic), n = vf_sub(t, magic);
    vf r = vf_fma(n, vf_set1(-0x1.62e430p-1f), x);
    r = vf_fma(n, vf_set1(0x1.05c610p-29f), r);
    vf p = vf_set1(0x1.6a2434p-10f);
    p = vf_fma(p, r, vf_set1(0x1.1239e2p-7f));
    p = vf_fma(p, r, vf_set1(0x1.5558f2p-5f));
    p = vf_fma(p, r, vf_set1(0x1.555492p-3f));
    p = vf_fma(p, r, vf_set1(0x1.fffffcp-2f));
    p = vf_fma(p, r, vf_set1(1.0f));
    *n_out = n, *t_out = t;
    return vf_fma(p, r, vf_set1(1.0f));
}

/* Beyond the clamps the result is 0 or Inf. Their order of arguments lets NaN through. */
static inline __attribute__((always_inline)) vf vf_exp(vf x) {
    vf n, t, p = exp_parts(vf_min(vf_set1(89.0f), vf_max(vf_set1(-104.0f), x)), &n, &t);
    return vf_ldexp(p, n);
}
/* For x <= 0 or NaN. */
static inline __attribute__((always_inline)) vf vf_exp_neg(vf x) {
    vf n, t, p = exp_parts(vf_max(vf_set1(-104.0f), x), &n, &t);
    return vf_ldexp_down(p, n, t);
}

static inline vf vf_neg(vf x) { return vf_sub(vf_set1(-0.0f), x); }

/*
 * x / (1 + exp(-y)) with z = x, but bounded by +-128. Below y = -85, where exp(-y) nears overflow
 * and 1 + exp(-y) is exp(-y), it is z exp(y), scaled last: so the result keeps its accuracy down
 * to the subnormal numbers, and is -0 in the end.
 */
static inline vf times_sigmoid(vf x, vf z, vf y) {
    const vf deep = vf_set1(-85.0f);
    vf n, t, p = exp_parts(vf_min(vf_set1(128.0f), vf_max(vf_set1(-104.0f), vf_neg(y))), &n, &t);
    vf q = vf_div(x, vf_add(vf_set1(1.0f), vf_ldexp(p, vf_min(vf_set1(123.0f), n))));
    if (vm_any(vf_lt(y, deep))) {
        n = vf_min(vf_set1(0), vf_neg(n)); /* 0 in lanes that are not deep */
        vf far = vf_ldexp_down(vf_div(z, p), n, vf_add(n, vf_set1(0x1.8p23f)));
        q = vf_select(vf_lt(y, deep), far, q);
    }
    return q;
}

static inline vf vf_relu(vf x) { return vf_max(vf_set1(0), x); }
static inline vf vf_silu(vf x) { return times_sigmoid(x, vf_max(vf_set1(-128.0f), x), x); }
/* Beyond these SLEEF's functions are 1 already, but raise exceptions. NaN passes. */
static inline vf vf_clamp(vf x, float to) { return vf_min(vf_set1(to), vf_max(vf_set1(-to), x)); }
static inline vf vf_tanh_quiet(vf x) { return vf_tanh(vf_clamp(x, 16.0f)); }
static inline vf vf_erf_quiet(vf x) { return vf_erf(vf_clamp(x, 6.0f)); }

/* SLEEF's erf is up to 2 ULP off where it underflows; there the first term of the series is all. */
static inline vf vf_erf_exact(vf x) {
    const vf tiny = vf_set1(0x1p-90f);
    vf y = vf_erf_quiet(x),
       series = vf_fma(x, vf_set1(0x1.20dd74p+0f), vf_mul(x, vf_set1(0x1.0429b6p-24f)));
    return vf_select(vf_lt(vf_max(vf_neg(x), x), tiny), series, y);
}
static inline vf vf_gelu_erf(vf x) {
    vf e = vf_erf_quiet(vf_mul(x, vf_set1(0x1.6a09e6p-1f)));
    vf y = vf_mul(vf_mul(vf_set1(0.5f), x), vf_add(vf_set1(1.0f), e));
    return vf_select(vf_eq(x, vf_set1(-__builtin_inff())), vf_set1(-0.0f), y);
}
/* 0.5 (1 + tanh z) = 1 / (1 + exp(-2z)), and 2z = x (c1 x^2 + c0). */
static inline vf vf_gelu_tanh(vf x) {
    const float c0 = 0x1.988454p+0f, c1 = 0x1.2444f2p-4f; /* 2 sqrt(2/pi), 0.044715 of it */
    /* There the result is x or 0 already; keeps x^3 from overflowing. */
    vf z = vf_clamp(x, 16.0f);
    vf y = vf_mul(z, vf_fma(vf_mul(z, z), vf_set1(c1), vf_set1(c0)));
    return times_sigmoid(x, z, y);
}

static inline __attribute__((always_inline)) vf vf_activation(vf x, const int act) {
    switch (act) {
    case 1: return vf_relu(x);
    case 2: return vf_silu(x);
    case 3: return vf_gelu_erf(x);
    case 4: return vf_gelu_tanh(x);
    case 5: return vf_tanh_quiet(x);
    default: return x;
    }
}
