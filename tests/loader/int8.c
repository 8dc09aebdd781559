/* SPDX-License-Identifier: MIT
 *
 * See test_loader.c: matrices that become int8, or that a file has in int8, against the definition
 * in isobit/ops.h; and the files of compressed-tensors, with what is wrong with them.
 */
#include "../test_loader.h"

/* ---------------------------------------------------------------------------- matrices in memory
 */

enum { K = 300, MOST = 700, OTHER = 130, ALL = MOST + 2 * OTHER };

/* A matrix [n][k] of the test: what it has to become. */
typedef struct expected {
    size_t n, k;
    float values[MOST * K]; /* as the file has it, or integer times scale */
    int8_t q[MOST * K];
    float scales[MOST];
} expected;

static uint32_t drawn = 1;

static uint32_t draw(void) {
    drawn = drawn * 1664525u + 1013904223u;
    return drawn >> 8;
}

static void store16(blob *b, uint16_t bits) {
    const unsigned char bytes[2] = {(unsigned char)bits, (unsigned char)(bits >> 8)};
    blob_add(b, bytes, 2);
}

static void store32(blob *b, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    store16(b, (uint16_t)bits);
    store16(b, (uint16_t)(bits >> 16));
}

/* Numbers that all types of scales have exactly: 1 to 255 times 2^-10. */
static void store_scale(blob *b, const char *dtype, unsigned number) {
    const float value = ldexpf((float)number, -10);
    uint32_t bits, exponent = 0;
    memcpy(&bits, &value, sizeof bits);
    while (number >> exponent > 1)
        exponent++;
    if (strcmp(dtype, "F32") == 0)
        store32(b, value);
    else if (strcmp(dtype, "BF16") == 0)
        store16(b, (uint16_t)(bits >> 16));
    else
        store16(b, (uint16_t)((exponent + 5) << 10 | (number << (10 - exponent) & 0x3ff)));
}

static void name_shape(char *shape, size_t bytes, size_t n, size_t k, int turned) {
    (void)snprintf(shape, bytes, "%zu,%zu", turned ? k : n, turned ? n : k);
}

/* Floats; some rows are of a special kind. `turned`: stored [k][n]. */
static void add_floats(builder *b, expected *e, const char *name, const char *dtype, size_t n,
                       size_t k, int turned) {
    blob data = {0};
    char shape[40];
    const int bf16 = strcmp(dtype, "BF16") == 0;
    e->n = n;
    e->k = k;
    for (size_t i = 0; i < n; i++) {
        double most = 0;
        int finite = 1;
        float *row = e->values + i * k;
        for (size_t j = 0; j < k; j++) {
            uint32_t bits;
            row[j] = (float)(int32_t)(draw() % 20001 - 10000) * 0.0003f;
            if (i % 50 == 7) /* too small for a scale */
                row[j] *= 0x1p-125f;
            if (i % 50 == 9 && j == k / 2)
                row[j] = i % 100 == 9 ? NAN : -INFINITY;
            memcpy(&bits, &row[j], sizeof bits);
            bits &= bf16 ? 0xffff0000 : 0xffffffff;
            memcpy(&row[j], &bits, sizeof bits);
            finite = finite && isfinite(row[j]);
            most = fmax(most, fabs((double)row[j]));
        }
        const int some = finite && most >= ldexp(1, -119);
        const float inverse = some ? (float)(127 / most) : 0;
        e->scales[i] = !finite ? NAN : some ? (float)(most / 127) : 0;
        for (size_t j = 0; j < k; j++)
            e->q[i * k + j] =
                some ? (int8_t)rint((double)(float)((double)row[j] * (double)inverse)) : 0;
    }
    for (size_t a = 0; a < (turned ? k : n); a++)
        for (size_t c = 0; c < (turned ? n : k); c++) {
            const float value = turned ? e->values[c * k + a] : e->values[a * k + c];
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits);
            if (bf16)
                store16(&data, (uint16_t)(bits >> 16));
            else
                store32(&data, value);
        }
    name_shape(shape, sizeof shape, n, k, turned);
    builder_given(b, name, dtype, shape, data.bytes, data.count);
    blob_free(&data);
}

