/* SPDX-License-Identifier: MIT
 *
 * Elements of a checkpoint's tensors, read and converted: F16 and BF16 exactly, subnormals
 * included, F64 rounded; blocks as floats (blocks.h), or as blocks of 8 or 4 bits where a model
 * holds such.
 */
#include "elements.h"

#include "blocks.h"
#include "groups.h"

#include <string.h>

#define GROUPS_OF(bits, scale)                                                                     \
    {bits, 32, scale}, {bits, 64, scale}, { bits, 128, scale }
const iso_q_format model_q_formats[] = {[FORM_Q8] = {8, 32, ISOBIT_SCALE_F16},
                                        [FORM_Q4] = {4, 32, ISOBIT_SCALE_F16},
                                        [FORM_Q4_1] = {4, 32, ISOBIT_SCALE_F16_OFFSET},
                                        [FORM_Q5_1] = {8, 32, ISOBIT_SCALE_F16_OFFSET},
                                        [FORM_Q2_K] = {4, 16, ISOBIT_SCALE_I8_OFFSET},
                                        [FORM_Q3_K] = {4, 16, ISOBIT_SCALE_I8},
                                        [FORM_Q4_K] = {4, 32, ISOBIT_SCALE_I8_OFFSET},
                                        [FORM_Q5_K] = {8, 32, ISOBIT_SCALE_I8_OFFSET},
                                        [FORM_Q6_K] = {8, 16, ISOBIT_SCALE_I8},
                                        [FORM_IQ4_XS] = {8, 32, ISOBIT_SCALE_I8},
                                        [FORM_K] = {8, 16, ISOBIT_SCALE_I8_OFFSET},
                                        [FORM_GROUPS] = GROUPS_OF(8, ISOBIT_SCALE_F16),
                                        GROUPS_OF(4, ISOBIT_SCALE_F16),
                                        GROUPS_OF(8, ISOBIT_SCALE_F32),
                                        GROUPS_OF(4, ISOBIT_SCALE_F32)};

model_form model_own_form(const model_tensor *t) {
    switch (t->dtype) {
    case MODEL_F16:
    case MODEL_BF16: return FORM_16;
    case MODEL_I8: return FORM_S8;
    case MODEL_Q5_0:
    case MODEL_IQ4_NL:
    case MODEL_Q8_0: return FORM_Q8;
    case MODEL_Q4_0: return FORM_Q4;
    case MODEL_Q4_1: return FORM_Q4_1;
    case MODEL_Q5_1: return FORM_Q5_1;
    case MODEL_Q2_K: return FORM_Q2_K;
    case MODEL_Q3_K: return FORM_Q3_K;
    case MODEL_Q4_K: return FORM_Q4_K;
    case MODEL_Q5_K: return FORM_Q5_K;
    case MODEL_Q6_K: return FORM_Q6_K;
    case MODEL_IQ4_XS: return FORM_IQ4_XS;
    case MODEL_GROUPS: return model_groups_form(t);
    default: return FORM_F32;
    }
}

/* Blocks of one size have a form of 8 bits that holds each of them. */
model_form model_common_form(const model_tensor *const *tensors, size_t count) {
    const model_block_type *first = model_block_type_of(tensors[0]->dtype);
    int differ = 0, offsets = 0;
    for (size_t i = 0; i < count; i++) {
        const model_block_type *type = model_block_type_of(tensors[i]->dtype);
        differ |= tensors[i]->dtype != tensors[0]->dtype ||
                  model_own_form(tensors[i]) != model_own_form(tensors[0]);
        if (differ && (!first || !type || type->elements_8 != first->elements_8))
            return FORM_F32;
        offsets |= type && type->has_offset;
    }
    return !differ                                           ? model_own_form(tensors[0])
           : model_block_elements(first) == MODEL_BLOCK_MOST ? FORM_K
           : offsets                                         ? FORM_Q5_1
                                                             : FORM_Q8;
}

size_t model_form_bytes(model_form f, size_t elements) {
    if (model_form_is_blocks(f))
        return elements / model_q_block(&model_q_formats[f]) *
               model_q_block_bytes(&model_q_formats[f]);
    return elements * (f == FORM_S8 ? 1 : f == FORM_16 ? sizeof(uint16_t) : sizeof(float));
}

