/* SPDX-License-Identifier: MIT
 *
 * Functions of vectors, written on the vocabulary: exp, erf and the activations. They are inlined,
 * because a call to a library spills every vector register of the caller: softmax is about 1.6
 * times as fast for it.
 *
 * A function of one vector is one chain of dependent operations, and a CPU holds too few waiting
 * operations to overlap as many chains as its units could feed. So the functions take k vectors at
 * a time, step by step: EACH is a step for all of them. k is a constant after inlining.
 *
 * exp: x = n ln 2 + r, |r| <= ln(2)/2, e^r by a polynomial of degree 6 (minimax of the relative
 * error, 3e-9), scaled by 2^n with one rounding, so subnormal results are right too. At most
 * 1 ULP over all floats (tests/suites/eltwise.c).
 *
 * The other polynomials are minimax as well (Remez, 40 digits), their coefficients rounded to
 * floats; the errors given are those after rounding, u = 2^-24.
 */
#define VF_MOST (2 * VF_TOGETHER) /* k, at most; mostly VF_TOGETHER is best */
#define EACH ISO_UNROLLED (j, k)
/* p = p x + c */
#define HORNER(x, c) EACH p[j] = vf_fma(p[j], (x)[j], vf_set1(c))

#define MAGIC 0x1.8p23f /* adding it rounds to an integer, to nearest even */
#define LOG2_E 0x1.715476p+0f

#define LN2_HIGH 0x1.62e430p-1f
#define LN2_LOW (-0x1.05c610p-29f)

/* e^x = p 2^n, p in [0.7, 1.42], from x - n LN2_HIGH. NaN gives NaN in p. x is overwritten. */
ISO_INLINE void exp_rest(vf *p, vf *x, const vf *n, const size_t k) {
    EACH x[j] = vf_fma(n[j], vf_set1(-LN2_LOW), x[j]);
    EACH p[j] = vf_fma(vf_set1(0x1.6a2434p-10f), x[j], vf_set1(0x1.1239e2p-7f));
    HORNER(x, 0x1.5558f2p-5f);
    HORNER(x, 0x1.555492p-3f);
    HORNER(x, 0x1.fffffcp-2f);
    HORNER(x, 1.0f);
    HORNER(x, 1.0f);
}

/* n of x in [-128, 89], and x - n LN2_HIGH; t as vf_ldexp_down wants it. */
ISO_INLINE void exp_reduce(vf *n, vf *t, vf *x, const size_t k) {
    EACH t[j] = vf_fma(x[j], vf_set1(LOG2_E), vf_set1(MAGIC));
    EACH n[j] = vf_sub(t[j], vf_set1(MAGIC));
    EACH x[j] = vf_fma(n[j], vf_set1(-LN2_HIGH), x[j]);
}

/* e^x = p 2^n. */
ISO_INLINE void exp_parts(vf *p, vf *n, vf *t, vf *x, const size_t k) {
    exp_reduce(n, t, x, k);
    exp_rest(p, x, n, k);
}

/* Beyond the clamps the result is 0 or Inf. Their order of arguments lets NaN through. */
ISO_INLINE void vf_exps(vf *y, const vf *v, const size_t k) {
    vf x[VF_MOST], n[VF_MOST], t[VF_MOST], p[VF_MOST];
    EACH x[j] = vf_min(vf_set1(89.0f), vf_max(vf_set1(-104.0f), v[j]));
    exp_parts(p, n, t, x, k);
    EACH y[j] = vf_ldexp(p[j], n[j]);
}
/* exp(v - base) for v <= base or NaN; from -104 on it is 0. In two halves: a loop in which
 * EXPS_STEP vectors end while the next ones begin has twice as many chains of half the length. */