/* Integers, -128 too, and their scales. */
static void add_integers(builder *b, expected *e, const char *name, const char *scale_type,
                         int as_column, size_t n, size_t k, int turned) {
    blob data = {0}, scales = {0};
    char shape[40], scale_name[60];
    e->n = n;
    e->k = k;
    for (size_t i = 0; i < n; i++) {
        const unsigned number = i % 40 == 3 ? 0 : 1 + draw() % 255;
        if (number)
            store_scale(&scales, scale_type, number);
        else
            blob_add(&scales, "\0\0\0\0", strcmp(scale_type, "F32") == 0 ? 4 : 2);
        e->scales[i] = ldexpf((float)number, -10);
        for (size_t j = 0; j < k; j++) {
            e->q[i * k + j] = number ? (int8_t)(draw() % 256 - 128) : 0;
            e->values[i * k + j] = (float)e->q[i * k + j] * e->scales[i];
        }
    }
    for (size_t a = 0; a < (turned ? k : n); a++)
        for (size_t c = 0; c < (turned ? n : k); c++)
            blob_add(&data, turned ? &e->q[c * k + a] : &e->q[a * k + c], 1);
    name_shape(shape, sizeof shape, n, k, turned);
    builder_given(b, name, "I8", shape, data.bytes, data.count);
    (void)snprintf(shape, sizeof shape, as_column ? "%zu,1" : "%zu", n);
    (void)snprintf(scale_name, sizeof scale_name, "%s_scale", name);
    builder_given(b, scale_name, scale_type, shape, scales.bytes, scales.count);
    blob_free(&data);
    blob_free(&scales);
}

static int same_float(float a, float b) {
    return (isnan(a) && isnan(b)) || memcmp((const char *)&a, (const char *)&b, sizeof a) == 0;
}

/* Row i of a matrix that consists of some, one below the other. */
static const expected *row_of(const expected *const *parts, size_t count, size_t *i) {
    for (size_t p = 0; p < count; p++) {
        if (*i < parts[p]->n)
            return parts[p];
        *i -= parts[p]->n;
    }
    return NULL;
}

static void check_int8(const iso_packed_s8 *got, const expected *const *parts, size_t count,
                       const char *what) {
    const size_t k = parts[0]->k, padded = (k + 7) / 8 * 8;
    size_t n = 0;
    for (size_t p = 0; p < count; p++)
        n += parts[p]->n;
    if (!got->data || got->n != n || got->k != k)
        fail_msg("%s: no int8 of %zu x %zu", what, n, k);
    for (size_t i = 0; i < (n + 15) / 16 * 16; i++) {
        size_t row = i;
        int32_t sum = 0;
        const expected *e = row_of(parts, count, &row);
        for (size_t j = 0; j < padded; j++) {
            const int8_t q = e && j < k ? e->q[row * k + j] : 0;
            const int8_t *at = &got->data[i / 16 * 16 * padded + j / 4 * 64 + i % 16 * 4 + j % 4];
            sum += q;
            if (*at != q)
                fail_msg("%s [%zu][%zu]: %d, not %d", what, i, j, *at, q);
        }
        if (!same_float(got->scales[i], e ? e->scales[row] : 0) || got->start[i] != -128 * sum)
            fail_msg("%s, row %zu: scale %g, start %d, not %g, %d", what, i, (double)got->scales[i],
                     (int)got->start[i], e ? (double)e->scales[row] : 0, (int)(-128 * sum));
    }
}

static void check_floats(const iso_packed *got, const expected *const *parts, size_t count,
                         const char *what) {
    const size_t k = parts[0]->k;
    if (!got->data)
        fail_msg("%s: no floats", what);
    for (size_t i = 0; i < got->n; i++) {
        size_t row = i;
        const expected *e = row_of(parts, count, &row);
        for (size_t j = 0; j < k; j++)
            if (!same_float(got->data[i / 16 * 16 * k + j * 16 + i % 16], e->values[row * k + j]))
                fail_msg("%s [%zu][%zu]", what, i, j);
    }
}

