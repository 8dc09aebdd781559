/* SPDX-License-Identifier: MIT
 *
 * Random numbers and the kinds of input. Everything comes from integers by exact scaling.
 */
#include "common.h"

uint64_t iso_check_random_next(struct iso_check_random *r) { /* splitmix64 */
    uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

size_t iso_check_random_below(struct iso_check_random *r, size_t n) {
    return (size_t)((iso_check_random_next(r) >> 32) * (uint64_t)n >> 32);
}

size_t iso_check_random_log(struct iso_check_random *r, size_t max) {
    size_t digits = 0;
    while (max >> digits)
        digits++;
    size_t d = iso_check_random_below(r, digits + 1);
    size_t value = d ? ((size_t)1 << (d - 1)) + iso_check_random_below(r, (size_t)1 << (d - 1)) : 0;
    return value < max ? value : max;
}

size_t iso_check_random_gap(struct iso_check_random *r) {
    static const size_t usual[] = {0, 0, 0, 1, 1, 2, 3, 5, 13, 64};
    size_t i = iso_check_random_below(r, 14);
    return i < sizeof usual / sizeof *usual ? usual[i]
                                            : iso_check_random_log(r, i == 13 ? 1100 : 90);
}

static float uniform(struct iso_check_random *r) {
    int64_t i = (int64_t)(iso_check_random_next(r) >> 40) - (1 << 23);
    return (float)i * 0x1p-23f;
}

static float with_exponent(struct iso_check_random *r, int low, int high) {
    uint64_t z = iso_check_random_next(r);
    int e = low + (int)(z >> 40) % (high - low + 1);
    return from_bits((uint32_t)(z & 1) << 31 | (uint32_t)(e + 127) << 23 |
                     ((uint32_t)(z >> 1) & 0x7fffff));
}

static const struct {
    const char *name, *kind;
} fills[ISO_CHECK_FILL_ALL] = {
    [ISO_CHECK_FILL_UNIFORM] = {"uniform", "plain"},
    [ISO_CHECK_FILL_INTEGER] = {"integer", "plain"},
    [ISO_CHECK_FILL_WIDE] = {"wide", "spread"},
    [ISO_CHECK_FILL_NORMAL] = {"normal", "plain"},
    [ISO_CHECK_FILL_TINY] = {"tiny", "spread"},
    [ISO_CHECK_FILL_HUGE] = {"huge", "spread"},
    [ISO_CHECK_FILL_CANCEL] = {"cancel", "cancel"},
    [ISO_CHECK_FILL_EQUAL] = {"equal", "cancel"},
    [ISO_CHECK_FILL_OFFSET] = {"offset", "cancel"},
    [ISO_CHECK_FILL_RISING] = {"rising", "scores"},
    [ISO_CHECK_FILL_FALLING] = {"falling", "scores"},
    [ISO_CHECK_FILL_SCORES] = {"scores", "scores"},
    [ISO_CHECK_FILL_ZERO] = {"zero", "special"},
    [ISO_CHECK_FILL_SPECIAL] = {"special", "special"},
    [ISO_CHECK_FILL_MINUS_INF] = {"minus-inf", "special"},
    [ISO_CHECK_FILL_BITS] = {"bits", "spread"},
    [ISO_CHECK_FILL_SMALL] = {"small", "spread"},
    [ISO_CHECK_FILL_ONES] = {"ones", "plain"},
    [ISO_CHECK_FILL_ALTERNATE] = {"alternate", "plain"},
    [ISO_CHECK_FILL_EXPONENTS] = {"exponents", "spread"},
    [ISO_CHECK_FILL_POWERS] = {"powers", "spread"},
    [ISO_CHECK_FILL_OPPOSITE] = {"opposite", "cancel"},
    [ISO_CHECK_FILL_SPIKE_FIRST] = {"spike-first", "cancel"},
    [ISO_CHECK_FILL_SPIKE_LAST] = {"spike-last", "cancel"},
    [ISO_CHECK_FILL_PLATEAU] = {"plateau", "cancel"},
    [ISO_CHECK_FILL_EDGE] = {"edge", "scores"},
    [ISO_CHECK_FILL_LADDER] = {"ladder", "scores"},
    [ISO_CHECK_FILL_STEEP] = {"steep", "scores"},
    [ISO_CHECK_FILL_MINUS_ZERO] = {"minus-zero", "special"},
    [ISO_CHECK_FILL_ALL_MINUS_INF] = {"all-minus-inf", "special"},
    [ISO_CHECK_FILL_TOP_AT] = {"top-at", "scores"},
    [ISO_CHECK_FILL_ALONE_AT] = {"alone-at", "special"},
    [ISO_CHECK_FILL_NAN_AT] = {"nan-at", "special"},
    [ISO_CHECK_FILL_INF_AT] = {"inf-at", "special"},
    [ISO_CHECK_FILL_MINUS_INF_AT] = {"minus-inf-at", "special"},
};

const char *iso_check_fill_name(unsigned fill) {
    return fill < ISO_CHECK_FILL_ALL ? fills[fill].name : "?";
}
const char *iso_check_fill_class(unsigned fill) {
    return fill < ISO_CHECK_FILL_ALL ? fills[fill].kind : "?";
}

bool iso_check_fill_may_overflow(unsigned fill) {
    return fill == ISO_CHECK_FILL_HUGE || fill == ISO_CHECK_FILL_BITS ||
           fill == ISO_CHECK_FILL_EXPONENTS;
}

bool iso_check_fill_is_finite(unsigned fill) {
    return !iso_check_fill_may_overflow(fill) && fill != ISO_CHECK_FILL_SPECIAL &&
           fill != ISO_CHECK_FILL_MINUS_INF && fill < ISO_CHECK_FILL_ALL_MINUS_INF;
}

bool iso_check_fill_has_spot(unsigned fill) {
    return fill >= ISO_CHECK_FILL_TOP_AT && fill < ISO_CHECK_FILL_ALL;
}

float iso_check_fill_value(struct iso_check_operands *o, unsigned fill) {
    struct iso_check_random *r = &o->random;
    size_t i = o->filled++, drawn = o->drawn++, row = o->cols ? o->cols : 64;
    switch (fill) {
    case ISO_CHECK_FILL_INTEGER: return (float)((int)iso_check_random_below(r, 17) - 8);
    case ISO_CHECK_FILL_WIDE: return with_exponent(r, -20, 20);
    case ISO_CHECK_FILL_NORMAL: {
        int64_t sum = 0;
        for (int j = 0; j < 12; j++)
            sum += (int64_t)(iso_check_random_next(r) >> 44) - (1 << 19);
        return (float)sum * 0x1p-20f;
    }
    case ISO_CHECK_FILL_TINY: {
        uint64_t z = iso_check_random_next(r);
        return from_bits((uint32_t)(z & 1) << 31 | (uint32_t)(z >> 32) % 0x01000000);
    }
    case ISO_CHECK_FILL_SMALL: return with_exponent(r, -74, -67);
    case ISO_CHECK_FILL_HUGE: return with_exponent(r, 100, 126);
    case ISO_CHECK_FILL_CANCEL:
        if (i % 2 == 0)
            return o->last = uniform(r);
        return -o->last * (1 + 0x1p-20f);
    case ISO_CHECK_FILL_EQUAL: return o->equal;
    case ISO_CHECK_FILL_OFFSET: return 1e6f + uniform(r);
    case ISO_CHECK_FILL_RISING: return (float)i * 0.375f - 40.0f;
    case ISO_CHECK_FILL_FALLING: return 40.0f - (float)i * 0.375f;
    case ISO_CHECK_FILL_SCORES:
        return (float)(int)iso_check_random_below(r, 120 * 64) * 0x1p-6f - 100.0f;
    case ISO_CHECK_FILL_ZERO: return iso_check_random_next(r) & 1 ? 0.0f : -0.0f;
    case ISO_CHECK_FILL_SPECIAL: {
        static const uint32_t values[] = {0x7fc00000, 0x7f800000, 0xff800000, 0x80000000};
        if (iso_check_random_below(r, 24) == 0)
            return from_bits(values[iso_check_random_below(r, 4)]);
        return uniform(r);
    }
    case ISO_CHECK_FILL_MINUS_INF:
        return iso_check_random_below(r, 3) ? uniform(r) : from_bits(0xff800000);
    case ISO_CHECK_FILL_BITS: {
        uint32_t bits = (uint32_t)(iso_check_random_next(r) >> 32);
        /* no signalling NaN: what becomes of them is not promised */
        return from_bits((bits & 0x7f800000) == 0x7f800000 ? bits | 0x00400000 : bits);
    }
    case ISO_CHECK_FILL_ONES: return 1.0f;
    case ISO_CHECK_FILL_ALTERNATE: return i % 2 ? -1.0f : 1.0f;
    case ISO_CHECK_FILL_EXPONENTS: return with_exponent(r, -126, 127);
    case ISO_CHECK_FILL_POWERS: {
        float x = with_exponent(r, -20, 20);
        return from_bits(to_bits(x) & 0xff800000);
    }
    case ISO_CHECK_FILL_OPPOSITE:
        if (i % 2 == 0)
            return o->last = uniform(r);
        return -o->last + 0x1p-20f * uniform(r);
    case ISO_CHECK_FILL_SPIKE_FIRST: return i ? uniform(r) : 0x1p20f;
    case ISO_CHECK_FILL_SPIKE_LAST: return i + 1 == row ? 0x1p20f : uniform(r);
    case ISO_CHECK_FILL_PLATEAU:
        return 1024.0f + 0x1p-10f * iso_check_fill_value(o, ISO_CHECK_FILL_NORMAL);
    case ISO_CHECK_FILL_EDGE: {
        static const float edges[] = {0x1.62e42ep+6f,  -0x1.5d589ep+6f, -0x1.9fe368p+6f,
                                      -0x1.9d1da0p+6f, -0x1.62e42ep+6f, 0.0f};
        float x = edges[iso_check_random_below(r, 6)];
        return from_bits(to_bits(x) + (x != 0 ? (uint32_t)iso_check_random_below(r, 9) - 4 : 0));
    }
    case ISO_CHECK_FILL_LADDER: return -(float)(i % 105);
    case ISO_CHECK_FILL_STEEP: return 90.0f * (float)i;
    case ISO_CHECK_FILL_MINUS_ZERO: return -0.0f;
    case ISO_CHECK_FILL_ALL_MINUS_INF: return from_bits(0xff800000);
    case ISO_CHECK_FILL_TOP_AT: return uniform(r) + (i % row == o->spot % row ? 50.0f : 0.0f);
    case ISO_CHECK_FILL_ALONE_AT:
        return i % row == o->spot % row ? uniform(r) : from_bits(0xff800000);
    case ISO_CHECK_FILL_NAN_AT: return drawn == o->spot ? from_bits(0x7fc00000) : uniform(r);
    case ISO_CHECK_FILL_INF_AT: return drawn == o->spot ? from_bits(0x7f800000) : uniform(r);
    case ISO_CHECK_FILL_MINUS_INF_AT: return drawn == o->spot ? from_bits(0xff800000) : uniform(r);
    default: return uniform(r);
    }
}

void iso_check_fill(struct iso_check_operands *o, float *to, size_t rows, size_t cols, size_t ld,
                    unsigned fill) {
    o->equal = uniform(&o->random) * 3;
    o->cols = cols;
    for (size_t r = 0; r < rows; r++) {
        o->filled = 0;
        for (size_t c = 0; c < cols; c++)
            to[r * ld + c] = iso_check_fill_value(o, fill);
    }
    o->cols = 0;
}
