/* SPDX-License-Identifier: MIT
 *
 * Generation beyond the search itself: a first token that the caller chooses.
 */
#include "model_files.h"

#include <isobit/model.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { V = 61, EOS = 2 };

static void ok(iso_status status, const iso_error *error) {
    if (status)
        fail_msg("status %d: %s", (int)status, error->message);
}

/* A small model of random weights; `more` is added to its configuration. */
static iso_model *make_model(const char *more) {
    files f;
    char text[600];
    files_make(&f);
    (void)snprintf(text, sizeof text,
                   ",\"eos_token_id\":2,\"decoder_start_token_id\":1,\"pad_token_id\":0,"
                   "\"max_position_embeddings\":40%s",
                   more);
    files_config(&f, "marian", V, 16, 2, 24, text);
    builder b = {.state = 5};
    builder_model(&b, V, 16, 24, 1);
    builder_write(&b, &f);
    iso_model *model = NULL;
    iso_error error = {0};
    iso_status status = iso_model_load(&model, f.directory, NULL, NULL, &error);
    files_remove(&f);
    ok(status, &error);
    return model;
}

static const uint32_t sources[] = {7, 9, 2, 30, 31, 32, 33, 2, 5, 2};
static const size_t lengths[] = {3, 5, 2};

/* ------------------------------------------------------------------------------ forced tokens */

static void test_forced_bos(void **state) {
    iso_model *models[] = {make_model(""), make_model(",\"forced_bos_token_id\":11")};
    iso_error error = {0};
    for (size_t m = 0; m < 2; m++)
        for (size_t beams = 1; beams <= 3; beams += 2)
            for (uint32_t id = 0; id <= V; id += V - 1) { /* the last round: the default */
                iso_generate_options o = {.size = sizeof o,
                                          .beams = beams,
                                          .max_length = 6,
                                          .has_forced_bos = id < V - 1 || m == 0,
                                          .forced_bos = id ? id : 4};
                const uint32_t wanted = o.has_forced_bos ? o.forced_bos : 11;
                iso_generation *g;
                ok(iso_generate(&g, models[m], sources, lengths, 3, &o, NULL, &error), &error);
                for (size_t i = 0; i < 3; i++) {
                    assert_int_equal(g->best[i].ids[0], wanted);
                    assert_true(g->best[i].log_probs[0] == 0 || beams == 1);
                }
                iso_generation_free(g);
            }
    iso_generate_options o = {.size = sizeof o, .has_forced_bos = 1, .forced_bos = V};
    iso_generation *g = NULL;
    assert_int_equal(iso_generate(&g, models[0], sources, lengths, 3, &o, NULL, &error),
                     ISOBIT_E_RANGE);
    assert_string_equal(error.message, "forced_bos is 61; the vocabulary has 61 tokens");
    assert_null(g);
    /* Without the flag it is not looked at. */
    o.has_forced_bos = 0;
    ok(iso_generate(&g, models[0], sources, lengths, 3, &o, NULL, &error), &error);
    iso_generation_free(g);
    for (size_t m = 0; m < 2; m++)
        iso_model_free(models[m]);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forced_bos),
    };
    return cmocka_run_group_tests_name("sample", tests, NULL, NULL);
}