/* What a source gives. */
typedef struct taken {
    model_linear grouped, integers, turned_floats, turned_integers, small_floats, small_integers;
    model_table table;
} taken;

static void take_all(taken *t, model_source *source, const iso_error *error) {
    const char *const names[] = {"q", "k", "v"}, *const ft = "ft", *const it = "it",
                      *const sf = "sf", *const si = "si", *const k = "k";
    for (source->load = 0; source->load < 2; source->load++)
        if (model_take_grouped(source, &t->grouped, names, MOST, OTHER, K) ||
            model_take_packed(source, &t->integers, &k, 1, OTHER, K, 0) ||
            model_take_packed(source, &t->turned_floats, &ft, 1, MOST, K, 1) ||
            model_take_packed(source, &t->turned_integers, &it, 1, OTHER, K, 1) ||
            model_take_packed(source, &t->small_floats, &sf, 1, 5, 7, 0) ||
            model_take_packed(source, &t->small_integers, &si, 1, 5, 7, 0) ||
            model_take_table(source, &t->table, "k", OTHER, K))
            fail_msg("%s", error->message);
    if (model_source_finish(source))
        fail_msg("%s", error->message);
}

void test_int8_matrices(void **state) {
    static expected q, k, v, ft, it, sf, si;
    const expected *const all[] = {&q, &k, &v}, *const kp = &k, *const ftp = &ft, *const itp = &it,
                          *const sfp = &sf, *const sip = &si;
    builder b = {.state = 1};
    files f;
    iso_error error = {0};
    iso_pool *pool;
    model_checkpoint c;
    files_make(&f);
    add_floats(&b, &q, "q", "F32", MOST, K, 0);
    add_integers(&b, &k, "k", "F16", 1, OTHER, K, 0);
    add_floats(&b, &v, "v", "BF16", OTHER, K, 0);
    add_floats(&b, &ft, "ft", "F32", MOST, K, 1);
    add_integers(&b, &it, "it", "BF16", 0, OTHER, K, 1);
    add_floats(&b, &sf, "sf", "F32", 5, 7, 0);
    add_integers(&b, &si, "si", "F32", 1, 5, 7, 0);
    builder_write(&b, &f);
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);
    assert_int_equal(model_checkpoint_open(&c, f.directory, "model.safetensors", 1 << 20, &error),
                     ISOBIT_OK);
    /* AUTO, F32, INT8, and AUTO widened; each without threads and with. */
    for (int i = 0; i < 8; i++) {
        const int compute = i / 2 % 3, widen = i / 2 == 3;
        const iso_context context = {.size = sizeof context,
                                     .executor = i % 2 ? iso_pool_executor(pool) : NULL};
        model_arena arena = {0};
        taken t = {0};
        model_source source = {.checkpoint = &c,
                               .arena = &arena,
                               .context = &context,
                               .error = &error,
                               .prefix = "",
                               .widen = widen,
                               .compute = (iso_compute)compute};
        const int floats = widen || compute == ISOBIT_COMPUTE_F32,
                  all_int8 = compute == ISOBIT_COMPUTE_INT8;
        take_all(&t, &source, &error);
        if (all_int8) {
            check_int8(&t.grouped.s8, all, 3, "grouped");
            check_int8(&t.turned_floats.s8, &ftp, 1, "turned floats");
            check_int8(&t.small_floats.s8, &sfp, 1, "small floats");
        } else { /* parts of several types */
            check_floats(&t.grouped.w, all, 3, "grouped");
            check_floats(&t.turned_floats.w, &ftp, 1, "turned floats");
            check_floats(&t.small_floats.w, &sfp, 1, "small floats");
        }
        if (floats) {
            check_floats(&t.integers.w, &kp, 1, "integers");
            check_floats(&t.turned_integers.w, &itp, 1, "turned integers");
            check_floats(&t.small_integers.w, &sip, 1, "small integers");
        } else {
            check_int8(&t.integers.s8, &kp, 1, "integers");
            check_int8(&t.turned_integers.s8, &itp, 1, "turned integers");
            check_int8(&t.small_integers.s8, &sip, 1, "small integers");
        }
        assert_memory_equal(t.table.rows, k.values, OTHER * K * sizeof(float));
        const size_t integers = 2 * OTHER * K + 35, table = OTHER * K;
        const size_t parameters = ALL * K + MOST * K + 35 + integers + table;
        assert_int_equal(source.parameters, parameters);
        assert_int_equal(source.parameters_s8, floats     ? 0
                                               : all_int8 ? parameters - table
                                                          : integers);
        assert_int_equal(source.parameters8, source.parameters_s8);
        model_arena_free(&source.scratch);
        model_arena_free(&arena);
    }
    /* What takes no integers. */
    model_arena arena = {0};
    model_source source = {.checkpoint = &c, .arena = &arena, .error = &error, .prefix = ""};
    const float *rows;
    assert_int_equal(model_take_rows(&source, &rows, "k", OTHER, K), ISOBIT_E_DTYPE);
    assert_non_null(strstr(error.message, "\"k\" has the element type I8"));
    /* Longer sums than int8 may have. */
    model_tensor wide = {.name = "w", .name_bytes = 1, .dtype = MODEL_F32, .rank = 2};
    const model_checkpoint one = {.file.fd = -1, .header = {&wide, 1}};
    const char *const w = "w";
    model_linear packed;
    source.checkpoint = &one;
    source.compute = ISOBIT_COMPUTE_INT8;
    wide.shape[0] = 2;
    wide.shape[1] = 131072;
    assert_int_equal(model_take_packed(&source, &packed, &w, 1, 2, 131072, 0), ISOBIT_E_LIMIT);
    assert_non_null(strstr(error.message, "131072"));
    wide.shape[1] = 131071;
    assert_int_equal(model_take_packed(&source, &packed, &w, 1, 2, 131071, 0), ISOBIT_OK);
    model_arena_free(&source.scratch);
    model_arena_free(&arena);
    model_checkpoint_close(&c);
    iso_pool_destroy(pool);
    files_remove(&f);
    (void)state;
}

