/* SPDX-License-Identifier: MIT
 *
 * Matrices of 4 and 8 bits in groups with scales: what is written, number by number; what the
 * loader makes of it, against the same model in floats; what it refuses.
 */
#include "test_quantize.h"

#include <endian.h>
#include <math.h>

/* ---------------------------------------------------------------------------- as it is stored */

/* The parts of matrix X. */
typedef struct parts {
    stored_tensor packed, scale, shape;
    size_t n, k, group;
    int bits;
} parts;

static bool find_parts(const stored *s, const char *name, parts *p) {
    char part[300];
    (void)snprintf(part, sizeof part, "%s_packed", name);
    if (!stored_find(s, part, &p->packed))
        return false;
    (void)snprintf(part, sizeof part, "%s_scale", name);
    assert_true(stored_find(s, part, &p->scale));
    (void)snprintf(part, sizeof part, "%s_shape", name);
    assert_true(stored_find(s, part, &p->shape));
    assert_string_equal(p->packed.dtype, "I32");
    assert_string_equal(p->shape.dtype, "I64");
    assert_true(p->packed.rank == 2 && p->scale.rank == 2 && p->shape.rank == 1);
    p->n = (size_t)stored_number(&p->shape, 0);
    p->k = (size_t)stored_number(&p->shape, 1);
    assert_true(p->packed.shape[0] == p->n && p->scale.shape[0] == p->n);
    p->bits = (int)(p->packed.shape[1] * 32 / p->k);
    p->group = p->k / p->scale.shape[1];
    assert_true(p->bits == 4 || p->bits == 8);
    assert_int_equal(p->packed.shape[1] * 32, p->k * (size_t)p->bits);
    return true;
}

/* Number j of row i: in word j bits / 32, from bit j bits % 32 on. */
static int number(const parts *p, size_t i, size_t j) {
    const size_t bit = j * (size_t)p->bits;
    const double word = stored_number(&p->packed, i * p->packed.shape[1] + bit / 32);
    const uint32_t bits = (uint32_t)(int64_t)word;
    return (int)(bits >> bit % 32 & ((1u << p->bits) - 1)) - (1 << (p->bits - 1));
}

static double scale_of(const parts *p, size_t i, size_t j) {
    return stored_number(&p->scale, i * p->scale.shape[1] + j / p->group);
}

/* ------------------------------------------------------------------------------ what is written */

typedef struct sums {
    double largest, errors, squares, plain, best;
} sums;

static double nearest(double x, double scale, int bits) {
    const double half = ldexp(1, bits - 1), q = rint(x / scale);
    return fmin(fmax(q, -half), half - 1);
}

static double error_of(const double *x, size_t n, double scale, int bits) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double e = x[i] - nearest(x[i], scale, bits) * scale;
        sum += e * e;
    }
    return sum;
}

/* A group: each number is the nearest one, and the scale is a good one. */
static void check_group(const parts *p, const double *x, size_t i, size_t j, sums *s,
                        const char *name) {
    const double scale = scale_of(p, i, j);
    double most = 0, own = 0;
    if (!(scale > 0) || rounded(scale, 11, -14) != scale)
        fail_msg("%s, row %zu, column %zu: scale %a", name, i, j, scale);
    for (size_t g = 0; g < p->group; g++) {
        const double q = number(p, i, j + g), error = x[g] - q * scale;
        if (q != nearest(x[g], scale, p->bits))
            fail_msg("%s, row %zu, column %zu: %g for %g with scale %g", name, i, j + g, q, x[g],
                     scale);
        s->largest = fmax(s->largest, fabs(error));
        own += error * error;
        s->squares += x[g] * x[g];
        most = fmax(most, fabs(x[g]));
    }
    s->errors += own;
    const double plain = rounded(most / (p->bits == 4 ? 7 : 127), 11, -14);
    if (plain == 0)
        return;
    if (p->bits == 8) {
        assert_true(scale == plain);
        return;
    }
    const double with_plain = error_of(x, p->group, plain, 4);
    if (own > with_plain * (1 + 1e-12))
        fail_msg("%s, row %zu, column %zu: a plain scale is better", name, i, j);
    double best = with_plain;
    for (int c = 0; c < 40; c++)
        best = fmin(best, error_of(x, p->group, rounded(most / (5.5 + 0.125 * c), 11, -14), 4));
    s->plain += with_plain;
    s->best += best;
}

