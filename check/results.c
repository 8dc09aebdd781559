/* SPDX-License-Identifier: MIT
 *
 * What a call gave: against the true values and their bounds, the predicted bits, and the bits of
 * the other runs of the same case.
 */
#include "results.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "oracle.h"

static uint32_t canonical(uint32_t bits) {
    return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : bits;
}

/* One element against the true value; *ratio becomes the error in units of the bound. */
static bool close_enough(double *ratio, float got, double expect, double bound) {
    double value = (double)got;
    *ratio = 0;
    if (isnan(expect))
        return isnan(value);
    if (isinf(expect) || isinf(bound))
        return value == expect || (isinf(bound) && !isnan(value));
    if (isnan(value))
        return false;
    if (isinf(value)) /* only where rounding could have gone past the largest number */
        return fabs(expect) + bound >= ORACLE_FLT_MAX && (value > 0) == (expect > 0);
    double error = fabs(value - expect);
    if (error == 0)
        return true;
    if (fabs(expect) > ORACLE_FLT_MAX)
        error = fabs(value) + bound >= ORACLE_FLT_MAX ? 0 : error;
    *ratio = error / bound;
    return error <= bound;
}

/* iso_oracle_ulp without its calls: it is wanted for every inexact result. */
static double ulp_of(double y) {
    uint64_t bits;
    memcpy(&bits, &y, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    exponent = exponent < -126 ? -126 : exponent > 127 ? 127 : exponent;
    bits = (uint64_t)(exponent - 23 + 1023) << 52;
    memcpy(&y, &bits, sizeof y);
    return y;
}

/* Where the bound is beyond this many ULP, an error in ULP says nothing: terms cancel. */
#define MEANINGFUL_ULP 8

/* What becomes an iso_check_errors: sums, and how many errors lie in each thousandth of the bound.
 */
struct sums {
    double sum, squares;
    size_t steps[1001];
};

static void group_find(const struct iso_check_suite *suite, const struct iso_check_case *c,
                       struct iso_check_tally *t, struct iso_check_errors **errors,
                       struct sums **sums) {
    const char *name = suite->group ? suite->group(c) : iso_check_fill_class(c->fill);
    size_t i = 0;
    while (i < t->group_count && strcmp(t->groups[i].name, name) != 0)
        i++;
    if (i == ISO_CHECK_GROUPS) {
        errno = 0;
        iso_check_die("too many groups");
    }
    if (i == t->group_count)
        t->groups[t->group_count++].name = name;
    *errors = &t->groups[i];
    *sums = (struct sums *)t->sums + i;
}

/* ratio: the error in units of the bound; away: is the result farther from zero than the truth? */
static void group_add(struct iso_check_errors *errors, struct sums *sums, double ratio, bool away) {
    errors->elements++;
    sums->sum += away ? ratio : -ratio;
    sums->squares += ratio * ratio;
    sums->steps[ratio < 1 ? (size_t)(ratio * 1000) : 1000]++;
    if (ratio > errors->worst)
        errors->worst = ratio;
}

static void group_end(struct iso_check_errors *errors, const struct sums *sums) {
    double n = (double)errors->elements;
    if (!errors->elements)
        return;
    errors->rms = sqrt(sums->squares / n);
    errors->bias = sums->sum / n;
    size_t step = 1000, above = sums->steps[1000]; /* the upper end of the step it lies in */
    while (step && (double)above <= n / 1000)
        above += sums->steps[--step];
    errors->q999 = fmin(errors->worst, (double)(step + 1) / 1000);
}

void iso_check_tally_begin(struct iso_check_tally *t) {
    *t = (struct iso_check_tally){.hash = XXH3_createState(),
                                  .sums = calloc(ISO_CHECK_GROUPS, sizeof(struct sums))};
    if (!t->hash || !t->sums)
        iso_check_die("memory");
    XXH3_64bits_reset(t->hash);
}

/* Of the cases so far. */
void iso_check_tally_errors(struct iso_check_tally *t) {
    for (size_t i = 0; i < t->group_count; i++) {
        group_end(&t->groups[i], (const struct sums *)t->sums + i);
        t->ulp = fmax(t->ulp, t->groups[i].ulp);
    }
}

void iso_check_tally_end(struct iso_check_tally *t) {
    t->bits = XXH3_64bits_digest(t->hash);
    XXH3_freeState(t->hash);
    t->hash = NULL;
    iso_check_tally_errors(t);
    free(t->sums);
    t->sums = NULL;
}

bool iso_check_values(char *text, size_t bytes, const struct iso_check_suite *suite,
                      const struct iso_check_case *c, const struct iso_check_operands *o,
                      struct iso_check_tally *tally) {
    struct iso_check_errors *errors;
    struct sums *sums;
    group_find(suite, c, tally, &errors, &sums);

    for (unsigned i = 0; i < o->count; i++) {
        const struct iso_check_operand *v = &o->v[i];
        if ((v->role != ISO_CHECK_OUT && v->role != ISO_CHECK_INOUT) || v->absent)
            continue;
        const float *at = v->at;
        for (size_t r = 0; r < v->rows && v->bytes; r++) {
            for (size_t j = 0; j < v->cols; j++) {
                float got = at[r * v->ld + j];
                size_t e = r * v->cols + j;
                double ratio = 0;
                if (v->role == ISO_CHECK_OUT && to_bits(got) == ISO_CHECK_CANARY_BITS) {
                    snprintf(text, bytes, "did not write %s[%zu][%zu]", v->name, r, j);
                    return false;
                }
                if (v->expect && !close_enough(&ratio, got, v->expect[e], v->bound[e])) {
                    if (isfinite(v->expect[e]) && isfinite(got))
                        snprintf(text, bytes,
                                 "%s[%zu][%zu] is %a, should be %a: %.3g times the bound %.3g",
                                 v->name, r, j, (double)got, v->expect[e], ratio, v->bound[e]);
                    else
                        snprintf(text, bytes, "%s[%zu][%zu] is %g, should be %g", v->name, r, j,
                                 (double)got, v->expect[e]);
                    return false;
                }
                if (ratio > tally->worst)
                    tally->worst = ratio;
                if (v->expect && v->bound[e] > ORACLE_EQUAL && isfinite(v->expect[e]) &&
                    isfinite(v->bound[e]) && isfinite(got))
                    group_add(errors, sums, ratio, fabs((double)got) > fabs(v->expect[e]));
                if (ratio > 0 && isfinite(v->expect[e])) {
                    double ulp = ulp_of(v->expect[e]);
                    if (v->bound[e] <= MEANINGFUL_ULP * ulp &&
                        ratio * v->bound[e] > errors->ulp * ulp)
                        errors->ulp = ratio * v->bound[e] / ulp;
                }
                if (v->exact && canonical(to_bits(got)) != canonical(to_bits(v->exact[e]))) {
                    snprintf(text, bytes, "%s[%zu][%zu] is %a, should be %a, to the bit", v->name,
                             r, j, (double)got, (double)v->exact[e]);
                    return false;
                }
            }
        }
    }
    return true;
}

/* Words enter the hash as little-endian bytes on every machine. */
static void add_words(XXH3_state_t *hash, uint32_t *words, size_t n) {
    for (size_t i = 0; i < n; i++)
        words[i] = htole32(words[i]);
    XXH3_64bits_update(hash, words, n * sizeof *words);
    for (size_t i = 0; i < n; i++)
        words[i] = le32toh(words[i]);
}

/*
 * Gathers the outputs, NaN made canonical, adds them to the hash and compares with the first run of
 * this case.
 */
bool iso_check_bits(char *text, size_t bytes, const struct iso_check_operands *o,
                    struct iso_check_first *first, const char *who, const char *where,
                    XXH3_state_t *hash) {
    size_t total = 0, n = 0;
    for (unsigned i = 0; i < o->count; i++)
        total += o->v[i].rows * o->v[i].cols;
    if (first->room < total) {
        first->room = 2 * total;
        first->bits = realloc(first->bits, first->room * sizeof *first->bits);
        first->other = realloc(first->other, first->room * sizeof *first->other);
        if (!first->bits || !first->other)
            iso_check_die("memory");
    }
    uint32_t *to = first->who ? first->other : first->bits;
    const char *differs = NULL;
    size_t row = 0, column = 0, place = 0;
    for (unsigned i = 0; i < o->count; i++) {
        const struct iso_check_operand *v = &o->v[i];
        if ((v->role != ISO_CHECK_OUT && v->role != ISO_CHECK_INOUT) || v->absent || !v->bytes)
            continue;
        const float *at = v->at;
        for (size_t r = 0; r < v->rows; r++) {
            for (size_t c = 0; c < v->cols; c++, n++) {
                to[n] = canonical(to_bits(at[r * v->ld + c]));
                if (first->who && !differs && to[n] != first->bits[n])
                    differs = v->name, row = r, column = c, place = n;
            }
        }
    }
    if (hash)
        add_words(hash, to, n);
    if (!first->who) {
        first->who = who;
        snprintf(first->where, sizeof first->where, "%s", where);
    }
    if (differs)
        snprintf(text, bytes, "bits of %s[%zu][%zu] are %08x, but %08x on %s %s", differs, row,
                 column, to[place], first->bits[place], first->who, first->where);
    return !differs;
}