static float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float model_from_f16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31,
             fraction = half & 0x3ff;
    if (exponent == 31) /* Inf and NaN */
        return from_bits(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) { /* zero and subnormals: fraction x 2^-24, exact in f32 */
        float value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    return from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

/* Bytes of an element, or of a block. */
static size_t element_bytes(const model_tensor *t) {
    const model_block_type *blocks = model_block_type_of(t->dtype);
    return blocks                  ? blocks->bytes
           : t->dtype == MODEL_F64 ? 8
           : t->dtype == MODEL_F32 ? 4
           : t->dtype == MODEL_I8  ? 1
                                   : 2;
}

static inline uint64_t little_endian(const unsigned char *from, size_t bytes) {
    uint64_t bits = 0;
    for (size_t k = 0; k < bytes; k++)
        bits |= (uint64_t)from[k] << 8 * k;
    return bits;
}

static float from_f64(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return (float)value;
}

/* Elements that lie in `raw`, `step` elements apart, to `to`, `to_step` apart. */
static void convert(const model_tensor *t, model_form f, void *at, size_t to_step,
                    const unsigned char *raw, size_t step, size_t count) {
    const size_t apart = step * element_bytes(t);
    uint16_t *halves = at;
    float *to = at;
    if (f == FORM_16) {
        for (size_t i = 0; i < count; i++)
            halves[i * to_step] = (uint16_t)little_endian(raw + i * apart, 2);
        return;
    }
    if (f == FORM_S8) {
        for (size_t i = 0; i < count; i++)
            ((unsigned char *)at)[i * to_step] = raw[i * apart];
        return;
    }
    switch (t->dtype) {
    case MODEL_I8:
        for (size_t i = 0; i < count; i++)
            to[i * to_step] = (float)(int8_t)raw[i * apart];
        break;
    case MODEL_F16:
        for (size_t i = 0; i < count; i++)
            to[i * to_step] = model_from_f16((uint16_t)little_endian(raw + i * apart, 2));
        break;
    case MODEL_BF16:
        for (size_t i = 0; i < count; i++)
            to[i * to_step] = from_bits((uint32_t)little_endian(raw + i * apart, 2) << 16);
        break;
    case MODEL_F64:
        for (size_t i = 0; i < count; i++)
            to[i * to_step] = from_f64(little_endian(raw + i * apart, 8));
        break;
    default:
        for (size_t i = 0; i < count; i++)
            to[i * to_step] = from_bits((uint32_t)little_endian(raw + i * apart, 4));
    }
}

void model_convert_elements(const model_tensor *t, float *to, const unsigned char *raw,
                            size_t count) {
    convert(t, FORM_F32, to, 1, raw, 1, count);
}

/* Blocks in that form. A scale that is not finite is refused, wherever it is. */
static iso_status convert_blocks(const model_source *source, const model_tensor *t, model_form f,
                                 char *to, const unsigned char *raw, size_t first, size_t count) {
    const model_block_type *type = model_block_type_of(t->dtype);
    const size_t bytes = model_form_bytes(f, model_block_elements(type));
    model_block block;
    for (size_t i = 0; i < count; i++, raw += type->bytes, to += bytes) {
        model_quoted name;
        if (!model_block_read(&block, type, raw))
            return model_fail(source->error, ISOBIT_E_RANGE,
                              "tensor %s: the scale%s of block %zu is not finite",
                              model_quote(&name, t->name, t->name_bytes),
                              type->has_offset ? " or the minimum" : "", first + i);
        if (f == FORM_F32)
            model_block_floats((float *)(void *)to, &block, type);
        else
            model_block_write(to, &block, type, &model_q_formats[f]);
    }
    return ISOBIT_OK;
}

/* Elements of whole blocks, which lie one after the other in the file. */
static iso_status read_blocks(const model_source *source, const model_tensor *t, model_form f,
                              char *to, size_t first, size_t count) {
    const size_t size = element_bytes(t), room = 2 * source->chunk_floats / size;
    const size_t elements = model_block_elements(model_block_type_of(t->dtype));
    const size_t from = first / elements, blocks = count / elements;
    iso_status status = ISOBIT_OK;
    for (size_t done = 0, piece; done < blocks && !status; done += piece) {
        piece = blocks - done < room ? blocks - done : room;
        status = model_checkpoint_read(source->checkpoint, t, source->raw,
                                       (uint64_t)(from + done) * size, piece * size, source->error);
        if (!status)
            status = convert_blocks(source, t, f, to + model_form_bytes(f, done * elements),
                                    source->raw, from + done, piece);
    }
    return status;
}

/* Elements [first, first + count), which lie one after the other in the file. */
static iso_status read_rows(const model_source *source, const model_tensor *t, model_form f,
                            char *to, size_t first, size_t count) {
    const size_t size = element_bytes(t), room = 2 * source->chunk_floats / size;
    for (size_t done = 0, piece; done < count; done += piece) {
        piece = count - done;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        if (t->dtype == MODEL_F32 || f == FORM_16 || f == FORM_S8) /* as it is */
            return model_checkpoint_read(source->checkpoint, t, to, (uint64_t)first * size,
                                         count * size, source->error);
#endif
        piece = piece < room ? piece : room;
        iso_status status =
            model_checkpoint_read(source->checkpoint, t, source->raw,
                                  (uint64_t)(first + done) * size, piece * size, source->error);
        if (status)
            return status;
        convert(t, f, to + model_form_bytes(f, done), 1, source->raw, 1, piece);
    }
    return ISOBIT_OK;
}

/* A call takes as long as reading about so many bytes, be they of use or not. */
#define CALL_BYTES 4096

/*
 * The same with strides, as a view of another tensor has (a transposed one above all): whole rows.
 * The inner loop follows the smaller stride, so that a read brings many elements at a time, and
 * where little lies between those of one turn of the outer loop and the next, those of some turns.
 */
static iso_status read_strided(const model_source *source, const model_tensor *t, model_form f,
                               char *to, size_t first, size_t count) {
    const size_t size = element_bytes(t), room = 2 * source->chunk_floats / size;
    const int matrix = t->rank == 2;
    const size_t k = (size_t)t->shape[t->rank - 1];
    const uint64_t columns = t->strides[t->rank - 1], rows = matrix ? t->strides[0] : 0;
    const uint64_t start = matrix ? first / k * rows : first * columns;
    const int by_rows = !matrix || columns <= rows;
    const size_t row_count = matrix ? count / k : 1, column_count = matrix ? k : count;
    const size_t outer = by_rows ? row_count : column_count,
                 inner = by_rows ? column_count : row_count;
    const uint64_t outer_stride = by_rows ? rows : columns, stride = by_rows ? columns : rows;
    const size_t to_outer = by_rows ? k : 1, to_inner = by_rows ? 1 : k;
    const size_t fit = stride < room ? (room - 1) / (stride ? (size_t)stride : 1) + 1 : 1;
    size_t most = 1;
    if (inner - 1 < fit) { /* and there is one */
        const uint64_t turn = (inner - 1) * stride + 1;
        if (outer_stride > 0 && outer_stride >= turn && outer_stride - turn <= CALL_BYTES / size)
            most = (room - (size_t)turn) / (size_t)outer_stride + 1;
    }
    for (size_t o = 0, turns; o < outer; o += turns) {
        turns = outer - o < most ? outer - o : most;
        for (size_t done = 0, piece; done < inner; done += piece) {
            piece = inner - done < fit ? inner - done : fit;
            const uint64_t at = start + o * outer_stride + done * stride;
            const size_t next = turns > 1 ? (size_t)outer_stride : 0;
            const size_t span = (turns - 1) * next + (piece - 1) * (size_t)stride + 1;
            iso_status status = model_checkpoint_read(source->checkpoint, t, source->raw, at * size,
                                                      span * size, source->error);
            if (status)
                return status;
            for (size_t i = 0; i < turns; i++)
                convert(t, f, to + model_form_bytes(f, (o + i) * to_outer + done * to_inner),
                        to_inner, source->raw + i * next * size, (size_t)stride, piece);
        }
    }
    return ISOBIT_OK;
}

/* Whether element i is an infinity or NaN. */
static int is_nonfinite(const model_tensor *t, model_form f, const void *at, size_t i) {
    const uint32_t mask = f == FORM_F32 ? 0x7f800000 : t->dtype == MODEL_BF16 ? 0x7f80 : 0x7c00;
    uint32_t bits;
    if (f == FORM_16)
        bits = ((const uint16_t *)at)[i];
    else
        memcpy(&bits, (const float *)at + i, sizeof bits);
    return (bits & mask) == mask;
}

iso_status model_check_finite(const model_source *source, const model_tensor *t, model_form f,
                              const void *at, size_t first, size_t count) {
    for (size_t i = 0; source->reject_nonfinite && f != FORM_S8 && i < count; i++) {
        if (is_nonfinite(t, f, at, i)) {
            model_quoted name;
            return model_fail(source->error, ISOBIT_E_RANGE,
                              "tensor %s: element %zu is not finite, and such weights are "
                              "rejected",
                              model_quote(&name, t->name, t->name_bytes), first + i);
        }
    }
    return ISOBIT_OK;
}

iso_status model_read_elements(const model_source *source, const model_tensor *t, model_form f,
                               char *to, size_t first, size_t count) {
    if (t->dtype == MODEL_GROUPS)
        return model_groups_read(source, t, f, to, first, count);
    if (model_block_type_of(t->dtype))
        return read_blocks(source, t, f, to, first, count);
    iso_status status = t->strides ? read_strided(source, t, f, to, first, count)
                                   : read_rows(source, t, f, to, first, count);
    return status ? status : model_check_finite(source, t, f, to, first, count);
}
