/* SPDX-License-Identifier: MIT
 *
 * Definitions in double precision, and the error that a result may have. The numbers in the bounds
 * are those of docs/numerics.md; where a formula needs a term that the text leaves to the reader
 * (underflow, a rounding of an optional step), a comment derives it.
 */
#include "oracle.h"

#include <math.h>
#include <stdlib.h>

#include <isobit/ops.h>

static double gamma_n(double n) { return n * ORACLE_U / (1 - n * ORACLE_U); }

static double larger(double a, double b) { return a > b ? a : b; }

double iso_oracle_ulp(double y) {
    y = fabs(y);
    if (!(y >= 0x1p-126))
        return ORACLE_TINY;
    if (y > ORACLE_FLT_MAX)
        return 0x1p104;
    return ldexp(1.0, ilogb(y) - 23);
}

/* ------------------------------------------------------------------------- sums of products */

void iso_oracle_dot(double *value, double *magnitude, const float *a, size_t sa, const float *b,
                    size_t sb, size_t k) {
    double sum = 0, abs_sum = 0;
    for (size_t p = 0; p < k; p++) {
        double product = (double)a[p * sa] * (double)b[p * sb];
        sum += product;
        abs_sum += fabs(product);
    }
    *value = sum;
    *magnitude = abs_sum;
}

double iso_oracle_sum_bound(double magnitude, double roundings, double k) {
    return gamma_n(roundings) * magnitude + (k + 4) * ORACLE_TINY;
}

/* ------------------------------------------------------------------------------- functions */

static double sigmoid_times(double x, double z) { /* x / (1 + exp(-z)), x of the sign of z */
    if (isinf(x))
        return x > 0 ? x : -0.0;
    return x / (1 + exp(-z));
}

double iso_oracle_function(double x, int function) {
    switch (function) {
    case ISOBIT_ACT_NONE: return x;
    case ISOBIT_ACT_RELU: return x < 0 ? 0.0 : x;
    case ISOBIT_ACT_SILU: return sigmoid_times(x, x);
    case ISOBIT_ACT_GELU_ERF: /* erfc: no cancellation on the negative side */
        if (isinf(x))
            return x > 0 ? x : -0.0;
        return 0.5 * x * erfc(-x * 0.70710678118654752440);
    case ISOBIT_ACT_GELU_TANH: /* 0.5 (1 + tanh y) = 1 / (1 + exp(-2y)) */
        return sigmoid_times(x, 2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x));
    case ISOBIT_ACT_TANH: return tanh(x);
    case ORACLE_EXP: return exp(x);
    case ORACLE_ERF: return erf(x);
    default: return NAN;
    }
}

double iso_oracle_function_bound(double x, int function) {
    double y = iso_oracle_function(x, function);
    double ax = fabs(x);
    switch (function) {
    case ISOBIT_ACT_NONE:
    case ISOBIT_ACT_RELU: return ORACLE_EQUAL;
    case ISOBIT_ACT_SILU: return fabs(y) >= 0x1p-126 ? 3 * iso_oracle_ulp(y) : 0x1p-120;
    case ISOBIT_ACT_GELU_ERF: {
        double bound = 2 * ORACLE_U * ax + 0x1p-126;
        return x >= -1 && fabs(y) >= 0x1p-126 && 2.5 * iso_oracle_ulp(y) < bound
                   ? 2.5 * iso_oracle_ulp(y)
                   : bound;
    }
    case ISOBIT_ACT_GELU_TANH: return 2 * ORACLE_U * ax + 0x1p-126;
    case ISOBIT_ACT_TANH: /* x + x^3/3 half-way between two floats: a hair above 1 */
        return 1.0001 * iso_oracle_ulp(y);
    default: return iso_oracle_ulp(y);
    }
}

/* ------------------------------------------------------------------------------------ rows */

/* Roundings of one term of a sum of n in so many lanes and then their tree; one lane: in any order.
 */
static double sum_depth(size_t n, size_t lanes) {
    double depth = (double)((n + lanes - 1) / lanes);
    for (; lanes > 1; lanes /= 2)
        depth++;
    return depth;
}