/* A scale of 0 in the last row, which floats have in a later piece, and one integer not 0. */
void test_int8_zero_scale(void **state) {
    enum { ROW = MOST - 1 };
    builder b = {.state = 1};
    blob integers = {0}, scales = {0};
    char shape[40];
    files f;
    iso_error error = {0};
    model_checkpoint c;
    model_linear packed;
    const char *const z = "z";
    files_make(&f);
    for (size_t i = 0; i < MOST; i++) {
        store32(&scales, i != ROW);
        for (size_t j = 0; j < K; j++)
            blob_add(&integers, i == ROW && j == K - 1 ? "\1" : "\0", 1);
    }
    name_shape(shape, sizeof shape, MOST, K, 0);
    builder_given(&b, z, "I8", shape, integers.bytes, integers.count);
    name_shape(shape, sizeof shape, MOST, 1, 0);
    builder_given(&b, "z_scale", "F32", shape, scales.bytes, scales.count);
    builder_write(&b, &f);
    assert_int_equal(model_checkpoint_open(&c, f.directory, "model.safetensors", 1 << 20, &error),
                     ISOBIT_OK);
    for (int widen = 0; widen < 2; widen++) {
        model_arena arena = {0};
        model_source source = {
            .checkpoint = &c, .arena = &arena, .error = &error, .prefix = "", .widen = widen};
        for (source.load = 0; source.load < 2; source.load++)
            assert_int_equal(model_take_packed(&source, &packed, &z, 1, MOST, K, 0), ISOBIT_OK);
        assert_int_equal(model_source_finish(&source), ISOBIT_E_RANGE);
        assert_string_equal(error.message,
                            "tensor \"z\": the scale of row 699 is 0, and its integers are not");
        model_arena_free(&source.scratch);
        model_arena_free(&arena);
    }
    blob_free(&integers);
    blob_free(&scales);
    model_checkpoint_close(&c);
    files_remove(&f);
    (void)state;
}

