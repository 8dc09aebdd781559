/* SPDX-License-Identifier: MIT
 *
 * Matrices in groups, as compressed-tensors stores them: number j of a row is in word j b / 32,
 * from bit j b % 32 on, 2^(b-1) more than it means. Here they become blocks of isobit/ops.h.
 */
#include "groups.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------- of a file */

typedef struct finder {
    model_checkpoint *checkpoint;
    model_quoted name; /* of the matrix */
    iso_error *error;
} finder;

/* The shape of the matrix, two whole numbers in a tensor. */
static iso_status read_shape(const finder *f, model_tensor *t, const model_tensor *shape) {
    unsigned char raw[16];
    const size_t size = strcmp(shape->dtype_name, "I64") == 0   ? 8
                        : strcmp(shape->dtype_name, "I32") == 0 ? 4
                                                                : 0;
    if (!size || shape->rank != 1 || shape->shape[0] != 2)
        return model_fail(f->error, ISOBIT_E_SHAPE,
                          "tensor %s: its weight_shape is no list of two numbers of I64 or I32",
                          f->name.text);
    iso_status status = model_checkpoint_read(f->checkpoint, shape, raw, 0, 2 * size, f->error);
    for (size_t i = 0; i < 2 && !status; i++) {
        t->shape[i] = 0;
        for (size_t k = 0; k < size; k++)
            t->shape[i] |= (uint64_t)raw[i * size + k] << 8 * k;
        if (t->shape[i] == 0 || t->shape[i] > INT32_MAX)
            status =
                model_fail(f->error, ISOBIT_E_SHAPE,
                           "tensor %s: its weight_shape says %llu; 1 to 2147483647 are possible",
                           f->name.text, (unsigned long long)t->shape[i]);
    }
    return status;
}

static iso_status check_scales(const finder *f, model_tensor *t, const model_tensor *scales) {
    const uint64_t groups = scales->rank == 2 ? scales->shape[1] : 0;
    model_quoted dtype;
    if (scales->dtype != MODEL_F32 && scales->dtype != MODEL_F16 && scales->dtype != MODEL_BF16)
        return model_fail(f->error, ISOBIT_E_DTYPE,
                          "tensor %s: its scales have the element type %s; F32, F16 or BF16 is "
                          "expected",
                          f->name.text, model_quote_dtype(&dtype, scales));
    if (!groups || scales->shape[0] != t->shape[0] || t->shape[1] % groups)
        return model_fail(
            f->error, ISOBIT_E_SHAPE,
            "tensor %s has the shape [%llu, %llu]; scales of rank %zu and shape [%llu, "
            "%llu] do not fit",
            f->name.text, (unsigned long long)t->shape[0], (unsigned long long)t->shape[1],
            scales->rank, (unsigned long long)(scales->rank ? scales->shape[0] : 0),
            (unsigned long long)groups);
    const uint64_t group = t->shape[1] / groups;
    if (group != 32 && group != 64 && group != 128)
        return model_fail(f->error, ISOBIT_E_UNSUPPORTED,
                          "tensor %s has groups of %llu; 32, 64 and 128 are supported",
                          f->name.text, (unsigned long long)group);
    t->group = (unsigned)group;
    return ISOBIT_OK;
}

static iso_status check_numbers(const finder *f, model_tensor *t, const model_tensor *packed) {
    const uint64_t words = packed->rank == 2 ? packed->shape[1] : 0;
    for (t->bits = 4; t->bits <= 8; t->bits += 4)
        if (words && packed->shape[0] == t->shape[0] && t->shape[1] * t->bits % 32 == 0 &&
            words == t->shape[1] * t->bits / 32)
            return ISOBIT_OK;
    return model_fail(f->error, ISOBIT_E_SHAPE,
                      "tensor %s has the shape [%llu, %llu]; weight_packed of rank %zu and shape "
                      "[%llu, %llu] is neither 4 nor 8 bits of that",
                      f->name.text, (unsigned long long)t->shape[0],
                      (unsigned long long)t->shape[1], packed->rank,
                      (unsigned long long)(packed->rank ? packed->shape[0] : 0),
                      (unsigned long long)words);
}

