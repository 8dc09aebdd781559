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
    for (int c = 0; c < 13; c++) { /* the largest becomes 6 to 9 */
        const double other = rounded(most / (6 + 0.25 * c), 11, -14);
        if (other > 0 && isfinite(other) && own > error_of(x, p->group, other, 4) * (1 + 1e-12))
            fail_msg("%s, row %zu, column %zu: scale %a is better than %a", name, i, j, other,
                     scale);
    }
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

static void put_float(unsigned char *data, size_t i, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = htole32(bits);
    memcpy(data + i * sizeof bits, &bits, sizeof bits);
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
    unsigned char *data = s.bytes + (t.at - s.bytes);
    for (size_t i = 0; i < 64; i++)
        put_float(data, i, i < 32 ? 0 : ((float)i - 40) * 1e-9f);
    files_write(&p.from, "model.safetensors", s.bytes, s.count);
    assert_int_equal(check_model(&p, 32, 8), 17);
    put_float(data, 70, -600000);
    files_write(&p.from, "model.safetensors", s.bytes, s.count);
    const iso_quantize_options options = {.size = sizeof options, .type = ISOBIT_QUANTIZE_INT4};
    refuses(&p, &options, ISOBIT_E_RANGE,
            "fc1.weight\": the group of element 64 is too large for F16 scales");
    put_float(data, 70, 400000); /* of which F16 has a seventh, and no sixth */
    files_write(&p.from, "model.safetensors", s.bytes, s.count);
    quantize(&p, &options, NULL);
    stored to = stored_read(p.out);
    assert_true(stored_find(&to, "model.encoder.layers.0.fc1.weight_scale", &t));
    assert_true(stored_number(&t, 2) == 57152);
    stored_free(&to);
    remove_tree(p.out);
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

void check_groups_loaded(const place *p, const char *config_from) {
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

/* Rows of int8: near f32, and the same bits on each set, with threads, at once and by steps. */
static void check_rows_of_int8(const place *p, int some) {
    static float got[MOST_LOGITS], wanted[MOST_LOGITS], usual[MOST_LOGITS];
    const iso_load_options int4 = {.size = sizeof int4, .compute = ISOBIT_COMPUTE_INT4};
    iso_error error = {0};
    iso_model *model = NULL;
    if (!some) {
        assert_int_equal(iso_model_load(&model, p->out, &int4, NULL, &error), ISOBIT_E_UNSUPPORTED);
        assert_non_null(strstr(error.message, "has no matrix of 4 or 8 bits"));
        return;
    }
    double far = 0, most = 0;
    iso_pool *pool;
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);
    compute(usual, p->out, NULL);
    compute(wanted, p->out, &int4);
    for (size_t i = 0; i < MOST_LOGITS; i++) {
        const double moved = fabs((double)wanted[i] - (double)usual[i]);
        far = moved > far ? moved : far;
        most = fabs((double)usual[i]) > most ? fabs((double)usual[i]) : most;
    }
    assert_true(far > 0 && far < 0.05 * most);
    const size_t step = getenv("ISOBIT_EMULATED") ? 3 : 1; /* most sets once */
    for (size_t i = 0; i < 2 * iso_isa_count(); i += step) {
        const iso_context context = {.size = sizeof context,
                                     .isa = iso_isa_get(i / 2),
                                     .executor = i % 2 ? iso_pool_executor(pool) : NULL};
        if (iso_isa_missing(context.isa))
            continue;
        compute_with(got, p->out, &int4, (int)(i % 2), &context);
        assert_memory_equal(got, wanted, sizeof got);
    }
    iso_pool_destroy(pool);
    assert_int_equal(iso_model_load(&model, p->out, &int4, NULL, &error), ISOBIT_OK);
    const iso_model_info *info = iso_model_get_info(model); /* logits have 8 bits */
    assert_int_equal(info->parameters_int4, info->parameters_4 + info->parameters_8);
    iso_model_free(model);
}

static void check_family(const char *folder, const place *p) {
    iso_model *model = quantized(folder, p, ISOBIT_QUANTIZE_INT4);
    const iso_model_info *info = iso_model_get_info(model);
    const int some = info->parameters_4 + info->parameters_8 > 0;
    in_groups += some ? 1 : 0;
    assert_int_equal(info->parameters_int4, 0);
    iso_model_free(model);
    check_groups_loaded(p, folder);
    check_rows_of_int8(p, some);
    remove_tree(p->out);
}

void test_groups_loaded(void **state) {
    in_groups = 0;
    each_model(check_family);
    assert_true(in_groups >= (getenv("ISOBIT_EMULATED") ? 5 : 20));
    place p;
    place_make(&p);
    make_gpt2(&p);
    for (size_t group = 32; group <= 128; group *= getenv("ISOBIT_EMULATED") ? 4 : 2) {
        const iso_quantize_options options = {
            .size = sizeof options, .type = ISOBIT_QUANTIZE_INT4, .group = group};
        iso_error error = {0};
        iso_model *model = NULL;
        quantize(&p, &options, NULL);
        check_groups_loaded(&p, p.from.directory);
        assert_int_equal(iso_model_load(&model, p.out, NULL, NULL, &error), ISOBIT_OK);
        const iso_model_info *info = iso_model_get_info(model);
        assert_int_equal(info->parameters_8, GPT_V * GPT_D);
        assert_int_equal(info->parameters_4, 4 * GPT_D * GPT_D + 2 * GPT_D * GPT_F);
        iso_model_free(model);
        remove_tree(p.out);
    }
    /* Layers differ: a workspace for the first would be too small for the rows of the second. */
    static const char *const first[] = {"h.0."};
    const iso_quantize_options options = {
        .size = sizeof options, .type = ISOBIT_QUANTIZE_INT4, .keep = first, .keep_count = 1};
    make_gpt2_of(&p, 2);
    quantize(&p, &options, NULL);
    check_rows_of_int8(&p, 1);
    place_remove(&p);
    (void)state;
}
