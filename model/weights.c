/* SPDX-License-Identifier: MIT
 *
 * Weights from a checkpoint into the memory of a model: f32, matrices packed. A tensor is read in
 * pieces of some rows, converted (F16 and BF16 exactly, subnormals included, F64 rounded) and
 * packed at once, so that loading needs the model's own memory and one piece, never the file or a
 * second copy of the largest matrix. The layout of iso_packed lets a multiple of 16 rows be packed
 * for itself.
 */
#include "internal.h"

#include <string.h>

#define CHUNK_FLOATS ((size_t)1 << 16)

const model_tensor *model_source_find(const model_source *source, const char *const *names,
                                      size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!names[i])
            continue;
        const model_tensor *t = model_checkpoint_find(source->checkpoint, names[i]);
        if (!t && strncmp(names[i], source->prefix, strlen(source->prefix)) == 0)
            t = model_checkpoint_find(source->checkpoint, names[i] + strlen(source->prefix));
        if (t)
            return t;
    }
    return NULL;
}

/* The tensor of that name, if its shape is [n] or [n][k] (k not 0), else an error. */
static iso_status find_checked(const model_source *source, const model_tensor **tensor,
                               const char *name, size_t n, size_t k) {
    const model_tensor *t = model_source_find(source, &name, 1);
    iso_error *error = source->error;
    model_quoted quoted, dtype;
    if (!t)
        return model_fail(error, ISOBIT_E_MISSING, "%s has no tensor \"%s\"",
                          source->checkpoint->file.name, name);
    model_quote(&quoted, t->name, t->name_bytes);
    if (t->dtype == MODEL_UNKNOWN)
        return model_fail(
            error, ISOBIT_E_UNSUPPORTED,
            "tensor %s has the unknown element type %s; F32, F16, BF16 or F64 is expected",
            quoted.text, model_quote(&dtype, t->dtype_name, strlen(t->dtype_name)));
    if (t->dtype == MODEL_OTHER)
        return model_fail(error, ISOBIT_E_DTYPE,
                          "tensor %s has the element type %s; F32, F16, BF16 or F64 is expected",
                          quoted.text, t->dtype_name);
    if (t->rank != (k ? 2 : 1) || t->shape[0] != n || (k && t->shape[1] != k)) {
        unsigned long long s0 = t->rank > 0 ? t->shape[0] : 0, s1 = t->rank > 1 ? t->shape[1] : 0;
        if (k)
            return model_fail(error, ISOBIT_E_SHAPE,
                              "tensor %s has rank %zu and shape [%llu, %llu%s]; [%zu, %zu] is "
                              "expected from config.json",
                              quoted.text, t->rank, s0, s1, t->rank > 2 ? ", ..." : "", n, k);
        return model_fail(error, ISOBIT_E_SHAPE,
                          "tensor %s has rank %zu and shape [%llu%s]; [%zu] is expected from "
                          "config.json",
                          quoted.text, t->rank, s0, t->rank > 1 ? ", ..." : "", n);
    }
    *tensor = t;
    return ISOBIT_OK;
}

