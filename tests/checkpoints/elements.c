/* SPDX-License-Identifier: MIT
 *
 * Elements of every type.
 */
#include "test_checkpoints.h"
#include "weights.h"

/* Element i of a storage: exact in F16 and BF16 too, where it has few bits. */
static double value_of(size_t i) { return (double)(i % 251) - 125; }

/* The bits of a small whole number: a sign, an exponent, the rest. */
static uint64_t bits_of(double x, unsigned exponent_bits, unsigned fraction_bits) {
    const uint64_t sign = x < 0, bias = ((uint64_t)1 << (exponent_bits - 1)) - 1;
    const unsigned whole = (unsigned)(x < 0 ? -x : x);
    unsigned top = 0;
    while (whole >> top > 1)
        top++;
    return sign << (exponent_bits + fraction_bits) |
           (whole ? (bias + top) << fraction_bits |
                        ((uint64_t)(whole - (1u << top)) << (fraction_bits - top))
                  : 0);
}

static const struct {
    const char *class;
    size_t size;
    unsigned exponent_bits, fraction_bits;
} types[] = {{"FloatStorage", 4, 8, 23},
             {"HalfStorage", 2, 5, 10},
             {"BFloat16Storage", 2, 8, 7},
             {"DoubleStorage", 8, 11, 52}};

/* Element i, j of a matrix that stays in 16 bits: as rows, and packed, as it lies and turned. */
static void check_16(const tensor *t, const model_table *table, const iso_packed_w16 *packed,
                     const iso_packed_w16 *turned, size_t i, size_t j, float value) {
    const int bf16 = strcmp(t->class, "BFloat16Storage") == 0;
    const size_t n = (size_t)t->shape[0], k = (size_t)t->shape[1];
    const uint64_t bits = bits_of((double)value, bf16 ? 8 : 5, bf16 ? 7 : 10);
    /* Panels of 32 rows, each [k][32]. */
#define PLACE(i) (bf16 ? (i) % 16 * 2 + (i) % 32 / 16 : (i) % 32)
    if (table->type != packed->type || packed->type != (bf16 ? ISOBIT_BF16 : ISOBIT_F16) ||
        table->rows16[i * k + j] != bits ||
        packed->data[i / 32 * 32 * k + j * 32 + PLACE(i)] != bits ||
        turned->data[j / 32 * 32 * n + i * 32 + PLACE(j)] != bits)
        fail_msg("%s %s [%zu][%zu] in 16 bits", t->name, t->class, i, j);
#undef PLACE
}

/* Reads the tensor through the loader in each way, and compares with its definition. */
static void check_elements(const model_checkpoint *c, const tensor *t, int widen) {
    model_arena arena = {0};
    iso_error error = {0};
    const iso_context context = {.size = sizeof context};
    model_source source = {
        .checkpoint = c, .arena = &arena, .context = &context, .error = &error, .widen = widen};
    const size_t n = (size_t)t->shape[0], k = t->rank == 2 ? (size_t)t->shape[1] : 1;
    const int in_16 = !widen && t->rank == 2 && strstr(t->class, "Float") != t->class &&
                      strstr(t->class, "Double") != t->class;
    const float *got = NULL;
    model_linear packed = {0}, turned = {0};
    model_table table = {0};
    for (source.load = 0; source.load < 2; source.load++) {
        iso_status status = t->rank == 2 ? model_take_rows(&source, &got, t->name, n, k)
                                         : model_take_vector(&source, &got, &t->name, 1, n, 0);
        if (!status && t->rank == 2)
            status = model_take_packed(&source, &packed, &t->name, 1, n, k, 0);
        if (!status && t->rank == 2)
            status = model_take_packed(&source, &turned, &t->name, 1, k, n, 1);
        if (!status && t->rank == 2)
            status = model_take_table(&source, &table, t->name, n, k);
        if (status)
            fail_msg("%s: %s", t->name, error.message);
    }
    if (model_source_finish(&source))
        fail_msg("%s: %s", t->name, error.message);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < k; j++) {
            const float expected = (float)value_of(
                (size_t)(t->offset + i * t->strides[0] + (t->rank == 2 ? j * t->strides[1] : 0)));
            if (got[i * k + j] != expected)
                fail_msg("%s %s [%zu][%zu]: %g, not %g", t->name, t->class, i, j,
                         (double)got[i * k + j], (double)expected);
            if (in_16) {
                check_16(t, &table, &packed.w16, &turned.w16, i, j, expected);
                continue;
            }
            if (t->rank == 2 && table.rows[i * k + j] != expected)
                fail_msg("%s %s [%zu][%zu] of a table", t->name, t->class, i, j);
            if (t->rank == 2 && turned.w.data[j / 16 * 16 * n + i * 16 + j % 16] != expected)
                fail_msg("%s %s [%zu][%zu] turned", t->name, t->class, i, j);
            /* Panels of 16 rows, each [k][16]. */
            if (t->rank == 2 && packed.w.data[i / 16 * 16 * k + j * 16 + i % 16] != expected)
                fail_msg("%s %s [%zu][%zu] packed", t->name, t->class, i, j);
        }
    model_arena_free(&source.scratch);
    model_arena_free(&arena);
}

