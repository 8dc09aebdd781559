/* SPDX-License-Identifier: MIT
 *
 * Models that are written with fewer bits: every number against its definition in double, what is
 * said of errors, the same bytes with every instruction set and number of threads, the same bits
 * when the folder is loaded; and folders that appear whole or not at all.
 */
#include "model/quantize.h"
#include "test_quantize.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

/* ------------------------------------------------------------------------------ the folders */

void place_make(place *p) {
    files_make(&p->from);
    (void)snprintf(p->out, sizeof p->out, "%s-out", p->from.directory);
    (void)snprintf(p->partial, sizeof p->partial, "%s.partial", p->out);
}

bool is_there(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0;
}

void remove_tree(const char *path) {
    DIR *directory = opendir(path);
    char inner[600];
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        (void)snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (unlink(inner) != 0)
            remove_tree(inner);
    }
    if (directory)
        (void)closedir(directory);
    (void)rmdir(path);
}

void place_remove(place *p) {
    remove_tree(p->from.directory);
    remove_tree(p->out);
    remove_tree(p->partial);
}

void write_file(const char *folder, const char *name, const char *text) {
    char path[400];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

void quantize(const place *p, const iso_quantize_options *options, const iso_context *context) {
    iso_error error = {0};
    const iso_status status =
        iso_model_quantize(p->from.directory, p->out, options, context, &error);
    if (status)
        fail_msg("%d: %s", (int)status, error.message);
    assert_true(is_there(p->out));
    assert_false(is_there(p->partial));
}

void refuses(const place *p, const iso_quantize_options *options, iso_status status,
             const char *says) {
    iso_error error = {0};
    const iso_status got = iso_model_quantize(p->from.directory, p->out, options, NULL, &error);
    if (got != status || !strstr(error.message, says))
        fail_msg("%d, not %d: \"%s\" without \"%s\"", (int)got, (int)status, error.message, says);
}

/* -------------------------------------------------------------------------------- the model */

/* Numbers of every size that F16 has, also between two of them, and nearly so. */
static float special(size_t i) {
    static const float least[] = {0x1p-24f, 0x1p-14f, 0x1p-1f, 0x1p0f, 0x1p15f};
    const float unit = least[i % COUNT(least)] * 0x1p-10f;
    float x = least[i % COUNT(least)] + (float)(i / 5 % 29) * unit * 0.25f;
    if (i % 7 == 3)
        x = nextafterf(x, i % 2 ? 0 : 1e9f);
    return i % 3 == 1 ? -x : x;
}

static void set_number(builder *b, size_t i, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    for (size_t k = 0; k < 4; k++)
        b->data.bytes[4 * i + k] = (unsigned char)(bits >> 8 * k);
}

/* A marian model of F32, whose table, the first tensor, has numbers that are hard to round. */
void make_model(const place *p) {
    builder b = {.state = 5};
    builder_model(&b, V, D, F, 1);
    for (size_t i = 0; i < (size_t)D * 10; i++)
        set_number(&b, i, special(i));
    set_number(&b, 7, -0.0f);
    builder_write(&b, &p->from);
    files_config(&p->from, "marian", V, D, 4, F,
                 ",\"pad_token_id\":1,\"eos_token_id\":2,\"decoder_start_token_id\":1,"
                 "\"max_position_embeddings\":32");
}

static void gpt2_tensor(builder *b, size_t layer, const char *tail, size_t n, size_t k) {
    char name[100];
    (void)snprintf(name, sizeof name, "h.%zu.%s", layer, tail);
    builder_tensor(b, name, n, k, k ? 0 : 0.5f, k ? 0.1f : 0.4f);
}

void make_gpt2_of(const place *p, size_t layers) {
    builder b = {.state = 9};
    builder_tensor(&b, "wte.weight", GPT_V, GPT_D, 0, 1);
    builder_tensor(&b, "wpe.weight", 16, GPT_D, 0, 1);
    for (size_t layer = 0; layer < layers; layer++) {
        gpt2_tensor(&b, layer, "ln_1.weight", GPT_D, 0);
        gpt2_tensor(&b, layer, "ln_1.bias", GPT_D, 0);
        gpt2_tensor(&b, layer, "attn.c_attn.weight", GPT_D, 3 * GPT_D);
        gpt2_tensor(&b, layer, "attn.c_attn.bias", 3 * GPT_D, 0);
        gpt2_tensor(&b, layer, "attn.c_proj.weight", GPT_D, GPT_D);
        gpt2_tensor(&b, layer, "attn.c_proj.bias", GPT_D, 0);
        gpt2_tensor(&b, layer, "ln_2.weight", GPT_D, 0);
        gpt2_tensor(&b, layer, "ln_2.bias", GPT_D, 0);
        gpt2_tensor(&b, layer, "mlp.c_fc.weight", GPT_D, GPT_F);
        gpt2_tensor(&b, layer, "mlp.c_fc.bias", GPT_F, 0);
        gpt2_tensor(&b, layer, "mlp.c_proj.weight", GPT_F, GPT_D);
        gpt2_tensor(&b, layer, "mlp.c_proj.bias", GPT_D, 0);
    }
    builder_tensor(&b, "ln_f.weight", GPT_D, 0, 1, 0.3f);
    builder_tensor(&b, "ln_f.bias", GPT_D, 0, 0, 0.3f);
    builder_tensor(&b, "h.0.attn.bias", 16, 16, 0, 1); /* of no use, as old files have it */
    builder_write(&b, &p->from);
    char text[400];
    (void)snprintf(text, sizeof text,
                   "{\"model_type\":\"gpt2\",\"vocab_size\":%d,\"n_embd\":%d,\"n_layer\":%zu,"
                   "\"n_head\":4,\"n_inner\":%d,\"n_positions\":16,\"bos_token_id\":1,"
                   "\"eos_token_id\":1}",
                   GPT_V, GPT_D, layers, GPT_F);
    files_text(&p->from, "config.json", text);
}

void make_gpt2(const place *p) { make_gpt2_of(p, 1); }

/* ----------------------------------------------------------------------------- every number */

typedef struct expected {
    const place *p;
    const stored *from;
    iso_quantize_type type;
    size_t count;
    char last[200];
} expected;

static int is_matrix(const stored_tensor *t) { return t->rank == 2 && t->shape[0] != 1; }

/* What is said of a tensor while it is written. */
static void check_report(void *user, const iso_quantized_tensor *t) {
    expected *e = user;
    stored_tensor from;
    assert_true(strcmp(e->last, t->name) < 0);
    (void)snprintf(e->last, sizeof e->last, "%s", t->name);
    e->count++;
    assert_true(stored_find(e->from, t->name, &from));
    assert_int_equal(t->rank, from.rank);
    for (size_t i = 0; i < t->rank; i++)
        assert_int_equal(t->shape[i], from.shape[i]);
    assert_string_equal(t->from, "F32");
    assert_int_equal(t->from_bytes, from.bytes);
    if (!is_matrix(&from)) {
        assert_string_equal(t->type, "F32");
        assert_int_equal(t->bytes, from.bytes);
        assert_true(t->largest == 0 && t->rms == 0 && t->tensor_rms == 0);
        return;
    }
    double largest = 0, errors = 0, squares = 0;
    for (size_t i = 0; i < from.count; i++) {
        const double x = stored_number(&from, i);
        const double error =
            e->type == ISOBIT_QUANTIZE_F16 ? rounded(x, 11, -14) - x : rounded(x, 8, -126) - x;
        largest = fmax(largest, fabs(error));
        errors += error * error;
        squares += x * x;
    }
    assert_string_equal(t->type, e->type == ISOBIT_QUANTIZE_F16 ? "F16" : "BF16");
    assert_int_equal(t->bytes, from.bytes / 2);
    assert_true(t->largest == largest);
    assert_true(fabs(t->rms - sqrt(errors / (double)from.count)) <= 1e-12 * t->rms);
    assert_true(fabs(t->tensor_rms - sqrt(squares / (double)from.count)) <= 1e-12 * t->tensor_rms);
}

static void check_16(const place *p, const stored *from, iso_quantize_type type) {
    stored to = stored_read(p->out);
    const char *name;
    json_t *entry;
    size_t matrices = 0;
    assert_int_equal(json_object_size(to.header), json_object_size(from->header) + 1);
    json_object_foreach(from->header, name, entry) {
        stored_tensor a, b;
        assert_true(stored_find(from, name, &a) && stored_find(&to, name, &b));
        assert_memory_equal(a.shape, b.shape, sizeof a.shape);
        if (!is_matrix(&a)) {
            assert_string_equal(b.dtype, "F32");
            assert_memory_equal(a.at, b.at, a.bytes);
            continue;
        }
        matrices++;
        assert_string_equal(b.dtype, type == ISOBIT_QUANTIZE_F16 ? "F16" : "BF16");
        for (size_t i = 0; i < a.count; i++) {
            const double x = stored_number(&a, i), y = stored_number(&b, i);
            const double wanted =
                type == ISOBIT_QUANTIZE_F16 ? rounded(x, 11, -14) : rounded(x, 8, -126);
            if (y != wanted || signbit(y) != signbit(x))
                fail_msg("%s, element %zu: %a became %a, not %a", name, i, x, y, wanted);
        }
    }
    assert_int_equal(matrices, 17);
    assert_int_equal((to.data - to.bytes) % 8, 0); /* as who maps the file wants it */
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(to.header, "__metadata__"), "format")),
        "pt");
    stored_free(&to);
}