static void check_matrix(const stored *from, const stored *to, const char *name, int turned,
                         size_t group, sums *s) {
    stored_tensor a;
    parts p;
    double x[128];
    assert_true(stored_find(from, name, &a) && find_parts(to, name, &p));
    assert_int_equal(p.n, a.shape[turned]);
    assert_int_equal(p.k, a.shape[!turned]);
    assert_int_equal(p.group, group);
    for (size_t i = 0; i < p.n; i++)
        for (size_t j = 0; j < p.k; j += group) {
            for (size_t g = 0; g < group; g++)
                x[g] = stored_number(&a, turned ? (j + g) * p.n + i : i * p.k + j + g);
            check_group(&p, x, i, j, s, name);
        }
}

typedef struct heard {
    const stored *from, *to;
    size_t group, matrices, kept;
} heard;

static char heard_names[64][200], heard_notes[64][60], heard_types[64][8];
static double heard_numbers[64][3];
static size_t heard_count;

static void hear(void *user, const iso_quantized_tensor *t) {
    assert_true(heard_count < COUNT(heard_names));
    (void)snprintf(heard_names[heard_count], sizeof *heard_names, "%s", t->name);
    (void)snprintf(heard_notes[heard_count], sizeof *heard_notes, "%s", t->note ? t->note : "");
    (void)snprintf(heard_types[heard_count], sizeof *heard_types, "%s", t->type);
    heard_numbers[heard_count][0] = t->largest;
    heard_numbers[heard_count][1] = t->rms;
    heard_numbers[heard_count++][2] = t->tensor_rms;
    (void)user;
}

static size_t heard_of(const char *name) {
    for (size_t i = 0; i < heard_count; i++)
        if (strcmp(heard_names[i], name) == 0)
            return i;
    fail_msg("nothing is said of %s", name);
    return 0;
}

/* One of some models, in groups of that size: how many matrices became such. */
static size_t check_model(const place *p, size_t group, int table_bits) {
    const iso_quantize_options options = {
        .size = sizeof options, .type = ISOBIT_QUANTIZE_INT4, .group = group, .report = hear};
    heard_count = 0;
    quantize(p, &options, NULL);
    stored from = stored_read(p->from.directory), to = stored_read(p->out);
    const char *name;
    json_t *entry;
    size_t matrices = 0;
    sums all = {0};
    json_object_foreach(from.header, name, entry) {
        stored_tensor a, b;
        parts m;
        const int turned = strstr(name, ".c_") != NULL;
        assert_true(stored_find(&from, name, &a));
        if (!find_parts(&to, name, &m)) { /* as it was */
            assert_true(stored_find(&to, name, &b));
            assert_string_equal(a.dtype, b.dtype);
            assert_memory_equal(a.at, b.at, a.bytes);
            continue;
        }
        const int table =
            strcmp(name, "model.shared.weight") == 0 || strcmp(name, "wte.weight") == 0;
        assert_int_equal(m.bits, table ? table_bits : 4);
        sums s = {0};
        check_matrix(&from, &to, name, turned, group ? group : 32, &s);
        const double *said = heard_numbers[heard_of(name)];
        assert_string_equal(heard_types[heard_of(name)], "I32");
        assert_true(fabs(said[0] - s.largest) <= 1e-12 * s.largest);
        assert_true(fabs(said[1] - sqrt(s.errors / (double)a.count)) <= 1e-12 * said[1]);
        assert_true(fabs(said[2] - sqrt(s.squares / (double)a.count)) <= 1e-12 * said[2]);
        if (!table) {
            all.errors += s.errors;
            all.plain += s.plain;
            all.best += s.best;
        }
        matrices++;
    }
    /* Nearly as good as the best of 40 scales, and better than the plain one by a good part. */
    if (all.errors > 1.02 * all.best || all.errors > 0.9 * all.plain)
        fail_msg("squared error %g; %g is possible, %g is plain", all.errors, all.best, all.plain);
    stored_free(&to);
    stored_free(&from);
    remove_tree(p->out);
    return matrices;
}

