/* SPDX-License-Identifier: MIT
 *
 * The oracle: what an operation should give, in double precision, in plain loops straight from the
 * formulas, and how far from it a result may lie (docs/numerics.md, "bounds"). It shares no code
 * with any kernel, so a mistake there cannot hide here.
 *
 * lanes: sums are bounded as those of so many lanes and then a tree of these, a power of two; 1
 * stands for a sum in any order.
 */
#ifndef ISOBIT_CHECK_ORACLE_H
#define ISOBIT_CHECK_ORACLE_H

#include <stddef.h>
#include <stdint.h>

#define ORACLE_U 0x1p-24     /* unit roundoff of f32 */
#define ORACLE_TINY 0x1p-149 /* smallest subnormal */
#define ORACLE_EQUAL 1e-300  /* as a bound: the same number, 0 and -0 alike */
#define ORACLE_FLT_MAX 0x1.fffffep127

/* The distance between two neighbouring f32 at y. */
double iso_oracle_ulp(double y);

/* --- sums of products: a[p*sa] * b[p*sb], p below k */
void iso_oracle_dot(double *value, double *magnitude, const float *a, size_t sa, const float *b,
                    size_t sb, size_t k);
/* Bounds: `roundings` deep; and the tighter one that uniform data keep in practice. */
double iso_oracle_sum_bound(double magnitude, double roundings, double k);
/* --- functions of one number; `function` is iso_activation, or one of these */
enum { ORACLE_EXP = 100, ORACLE_ERF };
double iso_oracle_function(double x, int function);
double iso_oracle_function_bound(double x, int function);

/* --- rows. length: elements from there on take no part; mask may be NULL. */
void iso_oracle_softmax(double *y, double *bound, const float *x, size_t n, size_t length,
                        const uint8_t *mask, int log, int safe, size_t lanes);
void iso_oracle_layernorm(double *y, double *bound, const float *t, size_t n, const float *gamma,
                          const float *beta, float eps, size_t lanes);
void iso_oracle_rmsnorm(double *y, double *bound, const float *t, size_t n, const float *gamma,
                        float eps, size_t lanes);

/* --- attention of one query over nk visible keys; weights [nk] and its bound may be NULL. */
struct iso_oracle_attention {
    const float *q;
    const float *k; /* element c of key j at k[j*ksj + c*ksc] */
    size_t ksj, ksc;
    const float *v;
    size_t ldv;
    size_t nk, dh;
    double scale;
    double softcap; /* 0: none */
    const float *bias;
    size_t lanes, key_block; /* keys between two updates of the running maximum; 1: any */
};
void iso_oracle_attention(double *o, double *bound, double *weights, double *weights_bound,
                          const struct iso_oracle_attention *t);

#endif