static void test_numbers(void **state) {
    place p;
    place_make(&p);
    make_model(&p);
    stored from = stored_read(p.from.directory);
    for (int type = ISOBIT_QUANTIZE_BF16; type <= ISOBIT_QUANTIZE_F16; type++) {
        expected e = {.p = &p, .from = &from, .type = (iso_quantize_type)type};
        const iso_quantize_options options = {
            .size = sizeof options, .type = (size_t)type, .report = check_report, .user = &e};
        quantize(&p, &options, NULL);
        assert_int_equal(e.count, json_object_size(from.header));
        check_16(&p, &from, (iso_quantize_type)type);
        remove_tree(p.out);
    }
    stored_free(&from);
    place_remove(&p);
    (void)state;
}

/* A context that operations refuse, which nobody passes on. */
static void test_contexts(void **state) {
    const iso_context none = {.size = 1};
    const float x[64] = {1};
    unsigned char numbers[128];
    float scales[1];
    model_errors errors = {0};
    size_t bad = 0;
    assert_int_equal(model_make_16(numbers, x, 64, MADE_F16, &errors, &bad, &none), ISOBIT_E_SIZE);
    assert_int_equal(model_make_int8((int8_t *)numbers, scales, x, 1, 64, &errors, &none),
                     ISOBIT_E_SIZE);
    (void)state;
}