void test_groups_written(void **state) {
    place p;
    place_make(&p);
    make_model(&p);
    /* Rows have 64 and 96: the latter are no whole groups of 64. */
    assert_int_equal(check_model(&p, 0, 8), 17);
    assert_int_equal(check_model(&p, 64, 8), 15);
    assert_string_equal(heard_notes[heard_of("model.encoder.layers.0.fc2.weight")],
                        "rows are no whole groups");
    make_gpt2(&p);
    assert_int_equal(check_model(&p, 128, 8), 5);
    /* What F16 scales do not reach, and groups of nothing or next to nothing. */
    make_model(&p);
    stored s = stored_read(p.from.directory);
    stored_tensor t;
    assert_true(stored_find(&s, "model.encoder.layers.0.fc1.weight", &t));
    float *data = (float *)(void *)(s.bytes + (t.at - s.bytes));
    for (size_t i = 0; i < 64; i++)
        data[i] = i < 32 ? 0 : ((float)i - 40) * 1e-9f;
    files_write(&p.from, "model.safetensors", s.bytes, s.count);
    assert_int_equal(check_model(&p, 32, 8), 17);
    data[70] = -600000;
    files_write(&p.from, "model.safetensors", s.bytes, s.count);
    const iso_quantize_options options = {.size = sizeof options, .type = ISOBIT_QUANTIZE_INT4};
    refuses(&p, &options, ISOBIT_E_RANGE,
            "fc1.weight\": the group of element 64 is too large for F16 scales");
    iso_quantize_options wrong = options;
    wrong.group = 48;
    refuses(&p, &wrong, ISOBIT_E_OPTION, "groups of 48");
    stored_free(&s);
    place_remove(&p);
    (void)state;
}

/* ------------------------------------------------------------------------------ what is loaded */

/* The same model in floats: each matrix in groups as the products that it stands for. */
static void write_floats(const place *p, const char *config_from, const char *folder) {
    stored s = stored_read(p->out);
    files f;
    (void)snprintf(f.directory, sizeof f.directory, "%s", folder);
    builder b = {0};
    const char *name;
    json_t *entry;
    json_object_foreach(s.header, name, entry) {
        char base[300], shape[60];
        stored_tensor t;
        parts m;
        (void)snprintf(base, sizeof base, "%s", name);
        char *end = strstr(base, ".weight_");
        if (strcmp(name, "__metadata__") == 0 || (end && strcmp(end, ".weight_packed") != 0))
            continue;
        assert_true(stored_find(&s, name, &t));
        if (!end) {
            shape[0] = 0;
            for (size_t i = 0; i < t.rank; i++)
                (void)snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%zu",
                               i ? "," : "", t.shape[i]);
            builder_given(&b, name, t.dtype, shape, t.at, t.bytes);
            continue;
        }
        end[sizeof ".weight" - 1] = 0;
        assert_true(find_parts(&s, base, &m));
        const int turned = strstr(base, ".c_") != NULL;
        uint32_t *bits = calloc(m.n * m.k, sizeof *bits);
        assert_non_null(bits);
        for (size_t i = 0; i < m.n; i++)
            for (size_t j = 0; j < m.k; j++) {
                const float y = (float)(number(&m, i, j) * scale_of(&m, i, j));
                uint32_t *to = &bits[turned ? j * m.n + i : i * m.k + j];
                memcpy(to, &y, sizeof y);
                *to = htole32(*to);
            }
        (void)snprintf(shape, sizeof shape, "%zu,%zu", turned ? m.k : m.n, turned ? m.n : m.k);
        builder_given(&b, base, "F32", shape, bits, m.n * m.k * sizeof *bits);
        free(bits);
    }
    builder_write(&b, &f);
    json_t *config = read_config(config_from);
    char path[300];
    (void)snprintf(path, sizeof path, "%s/config.json", folder);
    assert_int_equal(json_dump_file(config, path, 0), 0);
    json_decref(config);
    stored_free(&s);
}

static size_t in_groups;