void iso_oracle_softmax(double *y, double *bound, const float *x, size_t n, size_t length,
                        const uint8_t *mask, int log_form, int safe, size_t lanes) {
    size_t part = 0;
    int poisoned = 0;
    double max = -INFINITY;
    for (size_t i = 0; i < n && i < length; i++) {
        if (mask && !mask[i])
            continue;
        part++;
        if (isnan(x[i]) || (isinf(x[i]) && x[i] > 0))
            poisoned = 1;
        else if ((double)x[i] > max)
            max = (double)x[i];
    }
    double sum = 0, weighted = 0; /* weighted: sum of exp(d) |d| */
    for (size_t i = 0; i < n && i < length; i++) {
        if ((mask && !mask[i]) || isnan(x[i]) || isinf(x[i]))
            continue;
        double d = (double)x[i] - max;
        sum += exp(d);
        weighted += exp(d) * -d;
    }
    double big_d = sum > 0 ? weighted / sum : 0, ne = sum_depth(n, lanes);
    for (size_t i = 0; i < n; i++) {
        bound[i] = ORACLE_EQUAL;
        if (i >= length || (mask && !mask[i])) {
            y[i] = log_form ? -INFINITY : 0.0;
        } else if (poisoned) {
            y[i] = NAN;
        } else if (sum == 0) { /* only -Inf takes part */
            y[i] = safe ? (log_form ? -INFINITY : 0.0) : NAN;
        } else if (isinf(x[i])) {
            y[i] = log_form ? -INFINITY : 0.0;
        } else if (part == 1) {
            y[i] = log_form ? 0.0 : 1.0;
        } else if (log_form) {
            /* d is rounded; the sum is off by D + 2E + n_e units relative, so its logarithm by as
             * much absolute; the logarithm has 1 ULP, and the last subtraction rounds */
            double d = (double)x[i] - max, l = log(sum);
            y[i] = d - l;
            bound[i] = ORACLE_U * (fabs(d) + big_d + 2 + ne + 2 * l + fabs(y[i])) + ORACLE_TINY;
        } else {
            double d = (double)x[i] - max;
            y[i] = exp(d) / sum;
            /* below the normal numbers exp and the last product round to 2^-149, half of it each */
            bound[i] = y[i] * ORACLE_U * (fabs(d) + big_d + 4 + ne + 2) + ORACLE_TINY;
        }
    }
}

void iso_oracle_layernorm(double *y, double *bound, const float *t, size_t n, const float *gamma,
                          const float *beta, float eps, size_t lanes) {
    double mean = 0, spread = 0, var = 0, nd = (double)n;
    /* in lanes, differences from the first element are summed up, so a constant row has no error */
    double origin = lanes > 1 ? (double)t[0] : 0;
    int constant = lanes > 1;
    for (size_t i = 0; i < n; i++) {
        mean += (double)t[i] - (double)t[0];
        spread += fabs((double)t[i] - origin);
        constant &= t[i] == t[0];
    }
    mean = mean / nd + (double)t[0];
    for (size_t i = 0; i < n; i++)
        var += ((double)t[i] - mean) * ((double)t[i] - mean);
    double r = 1 / sqrt(var / nd + (double)eps), ne = sum_depth(n, lanes), u = ORACLE_U;
    /* the last term: near the smallest number a quotient loses more than u of itself */
    double mean_error = u * (ne * spread / nd + fabs(mean)) + ORACLE_TINY;
    for (size_t i = 0; i < n; i++) {
        double c = (double)t[i] - mean, g = gamma ? (double)gamma[i] : 1;
        double b = beta ? (double)beta[i] : 0;
        y[i] = g * c * r + b;
        double inner = mean_error +
                       fabs(c) * ((ne + 3) / 2 * u + mean_error * r * (mean_error * r) / 2 + 5 * u);
        bound[i] = fabs(g) * r * inner + u * (fabs(g * c * r) + fabs(b)) + 2 * ORACLE_TINY;
        if (constant && eps > 0 && isfinite(t[0]))
            y[i] = b, bound[i] = ORACLE_EQUAL;
    }
}

void iso_oracle_rmsnorm(double *y, double *bound, const float *t, size_t n, const float *gamma,
                        float eps, size_t lanes) {
    double sum = 0, ne = sum_depth(n, lanes);
    for (size_t i = 0; i < n; i++)
        sum += (double)t[i] * (double)t[i];
    double r = 1 / sqrt(sum / (double)n + (double)eps);
    if (sum > ORACLE_FLT_MAX) /* not representable, so infinite; the results are 0 */
        r = 0;
    for (size_t i = 0; i < n; i++) {
        y[i] = (gamma ? (double)gamma[i] : 1) * (double)t[i] * r;
        bound[i] = fabs(y[i]) * ORACLE_U * (ne / 2 + 5) + 2 * ORACLE_TINY;
    }
}

/* ------------------------------------------------------------------------------- attention */

