/* SPDX-License-Identifier: MIT
 *
 * The oracle of what only isobit's kernels have: the canonical orders of gemm and gemv written
 * with fmaf, for which the bits themselves can be predicted and not only their neighbourhood, the
 * epilogue of a product, gates, positions and rotary ones.
 */
#ifndef ISOBIT_TESTS_ORACLE_KERNELS_H
#define ISOBIT_TESTS_ORACLE_KERNELS_H

#include "oracle.h"

/* --- sums of products: a[p*sa] * b[p*sb], p below k */
float iso_oracle_chain(float start, const float *a, size_t sa, const float *b, size_t sb, size_t k);
float iso_oracle_gemm_chain(const float *a, size_t sa, const float *b, size_t sb, size_t k,
                            size_t block);
float iso_oracle_lanes(const float *a, size_t sa, const float *b, size_t sb, size_t k);
/* A tighter bound, which uniform data keep in practice. */
double iso_oracle_quality_bound(double magnitude, double depth);
double iso_oracle_gemm_depth(size_t k, size_t block);

/* act(alpha t + beta c + bias) + residual, where t itself may be off by tb. NULL: left out. */
struct iso_oracle_epilogue {
    double alpha, beta;
    const float *c, *bias, *residual;
    int act;
};
double iso_oracle_epilogue(double *bound, double t, double tb, const struct iso_oracle_epilogue *e);
/* The same in f32, step by step; only for the activations NONE and RELU. */
float iso_oracle_epilogue_exact(float t, const struct iso_oracle_epilogue *e);

/* --- act(a) b; of NONE and RELU the exact product */
double iso_oracle_gate(double *bound, double a, double b, int act);

/* --- a c - b s, or if `second` b c + a s: the true value, and the bits by the written order */
double iso_oracle_rope(double *bound, float *exact, float a, float b, float c, float s, int second);
/* scaling times the cosine, or sine, of t inv_freq */
double iso_oracle_rope_table(double *bound, size_t t, float inv_freq, int sine, float scaling);

/* --- one element of a position table; column c of d */
double iso_oracle_position(double *bound, size_t t, size_t c, size_t d, int layout);

#endif
