/* SPDX-License-Identifier: MIT
 *
 * Weights of a checkpoint by name: whether they are there with the right shape, in what form they
 * will be in the memory of a model (f32, or for matrices the 16 bits that the file has, or its
 * blocks of 8 or 4 bits, and these packed), and what goes where, which is noted. pieces.c reads it.
 */
#include "weights.h"

#include "blocks.h"
#include "int8.h"
#include "pieces.h"

#include <string.h>

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

/* The tensor of that name, if its shape is [n] or [n][k] (k not 0), else an error. `integers`: it
 * may have such, and scales. */
static iso_status find_checked(const model_source *source, const model_tensor **tensor,
                               const char *name, size_t n, size_t k, int integers) {
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
            quoted.text, model_quote_dtype(&dtype, t));
    if (t->dtype == MODEL_OTHER ||
        ((t->dtype == MODEL_I8 || t->dtype == MODEL_GROUPS) && !integers))
        return model_fail(error, ISOBIT_E_DTYPE,
                          "tensor %s has the element type %s; F32, F16, BF16 or F64 is expected",
                          quoted.text, t->dtype_name);
    if (t->rank != (k ? 2 : 1) || t->shape[0] != n || (k && t->shape[1] != k)) {
        unsigned long long s0 = t->rank > 0 ? t->shape[0] : 0, s1 = t->rank > 1 ? t->shape[1] : 0;
        if (k)
            return model_fail(error, ISOBIT_E_SHAPE,
                              "tensor %s has rank %zu and shape [%llu, %llu%s]; [%zu, %zu] is "
                              "expected from the configuration",
                              quoted.text, t->rank, s0, s1, t->rank > 2 ? ", ..." : "", n, k);
        return model_fail(error, ISOBIT_E_SHAPE,
                          "tensor %s has rank %zu and shape [%llu%s]; [%zu] is expected from "
                          "the configuration",
                          quoted.text, t->rank, s0, t->rank > 1 ? ", ..." : "", n);
    }
    *tensor = t;
    return ISOBIT_OK;
}

static void use(const model_source *source, const model_tensor *t, unsigned as) {
    if (source->uses)
        source->uses[t - source->checkpoint->header.tensors] |= (unsigned char)as;
}

iso_status model_source_plan(model_source *source, size_t n, size_t k, size_t element) {
    size_t bytes;
    if (__builtin_mul_overflow(n, k, &bytes) || __builtin_mul_overflow(bytes, element, &bytes) ||
        __builtin_add_overflow(bytes, (size_t)63, &bytes) ||
        __builtin_add_overflow(source->bytes, bytes & ~(size_t)63, &source->bytes))
        return model_fail(source->error, ISOBIT_E_OVERFLOW, "the weights are too large");
    return ISOBIT_OK;
}

/* Where the tensor lies in a mapped file, if it can be used there; else NULL. */
static float *find_mapped(const model_source *source, const model_tensor *t) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const model_checkpoint *all = source->checkpoint;
    const model_map *map = source->maps ? &source->maps[all->shards ? t->shard : 0] : NULL;
    const uint64_t start = (all->shards ? all->shards[t->shard].data_start : all->data_start);
    if (map && map->at && t->dtype == MODEL_F32 && !t->strides && !t->paired &&
        (start + t->begin) % 4 == 0)
        return (float *)(void *)((char *)map->at + start + t->begin);
#endif
    (void)source, (void)t;
    return NULL;
}

/* Matrices, one below the other, stay as the file has them, or in blocks that hold all of them,
 * unless they are to become int8. A table, of which rows are only copied, is none of these. */
static model_form form_of(const model_source *source, const model_tensor *const *tensors,
                          size_t parts, int table) {
    const model_dtype dtype = tensors[0]->dtype;
    if (source->compute == ISOBIT_COMPUTE_INT8 && !table)
        return FORM_S8;
    if (source->widen || (dtype == MODEL_I8 && (table || source->compute == ISOBIT_COMPUTE_F32)))
        return FORM_F32;
    return model_common_form(tensors, parts);
}

static void count_parameters(model_source *source, model_form f, size_t elements) {
    source->parameters += elements;
    source->parameters16 += f == FORM_16 ? elements : 0;
    source->parameters8 += f == FORM_S8 ? elements : 0;
    source->parameters_s8 += f == FORM_S8 ? elements : 0;
    if (model_form_is_blocks(f))
        *(model_q_formats[f].bits == 8 ? &source->parameters8 : &source->parameters4) += elements;
}

