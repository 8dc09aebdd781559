/* SPDX-License-Identifier: MIT
 *
 * Weights from a checkpoint into the memory of a model: f32, matrices packed. A tensor is read in
 * pieces of some rows, converted (F16 and BF16 exactly, subnormals included) and packed at once, so
 * that loading needs the model's own memory and one piece, never the file or a second copy of the
 * largest matrix. The layout of iso_packed lets a multiple of 16 rows be packed for itself.
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
        return model_fail(error, ISOBIT_E_MISSING, "model.safetensors has no tensor \"%s\"", name);
    model_quote(&quoted, t->name, t->name_bytes);
    if (t->dtype == MODEL_UNKNOWN)
        return model_fail(error, ISOBIT_E_UNSUPPORTED,
                          "tensor %s has the unknown element type %s; F32, F16 or BF16 is expected",
                          quoted.text, model_quote(&dtype, t->dtype_name, strlen(t->dtype_name)));
    if (t->dtype == MODEL_OTHER)
        return model_fail(error, ISOBIT_E_DTYPE,
                          "tensor %s has the element type %s; F32, F16 or BF16 is expected",
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

/* Elements [first, first + count) of a tensor as f32. */
static iso_status read_elements(const model_source *source, const model_tensor *t, float *to,
                                size_t first, size_t count) {
    iso_error *error = source->error;
    const model_checkpoint *checkpoint = source->checkpoint;
    size_t size = t->dtype == MODEL_F32 ? 4 : 2;
    for (size_t done = 0, piece; done < count; done += piece) {
        piece = count - done < source->chunk_floats ? count - done : source->chunk_floats;
        float *out = to + done;
        void *raw = size == 4 ? (void *)out : (void *)source->halves;
        uint64_t offset = checkpoint->data_start + t->begin + (uint64_t)(first + done) * size;
        iso_status status = model_file_read(&checkpoint->file, raw, offset, piece * size, error);
        if (status)
            return status;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        for (size_t i = 0; i < piece * size; i += size)
            for (size_t a = i, b = i + size - 1; a < b; a++, b--) {
                char swap = ((char *)raw)[a];
                ((char *)raw)[a] = ((char *)raw)[b];
                ((char *)raw)[b] = swap;
            }
#endif
        if (t->dtype == MODEL_F16)
            for (size_t i = 0; i < piece; i++)
                out[i] = from_f16(source->halves[i]);
        else if (t->dtype == MODEL_BF16)
            for (size_t i = 0; i < piece; i++)
                out[i] = from_bits((uint32_t)source->halves[i] << 16);
        for (size_t i = 0; source->reject_nonfinite && i < piece; i++) {
            uint32_t bits;
            memcpy(&bits, &out[i], sizeof bits);
            if ((bits & 0x7f800000) == 0x7f800000) {
                model_quoted name;
                return model_fail(error, ISOBIT_E_RANGE,
                                  "tensor %s: element %zu is not finite, and such weights are "
                                  "rejected",
                                  model_quote(&name, t->name, t->name_bytes), first + done + i);
            }
        }
    }
    return ISOBIT_OK;
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
        source->halves = model_alloc(&source->scratch, need, sizeof(uint16_t));
        if (!source->chunk || !source->halves)
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

iso_status model_take_packed(model_source *source, iso_packed *out, const char *const *names,
                             size_t parts, size_t n, size_t k, int in_out) {
    size_t bytes, rows;
    iso_status status = ISOBIT_OK;
    iso_error *error = source->error;
    const model_tensor *t;
    for (size_t part = 0; part < parts; part++) {
        if ((status = find_checked(source, &t, names[part], in_out ? k : n, in_out ? n : k)))
            return status;
        if (!source->load)
            source->parameters += n * k;
    }
    if (__builtin_mul_overflow(n, parts, &rows) || iso_pack_f32_bytes(&bytes, rows, k))
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
        if ((status = find_checked(source, &t, names[part], n, k)))
            return status;
        for (size_t row = 0; row < n;) {
            size_t count = n - row < room - filled ? n - row : room - filled;
            status = read_elements(source, t, source->chunk + filled * k, row * k, count * k);
            if (status)
                return status;
            row += count;
            filled += count;
            if (filled == room || (part + 1 == parts && row == n)) {
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

iso_status model_take_vector(model_source *source, const float **out, const char *const *names,
                             size_t parts, size_t n, int leading_one) {
    iso_status status = ISOBIT_OK;
    float *data = NULL;
    if (source->load && !(data = model_alloc3(source->arena, parts, n, 1, sizeof(float))))
        return model_fail(source->error, ISOBIT_E_NOMEM, "out of memory for \"%s\"", names[0]);
    for (size_t part = 0; part < parts && !status; part++) {
        const model_tensor *t;
        status = find_checked(source, &t, names[part], leading_one ? 1 : n, leading_one ? n : 0);
        if (!status && source->load)
            status = read_elements(source, t, data + part * n, 0, n);
        else if (!status)
            source->parameters += n;
    }
    *out = data;
    if (status || source->load)
        return status;
    if (__builtin_mul_overflow(n, parts, &n))
        return model_fail(source->error, ISOBIT_E_OVERFLOW, "\"%s\" is too large", names[0]);
    status = model_source_plan(source, n, 1);
    return status ? status : reserve_chunk(source, 1);
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
