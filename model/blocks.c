/* SPDX-License-Identifier: MIT
 *
 * GGUF's blocks (blocks.h), those of iso_pack_q (isobit/ops.h) that hold the same, and packed rows.
 * Where elements of GGUF have more bits than a part of a block holds, one array has the lower ones
 * and another the upper ones.
 */
#include "blocks.h"

#include "weights.h"

#include <math.h>
#include <string.h>

static unsigned number_of_16(const unsigned char *at) { return at[0] | (unsigned)at[1] << 8; }

/* Element i of an array of 4 bits in which the halves of each `span` bytes hold elements that are
 * `span` apart. */
static unsigned low_4(const unsigned char *q, size_t i, size_t span) {
    const unsigned char byte = q[i / (2 * span) * span + i % span];
    return i / span % 2 ? byte >> 4 : byte & 15;
}

/* The same of 2 bits, in quarters of 32 bytes. */
static unsigned low_2(const unsigned char *q, size_t i) {
    return q[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

/* ---------------------------------------------------------------------------- blocks of 32 */

static void read_q4_0(model_block *to, const unsigned char *b) {
    for (size_t i = 0; i < 32; i++)
        to->numbers[i] = (int8_t)((int)low_4(b + 2, i, 16) - 8);
}

static void read_q4_1(model_block *to, const unsigned char *b) {
    for (size_t i = 0; i < 32; i++)
        to->numbers[i] = (int8_t)low_4(b + 4, i, 16);
}

/* The fifth bits of 32 elements are bits of four bytes. */
static int number_5(const unsigned char *high, const unsigned char *low, size_t i) {
    return (int)(low_4(low, i, 16) | ((unsigned)high[i / 8] >> i % 8 & 1u) << 4);
}

static void read_q5_0(model_block *to, const unsigned char *b) {
    for (size_t i = 0; i < 32; i++)
        to->numbers[i] = (int8_t)(number_5(b + 2, b + 6, i) - 16);
}

static void read_q5_1(model_block *to, const unsigned char *b) {
    for (size_t i = 0; i < 32; i++)
        to->numbers[i] = (int8_t)number_5(b + 4, b + 8, i);
}

static void read_q8_0(model_block *to, const unsigned char *b) { memcpy(to->numbers, b + 2, 32); }

/* Elements of 4 bits that stand for these numbers. */
static const int8_t uneven[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};

static void read_iq4_nl(model_block *to, const unsigned char *b) {
    for (size_t i = 0; i < 32; i++)
        to->numbers[i] = uneven[low_4(b + 2, i, 16)];
}

/* --------------------------------------------------------------------------- blocks of 256 */

static void read_iq4_xs(model_block *to, const unsigned char *b) {
    const unsigned char *low = b + 4, *q = b + 8;
    const unsigned high = number_of_16(b + 2);
    for (size_t g = 0; g < 8; g++)
        to->scales[g] = (int8_t)((int)(low_4(low, g, 1) | (high >> 2 * g & 3) << 4) - 32);
    for (size_t i = 0; i < 256; i++)
        to->numbers[i] = uneven[low_4(q, i, 16)];
}

static void read_q2_k(model_block *to, const unsigned char *b) {
    for (size_t g = 0; g < 16; g++) {
        to->scales[g] = (int8_t)(b[g] & 15);
        to->offsets[g] = (int8_t)(b[g] >> 4);
    }
    for (size_t i = 0; i < 256; i++)
        to->numbers[i] = (int8_t)low_2(b + 16, i);
}

/* A third bit that is not set takes 4 away. */
static void read_q3_k(model_block *to, const unsigned char *b) {
    const unsigned char *high = b, *q = b + 32, *scales = b + 96;
    for (size_t g = 0; g < 16; g++)
        to->scales[g] = (int8_t)((int)(low_4(scales, g, 8) |
                                       ((unsigned)scales[8 + g % 4] >> (g / 4 * 2) & 3u) << 4) -
                                 32);
    for (size_t i = 0; i < 256; i++)
        to->numbers[i] = (int8_t)((int)low_2(q, i) - (high[i % 32] >> i / 32 & 1 ? 0 : 4));
}

/* 8 scales and 8 offsets of 6 bits in 12 bytes. Of the last four of each, the two upper bits are
 * above the first four. */
static void read_scales(model_block *to, const unsigned char *s) {
    for (size_t g = 0; g < 4; g++) {
        to->scales[g] = (int8_t)(s[g] & 63);
        to->offsets[g] = (int8_t)(s[4 + g] & 63);
        to->scales[4 + g] = (int8_t)((s[8 + g] & 15) | s[g] >> 6 << 4);
        to->offsets[4 + g] = (int8_t)(s[8 + g] >> 4 | s[4 + g] >> 6 << 4);
    }
}

static void read_q4_k(model_block *to, const unsigned char *b) {
    read_scales(to, b + 4);
    for (size_t i = 0; i < 256; i++)
        to->numbers[i] = (int8_t)low_4(b + 16, i, 32);
}

static void read_q5_k(model_block *to, const unsigned char *b) {
    const unsigned char *high = b + 16, *q = b + 48;
    read_scales(to, b + 4);
    for (size_t i = 0; i < 256; i++)
        to->numbers[i] = (int8_t)(low_4(q, i, 32) | ((unsigned)high[i % 32] >> i / 32 & 1u) << 4);
}

static void read_q6_k(model_block *to, const unsigned char *b) {
    const unsigned char *low = b, *high = b + 128;
    memcpy(to->scales, b + 192, 16);
    for (size_t i = 0; i < 256; i++)
        to->numbers[i] = (int8_t)((int)(low_4(low, i, 64) | low_2(high, i) << 4) - 32);
}

/* ----------------------------------------------------------------------------------- types */

const model_block_type *model_block_type_of(model_dtype dtype) {
    static const model_block_type types[] = {
        [MODEL_Q4_0] = {"Q4_0", 4, 18, 32, 0, 0, 0, 0, read_q4_0},
        [MODEL_Q4_1] = {"Q4_1", 4, 20, 32, 0, 2, 1, 0, read_q4_1},
        [MODEL_Q5_0] = {"Q5_0", 4, 22, 32, 0, 0, 0, 0, read_q5_0},
        [MODEL_Q5_1] = {"Q5_1", 4, 24, 32, 0, 2, 1, 0, read_q5_1},
        [MODEL_Q8_0] = {"Q8_0", 4, 34, 32, 0, 0, 0, 0, read_q8_0},
        [MODEL_IQ4_NL] = {"IQ4_NL", 4, 18, 32, 0, 0, 0, 0, read_iq4_nl},
        [MODEL_IQ4_XS] = {"IQ4_XS", 32, 136, 32, 0, 0, 0, 0, read_iq4_xs},
        [MODEL_Q2_K] = {"Q2_K", 32, 84, 16, 80, 82, 1, 1, read_q2_k},
        [MODEL_Q3_K] = {"Q3_K", 32, 110, 16, 108, 0, 0, 0, read_q3_k},
        [MODEL_Q4_K] = {"Q4_K", 32, 144, 32, 0, 2, 1, 1, read_q4_k},
        [MODEL_Q5_K] = {"Q5_K", 32, 176, 32, 0, 2, 1, 1, read_q5_k},
        [MODEL_Q6_K] = {"Q6_K", 32, 210, 16, 208, 0, 0, 0, read_q6_k},
    };
    const size_t i = (size_t)dtype;
    return i < sizeof types / sizeof *types && types[i].read ? &types[i] : NULL;
}

const char *model_dtype_name(model_dtype dtype) {
    static const char *const plain[] = {
        [MODEL_F32] = "F32", [MODEL_F16] = "F16", [MODEL_BF16] = "BF16",
        [MODEL_F64] = "F64", [MODEL_I8] = "I8",   [MODEL_GROUPS] = "pack-quantized"};
    const model_block_type *type = model_block_type_of(dtype);
    return type ? type->name : plain[dtype];
}

static int is_finite(uint16_t half) { return (half & 0x7c00) != 0x7c00; }

int model_block_read(model_block *to, const model_block_type *type, const unsigned char *block) {
    to->scale = (uint16_t)number_of_16(block + type->scale_at);
    to->offset =
        type->has_offset ? (uint16_t)number_of_16(block + type->offset_at) : 0x8000; /* -0 */
    if (!is_finite(to->scale) || !is_finite(to->offset))
        return 0;
    if (type->minus)
        to->offset ^= 0x8000;
    memset(to->scales, 1, sizeof to->scales); /* where each block is a group */
    memset(to->offsets, 1, sizeof to->offsets);
    type->read(to, block);
    return 1;
}

void model_block_floats(float *to, const model_block *block, const model_block_type *type) {
    const float all = model_from_f16(block->scale), offset_all = model_from_f16(block->offset);
    const size_t elements = model_block_elements(type), group = type->group;
    for (size_t g = 0; g < elements / group; g++, to += group) {
        const int8_t *numbers = block->numbers + g * group;
        const float scale = all * (float)block->scales[g],
                    offset = offset_all * (float)block->offsets[g];
        if (type->has_offset)
            for (size_t i = 0; i < group; i++)
                to[i] = (float)numbers[i] * scale + offset;
        else
            for (size_t i = 0; i < group; i++)
                to[i] = (float)numbers[i] * scale;
    }
}

/* ------------------------------------------------------------------------ those of iso_pack_q */

static int has_offsets(const iso_q_format *f) { return f->scale >= ISOBIT_SCALE_F16_OFFSET; }
static size_t factors(const iso_q_format *f) { return has_offsets(f) ? 2 : 1; }
static int is_i8(const iso_q_format *f) {
    return f->scale == ISOBIT_SCALE_I8 || f->scale == ISOBIT_SCALE_I8_OFFSET;
}
static int is_f32(const iso_q_format *f) {
    return f->scale == ISOBIT_SCALE_F32 || f->scale == ISOBIT_SCALE_F32_OFFSET;
}

size_t model_q_block(const iso_q_format *format) {
    return is_i8(format) ? MODEL_BLOCK_MOST : format->group;
}

size_t model_q_block_bytes(const iso_q_format *format) {
    size_t bytes = 0; /* of a block of 16 columns */
    (void)iso_pack_q_bytes(&bytes, 16, model_q_block(format), format);
    return bytes / 16;
}

void model_block_write(char *to, const model_block *block, const model_block_type *type,
                       const iso_q_format *format) {
    const size_t group = format->group, weights = model_q_block(format), half = group / 2;
    const int offsets = has_offsets(format), plus = offsets ? 0 : 8;
    memcpy(to, &block->scale, 2);
    to += 2;
    if (offsets)
        memcpy(to, &block->offset, 2);
    to += offsets ? 2 : 0;
    if (is_i8(format))
        for (size_t which = 0; which < factors(format); which++)
            for (size_t g = 0; g < weights / group; g++)
                *to++ = (char)(which ? block->offsets : block->scales)[g * group / type->group];
    if (format->bits == 8) {
        memcpy(to, block->numbers, weights);
        return;
    }
    for (size_t g = 0; g < weights; g += group)
        for (size_t i = 0; i < half; i++) {
            const int low = block->numbers[g + i] + plus,
                      high = block->numbers[g + half + i] + plus;
            *to++ = (char)(low | high << 4);
        }
}

/* A scale, or (which 1) an offset, of a column of a group; `block`: where its block begins. */
static float packed_factor(const iso_q_format *f, const char *block, const char *group,
                           size_t which, size_t column) {
    const size_t at = which * 16 + column;
    float value;
    uint16_t half;
    if (is_f32(f)) {
        memcpy(&value, group + 4 * at, sizeof value);
        return value;
    }
    memcpy(&half, (is_i8(f) ? block : group) + 2 * at, sizeof half);
    value = model_from_f16(half);
    return is_i8(f) ? value * (float)(signed char)group[at] : value;
}

void model_packed_q_row(float *to, const iso_packed_q *w, size_t row) {
    const iso_q_format *f = &w->format;
    const size_t group = f->group, each = model_q_block(f), column = row % 16;
    const size_t bytes = 16 * model_q_block_bytes(f);
    const size_t scales = 16 * factors(f) * (is_i8(f) ? 1 : is_f32(f) ? 4 : 2);
    const char *block = (const char *)w->data + row / 16 * (w->k / each) * bytes;
    for (size_t k = 0; k < w->k; k += each, block += bytes) {
        const char *at = block + (is_i8(f) ? 32 * factors(f) : 0);
        for (size_t g = 0; g < each; g += group, at += scales + 2 * group * f->bits) {
            const char *numbers = at + scales;
            const float scale = packed_factor(f, block, at, 0, column);
            const float offset = has_offsets(f) ? packed_factor(f, block, at, 1, column) : 0;
            for (size_t i = 0; i < group; i++) {
                float number = (float)(signed char)numbers[f->bits == 8 ? i * 16 + column : 0];
                if (f->bits == 4) {
                    uint32_t word;
                    memcpy(&word, numbers + (i / 8 * 16 + column) * 4, sizeof word);
                    word = word >> (28 - i % 8 * 4) & 15;
                    number = (float)word - (word >= 8 && !has_offsets(f) ? 16 : 0);
                }
                *to++ = has_offsets(f) ? fmaf(number, scale, offset) : number * scale;
            }
        }
    }
}
