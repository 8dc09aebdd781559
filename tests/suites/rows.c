/* SPDX-License-Identifier: MIT
 *
 * Suites of softmax and logsumexp.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <isobit/ops.h>

#include "kernels.h"
#include "oracle_kernels.h"
#include <isobit/check.h>
#include "suites/suites.h"

/* ------------------------------------------------------------------------------------- softmax */

/* lengths 0: NULL, 1: mixed, 2: all n, 3: all 0; mask 0: NULL, 1: mixed, 2: nothing takes part.
 * gap: behind rows of x, twice that behind those of y; ygap and mgap: more behind y and the mask.
 */
enum { X_ROWS, X_N, X_FLAGS, X_LENGTHS, X_MASK, X_INPLACE, X_GAP, X_YGAP, X_MGAP };
enum { X_Y, X_X, X_LENGTHS_AT, X_MASK_AT };

static void softmax_cases(struct iso_check_cases *l) {
    static const unsigned fills[] = {ISO_CHECK_FILL_UNIFORM, ISO_CHECK_FILL_NORMAL,
                                     ISO_CHECK_FILL_SCORES,  ISO_CHECK_FILL_RISING,
                                     ISO_CHECK_FILL_FALLING, ISO_CHECK_FILL_EQUAL};
    static const size_t large[] = {255, 256, 257, 511, 512, 513, 991, 1000, 1023, 1024, 1025};
    static const size_t widths[] = {64, 197, 384, 512, 577, 768, 1024, 2048, 2049, 4096};
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        iso_add(l, 1, ISO_CHECK_FILL_NORMAL, 0, 64, 64, 0);
        iso_add(l, 1, ISO_CHECK_FILL_NORMAL, 0, 64, 512, 0);
        iso_add(l, 1, ISO_CHECK_FILL_NORMAL, 0, 64, 512, ISO_SOFTMAX_LOG);
        iso_add(l, 1, ISO_CHECK_FILL_NORMAL, 0, 8, 8192, 0);
        return;
    }
    size_t t = 0;
    for (size_t flags = 0; flags < 4; flags++) {
        for (size_t n = 0; n <= 130; n++) {
            for (size_t variant = 0; variant < 6; variant++, t++)
                iso_add(l, 30, fills[t % 6],
                        ISO_CHECK_CASE_TRAPLESS | (t % 29 ? 0 : ISO_CHECK_CASE_GOLDEN), 1 + t % 4,
                        n, flags, variant == 1 || variant == 3 ? 1 : 0,
                        variant == 2 || variant == 3 ? 1 : 0, variant & 1, t % 3);
        }
        for (size_t n = 0; n < iso_count(large); n++) {
            for (size_t variant = 0; variant < 3; variant++, t++)
                iso_add(l, 10, fills[t % 6],
                        ISO_CHECK_CASE_TRAPLESS | (n == 7 ? ISO_CHECK_CASE_GOLDEN : 0), 2, large[n],
                        flags, variant == 1, variant == 2, variant & 1, t % 3);
        }
        for (unsigned fill = 0; fill < ISO_CHECK_FILL_COUNT; fill++) {
            for (size_t variant = 0; variant < 4; variant++)
                iso_add(l, 3, fill, variant == 3 ? ISO_CHECK_CASE_GOLDEN : 0, 5, 33 + 8 * variant,
                        flags, variant & 1, variant >> 1, 0, 1);
        }
        for (size_t n = 1; n < 70; n += 17) {
            iso_add(l, 1, ISO_CHECK_FILL_MINUS_INF, 0, 4, n, flags, 3, 0, 0, 1);
            iso_add(l, 1, ISO_CHECK_FILL_SPECIAL, 0, 4, n, flags, 0, 2, 0, 1);
            iso_add(l, 1, ISO_CHECK_FILL_NORMAL, 0, 4, n, flags, 2, 0, 1, 1);
        }
        iso_add(l, 2, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_ALIGN, 2, 51, flags, 0, 1, 0, 1);
        iso_add(l, 1, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, 0, 5, flags, 0, 0, 0, 0);
        ISO_EACH_NEW_FILL(fill) {
            for (size_t n = 1; n <= 513; n = 2 * n + 21 - n % 2)
                iso_add(l, 6, fill, 0, 2, n, flags, n % 3 == 2, n % 4 == 3, n % 5 == 1, n % 2);
        }
        for (size_t spot = 0; spot < 134; spot++) { /* of each row, and of all elements */
            iso_add_at(l, 30, ISO_CHECK_FILL_TOP_AT, 0, spot, 1, 134, flags, 0, 0, spot % 2, 0);
            iso_add_at(l, 30, ISO_CHECK_FILL_ALONE_AT, 0, spot, 1, 134, flags, 0, 0, spot % 2, 0);
            ISO_EACH_POINT_FILL(fill)
            iso_add_at(l, 9, fill, 0, spot, 2, 67, flags, 0, spot % 4 == 3, spot % 2, 1);
        }
        for (size_t i = 0; i < 3 * ISO_STRIDES; i++) { /* of x, y, mask; then mixed */
            size_t a = i % ISO_STRIDES, b = i / 3 % ISO_STRIDES, m = i * 5 / 2 % ISO_STRIDES,
                   n = 49 + i;
            iso_add(l, 4, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, 5, n, flags, i % 3 == 1,
                    1, i % 4 == 3, iso_stride_gap(a, n), iso_stride_gap(b, n),
                    iso_stride_gap(m, n));
        }
        for (size_t i = 0; i < iso_count(widths); i++) {
            for (size_t f = 0; f < 6; f++)
                iso_add(l, 20, fills[f], ISO_CHECK_CASE_TRAPLESS, 1 + f % 2, widths[i], flags,
                        f == 4, f == 5, 0, 0);
        }
    }
}