/* ------------------------------------------------------------------------ the same everywhere */

/* The bytes of the tensors have a committed hash, so that they are those of other machines. */
static void same_bytes(const place *p, const iso_quantize_options *options,
                       const iso_pool *const *pools, uint64_t hash) {
    quantize(p, options, NULL);
    stored first = stored_read(p->out);
    const size_t bytes = first.count - (size_t)(first.data - first.bytes);
    if (XXH3_64bits(first.data, bytes) != hash)
        fail_msg("type %zu: the hash is 0x%016llx, not 0x%016llx", options->type,
                 (unsigned long long)XXH3_64bits(first.data, bytes), (unsigned long long)hash);
    /* Where it is slow each set once, with other threads than the one before. */
    const size_t step = getenv("ISOBIT_EMULATED") ? 4 : 1;
    for (size_t i = 0; i < 3 * iso_isa_count(); i += step) {
        const iso_context context = {.size = sizeof context,
                                     .isa = iso_isa_get(i / 3),
                                     .executor =
                                         i % 3 ? iso_pool_executor(pools[i % 3 - 1]) : NULL};
        if (iso_isa_missing(context.isa))
            continue;
        remove_tree(p->out);
        quantize(p, options, &context);
        stored other = stored_read(p->out);
        assert_int_equal(other.count, first.count);
        assert_memory_equal(other.bytes, first.bytes, first.count);
        stored_free(&other);
    }
    remove_tree(p->out);
    stored_free(&first);
}

static void test_same_bytes(void **state) {
    static void (*const make[])(const place *p) = {make_model, make_gpt2};
    static const uint64_t hashes[][4] = {
        {0x87c43d371f13fcd6, 0x9621d6467c5d9ffb, 0xeac7f2e3777746d4, 0x2d7a56f9450e568f},
        {0x52f17ea5cdc6e518, 0x6f893f300d5f0f19, 0x0e014d0bbdfcdad2, 0xac5dbffee78d9aa5}};
    iso_pool *pools[2];
    assert_int_equal(iso_pool_create(&pools[0], 2), ISOBIT_OK);
    assert_int_equal(iso_pool_create(&pools[1], 17), ISOBIT_OK);
    for (size_t m = 0; m < COUNT(make); m++) {
        place p;
        place_make(&p);
        make[m](&p);
        for (size_t type = ISOBIT_QUANTIZE_BF16; type <= ISOBIT_QUANTIZE_INT4; type++) {
            const iso_quantize_options options = {.size = sizeof options, .type = type};
            same_bytes(&p, &options, (const iso_pool *const *)pools, hashes[m][type]);
        }
        place_remove(&p);
    }
    iso_pool_destroy(pools[0]);
    iso_pool_destroy(pools[1]);
    (void)state;
}

