/* SPDX-License-Identifier: MIT
 *
 * A folder of sentence-transformers with a Dense module: memory, system calls and short reads.
 */
#include "test_faults.h"

static const char folder[] = ISOBIT_TEST_DATA "/models/sentence-t5";
enum { WIDTH = 12, COUNT = 2, MEMORY = 0, CALLS = 1 };

/* Loads the folder if *model is NULL, and makes two vectors. */
static iso_status vectors(iso_model **model, float *y) {
    static const uint32_t ids[] = {3, 31, 2, 1, 14, 15, 1};
    static const size_t lengths[COUNT] = {4, 3};
    iso_error error = {0};
    iso_status status = *model ? ISOBIT_OK : iso_model_load(model, folder, NULL, NULL, &error);
    if (!status)
        status = iso_sentence_embed_f32(y, *model, ids, lengths, COUNT, NULL, NULL, &error);
    if (status) {
        assert_int_equal(error.status, status);
        assert_true(error.message[0]);
    }
    return status;
}

/* Each allocation, or each call on a file, fails once; `loaded`: only those of making vectors. */
static size_t each_fails(int kind, iso_model *loaded, const float *good) {
    for (size_t k = 1;; k++) {
        float y[COUNT * WIDTH];
        iso_model *model = loaded;
        no_faults();
        *(kind == MEMORY ? &memory.failing : &io.failing) = k;
        io.code = EIO;
        const iso_status status = vectors(&model, y);
        const size_t made = kind == MEMORY ? memory.allocations : io.calls;
        no_faults();
        if (!loaded)
            iso_model_free(model);
        if (k > made) {
            assert_int_equal(status, ISOBIT_OK);
            assert_memory_equal(y, good, sizeof y);
            return k - 1;
        }
        if (status != (kind == MEMORY ? ISOBIT_E_NOMEM : ISOBIT_E_IO))
            fail_msg("call %zu of kind %d fails: status %d", k, kind, (int)status);
    }
}

void test_dense_faults(void **state) {
    float good[COUNT * WIDTH], y[COUNT * WIDTH];
    iso_model *model = NULL, *own = NULL;
    no_faults();
    assert_int_equal(vectors(&model, good), ISOBIT_OK);
    assert_int_equal(iso_model_get_info(model)->sentence_d, WIDTH);
    assert_true(each_fails(MEMORY, NULL, good) > 40);
    assert_true(each_fails(MEMORY, model, good) > 5);
    assert_true(each_fails(CALLS, NULL, good) > 30);
    io.shortest = 7;
    io.interrupt = 1;
    assert_int_equal(vectors(&own, y), ISOBIT_OK);
    no_faults();
    assert_memory_equal(y, good, sizeof y);
    iso_model_free(own);
    iso_model_free(model);
    (void)state;
}