static void softmax_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t rows = c->p[X_ROWS], n = c->p[X_N], ld = n + c->p[X_GAP];
    if (c->p[X_INPLACE]) {
        iso_check_inout_f32(o, "y", rows, n, ld, c->fill);
        iso_check_absent(o, "x");
    } else {
        iso_check_out(o, "y", rows, n, n + 2 * c->p[X_GAP] + c->p[X_YGAP]);
        iso_check_in_f32(o, "x", rows, n, ld, c->fill);
    }
    float *x = o->v[c->p[X_INPLACE] ? X_Y : X_X].host;
    size_t *lengths = NULL, ldm = n + c->p[X_GAP] + c->p[X_MGAP];
    uint8_t *mask = NULL;
    if (c->p[X_LENGTHS]) {
        lengths = iso_check_in(o, "lengths", sizeof *lengths, 1, rows, rows);
        for (size_t i = 0; i < rows; i++)
            lengths[i] = c->p[X_LENGTHS] == 1   ? iso_check_random_below(&o->random, n + 1)
                         : c->p[X_LENGTHS] == 2 ? n
                                                : 0;
    } else {
        iso_check_absent(o, "lengths");
    }
    if (c->p[X_MASK]) {
        mask = iso_check_in(o, "mask", 1, rows, n, ldm);
        for (size_t i = 0; i < rows; i++) {
            for (size_t j = 0; j < n; j++)
                mask[i * ldm + j] = c->p[X_MASK] == 1 && iso_check_random_below(&o->random, 3)
                                        ? (uint8_t)(1 + j % 255)
                                        : 0;
        }
    } else {
        iso_check_absent(o, "mask");
    }
    /* what takes no part may be anything */
    for (size_t i = 0; i < rows && iso_check_random_below(&o->random, 2); i++) {
        for (size_t j = 0; j < n; j++) {
            if ((lengths && j >= lengths[i]) || (mask && !mask[i * ldm + j]))
                x[i * ld + j] = j % 2 ? NAN : INFINITY;
        }
    }
}

static void softmax_call(const void *table, const struct iso_check_case *c,
                         const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    const struct iso_check_operand *x = &o->v[c->p[X_INPLACE] ? X_Y : X_X];
    t->softmax(ISO_CHECK_AT(float, o, X_Y), o->v[X_Y].ld, x->at, x->ld, c->p[X_ROWS], c->p[X_N],
               ISO_CHECK_AT(const size_t, o, X_LENGTHS_AT),
               ISO_CHECK_AT(const uint8_t, o, X_MASK_AT), o->v[X_MASK_AT].ld, (int)c->p[X_FLAGS]);
}