static float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float from_f16(uint16_t half) {
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

static size_t element_bytes(const model_tensor *t) {
    return t->dtype == MODEL_F32 ? 4 : t->dtype == MODEL_F64 ? 8 : 2;
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
static void convert(const model_tensor *t, float *to, size_t to_step, const unsigned char *raw,
                    size_t step, size_t count) {
    const size_t apart = step * element_bytes(t);
    switch (t->dtype) {
    case MODEL_F16:
        for (size_t i = 0; i < count; i++)
            to[i * to_step] = from_f16((uint16_t)little_endian(raw + i * apart, 2));
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

/* Elements [first, first + count), which lie one after the other in the file. */
static iso_status read_rows(const model_source *source, const model_tensor *t, float *to,
                            size_t first, size_t count) {
    const size_t size = element_bytes(t), room = 2 * source->chunk_floats / size;
    for (size_t done = 0, piece; done < count; done += piece) {
        piece = count - done;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        if (t->dtype == MODEL_F32) /* as it is */
            return model_checkpoint_read(source->checkpoint, t, to, (uint64_t)first * size,
                                         count * size, source->error);
#endif
        piece = piece < room ? piece : room;
        iso_status status =
            model_checkpoint_read(source->checkpoint, t, source->raw,
                                  (uint64_t)(first + done) * size, piece * size, source->error);
        if (status)
            return status;
        convert(t, to + done, 1, source->raw, 1, piece);
    }
    return ISOBIT_OK;
}

/*
 * The same with strides, as a view of another tensor has (a transposed one above all): whole rows.
 * The inner loop follows the smaller stride, so that a read brings many elements at a time.
 */
static iso_status read_strided(const model_source *source, const model_tensor *t, float *to,
                               size_t first, size_t count) {
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
    for (size_t o = 0; o < outer; o++)
        for (size_t done = 0, piece; done < inner; done += piece) {
            piece = inner - done < fit ? inner - done : fit;
            const uint64_t at = start + o * outer_stride + done * stride;
            const size_t span = (piece - 1) * (size_t)stride + 1;
            iso_status status = model_checkpoint_read(source->checkpoint, t, source->raw, at * size,
                                                      span * size, source->error);
            if (status)
                return status;
            convert(t, to + o * to_outer + done * to_inner, to_inner, source->raw, (size_t)stride,
                    piece);
        }
    return ISOBIT_OK;
}

/* Elements [first, first + count) of a tensor as f32; of a matrix whole rows. */
static iso_status read_elements(const model_source *source, const model_tensor *t, float *to,
                                size_t first, size_t count) {
    iso_status status = t->strides ? read_strided(source, t, to, first, count)
                                   : read_rows(source, t, to, first, count);
    for (size_t i = 0; source->reject_nonfinite && !status && i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &to[i], sizeof bits);
        if ((bits & 0x7f800000) == 0x7f800000) {
            model_quoted name;
            return model_fail(source->error, ISOBIT_E_RANGE,
                              "tensor %s: element %zu is not finite, and such weights are "
                              "rejected",
                              model_quote(&name, t->name, t->name_bytes), first + i);
        }
    }
    return status;
}

/* The buffers through which tensors travel, with room for 16 rows of the widest matrix. */
static iso_status reserve_chunk(model_source *source, size_t k) {
    size_t need;
    if (__builtin_mul_overflow(k, (size_t)16, &need))
        return model_fail(source->error, ISOBIT_E_OVERFLOW, "a matrix row of %zu elements", k);
    if (need < CHUNK_FLOATS)
        need = CHUNK_FLOATS;
    if (need > source->chunk_floats) {
        /* The old ones are of no more use, but small; they go when loading ends. */
        source->chunk = model_alloc(&source->scratch, need, sizeof(float));
        source->raw = model_alloc(&source->scratch, need, 2);
        if (!source->chunk || !source->raw)
            return model_fail(source->error, ISOBIT_E_NOMEM, "out of memory");
        source->chunk_floats = need;
    }
    return ISOBIT_OK;
}

iso_status model_source_plan(model_source *source, size_t n, size_t k) {
    size_t bytes;
    if (__builtin_mul_overflow(n, k, &bytes) ||
        __builtin_mul_overflow(bytes, sizeof(float), &bytes) ||
        __builtin_add_overflow(bytes, (size_t)63, &bytes) ||
        __builtin_add_overflow(source->bytes, bytes & ~(size_t)63, &source->bytes))
        return model_fail(source->error, ISOBIT_E_OVERFLOW, "the weights are too large");
    return ISOBIT_OK;
}

/* A matrix that is stored [k][n]: read as a whole, and turned while it is packed. */
static iso_status pack_in_out(model_source *source, iso_packed *out, const char *name, size_t n,
                              size_t k, void *data, size_t bytes) {
    const model_tensor *t;
    iso_status status = find_checked(source, &t, name, k, n);
    if (!status)
        status = read_elements(source, t, source->chunk, 0, n * k);
    if (status)
        return status;
    status = iso_pack_f32(out, data, bytes, source->chunk, n, n, k, 1, source->context);
    return status
               ? model_fail(source->error, status, "packing \"%s\": %s", name, iso_strerror(status))
               : status;
}

/* Matrices of n rows, the first one, and other_n, the others, one below the other. */
static iso_status take_stacked(model_source *source, iso_packed *out, const char *const *names,
                               size_t parts, size_t n, size_t other_n, size_t k, int in_out) {
    size_t bytes, rows = n;
    iso_status status = ISOBIT_OK;
    iso_error *error = source->error;
    const model_tensor *t;
    int overflow = 0;
    for (size_t part = 0; part < parts; part++) {
        const size_t own = part ? other_n : n;
        if ((status = find_checked(source, &t, names[part], in_out ? k : own, in_out ? own : k)))
            return status;
        if (!source->load)
            source->parameters += own * k;
        overflow |= part && __builtin_add_overflow(rows, other_n, &rows);
    }
    if (overflow || iso_pack_f32_bytes(&bytes, rows, k))
        return model_fail(error, ISOBIT_E_OVERFLOW, "tensor \"%s\" is too large", names[0]);
    if (!source->load) {
        status = model_source_plan(source, bytes / sizeof(float), 1);
        return status ? status : reserve_chunk(source, in_out ? (n * k + 15) / 16 : k);
    }
    char *data = model_alloc(source->arena, bytes, 1);
    if (!data)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for tensor \"%s\"", names[0]);
    if (in_out)
        return pack_in_out(source, out, names[0], n, k, data, bytes);
    *out = (iso_packed){(const float *)(const void *)data, rows, k};

    /* Rows of all parts flow through the chunk; it is packed whenever it is full. */
    size_t room = source->chunk_floats / k / 16 * 16, filled = 0, packed = 0;
    for (size_t part = 0; part < parts; part++) {
        const size_t own = part ? other_n : n;
        if ((status = find_checked(source, &t, names[part], own, k)))
            return status;
        for (size_t row = 0; row < own;) {
            size_t count = own - row < room - filled ? own - row : room - filled;
            status = read_elements(source, t, source->chunk + filled * k, row * k, count * k);
            if (status)
                return status;
            row += count;
            filled += count;
            if (filled == room || (part + 1 == parts && row == own)) {
                iso_packed piece;
                size_t piece_bytes;
                if ((status = iso_pack_f32_bytes(&piece_bytes, filled, k)) ||
                    (status = iso_pack_f32(&piece, data + packed * k * sizeof(float), piece_bytes,
                                           source->chunk, k, filled, k, 0, source->context)))
                    return model_fail(error, status, "packing \"%s\": %s", names[part],
                                      iso_strerror(status));
                packed += filled;
                filled = 0;
            }
        }
    }
    return ISOBIT_OK;
}

iso_status model_take_packed(model_source *source, iso_packed *out, const char *const *names,
                             size_t parts, size_t n, size_t k, int in_out) {
    return take_stacked(source, out, names, parts, n, n, k, in_out);
}

iso_status model_take_grouped(model_source *source, iso_packed *out, const char *const *names,
                              size_t n, size_t other_n, size_t k) {
    return take_stacked(source, out, names, 3, n, other_n, k, 0);
}

static iso_status take_vectors(model_source *source, const float **out, const char *const *names,
                               size_t parts, size_t n, size_t other_n, int leading_one) {
    iso_status status = ISOBIT_OK;
    float *data = NULL;
    size_t all = n;
    for (size_t part = 1; part < parts; part++)
        if (__builtin_add_overflow(all, other_n, &all))
            return model_fail(source->error, ISOBIT_E_OVERFLOW, "\"%s\" is too large", names[0]);
    if (source->load && !(data = model_alloc(source->arena, all, sizeof(float))))
        return model_fail(source->error, ISOBIT_E_NOMEM, "out of memory for \"%s\"", names[0]);
    for (size_t part = 0, at = 0; part < parts && !status; part++) {
        const model_tensor *t;
        const size_t own = part ? other_n : n;
        status =
            find_checked(source, &t, names[part], leading_one ? 1 : own, leading_one ? own : 0);
        if (!status && source->load)
            status = read_elements(source, t, data + at, 0, own);
        else if (!status)
            source->parameters += own;
        at += own;
    }
    *out = data;
    if (status || source->load)
        return status;
    status = model_source_plan(source, all, 1);
    return status ? status : reserve_chunk(source, 1);
}

iso_status model_take_vector(model_source *source, const float **out, const char *const *names,
                             size_t parts, size_t n, int leading_one) {
    return take_vectors(source, out, names, parts, n, n, leading_one);
}

iso_status model_take_grouped_vector(model_source *source, const float **out,
                                     const char *const *names, size_t n, size_t other_n) {
    return take_vectors(source, out, names, 3, n, other_n, 0);
}

iso_status model_take_rows(model_source *source, const float **out, const char *name, size_t n,
                           size_t k) {
    const model_tensor *t;
    iso_status status = find_checked(source, &t, name, n, k);
    if (status)
        return status;
    if (!source->load) {
        source->parameters += n * k;
        status = model_source_plan(source, n, k);
        return status ? status : reserve_chunk(source, k);
    }
    float *data = model_alloc3(source->arena, n, k, 1, sizeof(float));
    if (!data)
        return model_fail(source->error, ISOBIT_E_NOMEM, "out of memory for \"%s\"", name);
    *out = data;
    return read_elements(source, t, data, 0, n * k);
}