static void check_loaded(const place *p, const char *config_from) {
    static float got[MOST_LOGITS], wanted[MOST_LOGITS];
    files floats;
    files_make(&floats);
    write_floats(p, config_from, floats.directory);
    compute(wanted, floats.directory, NULL);
    for (size_t how = 0; how < 4; how++) {
        const iso_load_options options = {.size = sizeof options,
                                          .widen = how == 1,
                                          .map = how == 2,
                                          .compute =
                                              how == 3 ? ISOBIT_COMPUTE_F32 : ISOBIT_COMPUTE_AUTO};
        compute(got, p->out, &options);
        if (memcmp(got, wanted, sizeof got) != 0) /* NOLINT: bits are meant */
            fail_msg("%s, loading %zu: other bits than floats", config_from, how);
    }
    /* And as int8, of the floats that they are. */
    const iso_load_options int8 = {.size = sizeof int8, .compute = ISOBIT_COMPUTE_INT8};
    compute(got, p->out, &int8);
    compute(wanted, floats.directory, &int8);
    assert_memory_equal(got, wanted, sizeof got);
    remove_tree(floats.directory);
}

static void check_family(const char *folder, const place *p) {
    const iso_quantize_options options = {.size = sizeof options, .type = ISOBIT_QUANTIZE_INT4};
    iso_error error = {0};
    iso_model *model;
    if (iso_model_quantize(folder, p->out, &options, NULL, &error) ||
        iso_model_load(&model, p->out, NULL, NULL, &error))
        fail_msg("%s: %s", folder, error.message);
    const iso_model_info *info = iso_model_get_info(model);
    in_groups += info->parameters_4 > 0;
    iso_model_free(model);
    check_loaded(p, folder);
    remove_tree(p->out);
}

void test_groups_loaded(void **state) {
    in_groups = 0;
    each_model(check_family);
    assert_true(in_groups >= 20);
    place p;
    place_make(&p);
    make_gpt2(&p);
    for (size_t group = 32; group <= 128; group *= 2) {
        const iso_quantize_options options = {
            .size = sizeof options, .type = ISOBIT_QUANTIZE_INT4, .group = group};
        iso_error error = {0};
        iso_model *model;
        quantize(&p, &options, NULL);
        check_loaded(&p, p.from.directory);
        assert_int_equal(iso_model_load(&model, p.out, NULL, NULL, &error), ISOBIT_OK);
        const iso_model_info *info = iso_model_get_info(model);
        assert_int_equal(info->parameters_8, GPT_V * GPT_D);
        assert_int_equal(info->parameters_4, 4 * GPT_D * GPT_D + 2 * GPT_D * GPT_F);
        iso_model_free(model);
        remove_tree(p.out);
    }
    place_remove(&p);
    (void)state;
}

/* ------------------------------------------------------------------- files that others write */

/* The file of a folder, to be changed and written again. */
typedef struct changed {
    stored s;
    blob more; /* data behind that of the file */
} changed;

static json_t *entry_of(const changed *c, const char *name) {
    json_t *entry = json_object_get(c->s.header, name);
    assert_non_null(entry);
    return entry;
}

/* Another name for a tensor. */
static void rename_tensor(changed *c, const char *name, const char *to) {
    json_t *entry = json_incref(entry_of(c, name));
    json_object_del(c->s.header, name);
    json_object_set_new(c->s.header, to, entry);
}

static void add_tensor(changed *c, const char *name, const char *dtype, size_t n, size_t k,
                       const void *data, size_t bytes) {
    const size_t at = c->s.count - (size_t)(c->s.data - c->s.bytes) + c->more.count;
    blob_add(&c->more, data, bytes);
    json_t *shape =
        k ? json_pack("[I, I]", (json_int_t)n, (json_int_t)k) : json_pack("[I]", (json_int_t)n);
    json_object_set_new(c->s.header, name,
                        json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape", shape,
                                  "data_offsets", (json_int_t)at, (json_int_t)(at + bytes)));
}

static void write_changed(changed *c, const char *folder) {
    files f;
    char *text = json_dumps(c->s.header, JSON_COMPACT);
    (void)snprintf(f.directory, sizeof f.directory, "%.60s", folder);
    blob all = blob_file(text, strlen(text), 0);
    blob_add(&all, c->s.data, c->s.count - (size_t)(c->s.data - c->s.bytes));
    blob_add(&all, c->more.bytes, c->more.count);
    files_write(&f, "model.safetensors", all.bytes, all.count);
    blob_free(&all);
    blob_free(&c->more);
    stored_free(&c->s);
    free(text);
}