/* The matrix of which a tensor has the numbers. */
static iso_status make_matrix(finder *f, model_tensor *t, const model_tensor *packed) {
    const model_checkpoint *all = f->checkpoint;
    model_quote(&f->name, t->name, t->name_bytes);
    const model_tensor *scales = model_checkpoint_find_beside(all, t, "_scale"),
                       *shape = model_checkpoint_find_beside(all, t, "_shape");
    const int points = model_checkpoint_find_beside(all, t, "_zero_point") != NULL,
              order = model_checkpoint_find_beside(all, t, "_g_idx") != NULL,
              twice = model_checkpoint_find(all, t->name) != NULL;
    model_tensor *own = model_alloc(&f->checkpoint->arena, 1, sizeof *own);
    model_quoted dtype;
    if (!own)
        return model_fail(f->error, ISOBIT_E_NOMEM, "out of memory");
    if (twice)
        return model_fail(f->error, ISOBIT_E_DUPLICATE,
                          "tensor %s is there, and its weight_packed, too", f->name.text);
    if (points || order)
        return model_fail(f->error, ISOBIT_E_UNSUPPORTED,
                          "tensor %s has %s; symmetric numbers in the order of the columns are "
                          "expected",
                          f->name.text,
                          points ? "zero points (weight_zero_point)" : "weight_g_idx");
    if (strcmp(packed->dtype_name, "I32") != 0)
        return model_fail(f->error, ISOBIT_E_UNSUPPORTED,
                          "tensor %s: its weight_packed has the element type %s; I32 is expected",
                          f->name.text, model_quote_dtype(&dtype, packed));
    if (!scales || !shape)
        return model_fail(f->error, ISOBIT_E_MISSING, "tensor %s has weight_packed, and no %s",
                          f->name.text, scales ? "weight_shape" : "weight_scale");
    *own = *scales;
    t->scales = own;
    iso_status status = read_shape(f, t, shape);
    if (!status)
        status = check_numbers(f, t, packed);
    return status ? status : check_scales(f, t, scales);
}

static int is_packed(const model_tensor *t) {
    static const char end[] = ".weight_packed";
    const size_t n = sizeof end - 1;
    return t->name_bytes > n && memcmp(t->name + t->name_bytes - n, end, n) == 0;
}

iso_status model_groups_find(model_checkpoint *checkpoint, iso_error *error) {
    model_header *all = &checkpoint->header;
    finder f = {.checkpoint = checkpoint, .error = error};
    size_t count = 0;
    iso_status status = ISOBIT_OK;
    for (size_t i = 0; i < all->count; i++)
        count += (size_t)is_packed(&all->tensors[i]);
    if (!count)
        return ISOBIT_OK;
    model_tensor *more = model_alloc(&checkpoint->arena, all->count + count, sizeof *more);
    if (!more)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    memcpy(more, all->tensors, all->count * sizeof *more);
    count = all->count;
    for (size_t i = 0; i < all->count && !status; i++) {
        const model_tensor *packed = &all->tensors[i];
        if (!is_packed(packed))
            continue;
        model_tensor *t = &more[count++];
        *t = *packed;
        t->name_bytes -= sizeof "_packed" - 1;
        char *name = model_alloc(&checkpoint->arena, t->name_bytes + 1, 1);
        if (!name)
            return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
        memcpy(name, packed->name, t->name_bytes);
        name[t->name_bytes] = 0;
        t->name = name;
        t->dtype = MODEL_GROUPS;
        t->rank = 2;
        status = make_matrix(&f, t, packed);
    }
    *all = (model_header){more, count};
    qsort(more, count, sizeof *more, model_tensor_order);
    return status;
}

/* ------------------------------------------------------------------------------- as blocks */

model_form model_groups_form(const model_tensor *t) {
    const int of_32 = t->scales->dtype == MODEL_F16 ? 0 : FORM_GROUPS_F32;
    return (model_form)(FORM_GROUPS + of_32 + (t->bits == 4 ? FORM_GROUPS_4 : 0) +
                        (t->group == 32   ? 0
                         : t->group == 64 ? 1
                                          : 2));
}

