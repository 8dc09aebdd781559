/* SPDX-License-Identifier: MIT
 *
 * The oracle: what every kernel should give, in double precision, in plain loops straight from
 * the formulas, and how far from it a result may lie (docs/numerics.md, "bounds"). It shares no
 * code with kernels/, so a mistake there cannot hide here.
 *
 * Beside them stand the canonical orders of gemm and gemv written with fmaf: for these two the
 * bits themselves can be predicted, not only their neighbourhood.
 */
#ifndef ISOBIT_TESTS_ORACLE_H
#define ISOBIT_TESTS_ORACLE_H

#include <stddef.h>
#include <stdint.h>

#define ORACLE_U 0x1p-24     /* unit roundoff of f32 */
#define ORACLE_TINY 0x1p-149 /* smallest subnormal */
#define ORACLE_EQUAL 1e-300  /* as a bound: the same number, 0 and -0 alike */
#define ORACLE_FLT_MAX 0x1.fffffep127

/* The distance between two neighbouring f32 at y. */
double oracle_ulp(double y);

/* --- sums of products: a[p*sa] * b[p*sb], p below k */
void oracle_dot(double *value, double *magnitude, const float *a, size_t sa, const float *b,
                size_t sb, size_t k);
float oracle_chain(float start, const float *a, size_t sa, const float *b, size_t sb, size_t k);
float oracle_gemm_chain(const float *a, size_t sa, const float *b, size_t sb, size_t k,
                        size_t block);
float oracle_lanes(const float *a, size_t sa, const float *b, size_t sb, size_t k);
/* Bounds: `roundings` deep; and the tighter one that uniform data keep in practice. */
double oracle_sum_bound(double magnitude, double roundings, double k);
double oracle_quality_bound(double magnitude, double depth);
double oracle_gemm_depth(size_t k, size_t block);

/* --- functions of one number; `function` is iso_activation or ISO_UNARY_* */
double oracle_function(double x, int function);
double oracle_function_bound(double x, int function);

/* act(alpha t + beta c + bias) + residual, where t itself may be off by tb. NULL: left out. */
struct oracle_epilogue {
    double alpha, beta;
    const float *c, *bias, *residual;
    int act;
};
double oracle_epilogue(double *bound, double t, double tb, const struct oracle_epilogue *e);
/* The same in f32, step by step; only for the activations NONE and RELU. */
float oracle_epilogue_exact(float t, const struct oracle_epilogue *e);

/* --- rows. length: elements from there on take no part; mask may be NULL. */
void oracle_softmax(double *y, double *bound, const float *x, size_t n, size_t length,
                    const uint8_t *mask, int log, int safe);
void oracle_layernorm(double *y, double *bound, const float *t, size_t n, const float *gamma,
                      const float *beta, float eps);
void oracle_rmsnorm(double *y, double *bound, const float *t, size_t n, const float *gamma,
                    float eps);

/* --- attention of one query over nk visible keys; weights [nk] and its bound may be NULL. */
struct oracle_attention {
    const float *q;
    const float *k; /* element c of key j at k[j*ksj + c*ksc] */
    size_t ksj, ksc;
    const float *v;
    size_t ldv;
    size_t nk, dh;
    double scale;
    const float *bias;
};
void oracle_attention(double *o, double *bound, double *weights, double *weights_bound,
                      const struct oracle_attention *t);

/* --- one element of a position table; column c of d */
double oracle_position(double *bound, size_t t, size_t c, size_t d, int layout);

#endif