/* --------------------------------------------------------------------------------- loading */

void compute_with(float to[MOST_LOGITS], const char *folder, const iso_load_options *options,
                  int stepwise, const iso_context *context) {
    static const uint32_t source[] = {5, 30, 17, 9, 2}, target[SEEN] = {1, 8, 30, 30};
    iso_error error = {0};
    iso_model *model = NULL;
    memset(to, 0, MOST_LOGITS * sizeof *to);
    iso_status status = iso_model_load(&model, folder, options, context, &error);
    if (status)
        fail_msg("%s: %s", folder, error.message);
    const iso_model_info *info = iso_model_get_info(model);
    assert_true(info->target_vocabulary <= GPT_V && info->d <= GPT_V);
    if (!info->decoder_layers)
        status = iso_encode_f32(to, model, target, SEEN, context, &error);
    else if (!info->encoder_layers)
        status = iso_logits_f32(to, model, NULL, 0, target, SEEN, stepwise, context, &error);
    else
        status = iso_logits_f32(to, model, source, COUNT(source), target, SEEN, stepwise, context,
                                &error);
    if (!status && !info->decoder_layers && info->has_logits)
        status = iso_token_logits_f32(to + SEEN * info->d, model, target, SEEN, context, &error);
    if (status)
        fail_msg("%s: %s", folder, error.message);
    iso_model_free(model);
}

void compute(float to[MOST_LOGITS], const char *folder, const iso_load_options *options) {
    compute_with(to, folder, options, 0, NULL);
}

/* The folder gives what the floats give that its numbers are. */
static void test_loading(void **state) {
    static float got[MOST_LOGITS], wanted[MOST_LOGITS];
    place p;
    place_make(&p);
    make_model(&p);
    for (int type = ISOBIT_QUANTIZE_BF16; type <= ISOBIT_QUANTIZE_F16; type++) {
        const iso_quantize_options options = {.size = sizeof options, .type = (size_t)type};
        quantize(&p, &options, NULL);
        compute(got, p.out, NULL);
        stored s = stored_read(p.from.directory);
        const char *name;
        json_t *entry;
        json_object_foreach(s.header, name, entry) {
            stored_tensor t;
            assert_true(stored_find(&s, name, &t));
            for (size_t i = 0; is_matrix(&t) && i < t.count; i++) {
                const double x = stored_number(&t, i);
                const float y = (float)(type == ISOBIT_QUANTIZE_F16 ? rounded(x, 11, -14)
                                                                    : rounded(x, 8, -126));
                uint32_t bits;
                memcpy(&bits, &y, sizeof bits);
                for (size_t k = 0; k < 4; k++)
                    s.bytes[(size_t)(t.at - s.bytes) + 4 * i + k] = (unsigned char)(bits >> 8 * k);
            }
        }
        files_write(&p.from, "model.safetensors", s.bytes, s.count);
        stored_free(&s);
        compute(wanted, p.from.directory, NULL);
        assert_memory_equal(got, wanted, sizeof got);
        for (size_t i = 0; i < COUNT(got); i++)
            assert_true(isfinite(got[i]));
        remove_tree(p.out);
        make_model(&p);
    }
    place_remove(&p);
    (void)state;
}

/* Rows of more floats than a piece has, which are pieces of their own. */
static void test_long_rows(void **state) {
    place p;
    place_make(&p);
    builder b = {.state = 5};
    builder_model(&b, V, 8, 66000, 1);
    builder_write(&b, &p.from);
    files_config(&p.from, "marian", V, 8, 2, 66000,
                 ",\"pad_token_id\":1,\"eos_token_id\":2,\"decoder_start_token_id\":1,"
                 "\"max_position_embeddings\":32");
    stored from = stored_read(p.from.directory);
    quantize(&p, NULL, NULL);
    check_16(&p, &from, ISOBIT_QUANTIZE_BF16);
    stored_free(&from);
    place_remove(&p);
    (void)state;
}

/* ----------------------------------------------------------------------------- other models */