#define EXPS_STEP ((VF_TOGETHER + 1) / 2)
struct exps {
    vf x[VF_MOST], n[VF_MOST], t[VF_MOST];
    vm in[VF_MOST];
};
ISO_INLINE void exps_begin(struct exps *e, const vf *v, vf base, const size_t k) {
    EACH e->x[j] = vf_sub(v[j], base);
#ifdef VF_SCALEF
    /* Masked lanes compute with small numbers, and become 0 in the end. v is compared, not x: so
     * the mask does not wait for the difference. `least` is the float nearest to base - 104: what
     * is below it is not above base - 104, and what is not is base - 128 or more. */
    const vf least = vf_sub(base, vf_set1(104.0f));
    EACH e->in[j] = vf_not_lt(v[j], least);
    EACH e->t[j] = vf_fma_in(e->in[j], e->x[j], vf_set1(LOG2_E), vf_set1(MAGIC));
    EACH e->n[j] = vf_sub(e->t[j], vf_set1(MAGIC));
    EACH e->x[j] = vf_fma_in(e->in[j], e->n[j], vf_set1(-LN2_HIGH), e->x[j]);
#else
    /* Far below, a product is 0 at once: near the smallest number it takes an assist on Intel's
     * cores, even if it is rounded to 0. */
    EACH e->x[j] = vf_max(vf_set1(-127.0f), e->x[j]);
    exp_reduce(e->n, e->t, e->x, k);
#endif
}
ISO_INLINE void exps_end(vf *y, struct exps *e, const size_t k) {
    vf p[VF_MOST];
    exp_rest(p, e->x, e->n, k);
#ifdef VF_SCALEF
    EACH y[j] = vf_ldexp_in(e->in[j], p[j], e->n[j]);
#else
    EACH y[j] = vf_ldexp_down(p[j], e->n[j], e->t[j]);
#endif
}
/* exp(x) for x <= 0 or NaN. */
ISO_INLINE void vf_exps_neg(vf *y, const vf *x, const size_t k) {
    struct exps e;
    exps_begin(&e, x, vf_set1(0), k);
    exps_end(y, &e, k);
}
ISO_INLINE vf vf_exp_neg(vf x) {
    vf_exps_neg(&x, &x, 1);
    return x;
}

static inline vf vf_neg(vf x) { return vf_sub(vf_set1(-0.0f), x); }

/* Beyond `to` as at `to`. NaN passes. */
ISO_INLINE vf vf_clamp(vf x, float to) { return vf_min(vf_set1(to), vf_max(vf_set1(-to), x)); }

/* z becomes z exp(y); the lanes with y in [-128, -85] count. */
static ISO_ONE_COPY void deep_sigmoids(vf *z, const vf *y, size_t k) {
    for (size_t j = 0; j < k; j++) {
        vf x = vf_min(vf_set1(128.0f), vf_max(vf_set1(85.0f), vf_neg(y[j]))), p, n, t;
        exp_parts(&p, &n, &t, &x, 1);
        n = vf_neg(n);
        z[j] = vf_ldexp_down(vf_div(z[j], p), n, vf_add(n, vf_set1(MAGIC)));
    }
}

/*
 * x / (1 + exp(-y)) with z = x, but bounded by +-128. Below y = -85, where exp(-y) nears overflow
 * and 1 + exp(-y) is exp(-y), it is z exp(y), scaled last: so the result keeps its accuracy down
 * to the subnormal numbers, and is -0 in the end.
 */
ISO_INLINE void times_sigmoid(vf *q, const vf *x, const vf *z, const vf *y, const size_t k) {
    const vf deep = vf_set1(-85.0f);
    vf a[VF_MOST], n[VF_MOST], t[VF_MOST], p[VF_MOST], r[VF_MOST];
    /* 1 + exp(-64) is 1 already. What lies below -85 comes in the end: so 2^n is a float here. */
    EACH a[j] = vf_min(vf_neg(deep), vf_max(vf_set1(-64.0f), vf_neg(y[j])));
    exp_parts(p, n, t, a, k);
    EACH r[j] = vf_add(vf_set1(1.0f), vf_ldexp_normal(p[j], n[j], t[j]));
    EACH r[j] = vf_div(x[j], r[j]);
    vm any = vf_lt(y[0], deep);
    ISO_UNROLL
    for (size_t j = 1; j < k; j++)
        any = vm_or(any, vf_lt(y[j], deep));
    if (vm_any(any)) {
        vf product[VF_MOST], of[VF_MOST]; /* so that the others may stay in registers */
        EACH product[j] = z[j];
        EACH of[j] = y[j];
        deep_sigmoids(product, of, k);
        EACH r[j] = vf_select(vf_lt(y[j], deep), product[j], r[j]);
    }
    EACH q[j] = r[j];
}

