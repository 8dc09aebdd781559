/* SPDX-License-Identifier: MIT
 *
 * Input: a safetensors file. Parsed through the file reader; of what is accepted every rule of the
 * format must hold, and every byte of every tensor is read.
 */
#include "fuzz.h"
#include "checkpoint.h"

#include <stdlib.h>
#include <string.h>

static volatile unsigned sink;

static int by_offset(const void *a, const void *b) {
    const model_tensor *x = *(const model_tensor *const *)a, *y = *(const model_tensor *const *)b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static void check_header(const model_checkpoint *checkpoint, const uint8_t *data, size_t bytes) {
    const model_header *h = &checkpoint->header;
    const size_t data_bytes = bytes - (size_t)checkpoint->data_start;
    const model_tensor **order = malloc((h->count + 1) * sizeof *order);
    uint64_t end = 0;
    unsigned sum = 0;
    FUZZ_CHECK(order && checkpoint->data_start <= bytes);
    for (size_t i = 0; i < h->count; i++) {
        const model_tensor *t = order[i] = &h->tensors[i];
        FUZZ_CHECK(t->name_bytes && strlen(t->name) == t->name_bytes);
        FUZZ_CHECK(t->rank <= MODEL_MAX_RANK && strlen(t->dtype_name) < sizeof t->dtype_name);
        FUZZ_CHECK(i == 0 || strcmp(h->tensors[i - 1].name, t->name) < 0);
        FUZZ_CHECK(model_checkpoint_find(checkpoint, t->name) == t);
        FUZZ_CHECK(t->begin <= t->end && t->end <= data_bytes);
        const size_t size = t->dtype == MODEL_F32                             ? 4
                            : t->dtype == MODEL_F64                           ? 8
                            : t->dtype == MODEL_I8                            ? 1
                            : t->dtype == MODEL_F16 || t->dtype == MODEL_BF16 ? 2
                                                                              : 0;
        uint64_t elements = 1;
        for (size_t k = 0; size && k < t->rank; k++)
            elements *= t->shape[k];
        FUZZ_CHECK(!size || elements * size == t->end - t->begin);
        for (uint64_t k = t->begin; k < t->end; k++)
            sum += data[checkpoint->data_start + k];
    }
    qsort(order, h->count, sizeof *order, by_offset);
    for (size_t i = 0; i < h->count; i++) {
        FUZZ_CHECK(order[i]->begin == end);
        end = order[i]->end;
    }
    FUZZ_CHECK(end == data_bytes);
    free(order);
    sink = sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    iso_error error = {0};
    model_checkpoint checkpoint = {.file.fd = -1};
    fuzz_no_files();
    fuzz_file("model.safetensors", data, bytes);
    iso_status status =
        model_checkpoint_open(&checkpoint, FUZZ_DIRECTORY, "model.safetensors", 100000000, &error);
    /* Nobody gets much memory for a small file. */
    FUZZ_CHECK(checkpoint.arena.bytes <= 9 * bytes + 1024);
    if (status)
        fuzz_check_error(status, &error);
    else
        check_header(&checkpoint, data, bytes);
    model_checkpoint_close(&checkpoint);
    return 0;
}