static void softmax_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t n = c->p[X_N];
    const struct iso_check_operand *x = &o->v[c->p[X_INPLACE] ? X_Y : X_X];
    const size_t *lengths = ISO_CHECK_HOST(size_t, o, X_LENGTHS_AT);
    const uint8_t *mask = ISO_CHECK_HOST(uint8_t, o, X_MASK_AT);
    double *expect = iso_check_expect(o, X_Y), *bound = iso_check_bound(o, X_Y);
    for (size_t i = 0; i < c->p[X_ROWS]; i++)
        iso_oracle_softmax(expect + i * n, bound + i * n, (const float *)x->host + i * x->ld, n,
                           o->v[X_LENGTHS_AT].absent ? n : lengths[i],
                           o->v[X_MASK_AT].absent ? NULL : mask + i * o->v[X_MASK_AT].ld,
                           c->p[X_FLAGS] & ISO_SOFTMAX_LOG, c->p[X_FLAGS] & ISO_SOFTMAX_SAFE,
                           ISO_LANES);
}

static const char *softmax_check(const struct iso_check_operands *o,
                                 const struct iso_check_case *c) {
    size_t n = c->p[X_N];
    if (c->p[X_FLAGS] & ISO_SOFTMAX_LOG)
        return NULL;
    for (size_t i = 0; i < c->p[X_ROWS]; i++) {
        const float *y = ISO_CHECK_AT(const float, o, X_Y) + i * o->v[X_Y].ld;
        double sum = 0;
        for (size_t j = 0; j < n; j++) {
            if (y[j] < 0 || y[j] > 1)
                return "a weight outside [0, 1]";
            sum += (double)y[j];
        }
        if (!isnan(sum) && sum != 0 && fabs(sum - 1) > ((double)((n + 31) / 32) + 12) * ORACLE_U)
            return "the weights do not sum up to 1";
    }
    return NULL;
}

static double softmax_bytes(const struct iso_check_case *c) {
    return 8.0 * (double)c->p[X_ROWS] * (double)c->p[X_N];
}

static const char *softmax_group(const struct iso_check_case *c) {
    return c->p[X_FLAGS] & ISO_SOFTMAX_LOG ? "log" : iso_check_fill_class(c->fill);
}