/* ------------------------------------------------------------------------------------- files */

/* How a file of int8 differs from a good one: `tensor` is left out (no type), or has this type,
 * shape and first element; `more` is one more tensor. */
typedef struct change {
    const char *tensor, *dtype, *shape;
    float first;
    const char *more;
} change;

#define ONE "model.encoder.layers.0.fc1.weight" /* [12][8] */

static void add_scales(builder *b, const char *name, size_t n, size_t number, const change *c) {
    static const char *const types[] = {"F32", "F16", "BF16"};
    const int other = c && strcmp(c->tensor, name) == 0;
    const char *dtype = other ? c->dtype : types[number % 3];
    char shape[40];
    blob data = {0};
    if (other && !dtype)
        return;
    (void)snprintf(shape, sizeof shape, number % 2 ? "%zu,1" : "%zu", n);
    for (size_t i = 0; i < (other ? 2 * n : n); i++)
        if (other)
            store32(&data, i ? 1 : c->first);
        else
            store_scale(&data, dtype, 8u << i % 4);
    /* twice as many as are needed, of which the shape says how many there are */
    size_t bytes = data.count;
    if (other) {
        unsigned long a = 0, z = 1;
        (void)sscanf(c->shape, "%lu,%lu", &a, &z);
        bytes = a * z * (strcmp(dtype, "F64") == 0 ? 8 : strcmp(dtype, "F32") == 0 ? 4 : 2);
    }
    builder_given(b, name, dtype, other ? c->shape : shape, data.bytes, bytes);
    blob_free(&data);
}

/*
 * The good model with matrices of int8, if `int8`, or with the floats that they stand for. Scales
 * are powers of two, and each row has a 127, so that floats become the same int8 again.
 */
static void write_int8(const files *f, int int8, const change *c) {
    builder plain = {.state = 3}, b = {.state = 1};
    model_checkpoint all;
    drawn = 1; /* all files have the same numbers */
    iso_error error;
    builder_model(&plain, V, D, FFN, 1);
    builder_write(&plain, f);
    assert_int_equal(
        model_checkpoint_open(&all, f->directory, "model.safetensors", 1 << 20, &error), ISOBIT_OK);
    for (size_t t = 0; t < all.header.count; t++) {
        const model_tensor *tensor = &all.header.tensors[t];
        const size_t n = (size_t)tensor->shape[0],
                     k = tensor->rank == 2 ? (size_t)tensor->shape[1] : 1;
        blob data = {0};
        char shape[40], scale[200];
        const size_t bytes = (size_t)(tensor->end - tensor->begin);
        (void)snprintf(shape, sizeof shape, tensor->rank == 2 ? "%zu,%zu" : "%zu", n, k);
        (void)snprintf(scale, sizeof scale, "%s_scale", tensor->name);
        if (tensor->rank == 2 && n > 1) {
            for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < k; j++) {
                    const int8_t q = j == i % k ? 127 : (int8_t)(draw() % 255 - 127);
                    if (int8)
                        blob_add(&data, &q, 1);
                    else
                        store32(&data, (float)q * ldexpf((float)(8u << i % 4), -10));
                }
            builder_given(&b, tensor->name, int8 ? "I8" : "F32", shape, data.bytes, data.count);
            if (int8)
                add_scales(&b, scale, n, t, c);
        } else {
            unsigned char *raw = malloc(bytes);
            const int other = c && strcmp(c->tensor, tensor->name) == 0;
            assert_non_null(raw);
            assert_int_equal(model_checkpoint_read(&all, tensor, raw, 0, bytes, &error), ISOBIT_OK);
            builder_given(&b, tensor->name, other ? c->dtype : "F32", shape, raw,
                          other ? n : bytes);
            free(raw);
        }
        blob_free(&data);
    }
    if (c && c->more)
        builder_given(&b, c->more, "I8", "1", "", 1);
    model_checkpoint_close(&all);
    builder_write(&b, f);
}