/* The scales of all matrices in another type. */
static void change_scales(const char *folder, const char *dtype) {
    changed c = {.s = stored_read(folder)};
    const char *names[64], *name;
    json_t *entry;
    size_t count = 0;
    json_object_foreach(c.s.header, name, entry) if (strstr(name, ".weight_scale")) names[count++] =
        name;
    for (size_t i = 0; i < count; i++) {
        stored_tensor t;
        char own[200], other[220];
        blob data = {0};
        (void)snprintf(own, sizeof own, "%s", names[i]);
        (void)snprintf(other, sizeof other, "old.%s", own);
        assert_true(stored_find(&c.s, own, &t));
        const int wide = strcmp(dtype, "F32") == 0;
        for (size_t k = 0; k < t.count; k++) { /* also numbers that F16 does not have */
            const float value = (float)(wide ? stored_number(&t, k) * 1.0009765f
                                             : rounded(stored_number(&t, k), 8, -126));
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits);
            bits = wide ? bits : bits >> 16;
            for (size_t byte = 0; byte < (wide ? 4 : 2); byte++)
                blob_add(&data, &(unsigned char){(unsigned char)(bits >> 8 * byte)}, 1);
        }
        rename_tensor(&c, own, other);
        add_tensor(&c, own, dtype, t.shape[0], t.shape[1], data.bytes, data.count);
        blob_free(&data);
    }
    write_changed(&c, folder);
}

/* The numbers of a matrix for another one, too, in place of what it had. */
static void copy_matrix(changed *c, const char *from, const char *to) {
    static const char *const ends[] = {"_packed", "_scale", "_shape"};
    rename_tensor(c, to, "old");
    for (size_t i = 0; i < COUNT(ends); i++) {
        char name[200];
        stored_tensor t;
        (void)snprintf(name, sizeof name, "%s%s", from, ends[i]);
        assert_true(stored_find(&c->s, name, &t));
        (void)snprintf(name, sizeof name, "%s%s", to, ends[i]);
        add_tensor(c, name, t.dtype, t.shape[0], t.rank == 2 ? t.shape[1] : 0, t.at, t.bytes);
    }
}

/* A table that is not the logits, with scales of each type. */
void test_groups_table(void **state) {
    static const char llama[] = ISOBIT_TEST_DATA "/models/llama";
    static const char *const types[] = {NULL, "F32", "BF16"};
    for (size_t i = 0; i < COUNT(types); i++) {
        const iso_quantize_options options = {.size = sizeof options, .type = ISOBIT_QUANTIZE_INT4};
        place p;
        iso_error error = {0};
        place_make(&p);
        assert_int_equal(iso_model_quantize(llama, p.out, &options, NULL, &error), ISOBIT_OK);
        changed c = {.s = stored_read(p.out)};
        copy_matrix(&c, "lm_head.weight", "model.embed_tokens.weight");
        write_changed(&c, p.out);
        if (types[i])
            change_scales(p.out, types[i]);
        check_loaded(&p, llama);
        place_remove(&p);
    }
    (void)state;
}

/* Scales of F32 and BF16. */
void test_groups_of_others(void **state) {
    static const char *const types[] = {"F32", "BF16"};
    static void (*const make[])(const place *p) = {make_model, make_gpt2};
    for (size_t m = 0; m < COUNT(make); m++)
        for (size_t i = 0; i < COUNT(types); i++) {
            place p;
            place_make(&p);
            make[m](&p);
            const iso_quantize_options options = {
                .size = sizeof options, .type = ISOBIT_QUANTIZE_INT4, .group = m ? 64 : 32};
            quantize(&p, &options, NULL);
            change_scales(p.out, types[i]);
            check_loaded(&p, p.from.directory);
            remove_tree(p.out);
            place_remove(&p);
        }
    (void)state;
}

/* ----------------------------------------------------------------------------- what is refused */

#define X "model.encoder.layers.0.fc1.weight"