/* One group: its scale, and the numbers, of which two are in a byte of 4 bits. */
static void put_block(char *to, const model_tensor *t, const unsigned char *numbers, float scale,
                      uint16_t half) {
    const size_t group = t->group;
    unsigned char *at = (unsigned char *)to;
    if (t->scales->dtype == MODEL_F16)
        memcpy(at, &half, sizeof half);
    else
        memcpy(at, &scale, sizeof scale);
    at += t->scales->dtype == MODEL_F16 ? sizeof half : sizeof scale;
    if (t->bits == 8) {
        for (size_t i = 0; i < group; i++)
            at[i] = numbers[i] ^ 0x80;
        return;
    }
    const unsigned char *late = numbers + group / 4; /* of the upper half of the group */
    for (size_t i = 0; i < group / 4; i++) {
        at[2 * i] = (unsigned char)((numbers[i] & 15) | late[i] << 4);
        at[2 * i + 1] = (unsigned char)(numbers[i] >> 4 | (late[i] & 0xf0));
    }
}

static void put_floats(float *to, const model_tensor *t, const unsigned char *numbers,
                       float scale) {
    for (size_t i = 0; i < t->group; i++)
        to[i] = scale * (float)(t->bits == 8 ? (int)numbers[i] - 128
                                             : (numbers[i / 2] >> i % 2 * 4 & 15) - 8);
}

/* Groups [from, from + count): numbers and scales as the file has them lie in `raw`. */
static iso_status convert(const model_source *source, const model_tensor *t, model_form f, char *to,
                          const unsigned char *numbers, const unsigned char *raw_scales,
                          size_t from, size_t count) {
    enum { SOME = 64 };
    const size_t bytes = model_form_bytes(f, t->group), step = (size_t)t->group * t->bits / 8;
    const size_t size = t->scales->dtype == MODEL_F32 ? 4 : 2;
    float scales[SOME];
    for (size_t i = 0; i < count; i++, to += bytes, numbers += step, raw_scales += size) {
        const uint16_t half = (uint16_t)(raw_scales[0] | raw_scales[1] << 8);
        if (i % SOME == 0)
            model_convert_elements(t->scales, scales, raw_scales,
                                   count - i < SOME ? count - i : SOME);
        const float scale = scales[i % SOME];
        if (!(scale > 0 && scale <= FLT_MAX)) {
            model_quoted name;
            const size_t groups = (size_t)t->shape[1] / t->group;
            return model_fail(source->error, ISOBIT_E_RANGE,
                              "tensor %s: the scale of group %zu of row %zu is not above 0 and "
                              "finite",
                              model_quote(&name, t->name, t->name_bytes), (from + i) % groups,
                              (from + i) / groups);
        }
        if (f == FORM_F32)
            put_floats((float *)(void *)to, t, numbers, scale);
        else
            put_block(to, t, numbers, scale, half);
    }
    return ISOBIT_OK;
}

iso_status model_groups_read(const model_source *source, const model_tensor *t, model_form f,
                             char *to, size_t first, size_t count) {
    const size_t step = (size_t)t->group * t->bits / 8, all = count / t->group;
    const size_t size = t->scales->dtype == MODEL_F32 ? 4 : 2, from = first / t->group;
    const size_t room = 2 * source->chunk_floats / (step + size);
    iso_status status = ISOBIT_OK;
    for (size_t done = 0, piece; done < all && !status; done += piece) {
        piece = all - done < room ? all - done : room;
        unsigned char *scales = source->raw + piece * step;
        status = model_checkpoint_read(source->checkpoint, t, source->raw,
                                       (uint64_t)(from + done) * step, piece * step, source->error);
        if (!status)
            status =
                model_checkpoint_read(source->checkpoint, t->scales, scales,
                                      (uint64_t)(from + done) * size, piece * size, source->error);
        if (!status)
            status = convert(source, t, f, to + model_form_bytes(f, done * t->group), source->raw,
                             scales, from + done, piece);
    }
    return status;
}