static void softmax_random(struct iso_check_case *c, struct iso_check_random *r) {
    c->p[X_ROWS] = iso_check_random_log(r, 9);
    c->p[X_N] = iso_check_random_log(r, 2200);
    c->p[X_FLAGS] = iso_check_random_below(r, 4);
    c->p[X_LENGTHS] = iso_check_random_below(r, 4);
    c->p[X_MASK] = iso_check_random_below(r, 3);
    c->p[X_INPLACE] = iso_check_random_below(r, 2);
    c->p[X_GAP] = iso_check_random_gap(r);
    c->p[X_YGAP] = iso_check_random_gap(r);
    c->p[X_MGAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    if ((c->fill == ISO_CHECK_FILL_UNIFORM || c->fill == ISO_CHECK_FILL_NORMAL ||
         c->fill == ISO_CHECK_FILL_SCORES) &&
        c->p[X_LENGTHS] < 2 && c->p[X_MASK] < 2)
        c->flags = ISO_CHECK_CASE_TRAPLESS;
}

const struct iso_check_suite iso_kernel_suite_softmax = {
    .name = "softmax",
    .params = "rows n flags lengths mask inplace gap ygap mgap",
    .cases = softmax_cases,
    .setup = softmax_setup,
    .call = softmax_call,
    .reference = softmax_reference,
    .check = softmax_check,
    .group = softmax_group,
    .bytes = softmax_bytes,
    .random = softmax_random};

/* ----------------------------------------------------------------------------------- logsumexp */

enum { L_ROWS, L_N, L_GAP };
enum { L_MAX, L_LOG_SUM, L_X };

static void logsumexp_cases(struct iso_check_cases *l) {
    static const unsigned fills[] = {ISO_CHECK_FILL_UNIFORM, ISO_CHECK_FILL_NORMAL,
                                     ISO_CHECK_FILL_SCORES,  ISO_CHECK_FILL_RISING,
                                     ISO_CHECK_FILL_FALLING, ISO_CHECK_FILL_EQUAL};
    static const size_t large[] = {255, 256, 257, 511, 512, 513, 991, 1000, 1023, 1024, 1025};
    static const size_t widths[] = {64, 768, 2048, 2049, 4096};
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        iso_add(l, 1, ISO_CHECK_FILL_NORMAL, 0, 64, 512, 0);
        iso_add(l, 1, ISO_CHECK_FILL_NORMAL, 0, 1, 32000, 0);
        return;
    }
    size_t t = 0;
    for (size_t n = 0; n <= 130; n++) {
        for (size_t variant = 0; variant < 6; variant++, t++)
            iso_add(l, 30, fills[t % 6],
                    ISO_CHECK_CASE_TRAPLESS | (t % 29 ? 0 : ISO_CHECK_CASE_GOLDEN), 1 + t % 4, n,
                    t % 3);
    }
    for (size_t n = 0; n < iso_count(large); n++) {
        for (size_t variant = 0; variant < 3; variant++, t++)
            iso_add(l, 10, fills[t % 6],
                    ISO_CHECK_CASE_TRAPLESS | (n == 7 ? ISO_CHECK_CASE_GOLDEN : 0), 2, large[n],
                    t % 3);
    }
    for (unsigned fill = 0; fill < ISO_CHECK_FILL_COUNT; fill++) {
        for (size_t variant = 0; variant < 4; variant++)
            iso_add(l, 3, fill, variant == 3 ? ISO_CHECK_CASE_GOLDEN : 0, 5, 33 + 8 * variant, 1);
    }
    for (size_t n = 1; n <= 70; n++) { /* -0 and +0, alone and mixed; what is not finite */
        iso_add(l, 4, ISO_CHECK_FILL_ZERO, ISO_CHECK_CASE_TRAPLESS, 4, n, 0);
        iso_add(l, 30, ISO_CHECK_FILL_MINUS_ZERO, ISO_CHECK_CASE_TRAPLESS, 2, n, 0);
        iso_add(l, 8, ISO_CHECK_FILL_MINUS_INF, 0, 4, n, 1);
        iso_add(l, 8, ISO_CHECK_FILL_SPECIAL, 0, 4, n, 1);
        iso_add(l, 8, ISO_CHECK_FILL_ALL_MINUS_INF, 0, 2, n, 1);
    }
    iso_add(l, 2, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_ALIGN, 2, 51, 1);
    iso_add(l, 1, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, 0, 5, 0);
    ISO_EACH_NEW_FILL(fill) {
        for (size_t n = 1; n <= 513; n = 2 * n + 21 - n % 2)
            iso_add(l, 6, fill, 0, 2, n, n % 2);
    }
    for (size_t spot = 0; spot < 134; spot++) { /* of each row, and of all elements */
        iso_add_at(l, 30, ISO_CHECK_FILL_TOP_AT, 0, spot, 1, 134, 0);
        iso_add_at(l, 30, ISO_CHECK_FILL_ALONE_AT, 0, spot, 1, 134, 0);
        ISO_EACH_POINT_FILL(fill)
        iso_add_at(l, 9, fill, 0, spot, 2, 67, 1);
    }
    for (size_t i = 0; i < ISO_STRIDES; i++)
        iso_add(l, 4, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, 5, 49 + i,
                iso_stride_gap(i, 49 + i));
    for (size_t i = 0; i < iso_count(widths); i++) {
        for (size_t f = 0; f < 6; f++)
            iso_add(l, 20, fills[f], ISO_CHECK_CASE_TRAPLESS, 1 + f % 2, widths[i], 0);
    }
}

static void logsumexp_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t rows = c->p[L_ROWS], n = c->p[L_N];
    iso_check_out(o, "max", 1, rows, rows);
    iso_check_out(o, "log_sum", 1, rows, rows);
    iso_check_in_f32(o, "x", rows, n, n + c->p[L_GAP], c->fill);
}