static void logits_of(float *y, const files *f, size_t compute, size_t widen, size_t int8) {
    static const uint32_t source[] = {3, 5, 6, 4, 2}, target[] = {1, 3, 6, 5};
    const iso_load_options options = {.size = sizeof options, .compute = compute, .widen = widen};
    iso_model *model;
    iso_error error;
    if (iso_model_load(&model, f->directory, &options, NULL, &error) ||
        iso_logits_f32(y, model, source, 5, target, 4, 0, NULL, &error))
        fail_msg("%s", error.message);
    const iso_model_info *info = iso_model_get_info(model);
    assert_int_equal(info->parameters_int8, int8 ? V * D + 12 * D * D + 4 * D * FFN : 0);
    assert_int_equal(info->parameters_8, info->parameters_int8);
    assert_int_equal(info->parameters, V * D + 12 * D * D + 4 * D * FFN + V + /* norms, biases */
                                           5 * 2 * D + 12 * D + 2 * (FFN + D));
    iso_model_free(model);
}

#define NUMBERS "\"num_bits\":8,\"type\":\"int\",\"symmetric\":true"
#define WEIGHTS "\"weights\":{" NUMBERS ",\"strategy\":\"channel\",\"dynamic\":false}"
#define INPUTS "\"input_activations\":{" NUMBERS ",\"strategy\":\"token\",\"dynamic\":true}"
#define GROUPS(text) "\"config_groups\":{\"group_0\":{\"targets\":[\"Linear\"]," text "}}"
#define METHOD "\"quant_method\":\"compressed-tensors\",\"format\":\"int-quantized\""
#define QUANTIZED(text) ",\"quantization_config\":{" text "}"

void test_int8_models(void **state) {
    static float int8[4 * V], other[4 * V];
    files f, twin;
    files_make(&f);
    files_make(&twin);
    files_config(
        &f, "marian", V, D, 2, FFN,
        IDS QUANTIZED(METHOD "," GROUPS(
            WEIGHTS
            "," INPUTS
            ",\"output_activations\":null") ",\"kv_cache_scheme\":null,\"sparsity_config\":{},"
                                            "\"transform_config\":{},\"ignore\":[\"lm_head\"]"));
    files_config(&twin, "marian", V, D, 2, FFN, IDS);
    write_int8(&f, 1, NULL);
    write_int8(&twin, 0, NULL);
    logits_of(int8, &f, ISOBIT_COMPUTE_AUTO, 0, 1);
    logits_of(other, &f, ISOBIT_COMPUTE_INT8, 0, 1);
    assert_memory_equal(int8, other, sizeof int8);
    logits_of(other, &twin, ISOBIT_COMPUTE_INT8, 0, 1);
    assert_memory_equal(int8, other, sizeof int8);
    logits_of(int8, &f, ISOBIT_COMPUTE_F32, 0, 0);
    assert_memory_not_equal(int8, other, sizeof int8);
    logits_of(other, &f, ISOBIT_COMPUTE_AUTO, 1, 0);
    assert_memory_equal(int8, other, sizeof int8);
    logits_of(other, &twin, ISOBIT_COMPUTE_AUTO, 0, 0);
    assert_memory_equal(int8, other, sizeof int8);
    files_remove(&f);
    files_remove(&twin);
    (void)state;
}