static inline vf vf_relu(vf x) {
    vf zero = vf_set1(0);
#if defined(__clang__) && defined(__aarch64__)
    /* clang 14 turns 0 > x ? 0 : x into fmax, which makes +0 of -0: hide that it is 0. */
    __asm__("" : "+w"(zero));
#endif
    return vf_max(zero, x);
}

ISO_INLINE void vf_silus(vf *y, const vf *x, const size_t k) {
    vf z[VF_MOST];
    EACH z[j] = vf_max(vf_set1(-128.0f), x[j]);
    times_sigmoid(y, x, z, x, k);
}

/* 0.5 (1 + tanh z) = 1 / (1 + exp(-2z)), and 2z = x (c1 x^2 + c0). */
ISO_INLINE void vf_gelus_tanh(vf *y, const vf *x, const size_t k) {
    /* 2 sqrt(2/pi), and 0.044715 of it, a little less: c0 was rounded up, and so they err less
     * together, by less than 2 u |x| in the result. */
    const float c0 = 0x1.988454p+0f, c1 = 0x1.2444eep-4f;
    vf z[VF_MOST], a[VF_MOST];
    /* There the result is x or 0 already; keeps x^3 from overflowing. */
    EACH z[j] = vf_clamp(x[j], 16.0f);
    EACH a[j] = vf_mul(z[j], vf_fma(vf_mul(z[j], z[j]), vf_set1(c1), vf_set1(c0)));
    times_sigmoid(y, x, z, a, k);
}

/* scale 2^(x h) as p 2^n, the product not rounded; x h in [-190, 0]; scale 1 or 0.5. The polynomial
 * 2^r = p(r), |r| <= 0.5, has a relative error of 0.09 u. t as vf_ldexp_down wants it. Where x may
 * be smaller, `in` says which lanes count. */
ISO_INLINE void exp2_product(vf *p, vf *n, vf *t, const vf *x, const vf *h, const vm *in,
                             const float scale, const size_t k) {
    const vf magic = vf_set1(MAGIC);
    vf r[VF_MOST];
#ifdef VF_SCALEF
    if (in) {
        EACH t[j] = vf_fma_in(in[j], x[j], h[j], magic);
        EACH r[j] = vf_fma_in(in[j], x[j], h[j], vf_sub(magic, t[j]));
    } else
#else
    (void)in;
#endif
    {
        EACH t[j] = vf_fma(x[j], h[j], magic);
        EACH r[j] = vf_fma(x[j], h[j], vf_sub(magic, t[j]));
    }
    EACH n[j] = vf_sub(t[j], magic);
    EACH p[j] = vf_fma(vf_set1(scale * 0x1.4bbeacp-13f), r[j], vf_set1(scale * 0x1.5fc046p-10f));
    HORNER(r, scale * 0x1.3b21c8p-7f);
    HORNER(r, scale * 0x1.c6ada6p-5f);
    HORNER(r, scale * 0x1.ebfbe6p-3f);
    HORNER(r, scale * 0x1.62e432p-1f);
    HORNER(r, scale);
}

/*
 * x Phi(x): with x = -|x| the weight w = Phi(x) = 0.5 2^(x h(x)) of the normal distribution's tail
 * has a small relative error, and the result is x w on the left and x - |x| w on the right. h, of
 * degree 9 on [-5.5, 0], errs so that w does by 0.08 u for |x| <= 1, and Phi by as much further
 * out. Beyond 5.5, where w < 2^-25, h stays what it is there: w goes to 0 more slowly than it
 * should, but from a value that is next to nothing; from 36 on it is 0. In two parts, h first.
 */