static void set_bytes(changed *c, const char *name, size_t at, uint64_t value, size_t bytes) {
    stored_tensor t;
    assert_true(stored_find(&c->s, name, &t));
    unsigned char *to = c->s.bytes + (t.at - c->s.bytes) + at;
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}
static void no_scale(changed *c) { rename_tensor(c, X "_scale", "x"); }
static void no_shape(changed *c) { rename_tensor(c, X "_shape", "x"); }
static void zero_points(changed *c) { add_tensor(c, X "_zero_point", "I32", 0, 0, "", 0); }
static void order(changed *c) { add_tensor(c, X "_g_idx", "I32", 0, 0, "", 0); }
static void twice(changed *c) { add_tensor(c, X, "F32", 0, 0, "", 0); }
static void bytes(changed *c) {
    json_object_set_new(entry_of(c, X "_packed"), "dtype", json_string("U8"));
    json_array_set_new(json_object_get(entry_of(c, X "_packed"), "shape"), 1, json_integer(D / 2));
}
static void list_of_three(changed *c) {
    rename_tensor(c, X "_shape", "x");
    add_tensor(c, X "_shape", "I32", 3, 0, "123456789012", 12);
}
static void float_shape(changed *c) {
    rename_tensor(c, X "_shape", "x");
    add_tensor(c, X "_shape", "F32", 2, 0, "12345678", 8);
}
/* A shape of I32, which is as good. */
static void short_shape(changed *c) {
    static const unsigned char shape[8] = {F, 0, 0, 0, D};
    rename_tensor(c, X "_shape", "x");
    add_tensor(c, X "_shape", "I32", 2, 0, shape, sizeof shape);
}
static void no_rows(changed *c) { set_bytes(c, X "_shape", 0, 0, 8); }
static void negative_rows(changed *c) { set_bytes(c, X "_shape", 0, UINT64_MAX, 8); }
static void fewer_rows(changed *c) { set_bytes(c, X "_shape", 0, F - 1, 8); }
static void other_columns(changed *c) { set_bytes(c, X "_shape", 8, D + 32, 8); }
/* 4 bits of more columns, as the file has it; the configuration wants other ones. */
static void other_matrix(changed *c) {
    set_bytes(c, X "_shape", 8, D / 2, 8);
    json_array_set_new(json_object_get(entry_of(c, X "_scale"), "shape"), 1, json_integer(1));
    json_array_set_new(json_object_get(entry_of(c, X "_scale"), "shape"), 0, json_integer(2 * F));
}
static void scales_of_rows(changed *c) {
    rename_tensor(c, X "_scale", "x");
    static const char zeros[F * 2];
    add_tensor(c, X "_scale", "F16", F, 0, zeros, sizeof zeros);
}
static void groups_of_16(changed *c) {
    rename_tensor(c, X "_scale", "x");
    static const char zeros[F * 8];
    add_tensor(c, X "_scale", "F16", F, 4, zeros, sizeof zeros);
}
static void scales_of_more_rows(changed *c) {
    rename_tensor(c, X "_scale", "x");
    static const char zeros[(F + 1) * 4];
    add_tensor(c, X "_scale", "F16", F + 1, 2, zeros, sizeof zeros);
}
static void integer_scales(changed *c) {
    json_object_set_new(entry_of(c, X "_scale"), "dtype", json_string("I16"));
}
static void nan_scale(changed *c) { set_bytes(c, X "_scale", 10, 0x7e00, 2); }
static void infinite_scale(changed *c) { set_bytes(c, X "_scale", 10, 0x7c00, 2); }
static void zero_scale(changed *c) { set_bytes(c, X "_scale", 10, 0, 2); }
static void negative_scale(changed *c) { set_bytes(c, X "_scale", 10, 0x8001, 2); }
/* A vector in groups. */
static void vector(changed *c) {
    static const char zeros[16 * D];
    static const int64_t shape[2] = {1, 64};
    rename_tensor(c, "model.encoder.layers.0.final_layer_norm.weight", "x");
    add_tensor(c, "model.encoder.layers.0.final_layer_norm.weight_packed", "I32", 1, 8, zeros, 32);
    add_tensor(c, "model.encoder.layers.0.final_layer_norm.weight_scale", "F16", 1, 2, zeros, 4);
    unsigned char le[16];
    for (size_t i = 0; i < 16; i++)
        le[i] = (unsigned char)((uint64_t)shape[i / 8] >> i % 8 * 8);
    add_tensor(c, "model.encoder.layers.0.final_layer_norm.weight_shape", "I64", 2, 0, le, 16);
}

