/* SPDX-License-Identifier: MIT
 *
 * Matrices of int8, in the layout of iso_packed_s8: rows put into panels, and read back. And the
 * scales that a file has for them: those of X are in the tensor X_scale, one for each output.
 */
#include "int8.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#define PANEL 16
#define FOUR 4    /* steps of a column that lie side by side */
#define STEPS 8   /* of which k is padded to a multiple */
#define PIECE 512 /* bytes of scales that are read at a time */

static size_t padded(size_t size, size_t to) { return (size + to - 1) / to * to; }

/* -------------------------------------------------------------------------------- of a file */

iso_status model_int8_find_scales(const model_source *source, const model_tensor *t, size_t n,
                                  const model_tensor **scales) {
    model_quoted quoted, other, dtype;
    iso_error *error = source->error;
    const model_tensor *s = *scales = model_checkpoint_find_beside(source->checkpoint, t, "_scale");
    model_quote(&quoted, t->name, t->name_bytes);
    if (model_checkpoint_find_beside(source->checkpoint, t, "_zero_point"))
        return model_fail(error, ISOBIT_E_UNSUPPORTED,
                          "tensor %s has zero points; symmetric int8 is expected", quoted.text);
    if (!s)
        return model_fail(error, ISOBIT_E_MISSING,
                          "tensor %s has int8 (I8), and there is no tensor of that name and "
                          "\"_scale\"",
                          quoted.text);
    model_quote(&other, s->name, s->name_bytes);
    if (s->dtype != MODEL_F32 && s->dtype != MODEL_F16 && s->dtype != MODEL_BF16)
        return model_fail(error, ISOBIT_E_DTYPE,
                          "tensor %s has the element type %s; F32, F16 or BF16 is expected of "
                          "scales",
                          other.text, model_quote_dtype(&dtype, s));
    if ((s->rank != 1 && s->rank != 2) || s->shape[0] != n || (s->rank == 2 && s->shape[1] != 1))
        return model_fail(
            error, ISOBIT_E_SHAPE,
            "tensor %s has rank %zu and shape [%llu%s]; [%zu, 1] is expected, a scale "
            "for each output of %s",
            other.text, s->rank, s->rank ? (unsigned long long)s->shape[0] : 0,
            s->rank > 1 ? ", ..." : "", n, quoted.text);
    return ISOBIT_OK;
}

iso_status model_int8_read_scales(const model_source *source, const model_tensor *scales, float *to,
                                  size_t n) {
    unsigned char raw[PIECE];
    const size_t size = scales->dtype == MODEL_F32 ? 4 : 2;
    for (size_t done = 0, count; done < n; done += count) {
        count = n - done < PIECE / size ? n - done : PIECE / size;
        iso_status status = model_checkpoint_read(
            source->checkpoint, scales, raw, (uint64_t)done * size, count * size, source->error);
        if (status)
            return status;
        model_convert_elements(scales, to + done, raw, count);
        for (size_t i = done; i < done + count; i++)
            if (!(to[i] >= 0 && to[i] <= FLT_MAX)) {
                model_quoted name;
                return model_fail(source->error, ISOBIT_E_RANGE,
                                  "tensor %s: the scale of row %zu is %g; a finite number that is "
                                  "not negative is expected",
                                  model_quote(&name, scales->name, scales->name_bytes), i,
                                  (double)to[i]);
            }
    }
    return ISOBIT_OK;
}

iso_status model_int8_check_rows(const model_source *source, const model_tensor *t,
                                 const float *scales, const void *rows, size_t first, size_t count,
                                 size_t row_bytes) {
    const unsigned char *bytes = rows;
    for (size_t i = 0; i < count; i++, bytes += row_bytes) {
        int bits = 0;
        for (size_t j = 0; j < row_bytes && scales[i] <= 0; j++)
            bits |= bytes[j];
        if (bits) {
            model_quoted name;
            return model_fail(source->error, ISOBIT_E_RANGE,
                              "tensor %s: the scale of row %zu is 0, and its integers are not",
                              model_quote(&name, t->name, t->name_bytes), first + i);
        }
    }
    return ISOBIT_OK;
}

void model_int8_scale_rows(float *rows, const float *scales, size_t count, size_t width) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < width; j++)
            rows[i * width + j] *= scales[i];
}

/* --------------------------------------------------------------------------------- in panels */

model_int8 model_int8_in(void *memory, size_t n, size_t k) {
    const size_t rows = padded(n, PANEL);
    int8_t *data = memory;
    float *scales = (float *)(void *)(data + rows * padded(k, STEPS));
    return (model_int8){data, scales, (int32_t *)(void *)(scales + rows), n, k};
}

void model_int8_clear(const model_int8 *w, size_t first, size_t count) {
    const size_t bytes = padded(w->k, STEPS), end = padded(first + count, PANEL);
    memset(w->data + first * bytes, 0, (end - first) * bytes);
    for (size_t j = w->n; j < end; j++) {
        w->scales[j] = 0;
        w->start[j] = 0;
    }
}

/* Where row j of k begins. */
static size_t place_of(size_t j, size_t k) {
    return j / PANEL * PANEL * padded(k, STEPS) + j % PANEL * FOUR;
}

void model_int8_put(const model_int8 *w, const int8_t *rows, size_t first, size_t count) {
    const size_t k = w->k;
    for (size_t j = first; j < first + count; j++, rows += k) {
        int8_t *to = w->data + place_of(j, k);
        int32_t sum = 0;
        size_t p = 0;
        for (; p + FOUR <= k; p += FOUR)
            memcpy(to + p * PANEL, rows + p, FOUR);
        memcpy(to + p * PANEL, rows + p, k - p);
        for (p = 0; p < k; p++)
            sum += rows[p];
        w->start[j] = -128 * sum;
    }
}

void model_int8_row(float *to, const iso_packed_s8 *w, size_t j) {
    const int8_t *from = w->data + place_of(j, w->k);
    const float scale = w->scales[j];
    for (size_t p = 0; p < w->k; p++)
        to[p] = (float)from[p / FOUR * FOUR * PANEL + p % FOUR] * scale;
}
