/* SPDX-License-Identifier: MIT
 *
 * See blocks.h.
 */
#include "blocks.h"

#include <math.h>
#include <string.h>

static void put(unsigned char *byte, unsigned shift, unsigned bits, int value) {
    const unsigned mask = ((1u << bits) - 1) << shift;
    *byte = (unsigned char)((*byte & ~mask) | (((unsigned)value << shift) & mask));
}

/* The lower four bits of blocks of 32: elements 0 to 15, then 16 to 31 above them. */
static void nibbles(unsigned char *to, const int *numbers, int plus) {
    for (unsigned i = 0; i < 16; i++) {
        put(to + i, 0, 4, numbers[i] + plus);
        put(to + i, 4, 4, numbers[16 + i] + plus);
    }
}
/* And the fifth. */
static void fifths(unsigned char *to, const int *numbers, int plus) {
    for (unsigned i = 0; i < 32; i++)
        put(to + i / 8, i % 8, 1, (numbers[i] + plus) >> 4);
}

static void write_q4_0(unsigned char *to, const block_content *c) {
    nibbles(to + 2, c->numbers, 8);
}
static void write_q4_1(unsigned char *to, const block_content *c) {
    nibbles(to + 4, c->numbers, 0);
}
static void write_q5_0(unsigned char *to, const block_content *c) {
    fifths(to + 2, c->numbers, 16);
    nibbles(to + 6, c->numbers, 16);
}
static void write_q5_1(unsigned char *to, const block_content *c) {
    fifths(to + 4, c->numbers, 0);
    nibbles(to + 8, c->numbers, 0);
}
static void write_q8_0(unsigned char *to, const block_content *c) {
    for (unsigned i = 0; i < 32; i++)
        to[2 + i] = (unsigned char)c->numbers[i];
}

static const int values_nl[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};
/* The value that is not below a number, and its place. */
static int place_nl(int number) {
    int place = 0;
    while (place < 15 && values_nl[place] < number)
        place++;
    return place;
}
static void write_nl(unsigned char *to, const int *numbers) {
    int places[32];
    for (unsigned i = 0; i < 32; i++)
        places[i] = place_nl(numbers[i]);
    nibbles(to, places, 0);
}
static void write_iq4_nl(unsigned char *to, const block_content *c) {
    write_nl(to + 2, c->numbers);
}
static void write_iq4_xs(unsigned char *to, const block_content *c) {
    for (unsigned g = 0; g < 8; g++) {
        const int scale = c->scales[g] + 32;
        put(to + 4 + g / 2, g % 2 * 4, 4, scale);
        put(to + 2 + g / 4, g % 4 * 2, 2, scale >> 4);
        write_nl(to + 8 + (size_t)16 * g, c->numbers + (size_t)32 * g);
    }
}

/* Two bits of 256 elements: of each 128, a byte has elements l, l + 32, l + 64, l + 96. */
static void pairs(unsigned char *to, const int *numbers, int plus, int drop) {
    for (unsigned half = 0; half < 2; half++)
        for (unsigned quarter = 0; quarter < 4; quarter++)
            for (unsigned l = 0; l < 32; l++)
                put(to + 32 * half + l, 2 * quarter, 2,
                    (numbers[128 * half + 32 * quarter + l] + plus) >> drop);
}
/* One bit: byte l has those of l, l + 32, ... */
static void singles(unsigned char *to, const int *numbers, int plus, int drop) {
    for (unsigned e = 0; e < 8; e++)
        for (unsigned l = 0; l < 32; l++)
            put(to + l, e, 1, (numbers[32 * e + l] + plus) >> drop);
}

static void write_q2_k(unsigned char *to, const block_content *c) {
    for (unsigned g = 0; g < 16; g++)
        to[g] = (unsigned char)(c->scales[g] | c->offsets[g] << 4);
    pairs(to + 16, c->numbers, 0, 0);
}
static void write_q3_k(unsigned char *to, const block_content *c) {
    singles(to, c->numbers, 4, 2);
    pairs(to + 32, c->numbers, 4, 0);
    for (unsigned g = 0; g < 16; g++) {
        const int scale = c->scales[g] + 32;
        put(to + 96 + g % 8, g / 8 * 4, 4, scale);
        put(to + 104 + g % 4, g / 4 * 2, 2, scale >> 4);
    }
}
/* 6 bits of 8 scales and 8 offsets. */
static void write_12(unsigned char *to, const block_content *c) {
    for (unsigned g = 0; g < 4; g++) {
        put(to + g, 0, 6, c->scales[g]);
        put(to + 4 + g, 0, 6, c->offsets[g]);
        put(to + 8 + g, 0, 4, c->scales[4 + g]);
        put(to + 8 + g, 4, 4, c->offsets[4 + g]);
        put(to + g, 6, 2, c->scales[4 + g] >> 4);
        put(to + 4 + g, 6, 2, c->offsets[4 + g] >> 4);
    }
}
/* Four bits, of 64 elements the first 32 below. */
static void nibbles_64(unsigned char *to, const int *numbers) {
    for (unsigned e = 0; e < 8; e++)
        for (unsigned l = 0; l < 32; l++)
            put(to + e / 2 * 32 + l, e % 2 * 4, 4, numbers[32 * e + l]);
}
static void write_q4_k(unsigned char *to, const block_content *c) {
    write_12(to + 4, c);
    nibbles_64(to + 16, c->numbers);
}
static void write_q5_k(unsigned char *to, const block_content *c) {
    write_12(to + 4, c);
    singles(to + 16, c->numbers, 0, 4);
    nibbles_64(to + 48, c->numbers);
}
static void write_q6_k(unsigned char *to, const block_content *c) {
    for (unsigned half = 0; half < 2; half++)
        for (unsigned l = 0; l < 64; l++) {
            put(to + 64 * half + l, 0, 4, c->numbers[128 * half + l] + 32);
            put(to + 64 * half + l, 4, 4, c->numbers[128 * half + 64 + l] + 32);
        }
    pairs(to + 128, c->numbers, 32, 4);
    for (unsigned g = 0; g < 16; g++)
        to[192 + g] = (unsigned char)c->scales[g];
}