/* A GGUF file, and a folder that has only that. */
static void test_gguf(void **state) {
    place p;
    place_make(&p);
    iso_error error = {0};
    static const char path[] = ISOBIT_TEST_DATA "/gguf/gpt2.gguf";
    assert_int_equal(iso_model_quantize(path, p.out, NULL, NULL, &error), ISOBIT_E_UNSUPPORTED);
    assert_non_null(strstr(error.message, "gpt2.gguf is a GGUF file"));
    char link[120];
    (void)snprintf(link, sizeof link, "%s/gpt2.gguf", p.from.directory);
    assert_int_equal(symlink(path, link), 0);
    refuses(&p, NULL, ISOBIT_E_UNSUPPORTED, "gpt2.gguf is a GGUF file");
    assert_false(is_there(p.out) || is_there(p.partial));
    place_remove(&p);
    (void)state;
}

/* What is wrong with a module of sentence-transformers is said before anything is written. */
static void test_modules(void **state) {
    static const char source[] = ISOBIT_TEST_DATA "/models/sentence-t5";
    static const char *const linked[] = {"config.json", "model.safetensors", "modules.json",
                                         "1_Pooling"};
    place p;
    char target[300], path[200];
    place_make(&p);
    for (size_t i = 0; i < COUNT(linked); i++) {
        (void)snprintf(target, sizeof target, "%s/%s", source, linked[i]);
        (void)snprintf(path, sizeof path, "%s/%s", p.from.directory, linked[i]);
        assert_int_equal(symlink(target, path), 0);
    }
    (void)snprintf(path, sizeof path, "%s/2_Dense", p.from.directory);
    assert_int_equal(mkdir(path, 0755), 0);
    write_file(path, "config.json", "{\"in_features\":16,\"out_features\":12,\"bias\":false}");
    refuses(&p, NULL, ISOBIT_E_MISSING, "2_Dense: there are no weights");
    assert_false(is_there(p.out) || is_there(p.partial));
    place_remove(&p);
    (void)state;
}

/* Where it is slow, each third. */
void each_model(void (*check)(const char *folder, const place *p)) {
    static const char models[] = ISOBIT_TEST_DATA "/models";
    DIR *directory = opendir(models);
    const size_t step = getenv("ISOBIT_EMULATED") ? 3 : 1;
    size_t count = 0;
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        place p;
        char path[400];
        (void)snprintf(path, sizeof path, "%s/%s/config.json", models, entry->d_name);
        if (entry->d_name[0] == '.' || !is_there(path))
            continue;
        if (count++ % step)
            continue;
        place_make(&p);
        (void)snprintf(path, sizeof path, "%s/%s", models, entry->d_name);
        check(path, &p);
        place_remove(&p);
    }
    (void)closedir(directory);
    assert_true(count >= 30);
}

iso_model *quantized(const char *folder, const place *p, size_t type) {
    const iso_quantize_options options = {.size = sizeof options, .type = type};
    iso_error error = {0};
    iso_model *model = NULL;
    if (iso_model_quantize(folder, p->out, &options, NULL, &error) ||
        iso_model_load(&model, p->out, NULL, NULL, &error))
        fail_msg("%s: %s", folder, error.message);
    return model;
}

static void check_loads(const char *folder, const place *p) {
    for (size_t type = ISOBIT_QUANTIZE_BF16; type <= ISOBIT_QUANTIZE_F16; type++) {
        iso_model *model = quantized(folder, p, type);
        const iso_model_info *info = iso_model_get_info(model);
        assert_true(info->parameters_16 > info->parameters / 2);
        iso_model_free(model);
        remove_tree(p->out);
    }
}

/* All golden models: files, tensors, strange element types; then they load. */
static void test_families(void **state) {
    each_model(check_loads);
    (void)state;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),       cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_loading),       cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_taken_names),   cmocka_unit_test(test_first_error),
        cmocka_unit_test(test_refusals),      cmocka_unit_test(test_gguf),
        cmocka_unit_test(test_modules),       cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_families),      cmocka_unit_test(test_places),
        cmocka_unit_test(test_leftovers),     cmocka_unit_test(test_copies),
        cmocka_unit_test(test_cancel),        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_changing_file), cmocka_unit_test(test_int8),
        cmocka_unit_test(test_int8_models),   cmocka_unit_test(test_int8_turned),
        cmocka_unit_test(test_config),        cmocka_unit_test(test_groups_written),
        cmocka_unit_test(test_groups_loaded), cmocka_unit_test(test_groups_of_others),
        cmocka_unit_test(test_groups_table),  cmocka_unit_test(test_groups_refused),
        cmocka_unit_test(test_groups_config), cmocka_unit_test(test_groups_faults),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