void test_int8_refused(void **state) {
    static const struct {
        iso_status status;
        change change;
        const char *says;
    } cases[] = {
        {ISOBIT_E_RANGE,
         {ONE "_scale", "F32", "12,1", 0, NULL},
         "\"" ONE "\": the scale of row 0 is 0, and its integers are not"},
        {ISOBIT_OK, {ONE "_scale", "F32", "12", 0x1p-140f, NULL}, NULL},
        {ISOBIT_E_MISSING,
         {ONE "_scale", NULL, NULL, 0, NULL},
         "\"" ONE "\" has int8 (I8), and there is no tensor"},
        {ISOBIT_E_SHAPE, {ONE "_scale", "F32", "11,1", 1, NULL}, "[12, 1] is expected"},
        {ISOBIT_E_SHAPE, {ONE "_scale", "F32", "13", 1, NULL}, "[12, 1] is expected"},
        {ISOBIT_E_SHAPE, {ONE "_scale", "F32", "12,2", 1, NULL}, "[12, 1] is expected"},
        {ISOBIT_E_SHAPE, {ONE "_scale", "F32", "1,12", 1, NULL}, "[12, 1] is expected"},
        {ISOBIT_E_SHAPE, {ONE "_scale", "F32", "1", 1, NULL}, "[12, 1] is expected"},
        {ISOBIT_E_DTYPE, {ONE "_scale", "F64", "12,1", 1, NULL}, "F32, F16 or BF16 is expected"},
        {ISOBIT_E_DTYPE, {ONE "_scale", "I16", "12,1", 1, NULL}, "F32, F16 or BF16 is expected"},
        {ISOBIT_E_DTYPE,
         {ONE "_scale", "F3\x7f", "12,1", 1, NULL},
         "the element type \"F3\\x7f\";"},
        {ISOBIT_E_RANGE, {ONE "_scale", "F32", "12,1", NAN, NULL}, "_scale\": the scale of row 0"},
        {ISOBIT_E_RANGE,
         {ONE "_scale", "F32", "12,1", INFINITY, NULL},
         "the scale of row 0 is inf"},
        {ISOBIT_E_RANGE, {ONE "_scale", "F32", "12,1", -0x1p-140f, NULL}, "that is not negative"},
        {ISOBIT_E_UNSUPPORTED, {"", NULL, NULL, 0, ONE "_zero_point"}, "zero points"},
        {ISOBIT_E_DTYPE,
         {"model.encoder.layers.0.fc1.bias", "I8", NULL, 0, NULL},
         "fc1.bias\" has the element type I8"},
    };
    static const struct {
        iso_status status;
        const char *text, *says;
    } configs[] = {
        {ISOBIT_OK, METHOD "," GROUPS(WEIGHTS), NULL},
        {ISOBIT_OK, METHOD "," GROUPS(WEIGHTS ",\"input_activations\":null"), NULL},
        {ISOBIT_OK, METHOD "," GROUPS(INPUTS ",\"format\":\"int-quantized\"," WEIGHTS), NULL},
        {ISOBIT_OK, METHOD ",\"sparsity_config\":{\"format\":\"dense\"}," GROUPS(WEIGHTS), NULL},
        {ISOBIT_E_UNSUPPORTED, "\"quant_method\":\"gptq\",\"bits\":4", "\"gptq\"; only compressed"},
        {ISOBIT_E_UNSUPPORTED, "\"bits\":4", "quant_method"},
        {ISOBIT_E_UNSUPPORTED, "\"quant_method\":8", "quant_method"},
        {ISOBIT_E_UNSUPPORTED, "\"quant_method\":\"compressed-tensors\"," GROUPS(WEIGHTS),
         "\"format\" of the model is absent"},
        {ISOBIT_E_UNSUPPORTED,
         "\"quant_method\":\"compressed-tensors\",\"format\":\"pack-quantized\"," GROUPS(WEIGHTS),
         "\"channel\"; only group is supported"},
        {ISOBIT_E_UNSUPPORTED, METHOD, "config_groups"},
        {ISOBIT_E_UNSUPPORTED, METHOD ",\"config_groups\":{}", "config_groups"},
        {ISOBIT_E_UNSUPPORTED, METHOD ",\"config_groups\":{\"group_0\":3}", "weights"},
        {ISOBIT_E_UNSUPPORTED, METHOD "," GROUPS(INPUTS), "\"weights\" of a group is absent"},
        {ISOBIT_E_UNSUPPORTED,
         METHOD "," GROUPS("\"weights\":{\"num_bits\":4,\"type\":\"int\",\"symmetric\":true,"
                           "\"strategy\":\"channel\"}"),
         "\"num_bits\" of weights is 4; only 8"},
        {ISOBIT_E_UNSUPPORTED,
         METHOD "," GROUPS("\"weights\":{\"num_bits\":8,\"type\":\"float\",\"symmetric\":true,"
                           "\"strategy\":\"channel\"}"),
         "\"type\" of weights is \"float\"; only int"},
        {ISOBIT_E_UNSUPPORTED,
         METHOD "," GROUPS("\"weights\":{\"num_bits\":8,\"type\":\"int\",\"symmetric\":false,"
                           "\"strategy\":\"channel\"}"),
         "\"symmetric\" of weights is false; only true"},
        {ISOBIT_E_UNSUPPORTED,
         METHOD "," GROUPS("\"weights\":{" NUMBERS ",\"strategy\":\"block\"}"),
         "\"strategy\" of weights is \"block\"; only channel"},
        {ISOBIT_E_UNSUPPORTED,
         METHOD "," GROUPS("\"weights\":{" NUMBERS ",\"strategy\":\"channel\",\"dynamic\":true}"),
         "\"dynamic\" of weights is true; only false"},
        {ISOBIT_E_UNSUPPORTED,
         METHOD "," GROUPS(WEIGHTS ",\"input_activations\":{" NUMBERS
                                   ",\"strategy\":\"tensor\",\"dynamic\":false}"),
         "\"strategy\" of input_activations is \"tensor\"; only token"},
        {ISOBIT_E_UNSUPPORTED,
         METHOD "," GROUPS(WEIGHTS ",\"input_activations\":{" NUMBERS ",\"strategy\":\"token\"}"),
         "\"dynamic\" of input_activations is absent; only true"},
        {ISOBIT_E_UNSUPPORTED, METHOD "," GROUPS(WEIGHTS ",\"output_activations\":{" NUMBERS "}"),
         "output_activations"},
        {ISOBIT_E_UNSUPPORTED, METHOD "," GROUPS(WEIGHTS ",\"format\":\"float-quantized\""),
         "\"float-quantized\""},
        {ISOBIT_E_UNSUPPORTED, METHOD ",\"kv_cache_scheme\":{}," GROUPS(WEIGHTS),
         "kv_cache_scheme"},
        {ISOBIT_E_UNSUPPORTED, METHOD ",\"transform_config\":{\"a\":1}," GROUPS(WEIGHTS),
         "transform_config"},
        {ISOBIT_E_UNSUPPORTED,
         METHOD ",\"sparsity_config\":{\"format\":\"sparse-24-bitmask\"}," GROUPS(WEIGHTS),
         "sparse-24-bitmask"},
        {ISOBIT_E_CONFIG, NULL, "quantization_config"},
    };
    files f;
    iso_error error;
    files_make(&f);
    files_config(&f, "marian", V, D, 2, FFN, IDS);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_int8(&f, 1, &cases[i].change);
        const iso_status status = load(&f, NULL, &error);
        if (status != cases[i].status || (cases[i].says && !strstr(error.message, cases[i].says)))
            fail_msg("case %zu (%s): status %d (%s), expected %d (%s)", i, cases[i].change.tensor,
                     (int)status, error.message, (int)cases[i].status,
                     cases[i].says ? cases[i].says : "");
    }
    write_int8(&f, 1, NULL);
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        char more[900];
        (void)snprintf(more, sizeof more,
                       configs[i].text ? IDS QUANTIZED("%s")
                                       : "%s" IDS ",\"quantization_config\":3",
                       configs[i].text ? configs[i].text : "");
        files_config(&f, "marian", V, D, 2, FFN, more);
        const iso_status status = load(&f, NULL, &error);
        if (status != configs[i].status ||
            (configs[i].says && !strstr(error.message, configs[i].says)))
            fail_msg("%s: status %d (%s), expected %d (%s)", more, (int)status, error.message,
                     (int)configs[i].status, configs[i].says ? configs[i].says : "");
    }
    files_remove(&f);
    (void)state;
}