/* Reads the scales of those parts that the file has in int8. */
static iso_status take_scales(model_source *source, model_take *take,
                              const model_tensor *const *scales, size_t parts, size_t rows) {
    iso_status status = ISOBIT_OK;
    if (take->form == FORM_S8)
        take->scales = model_int8_in(take->to, rows, take->width).scales;
    for (size_t part = 0, row = 0; part < parts && !status; part++) {
        const size_t own = part ? take->other_rows : take->first_rows;
        if (scales[part] && !take->scales &&
            !(take->scales = model_alloc(&source->scratch, rows, sizeof *take->scales)))
            return model_fail(source->error, ISOBIT_E_NOMEM, "out of memory for scales");
        if (scales[part])
            status = model_int8_read_scales(source, scales[part], take->scales + row, own);
        row += own;
    }
    return status;
}

/* Matrices of n rows, the first one, and other_n, the others, one below the other. */
static iso_status take_stacked(model_source *source, model_linear *out, const char *const *names,
                               size_t parts, size_t n, size_t other_n, size_t k, int in_out) {
    size_t bytes, rows = n;
    iso_status status = ISOBIT_OK;
    iso_error *error = source->error;
    model_take take = {TAKE_PACKED, {NULL}, n, other_n, n, k, NULL, 0, 0, FORM_F32, NULL};
    const model_tensor *scales[MODEL_MAX_PARTS] = {NULL};
    size_t elements = 0;
    int overflow = 0;
    const model_tensor *stored = model_source_find(source, names, 1);
    if (stored && stored->dtype == MODEL_GROUPS)
        in_out = 0; /* such are [out][in], whatever the family has */
    for (size_t part = 0; part < parts; part++) {
        const size_t own = part ? other_n : n;
        if ((status = find_checked(source, &take.tensors[part], names[part], in_out ? k : own,
                                   in_out ? own : k, 1)))
            return status;
        if (take.tensors[part]->dtype == MODEL_I8 &&
            (status = model_int8_find_scales(source, take.tensors[part], own, &scales[part])))
            return status;
        use(source, take.tensors[part],
            MODEL_USE_MATRIX | (in_out ? MODEL_USE_TURNED : 0U) |
                (out == source->logits ? MODEL_USE_LOGITS : 0U));
        elements += own * k;
        if (!source->load)
            source->of_type[take.tensors[part]->dtype] += own * k;
        overflow |= part && __builtin_add_overflow(rows, other_n, &rows);
    }
    take.form = form_of(source, take.tensors, parts, 0);
    if (in_out && model_form_is_blocks(model_own_form(take.tensors[0])))
        take.form = FORM_F32; /* groups would go along n */
    /* A scale is that of an output, so int8 wants whole columns. */
    const int turns = in_out && take.form != FORM_S8 && !scales[0];
    if (!source->load) {
        count_parameters(source, take.form, elements);
        source->parameters_q += model_form_is_blocks(take.form) ? elements : 0;
    }
    if (take.form == FORM_S8 && iso_pack_s8_bytes(&bytes, 1, k) == ISOBIT_E_LIMIT)
        return model_fail(error, ISOBIT_E_LIMIT,
                          "tensor \"%s\": products of int8 of %zu elements are too long", names[0],
                          k);
    if (overflow || model_packed_bytes(&bytes, take.form, rows, k))
        return model_fail(error, ISOBIT_E_OVERFLOW, "tensor \"%s\" is too large", names[0]);
    float *mapped =
        parts == 1 && take.form == FORM_F32 ? find_mapped(source, take.tensors[0]) : NULL;
    if (!source->load) {
        if (!mapped)
            status = model_source_plan(source, bytes, 1, 1);
        if (in_out && take.form == FORM_S8) /* a piece of a row of the file is not too short */
            return status ? status : model_take_plan(source, 4 * k);
        return status ? status : model_take_plan(source, turns ? n : k);
    }
    take.to = mapped ? mapped : model_alloc(source->arena, bytes, 1);
    if (!take.to)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for tensor \"%s\"", names[0]);
    out->w = (iso_packed){mapped || take.form != FORM_F32 ? NULL : take.to, rows, k};
    if (model_form_is_blocks(take.form))
        out->q = (iso_packed_q){take.to, rows, k, model_q_formats[take.form]};
    if (take.form == FORM_16)
        out->w16 = (iso_packed_w16){take.to, rows, k, model_take_type(take.tensors[0])};
    if (take.form == FORM_S8) {
        const model_int8 p = model_int8_in(take.to, rows, k);
        out->s8 = (iso_packed_s8){p.data, p.scales, p.start, rows, k};
    }
    out->plain = mapped;
    out->turned = in_out;
    take.rows = rows;
    if (in_out && !turns) {
        model_turned *view = model_alloc(&source->scratch, 1, sizeof *view);
        if (!view)
            return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
        model_tensor_turn(view, take.tensors[0]);
        take.tensors[0] = &view->t;
    }
    if ((status = take_scales(source, &take, scales, parts, rows)))
        return status;
    if (turns) {
        take.kind = TAKE_TURNED;
        take.first_rows = take.rows = k;
        take.width = n;
    }
    if (mapped)
        take.kind = TAKE_MAPPED;
    return model_take_note(source, take);
}