void test_groups_refused(void **state) {
    static const struct {
        void (*change)(changed *c);
        iso_status status;
        const char *says;
    } rows[] = {
        {no_scale, ISOBIT_E_MISSING, "\"" X "\" has weight_packed, and no weight_scale"},
        {no_shape, ISOBIT_E_MISSING, "\"" X "\" has weight_packed, and no weight_shape"},
        {zero_points, ISOBIT_E_UNSUPPORTED, "\"" X "\" has zero points"},
        {order, ISOBIT_E_UNSUPPORTED, "\"" X "\" has weight_g_idx"},
        {twice, ISOBIT_E_DUPLICATE, "\"" X "\" is there, and its weight_packed, too"},
        {bytes, ISOBIT_E_UNSUPPORTED, "weight_packed has the element type U8; I32 is expected"},
        {list_of_three, ISOBIT_E_SHAPE, "\"" X "\": its weight_shape is no list of two"},
        {float_shape, ISOBIT_E_SHAPE, "\"" X "\": its weight_shape is no list of two"},
        {short_shape, ISOBIT_OK, ""},
        {no_rows, ISOBIT_E_SHAPE, "weight_shape says 0;"},
        {negative_rows, ISOBIT_E_SHAPE, "weight_shape says 18446744073709551615;"},
        {fewer_rows, ISOBIT_E_SHAPE, "has the shape [95, 64]; weight_packed of rank 2"},
        {other_columns, ISOBIT_E_SHAPE, "has the shape [96, 96]; weight_packed of rank 2"},
        {other_matrix, ISOBIT_E_SHAPE,
         "has the shape [96, 32]; scales of rank 2 and shape [192, 1]"},
        {scales_of_rows, ISOBIT_E_SHAPE, "scales of rank 1 and shape [96, 0] do not fit"},
        {groups_of_16, ISOBIT_E_UNSUPPORTED, "\"" X "\" has groups of 16; 32, 64 and 128"},
        {scales_of_more_rows, ISOBIT_E_SHAPE, "scales of rank 2 and shape [97, 2] do not fit"},
        {integer_scales, ISOBIT_E_DTYPE, "\"" X "\": its scales have the element type I16"},
        {nan_scale, ISOBIT_E_RANGE, "\"" X "\": the scale of group 1 of row 2 is not above 0"},
        {infinite_scale, ISOBIT_E_RANGE, "\"" X "\": the scale of group 1 of row 2"},
        {zero_scale, ISOBIT_E_RANGE, "\"" X "\": the scale of group 1 of row 2"},
        {negative_scale, ISOBIT_E_RANGE, "\"" X "\": the scale of group 1 of row 2"},
        {vector, ISOBIT_E_DTYPE, "final_layer_norm.weight\" has the element type I32"},
    };
    place p;
    place_make(&p);
    make_model(&p);
    const iso_quantize_options options = {.size = sizeof options, .type = ISOBIT_QUANTIZE_INT4};
    for (size_t i = 0; i < COUNT(rows); i++) {
        iso_error error = {0};
        iso_model *model = NULL;
        quantize(&p, &options, NULL);
        changed c = {.s = stored_read(p.out)};
        rows[i].change(&c);
        write_changed(&c, p.out);
        const iso_status got = iso_model_load(&model, p.out, NULL, NULL, &error);
        if (got != rows[i].status || !strstr(error.message, rows[i].says))
            fail_msg("row %zu: %d, %s", i, (int)got, error.message);
        iso_model_free(model);
        remove_tree(p.out);
    }
    place_remove(&p);
    (void)state;
}

