/* SPDX-License-Identifier: MIT
 *
 * Files of torch.save, and indices of shards. The first byte of the input says how the rest is
 * meant: 0  a whole pytorch_model.bin 1  a pickle, put into a ZIP archive with two storages 2  the
 * same in the older form 3  model.safetensors.index.json, a byte 0xff, the shard "a", a byte 0xff,
 * the shard "b" Of what is accepted every tensor must lie in its file, and every element is read.
 */
#include "fuzz.h"
#include "bin_files.h"
#include "bin.h"
#include "weights.h"

#include <stdlib.h>
#include <string.h>

static size_t element_bytes(const model_tensor *t) {
    return t->dtype == MODEL_F32                             ? 4
           : t->dtype == MODEL_F64                           ? 8
           : t->dtype == MODEL_F16 || t->dtype == MODEL_BF16 ? 2
                                                             : 0;
}

/* The elements lie between begin and end, and are no more than have room there or in the storage.
 */
static void check_tensor(const model_checkpoint *c, const model_tensor *t, uint64_t bytes) {
    const size_t size = element_bytes(t);
    uint64_t elements = 1, last = 0;
    FUZZ_CHECK(t->name_bytes && strlen(t->name) == t->name_bytes);
    FUZZ_CHECK(t->rank <= MODEL_MAX_RANK && strlen(t->dtype_name) < sizeof t->dtype_name);
    FUZZ_CHECK(model_checkpoint_find(c, t->name) == t);
    FUZZ_CHECK(t->begin <= t->end && t->end <= bytes);
    for (size_t i = 0; i < t->rank; i++)
        elements *= t->shape[i];
    if (!size || !elements)
        return;
    for (size_t i = 0; t->strides && i < t->rank; i++)
        last += (t->shape[i] - 1) * t->strides[i];
    FUZZ_CHECK(elements * size <= bytes);
    FUZZ_CHECK((t->strides ? last + 1 : elements) * size == t->end - t->begin);
}

static void read_tensor(const model_checkpoint *c, const model_tensor *t) {
    iso_error error = {0};
    model_arena arena = {0};
    model_source source = {.checkpoint = c, .arena = &arena, .error = &error};
    const float *values;
    const size_t n = (size_t)t->shape[0], k = (size_t)t->shape[1];
    for (source.load = 0; source.load < 2; source.load++) {
        iso_status status = t->rank == 2 ? model_take_rows(&source, &values, t->name, n, k)
                                         : model_take_vector(&source, &values, &t->name, 1, n, 0);
        FUZZ_CHECK(status == ISOBIT_OK);
    }
    FUZZ_CHECK(fuzz_equal(values, values, n * (t->rank == 2 ? k : 1) * sizeof *values));
    model_arena_free(&source.scratch);
    model_arena_free(&arena);
}

/* In memory of exactly its size. */
static void read_alone(const uint8_t *data, size_t bytes) {
    iso_error error = {0};
    model_arena arena = {0};
    model_pickle p;
    char *text = fuzz_copy(data, bytes);
    const iso_status status = model_pickle_read(&p, &arena, "pickle", text, bytes, &error);
    if (status)
        fuzz_check_error(status, &error);
    else
        FUZZ_CHECK(p.bytes && p.bytes <= bytes);
    /* Of a value of one byte: 16 on a stack that may have doubled just now and stays where it was
     * before, 16 of a list, and what small pieces leave of their pool. */
    FUZZ_CHECK(arena.bytes <= 96 * bytes + 16384);
    model_arena_free(&arena);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    iso_error error = {0};
    model_checkpoint c;
    iso_status status;
    if (bytes == 0)
        return 0;
    const int form = *data++ % 4;
    bytes--;
    fuzz_no_files();
    blob b = {0};
    const uint8_t *parts[3];
    size_t sizes[3], all = bytes;
    if (form == 3) {
        static const char *const names[] = {"model.safetensors.index.json", "a", "b"};
        const size_t count = fuzz_split(data, bytes, parts, sizes, 3);
        for (size_t i = 0; i < count; i++)
            fuzz_file(names[i], parts[i], sizes[i]);
        status = model_checkpoint_open_shards(&c, FUZZ_DIRECTORY, names[0], 1 << 20,
                                              model_checkpoint_open, &error);
    } else {
        bin_places places;
        if (form == 1)
            read_alone(data, bytes);
        if (form == 0)
            blob_add(&b, data, bytes);
        else
            b = form == 1 ? bin_zip_of(data, bytes, 1, &places) : bin_legacy_of(data, bytes);
        all = b.count;
        uint8_t *exact = fuzz_copy(b.bytes, b.count);
        blob_free(&b);
        b.bytes = exact;
        fuzz_file("pytorch_model.bin", exact, all);
        status =
            model_checkpoint_open_bin(&c, FUZZ_DIRECTORY, "pytorch_model.bin", 1 << 20, &error);
        FUZZ_CHECK(c.arena.bytes <= 64 * all + 1024);
    }
    if (status)
        fuzz_check_error(status, &error);
    for (size_t i = 0; !status && i < c.header.count; i++) {
        const model_tensor *t = &c.header.tensors[i];
        FUZZ_CHECK(i == 0 || strcmp(t[-1].name, t->name) < 0);
        check_tensor(&c, t, all);
        const int rank = t->rank == 1 || (t->rank == 2 && t->shape[1]);
        if (element_bytes(t) && rank && t->shape[0])
            read_tensor(&c, t);
    }
    model_checkpoint_close(&c);
    free(b.bytes);
    return 0;
}
