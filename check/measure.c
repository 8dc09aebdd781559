/* SPDX-License-Identifier: MIT
 *
 * See measure.h.
 */
#include "measure.h"

#include <math.h>
#include <stdlib.h>
#include <xxhash.h>

#include "common.h"

enum { MEANINGFUL_ULP = 8 };

static void put_le(unsigned char *to, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

uint32_t iso_record_key(const struct iso_check_case *c) {
    unsigned char bytes[8 * (ISO_CHECK_CASE_PARAMS + 3)];
    for (unsigned i = 0; i < ISO_CHECK_CASE_PARAMS; i++)
        put_le(bytes + 8 * i, c->p[i], 8);
    put_le(bytes + 8 * ISO_CHECK_CASE_PARAMS, c->fill, 8);
    put_le(bytes + 8 * (ISO_CHECK_CASE_PARAMS + 1), c->spot, 8);
    put_le(bytes + 8 * (ISO_CHECK_CASE_PARAMS + 2), c->seed, 8);
    return (uint32_t)XXH3_64bits(bytes, sizeof bytes);
}

static double ulp_of(double y) {
    int exponent;
    if (y == 0 || !isfinite(y))
        return 0x1p-149;
    frexp(y, &exponent); /* y < 2^exponent */
    exponent = exponent < -125 ? -125 : exponent > 128 ? 128 : exponent;
    return ldexp(1, exponent - 24);
}

static bool counted(double value, double expect, double bound) {
    return isfinite(value) && isfinite(expect) && isfinite(bound) && bound > 0;
}

/* The unit of a sample; *ulp tells which. */
static double step_of(double expect, double bound, bool *is_ulp) {
    double ulp = ulp_of(expect);
    *is_ulp = bound <= ISO_RECORD_STEPS * ulp;
    return *is_ulp ? ulp : bound / ISO_RECORD_STEPS;
}

static int8_t sample(double value, double expect, double bound) {
    bool is_ulp;
    if (!counted(value, expect, bound))
        return ISO_RECORD_NO_SAMPLE;
    double steps = floor((value - expect) / step_of(expect, bound, &is_ulp) + 0.5);
    return (int8_t)fmax(-127, fmin(127, steps));
}

static bool is_output(const struct iso_check_operand *v) {
    return (v->role == ISO_CHECK_OUT || v->role == ISO_CHECK_INOUT) && !v->absent && v->bytes;
}

static size_t output_count(const struct iso_check_operands *o) {
    size_t n = 0;
    for (unsigned i = 0; i < o->count; i++)
        n += is_output(&o->v[i]) ? o->v[i].rows * o->v[i].cols : 0;
    return n;
}

uint64_t iso_record_hash(const struct iso_check_operands *o) {
    unsigned char words[4 * 256];
    size_t n = 0;
    uint64_t hash = 0; /* a block's hash seeds that of the next one */
    for (unsigned i = 0; i < o->count; i++) {
        const struct iso_check_operand *v = &o->v[i];
        for (size_t r = 0; is_output(v) && r < v->rows; r++) {
            const float *row = (const float *)v->at + r * v->ld;
            for (size_t c = 0; c < v->cols; c++) {
                uint32_t bits = to_bits(row[c]);
                put_le(words + n, (bits & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : bits, 4);
                n += 4;
                if (n == sizeof words) {
                    hash = XXH3_64bits_withSeed(words, n, hash);
                    n = 0;
                }
            }
        }
    }
    return XXH3_64bits_withSeed(words, n, hash);
}

/* The k-th of n samples among `all` outputs, taken as one sequence: in the k-th stretch, anywhere,
 * so that samples of a matrix are not all of one column. */
static size_t sample_place(size_t k, size_t n, size_t all) {
    size_t begin = (size_t)((uint64_t)k * all / n), end = (size_t)((uint64_t)(k + 1) * all / n);
    return begin + (size_t)((k + 1) * ISO_CHECK_SPREAD >> 40) % (end - begin);
}

/* The largest errors of a case. */
struct worst {
    double bound, ulp;
    bool in_ulp; /* an ULP is meaningful for all outputs */
};

static void add_error(struct worst *w, double value, double expect, double bound) {
    if (!counted(value, expect, bound))
        return;
    double error = fabs(value - expect), ulp = ulp_of(expect);
    w->bound = fmax(w->bound, error / bound);
    w->ulp = fmax(w->ulp, error / ulp);
    w->in_ulp = w->in_ulp && bound <= MEANINGFUL_ULP * ulp;
}

static uint8_t rounded_up(double x, unsigned unit, uint8_t most) {
    return (uint8_t)fmin(ceil(x * unit), most);
}

void iso_record_measure(struct iso_record_case *m, int8_t samples[ISO_RECORD_SAMPLES],
                        const struct iso_check_operands *o) {
    size_t all = output_count(o), place = 0, taken = 0;
    size_t n = all < ISO_RECORD_SAMPLES ? all : ISO_RECORD_SAMPLES;
    struct worst w = {.in_ulp = true};
    for (unsigned i = 0; i < o->count; i++) {
        const struct iso_check_operand *v = &o->v[i];
        for (size_t r = 0; is_output(v) && r < v->rows; r++) {
            for (size_t c = 0; c < v->cols; c++, place++) {
                double value = (double)((const float *)v->at)[r * v->ld + c];
                double expect = v->expect ? v->expect[r * v->cols + c] : NAN;
                double bound = v->expect ? v->bound[r * v->cols + c] : 0;
                add_error(&w, value, expect, bound);
                if (taken < n && place == sample_place(taken, n, all))
                    samples[taken++] = sample(value, expect, bound);
            }
        }
    }
    *m = (struct iso_record_case){.hash = iso_record_hash(o), .count = (uint8_t)n};
    m->bound = rounded_up(w.bound, ISO_RECORD_BOUND_UNIT, ISO_RECORD_BOUND_UNIT);
    m->ulp = w.in_ulp ? rounded_up(w.ulp, ISO_RECORD_ULP_UNIT, ISO_RECORD_NO_ULP - 1)
                      : ISO_RECORD_NO_ULP;
}

struct iso_record_difference iso_record_differences(const struct iso_check_operands *o,
                                                    const int8_t *here, const int8_t *there,
                                                    unsigned count) {
    struct iso_record_difference d = {0};
    size_t all = output_count(o), place = 0;
    unsigned taken = 0;
    for (unsigned i = 0; i < o->count; i++) {
        const struct iso_check_operand *v = &o->v[i];
        for (size_t e = 0; is_output(v) && e < v->rows * v->cols && taken < count; e++, place++) {
            if (place != sample_place(taken, count, all))
                continue;
            int a = here[taken], b = there[taken];
            unsigned steps = (unsigned)abs(a - b);
            taken++;
            if (!steps || a == ISO_RECORD_NO_SAMPLE || b == ISO_RECORD_NO_SAMPLE || !v->expect)
                continue;
            bool is_ulp;
            step_of(v->expect[e], v->bound[e], &is_ulp);
            unsigned *most = is_ulp ? &d.ulp : &d.parts;
            *most = steps > *most ? steps : *most;
            d.samples++;
        }
    }
    return d;
}