ISO_INLINE void gelus_begin(vf *h, const vf *v, const size_t k) {
    vf near[VF_MOST], p[VF_MOST];
    EACH near[j] = vf_max(vf_set1(-5.5f), vf_minus_abs(v[j]));
    EACH p[j] = vf_fma(vf_set1(-0x1.4a14b6p-25f), near[j], vf_set1(-0x1.1d9bfcp-20f));
    HORNER(near, -0x1.abe6b4p-17f);
    HORNER(near, -0x1.62c97ep-14f);
    HORNER(near, -0x1.3b07c4p-12f);
    HORNER(near, -0x1.f0f950p-16f);
    HORNER(near, 0x1.c5d4e4p-8f);
    HORNER(near, 0x1.ad8ae4p-5f);
    HORNER(near, -0x1.d63e0ap-2f);
    HORNER(near, 0x1.26aec6p+0f);
    EACH h[j] = p[j];
}

ISO_INLINE void gelus_end(vf *y, const vf *v, const vf *h, const size_t k) {
    vf x[VF_MOST], w[VF_MOST], n[VF_MOST], t[VF_MOST];
    /* -0 and not 0: so 0 keeps its sign, and -Inf gives -0. */
#ifdef VF_SCALEF /* beyond 34 w is 0 */
    vm in[VF_MOST];
    EACH x[j] = vf_minus_abs(v[j]);
    EACH in[j] = vf_not_lt(x[j], vf_set1(-34.0f));
    exp2_product(w, n, t, x, h, in, 0.5f, k);
    EACH w[j] = vf_ldexp_in(in[j], w[j], n[j]);
    EACH y[j] = vf_fma_else(in[j], x[j], w[j], vf_max(vf_set1(-0.0f), v[j]));
#else
    EACH x[j] = vf_max(vf_set1(-36.0f), vf_minus_abs(v[j]));
    exp2_product(w, n, t, x, h, NULL, 0.5f, k);
    EACH w[j] = vf_ldexp_down(w[j], n[j], t[j]);
    EACH y[j] = vf_fma(x[j], w[j], vf_max(vf_set1(-0.0f), v[j]));
#endif
}

ISO_INLINE void vf_gelus_erf(vf *y, const vf *v, const size_t k) {
    vf h[VF_MOST];
    gelus_begin(h, v, k);
    gelus_end(y, v, h, k);
}

/*
 * erf: below 1 x + x p(x^2), p of degree 6, relative error 0.03 u; above it q(|x| - 2.6796875), q
 * of degree 15 on [1, 4], absolute error 0.06 u. Of all numbers near the middle of [1, 4] it is
 * there that erf is closest to a float, so that the constant of q is exact. From 4 on erf rounds
 * to 1. At most 1 ULP over all floats.
 */