iso_status model_take_packed(model_source *source, model_linear *out, const char *const *names,
                             size_t parts, size_t n, size_t k, int in_out) {
    return take_stacked(source, out, names, parts, n, n, k, in_out);
}

iso_status model_take_grouped(model_source *source, model_linear *out, const char *const *names,
                              size_t n, size_t other_n, size_t k) {
    return take_stacked(source, out, names, 3, n, other_n, k, 0);
}

static iso_status take_vectors(model_source *source, const float **out, const char *const *names,
                               size_t parts, size_t n, size_t other_n, int leading_one) {
    iso_status status = ISOBIT_OK;
    model_take take = {TAKE_WHOLE, {NULL}, n, other_n, n, 1, NULL, 0, 0, FORM_F32, NULL};
    for (size_t part = 1; part < parts; part++)
        if (__builtin_add_overflow(take.rows, other_n, &take.rows))
            return model_fail(source->error, ISOBIT_E_OVERFLOW, "\"%s\" is too large", names[0]);
    if (source->load && !(take.to = model_alloc(source->arena, take.rows, sizeof(float))))
        return model_fail(source->error, ISOBIT_E_NOMEM, "out of memory for \"%s\"", names[0]);
    for (size_t part = 0; part < parts && !status; part++) {
        const size_t own = part ? other_n : n;
        status = find_checked(source, &take.tensors[part], names[part], leading_one ? 1 : own,
                              leading_one ? own : 0, 0);
        if (!status)
            use(source, take.tensors[part], MODEL_USE_VECTOR);
        if (!status && !source->load) {
            source->parameters += own;
            source->of_type[take.tensors[part]->dtype] += own;
        }
    }
    *out = take.to;
    if (status || source->load)
        return status ? status : model_take_note(source, take);
    status = model_source_plan(source, take.rows, 1, sizeof(float));
    return status ? status : model_take_plan(source, 1);
}

iso_status model_take_vector(model_source *source, const float **out, const char *const *names,
                             size_t parts, size_t n, int leading_one) {
    return take_vectors(source, out, names, parts, n, n, leading_one);
}

iso_status model_take_grouped_vector(model_source *source, const float **out,
                                     const char *const *names, size_t n, size_t other_n) {
    return take_vectors(source, out, names, 3, n, other_n, 0);
}

/* `table`: it will not be changed, so it may be used where it lies, or in 16 bits. */
static iso_status take_rows(model_source *source, model_table *out, const char *name, size_t n,
                            size_t k, int table) {
    model_take take = {TAKE_ROWS, {NULL}, n, 0, n, k, NULL, 0, 0, FORM_F32, NULL};
    const model_tensor *scales = NULL;
    iso_status status = find_checked(source, &take.tensors[0], name, n, k, table);
    if (!status && take.tensors[0]->dtype == MODEL_I8)
        status = model_int8_find_scales(source, take.tensors[0], n, &scales);
    if (status)
        return status;
    use(source, take.tensors[0], table ? MODEL_USE_TABLE : MODEL_USE_VECTOR);
    float *mapped = table ? find_mapped(source, take.tensors[0]) : NULL;
    if (table)
        take.form = form_of(source, take.tensors, 1, 1);
    const size_t row = model_form_bytes(take.form, k);
    if (!source->load) {
        count_parameters(source, take.form, n * k);
        source->of_type[take.tensors[0]->dtype] += n * k;
        if (!mapped)
            status = model_source_plan(source, n, row, 1);
        return status ? status : model_take_plan(source, k);
    }
    if (mapped)
        take.kind = TAKE_MAPPED;
    take.to = mapped ? mapped : model_alloc3(source->arena, n, row, 1, 1);
    if (!take.to)
        return model_fail(source->error, ISOBIT_E_NOMEM, "out of memory for \"%s\"", name);
    if (model_form_is_blocks(take.form))
        *out = (model_table){.blocks = take.to, .format = model_q_formats[take.form]};
    else
        *out = take.form == FORM_16
                   ? (model_table){.rows16 = take.to, .type = model_take_type(take.tensors[0])}
                   : (model_table){.rows = take.to};
    status = take_scales(source, &take, &scales, 1, n);
    return status ? status : model_take_note(source, take);
}

iso_status model_take_rows(model_source *source, const float **out, const char *name, size_t n,
                           size_t k) {
    model_table table = {.rows = NULL};
    const iso_status status = take_rows(source, &table, name, n, k, 0);
    if (table.rows)
        *out = table.rows;
    return status;
}

iso_status model_take_table(model_source *source, model_table *out, const char *name, size_t n,
                            size_t k) {
    return take_rows(source, out, name, n, k, 1);
}
