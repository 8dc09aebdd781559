/* SPDX-License-Identifier: MIT
 *
 * Models of several kinds, and ways to hold their weights: each allocation and each call on a file
 * fails once.
 */
#include "test_faults.h"

#define MODEL(name) ISOBIT_TEST_DATA "/models/" name

/* Who has no folder has the good model with matrices of int8. */
static const struct {
    const char *folder;
    size_t compute, widen;
    size_t apart;                               /* what is of use only while the model is loaded */
} kinds[] = {{MODEL("bert"), 0, 0, 1},          /* a head, a pooler, types of tokens */
             {MODEL("gemma-bf16"), 0, 0, 1},    /* norms less 1, a rotary table */
             {MODEL("gpt2"), 2, 0, 0},          /* matrices that lie the other way round, as int8 */
             {MODEL("gpt2"), 0, 0, 0},          /* and as they are */
             {MODEL("phi3-longrope"), 0, 0, 1}, /* a head of its own */
             {MODEL("t5"), 0, 0, 0},            /* distances */
             {NULL, 1, 0, 0},
             {NULL, 0, 1, 0}};
#define KINDS (sizeof kinds / sizeof *kinds)

/* A folder of the kind; `f` is where it may be written. */
static const char *folder_of(size_t kind, const files *f) {
    builder b = {.state = 5, .int8 = 1};
    if (kinds[kind].folder)
        return kinds[kind].folder;
    files_config(f, "marian", V, D, 2, FFN,
                 ",\"eos_token_id\":[2],\"decoder_start_token_id\":1,\"pad_token_id\":0");
    builder_model(&b, V, D, FFN, 1);
    builder_write(&b, f);
    return f->directory;
}

/* The memory of the weights is there at once, and is enough: none is asked for by its name. */
static size_t each_fails(size_t kind, const char *folder, int calls) {
    size_t apart = 0;
    const iso_load_options options = {
        .size = sizeof options, .compute = kinds[kind].compute, .widen = kinds[kind].widen};
    for (size_t k = 1;; k++) {
        iso_error error = {0};
        iso_model *model = NULL;
        no_faults();
        *(calls ? &io.failing : &memory.failing) = k;
        io.code = EIO;
        const iso_status status = iso_model_load(&model, folder, &options, NULL, &error);
        const size_t made = calls ? io.calls : memory.allocations;
        no_faults();
        iso_model_free(model);
        if (k > made) {
            assert_int_equal(status, ISOBIT_OK);
            assert_int_equal(apart, calls ? 0 : kinds[kind].apart);
            return made;
        }
        if (status != (calls ? ISOBIT_E_IO : ISOBIT_E_NOMEM))
            fail_msg("%s, kind %zu, failure %zu: status %d (%s)", folder, kind, k, (int)status,
                     error.message);
        apart += strstr(error.message, "out of memory for tensor") ||
                 strstr(error.message, "out of memory for rotary") ||
                 strstr(error.message, "out of memory for \"");
    }
}

void test_models_fail(void **state) {
    files f;
    files_make(&f);
    for (size_t kind = 0; kind < KINDS; kind++) {
        const char *folder = folder_of(kind, &f);
        assert_true(each_fails(kind, folder, 0) > 15);
        assert_true(each_fails(kind, folder, 1) > 15);
    }
    files_remove(&f);
    (void)state;
}

/*
 * Without that memory each weight is asked for by itself. Nobody does this, but weights check what
 * they get all the same: the sizes of the two passes might come to differ. So might their number.
 */
void test_no_memory_for_a_weight_of_models(void **state) {
    files f;
    files_make(&f);
    for (size_t kind = 0; kind < KINDS; kind++) {
        iso_error error = {0};
        model_checkpoint checkpoint = {.file.fd = -1};
        iso_model model = {.arena = {0}};
        const iso_context context = {.size = sizeof context};
        model_source source = {.checkpoint = &checkpoint,
                               .arena = &model.arena,
                               .context = &context,
                               .error = &error,
                               .compute = (iso_compute)kinds[kind].compute,
                               .widen = (int)kinds[kind].widen};
        no_faults();
        assert_int_equal(model_check(&model, &checkpoint, &source, folder_of(kind, &f), &error),
                         ISOBIT_OK);
        source.load = 1;
        assert_true(each_take_fails(&model, &source) > 15);
        source.take_count = source.take_limit - 1;
        assert_int_equal(model_take_all(&model, &source), ISOBIT_E_LIMIT);
        assert_string_equal(error.message, "more weights than were planned");
        model_arena_free(&source.scratch);
        model_arena_free(&model.arena);
        model_checkpoint_close(&checkpoint);
    }
    files_remove(&f);
    (void)state;
}