ISO_INLINE void vf_erfs(vf *y, const vf *v, const size_t k) {
    vf x[VF_MOST], s[VF_MOST], p[VF_MOST], near[VF_MOST];
    EACH x[j] = vf_min(vf_set1(4.0f), vf_neg(vf_minus_abs(v[j])));
    EACH s[j] = vf_mul(x[j], x[j]);
    EACH p[j] = vf_fma(vf_set1(0x1.4771fep-14f), s[j], vf_set1(-0x1.a3515ep-11f));
    HORNER(s, 0x1.53f224p-8f);
    HORNER(s, -0x1.b7f71ap-6f);
    HORNER(s, 0x1.ce2ce6p-4f);
    HORNER(s, -0x1.81273ep-2f);
    HORNER(s, 0x1.06eba8p-3f);
    EACH near[j] = vf_fma(x[j], p[j], x[j]);
    EACH s[j] = vf_sub(x[j], vf_set1(2.6796875f));
    EACH p[j] = vf_fma(vf_set1(-0x1.788384p-22f), s[j], vf_set1(-0x1.fcc206p-25f));
    HORNER(s, 0x1.2dfab2p-18f);
    HORNER(s, -0x1.8dbdaep-18f);
    HORNER(s, -0x1.0c28fcp-16f);
    HORNER(s, 0x1.22f430p-14f);
    HORNER(s, -0x1.d29f82p-14f);
    HORNER(s, -0x1.14b306p-15f);
    HORNER(s, 0x1.64038cp-11f);
    HORNER(s, -0x1.041642p-9f);
    HORNER(s, 0x1.cdee86p-9f);
    HORNER(s, -0x1.1d9bfcp-8f);
    HORNER(s, 0x1.f5580ep-9f);
    HORNER(s, -0x1.2da546p-9f);
    HORNER(s, 0x1.c2466ap-11f);
    HORNER(s, 0x1.ffec3ap-1f);
    EACH p[j] = vf_select(vf_lt(x[j], vf_set1(1.0f)), near[j], p[j]);
    EACH y[j] = vf_with_sign(p[j], v[j]);
}

/*
 * tanh: below 1 x + x^3 p(x^2), p of degree 6, relative error 0.09 u; above it, with e =
 * exp(-2|x|), 1 - e q(e), where q, of degree 4, is 2 / (1 + e) but for 0.08 u. From 10 on tanh
 * rounds to 1.
 */
ISO_INLINE void vf_tanhs(vf *y, const vf *v, const size_t k) {
    vf x[VF_MOST], s[VF_MOST], p[VF_MOST], near[VF_MOST], h[VF_MOST];
    vf n[VF_MOST], t[VF_MOST];
    EACH x[j] = vf_max(vf_set1(-10.0f), vf_minus_abs(v[j]));
    EACH s[j] = vf_mul(x[j], x[j]);
    EACH p[j] = vf_fma(vf_set1(-0x1.77dd2cp-12f), s[j], vf_set1(0x1.2da4f6p-9f));
    HORNER(s, -0x1.0460c4p-7f);
    HORNER(s, 0x1.600992p-6f);
    HORNER(s, -0x1.b96222p-5f);
    HORNER(s, 0x1.110be2p-3f);
    HORNER(s, -0x1.55553cp-2f);
    EACH s[j] = vf_mul(s[j], x[j]);
    EACH near[j] = vf_fma(s[j], p[j], x[j]);
    EACH h[j] = vf_set1(0x1.715476p+1f);
    exp2_product(s, n, t, x, h, NULL, 1.0f, k);
    EACH s[j] = vf_ldexp_normal(s[j], n[j], t[j]);
    EACH p[j] = vf_fma(vf_set1(0x1.5f0842p+0f), s[j], vf_set1(-0x1.ea21f0p+0f));
    HORNER(s, 0x1.fe98fap+0f);
    HORNER(s, -0x1.fff5d2p+0f);
    HORNER(s, 0x1.ffffe8p+0f);
    EACH p[j] = vf_fma(s[j], p[j], vf_set1(-1.0f));
    EACH p[j] = vf_select(vf_lt(vf_set1(-1.0f), x[j]), near[j], p[j]);
    EACH y[j] = vf_with_sign(p[j], v[j]);
}

/* k <= VF_MOST vectors. y may be x. */
ISO_INLINE void vf_functions(vf *y, const vf *x, const int function, const size_t k) {
    switch (function) {
#define ACTIVATION(NAME, name, text, ...)                                                          \
    case ISO_UNARY_##NAME:                                                                         \
        __VA_ARGS__;                                                                               \
        break;
#include "activations.def"
#undef ACTIVATION
    case ISO_UNARY_EXP: vf_exps(y, x, k); break;
    case ISO_UNARY_ERF: vf_erfs(y, x, k); break;
    default: EACH y[j] = x[j];
    }
}

#undef HORNER