static void logsumexp_call(const void *table, const struct iso_check_case *c,
                           const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    t->logsumexp(ISO_CHECK_AT(float, o, L_MAX), ISO_CHECK_AT(float, o, L_LOG_SUM),
                 ISO_CHECK_AT(const float, o, L_X), o->v[L_X].ld, c->p[L_ROWS], c->p[L_N]);
}

/* The logarithm of the sum is minus the log-probability of the largest element. */
static void logsumexp_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t n = c->p[L_N];
    float *max = iso_check_exact(o, L_MAX);
    double *expect = iso_check_expect(o, L_LOG_SUM), *bound = iso_check_bound(o, L_LOG_SUM);
    double *y = iso_check_operands_alloc(o, 2 * n * sizeof *y);
    for (size_t i = 0; i < c->p[L_ROWS]; i++) {
        const float *x = ISO_CHECK_HOST(const float, o, L_X) + i * o->v[L_X].ld;
        size_t top = 0, nans = 0;
        for (size_t j = 0; j < n; j++) {
            nans += isnan(x[j]) != 0;
            if (x[j] > x[top] || isnan(x[top]))
                top = j;
        }
        iso_oracle_softmax(y, y + n, x, n, n, NULL, 1, 1, ISO_LANES);
        if (n > nans && x[top] > -INFINITY) {
            max[i] = x[top] == 0 ? -0.0f : x[top];
            expect[i] = 0 - y[top], bound[i] = y[n + top];
        } else { /* nothing but -Inf; a NaN shows */
            max[i] = nans ? -INFINITY : -FLT_MAX;
            expect[i] = nans ? (double)NAN : 0, bound[i] = ORACLE_EQUAL;
        }
    }
}

static bool same_bits(float a, float b) {
    uint32_t bits[2];
    memcpy(&bits[0], &a, sizeof a);
    memcpy(&bits[1], &b, sizeof b);
    return bits[0] == bits[1] || (isnan(a) && isnan(b));
}

/* What the two numbers are for: the bits of a log-softmax. */
static const char *logsumexp_check(const struct iso_check_operands *o,
                                   const struct iso_check_case *c) {
    const size_t n = c->p[L_N];
    const iso_softmax_options options = {.size = sizeof options, .log = 1, .safe = 1};
    const char *wrong = NULL;
    float *y = malloc((n + 16) * sizeof *y); /* where emulators may load whole vectors */
    for (size_t i = 0; i < c->p[L_ROWS] && !wrong; i++) {
        const float *x = ISO_CHECK_AT(const float, o, L_X) + i * o->v[L_X].ld;
        const float max = ISO_CHECK_AT(float, o, L_MAX)[i],
                    log_sum = ISO_CHECK_AT(float, o, L_LOG_SUM)[i];
        if (y)
            memcpy(y, x, n * sizeof *y);
        if (!y || iso_softmax_f32(y, n, y, n, 1, n, &options, NULL))
            wrong = "no log-softmax to compare with";
        for (size_t j = 0; j < n && !wrong; j++) {
            if (!same_bits((x[j] - max) - log_sum, y[j]))
                wrong = "(x - max) - log_sum is not the log-softmax";
        }
    }
    free(y);
    return wrong;
}

static double logsumexp_bytes(const struct iso_check_case *c) {
    return 4.0 * (double)c->p[L_ROWS] * (double)c->p[L_N];
}

static void logsumexp_random(struct iso_check_case *c, struct iso_check_random *r) {
    c->p[L_ROWS] = iso_check_random_log(r, 9);
    c->p[L_N] = iso_check_random_log(r, 2200);
    c->p[L_GAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    if (c->fill == ISO_CHECK_FILL_UNIFORM || c->fill == ISO_CHECK_FILL_NORMAL ||
        c->fill == ISO_CHECK_FILL_SCORES)
        c->flags = ISO_CHECK_CASE_TRAPLESS;
}

const struct iso_check_suite iso_kernel_suite_logsumexp = {.name = "logsumexp",
                                                           .params = "rows n gap",
                                                           .cases = logsumexp_cases,
                                                           .setup = logsumexp_setup,
                                                           .call = logsumexp_call,
                                                           .reference = logsumexp_reference,
                                                           .check = logsumexp_check,
                                                           .bytes = logsumexp_bytes,
                                                           .random = logsumexp_random};