/* What config.json may say of groups. */
void test_groups_config(void **state) {
    static const struct {
        const char *path, *key, *value; /* the latter: JSON */
        const char *says;               /* NULL: it is read */
    } rows[] = {
        {"", "format", "\"mixed-precision\"", "\"format\" of a group is absent"},
        {"", "format", "\"marlin-24\"", "\"marlin-24\""},
        {"config_groups/group_0", "format", "\"pack-quantized\"", NULL},
        {"config_groups/group_0", "format", "\"int-quantized\"",
         "\"num_bits\" of weights is 4; only 8"},
        {"config_groups/group_0/weights", "num_bits", "3",
         "\"num_bits\" of weights is 3; only 4 or 8"},
        {"config_groups/group_0/weights", "group_size", "16", "\"group_size\" of weights is 16"},
        {"config_groups/group_0/weights", "group_size", "64", NULL},
        {"config_groups/group_0/weights", "symmetric", "false",
         "\"symmetric\" of weights is false"},
        {"config_groups/group_0/weights", "strategy", "\"channel\"", "only group is supported"},
        {"config_groups/group_0/weights", "type", "\"float\"", "\"type\" of weights"},
        {"config_groups/group_0/weights", "dynamic", "true", "\"dynamic\" of weights is true"},
        {"config_groups/group_0/weights", "actorder", "\"group\"", "\"actorder\" of weights"},
        {"config_groups/group_0/weights", "actorder", "\"weight\"", NULL},
        {"config_groups/group_0/weights", "actorder", "null", NULL},
        {"config_groups/group_0", "weights", "null", "\"weights\" of a group is absent"},
        {"config_groups/group_0", "input_activations", "{}", "\"input_activations\" of a group"},
        {"config_groups/group_0", "output_activations", "{}", "\"output_activations\" of a group"},
    };
    place p;
    char path[200];
    place_make(&p);
    make_model(&p);
    const iso_quantize_options options = {.size = sizeof options, .type = ISOBIT_QUANTIZE_INT4};
    quantize(&p, &options, NULL);
    (void)snprintf(path, sizeof path, "%s/config.json", p.out);
    json_t *whole = read_config(p.out);
    const json_t *q = json_object_get(whole, "quantization_config");
    assert_string_equal(json_string_value(json_object_get(q, "format")), "pack-quantized");
    assert_int_equal(json_integer_value(json_at(json_object_get(whole, "quantization_config"),
                                                "config_groups/group_0/weights/group_size")),
                     32);
    assert_int_equal(json_integer_value(json_at(json_object_get(whole, "quantization_config"),
                                                "config_groups/group_1/weights/num_bits")),
                     8);
    for (size_t i = 0; i < COUNT(rows); i++) {
        iso_error error = {0};
        iso_model *model = NULL;
        json_t *config = json_deep_copy(whole);
        json_t *at = json_at(json_object_get(config, "quantization_config"), rows[i].path);
        json_object_set_new(at, rows[i].key, json_loads(rows[i].value, JSON_DECODE_ANY, NULL));
        assert_int_equal(json_dump_file(config, path, 0), 0);
        json_decref(config);
        const iso_status got = iso_model_load(&model, p.out, NULL, NULL, &error);
        if (rows[i].says ? got != ISOBIT_E_UNSUPPORTED || !strstr(error.message, rows[i].says)
                         : got != ISOBIT_OK)
            fail_msg("row %zu: %d, %s", i, (int)got, error.message);
        iso_model_free(model);
    }
    json_decref(whole);
    place_remove(&p);
    (void)state;
}

/* Memory and reads that fail while such a model is loaded. */
void test_groups_faults(void **state) {
    place p;
    place_make(&p);
    make_model(&p);
    const iso_quantize_options options = {.size = sizeof options, .type = ISOBIT_QUANTIZE_INT4};
    quantize(&p, &options, NULL);
    for (int kind = CALL_MEMORY; kind <= CALL_READ; kind++) {
        size_t failing = 1;
        for (;; failing++) {
            iso_error error = {0};
            iso_model *model = NULL;
            calls[kind] = (struct calls){0, failing};
            const iso_status status = iso_model_load(&model, p.out, NULL, NULL, &error);
            calls[kind].failing = 0;
            if (!status) {
                iso_model_free(model);
                break;
            }
            assert_int_equal(status, kind == CALL_MEMORY ? ISOBIT_E_NOMEM : ISOBIT_E_IO);
        }
        assert_true(failing > 50);
    }
    place_remove(&p);
    (void)state;
}