/* Views of one storage in each element type; some so large that they are read in pieces. */
void test_elements(void **state) {
    enum { ELEMENTS = 400000 };
    static const tensor views[] = {
        {"whole", NULL, "0", ELEMENTS, 0, 2, {400, 1000}, {1000, 1}},
        {"transposed", NULL, "0", ELEMENTS, 0, 2, {1000, 400}, {1, 1000}},
        {"part", NULL, "0", ELEMENTS, 5007, 2, {300, 900}, {1000, 1}},
        {"part transposed", NULL, "0", ELEMENTS, 5007, 2, {900, 300}, {1, 1000}},
        {"columns with gaps", NULL, "0", ELEMENTS, 3, 2, {200, 300}, {1000, 3}},
        {"rows with gaps", NULL, "0", ELEMENTS, 3, 2, {300, 200}, {3, 1000}},
        {"both far", NULL, "0", ELEMENTS, 1, 2, {5, 4}, {70000, 9000}},
        {"far apart", NULL, "0", ELEMENTS, 9, 2, {3, 3}, {40000, 131072}},
        {"one row", NULL, "0", ELEMENTS, 17, 2, {1, 70000}, {7, 2}},
        {"one column", NULL, "0", ELEMENTS, 17, 2, {70000, 1}, {5, 9}},
        {"vector", NULL, "0", ELEMENTS, 2, 1, {150000}, {1}},
        {"every other", NULL, "0", ELEMENTS, 2, 1, {150000}, {2}},
        {"every 90000th", NULL, "0", ELEMENTS, 2, 1, {4}, {90000}},
    };
    const size_t count = sizeof views / sizeof *views;
    files f;
    files_make(&f);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        blob pickle = {0}, data = {0};
        bin_places places;
        model_checkpoint c;
        iso_error error;
        put_text(&pickle, "\x80\2}(");
        for (size_t v = 0; v < count; v++) {
            tensor t = views[v];
            t.class = types[i].class;
            put_tensor(&pickle, &t);
        }
        put_text(&pickle, "u.");
        for (size_t e = 0; e < ELEMENTS; e++)
            put(&data, bits_of(value_of(e), types[i].exponent_bits, types[i].fraction_bits),
                types[i].size);
        const bin_part members[] = {{"m/data.pkl", pickle.bytes, pickle.count},
                                    {"m/data/0", data.bytes, data.count}};
        blob file = bin_zip(members, 2, 1, &places);
        assert_int_equal(open_bin(&c, &f, &file, 1 << 20, &error), ISOBIT_OK);
        for (size_t v = 0; v < count; v++) {
            tensor t = views[v];
            t.class = types[i].class;
            check_elements(&c, &t, 0);
            check_elements(&c, &t, 1);
        }
        model_checkpoint_close(&c);
        blob_free(&pickle);
        blob_free(&data);
        blob_free(&file);
    }
    remove_all(&f);
    (void)state;
}

/* Doubles are rounded to the nearest float; what is no float becomes an infinity. */
void test_doubles(void **state) {
    static const struct {
        uint64_t bits;
        uint32_t rounded;
    } rows[] = {
        {0x3ff0000000000000, 0x3f800000}, {0x3ff0000010000000, 0x3f800000},
        {0x3ff0000010000001, 0x3f800001}, {0x3ff0000030000000, 0x3f800002},
        {0xbff0000030000000, 0xbf800002}, {0x7fefffffffffffff, 0x7f800000},
        {0x36a0000000000000, 0x00000001}, {0x3690000000000000, 0x00000000},
        {0x8000000000000000, 0x80000000}, {0xfff0000000000000, 0xff800000},
    };
    const size_t count = sizeof rows / sizeof *rows;
    files f;
    model_arena arena = {0};
    model_checkpoint c;
    iso_error error = {0};
    const float *got;
    const char *name = "d";
    char header[100];
    files_make(&f);
    (void)snprintf(header, sizeof header,
                   "{\"d\":{\"dtype\":\"F64\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}", count,
                   8 * count);
    blob b = blob_file(header, strlen(header), 0);
    for (size_t i = 0; i < count; i++)
        put(&b, rows[i].bits, 8);
    files_write(&f, "model.safetensors", b.bytes, b.count);
    blob_free(&b);
    assert_int_equal(model_checkpoint_open(&c, f.directory, "model.safetensors", 1000, &error),
                     ISOBIT_OK);
    model_source source = {.checkpoint = &c, .arena = &arena, .error = &error};
    for (source.load = 0; source.load < 2; source.load++)
        assert_int_equal(model_take_vector(&source, &got, &name, 1, count, 0), ISOBIT_OK);
    assert_int_equal(model_source_finish(&source), ISOBIT_OK);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &got[i], 4);
        assert_int_equal(bits, rows[i].rounded);
    }
    /* Such an infinity is not finite. */
    source.reject_nonfinite = 1;
    assert_int_equal(model_take_vector(&source, &got, &name, 1, count, 0), ISOBIT_OK);
    assert_int_equal(model_source_finish(&source), ISOBIT_E_RANGE);
    assert_non_null(strstr(error.message, "tensor \"d\": element 5 is not finite"));
    model_arena_free(&source.scratch);
    model_arena_free(&arena);
    model_checkpoint_close(&c);
    remove_all(&f);
    (void)state;
}