void iso_oracle_attention(double *o, double *bound, double *weights, double *weights_bound,
                          const struct iso_oracle_attention *t) {
    size_t nk = t->nk, dh = t->dh;
    double u = ORACLE_U, max = -INFINITY, unsure = 0; /* the largest error of a score */
    double *s = calloc(nk * 3 + 1, sizeof *s), *ds = s + nk, *p = ds + nk;
    int poisoned = 0;
    for (size_t j = 0; j < nk; j++) {
        double dot = 0, mag = 0;
        s[j] = -INFINITY; /* an exact -Inf in the bias takes the key away, whatever it holds */
        if (t->bias && isinf(t->bias[j]) && t->bias[j] < 0)
            continue;
        for (size_t c = 0; c < dh; c++) {
            double product = (double)t->q[c] * (double)t->k[j * t->ksj + c * t->ksc];
            dot += product;
            mag += fabs(product);
        }
        s[j] = t->scale * dot;
        if (t->softcap > 0) {
            /* what the sum may be off, through the function, and its own error */
            const double c = t->softcap, x = s[j];
            const double e = isfinite(x) ? gamma_n((double)dh + 3) * fabs(t->scale) * mag : 0;
            s[j] = c * tanh(x / c);
            ds[j] = larger(fabs(c * tanh((x + e) / c) - s[j]), fabs(s[j] - c * tanh((x - e) / c))) +
                    gamma_n(4) * (fabs(s[j]) + (t->bias ? fabs((double)t->bias[j]) : 0));
        } else {
            ds[j] = gamma_n((double)dh + 2) *
                    (fabs(t->scale) * mag + (t->bias ? fabs((double)t->bias[j]) : 0));
        }
        s[j] += t->bias ? (double)t->bias[j] : 0;
        unsure = larger(unsure, ds[j]);
        poisoned |= isnan(s[j]) || (isinf(s[j]) && s[j] > 0);
        if (s[j] > max)
            max = s[j];
    }
    double sum = 0, big_d = 0, pds = 0;
    size_t seen = 0;
    for (size_t j = 0; j < nk; j++) {
        seen += s[j] != -INFINITY;
        p[j] = s[j] == -INFINITY ? 0 : exp(s[j] - max);
        sum += p[j];
    }
    for (size_t j = 0; j < nk && sum > 0; j++) {
        p[j] /= sum;
        if (p[j] > 0) {
            big_d += p[j] * fabs(s[j] - max);
            pds += p[j] * ds[j];
        }
    }
    double blocks = (double)((nk + t->key_block - 1) / t->key_block);
    double fixed = 2 * big_d + 2 * blocks * 3 + 4 + sum_depth(nk, t->lanes) + 3;
    double depth = blocks + (double)t->key_block;
    for (size_t c = 0; c < dh; c++) {
        double value = 0, error = 2 * ORACLE_TINY;
        for (size_t j = 0; j < nk; j++) {
            if (s[j] == -INFINITY && !poisoned)
                continue;
            double v = (double)t->v[j * t->ldv + c];
            value += p[j] * v;
            error += p[j] * fabs(v) * (ds[j] + pds + u * (2 * fabs(s[j] - max) + fixed + depth));
            error += 2 * ORACLE_TINY * (fabs(v) + 1); /* weights that are subnormal */
        }
        o[c] = poisoned ? NAN : value;
        /* beyond, exp(error) is not 1 + error: such large scores are all rounding */
        bound[c] = unsure > 0.25 && isfinite(unsure) ? INFINITY : error;
        if (!poisoned && max == -INFINITY)
            o[c] = 0, bound[c] = ORACLE_EQUAL;
        if (!poisoned && seen == 1) /* its value, to the bit */
            bound[c] = ORACLE_EQUAL;
    }
    for (size_t j = 0; weights && j < nk; j++) {
        weights[j] = s[j] == -INFINITY && !poisoned ? 0 : (poisoned ? NAN : p[j]);
        weights_bound[j] =
            weights[j] == 0
                ? ORACLE_EQUAL
                : p[j] * (ds[j] + pds + u * (2 * fabs(s[j] - max) + fixed)) + 2 * ORACLE_TINY;
        if (weights[j] == 0 && s[j] != -INFINITY) /* below what a float can hold */
            weights_bound[j] = 2 * ORACLE_TINY;
        if (unsure > 0.25 && isfinite(unsure) && s[j] != -INFINITY)
            weights_bound[j] = INFINITY;
    }
    free(s);
}