/* clang-format off */
const block_kind block_kinds[] = {
    {"Q4_0",    2,  32,  18, 32, 0, 0,   0,  0,   -8,   7,    1,   1,  1, write_q4_0},
    {"Q4_1",    3,  32,  20, 32, 1, 0,   0,  2,    0,  15,    1,   1,  1, write_q4_1},
    {"Q5_0",    6,  32,  22, 32, 0, 0,   0,  0,  -16,  15,    1,   1,  1, write_q5_0},
    {"Q5_1",    7,  32,  24, 32, 1, 0,   0,  2,    0,  31,    1,   1,  1, write_q5_1},
    {"Q8_0",    8,  32,  34, 32, 0, 0,   0,  0, -128, 127,    1,   1,  1, write_q8_0},
    {"IQ4_NL", 20,  32,  18, 32, 0, 0,   0,  0, -127, 113,    1,   1,  1, write_iq4_nl},
    {"IQ4_XS", 23, 256, 136, 32, 0, 0,   0,  0, -127, 113,  -32,  31,  1, write_iq4_xs},
    {"Q2_K",   10, 256,  84, 16, 1, 1,  80, 82,    0,   3,    0,  15, 15, write_q2_k},
    {"Q3_K",   11, 256, 110, 16, 0, 0, 108,  0,   -4,   3,  -32,  31,  1, write_q3_k},
    {"Q4_K",   12, 256, 144, 32, 1, 1,   0,  2,    0,  15,    0,  63, 63, write_q4_k},
    {"Q5_K",   13, 256, 176, 32, 1, 1,   0,  2,    0,  31,    0,  63, 63, write_q5_k},
    {"Q6_K",   14, 256, 210, 16, 0, 0, 208,  0,  -32,  31, -128, 127,  1, write_q6_k},
};
/* clang-format on */
const size_t block_kind_count = sizeof block_kinds / sizeof *block_kinds;

const block_kind *block_kind_find(const char *name) {
    for (size_t i = 0; i < block_kind_count; i++)
        if (strcmp(block_kinds[i].name, name) == 0)
            return &block_kinds[i];
    return NULL;
}

static uint32_t draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

static int draw_from(int least, int most, int fill, uint64_t *state) {
    if (fill == BLOCK_EXTREME && draw(state) % 2)
        return draw(state) % 2 ? least : most;
    return least + (int)(draw(state) % (uint32_t)(most - least + 1));
}

static uint16_t draw_half(int fill, uint64_t *state) {
    static const uint16_t ends[] = {0, 0x8000, 1, 0x8001, 0x7bff, 0xfbff, 0x3c00, 0x03ff};
    if (fill == BLOCK_EXTREME)
        return ends[draw(state) % 8];
    return (uint16_t)(0x1000 + draw(state) % 0x0800) | (uint16_t)(draw(state) % 2 << 15);
}

/* F16 by definition. */
static double half_value(uint16_t half) {
    const int exponent = half >> 10 & 31;
    const double fraction = half & 1023;
    const double value =
        ldexp(exponent ? fraction + 1024 : fraction, (exponent ? exponent : 1) - 25);
    return half >> 15 ? -value : value;
}

/* a + b, rounded to float once: to odd in double first, where that is not exact. */
static float add(double a, double b) {
    volatile double sum = a + b, other = sum - a, left = sum - other;
    const double error = (a - left) + (b - other);
    double odd = sum;
    uint64_t bits;
    memcpy(&bits, &odd, sizeof bits);
    if (error != 0 && !(bits & 1))
        odd = nextafter(odd, error > 0 ? INFINITY : -INFINITY);
    return (float)odd;
}

void block_make(unsigned char *to, float *weights, const block_kind *kind, int fill,
                uint64_t *state) {
    block_content c = {.scale = draw_half(fill, state), .offset = draw_half(fill, state)};
    const double scale = half_value(c.scale), offset = half_value(c.offset);
    for (size_t g = 0; g < kind->elements / kind->group; g++) {
        c.scales[g] = draw_from(kind->least_scale, kind->most_scale, fill, state);
        c.offsets[g] = kind->most_offset == 1 ? 1 : draw_from(0, kind->most_offset, fill, state);
    }
    memset(to, 0, kind->bytes);
    for (size_t i = 0; i < kind->elements; i++) {
        int q = c.numbers[i] = draw_from(kind->least, kind->most, fill, state);
        const size_t g = i / kind->group;
        if (kind->write == write_iq4_nl || kind->write == write_iq4_xs)
            q = values_nl[place_nl(q)];
        const double product = scale * c.scales[g] * q, minimum = offset * c.offsets[g];
        weights[i] = !kind->has_offset ? (float)product
                     : kind->minus     ? add(product, -minimum)
                                       : add(product, minimum);
    }
    for (size_t i = 0; i < 2; i++) {
        to[kind->scale_at + i] = (unsigned char)(c.scale >> 8 * i);
        if (kind->has_offset)
            to[kind->offset_at + i] = (unsigned char)(c.offset >> 8 * i);
    }
    kind->write(to, &c);
}
