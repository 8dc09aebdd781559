/* SPDX-License-Identifier: MIT
 *
 * Input: a text, a byte 0xff, and a .spm file. What the strict reader passes must do the library no
 * harm: it loads or refuses it, cuts the text, and joins the pieces again.
 */
#include "fuzz.h"
#include "text/sentencepiece.h"
#include "text/spm_file.h"

#include <stdlib.h>
#include <string.h>

typedef struct collected {
    char *pieces[4096];
    size_t count, bytes;
} collected;

static void collect(void *to, const char *text, size_t bytes) {
    collected *all = to;
    all->bytes += bytes;
    if (all->count == 4096)
        return;
    char *copy = all->pieces[all->count++] = malloc(bytes + 1);
    FUZZ_CHECK(copy);
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
}

static void release(collected *all) {
    while (all->count)
        free(all->pieces[--all->count]);
    free(all);
}

static void use(const text_spm *spm, const uint8_t *data, size_t bytes) {
    char *text = fuzz_copy(data, bytes);
    collected *pieces = calloc(1, sizeof *pieces), *whole = calloc(1, sizeof *whole);
    FUZZ_CHECK(pieces && whole);
    iso_status status = text_spm_encode(spm, text, bytes, collect, pieces);
    FUZZ_CHECK(status == ISOBIT_OK || status == ISOBIT_E_CONFIG);
    status =
        text_spm_decode(spm, (const char *const *)pieces->pieces, pieces->count, collect, whole);
    FUZZ_CHECK(status ? status == ISOBIT_E_CONFIG : whole->count == 1);
    release(whole);
    release(pieces);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    const uint8_t *parts[2];
    size_t sizes[2];
    iso_error error = {0};
    text_pieces pieces;
    model_arena arena = {0};
    char why[200] = "";
    if (fuzz_split(data, bytes, parts, sizes, 2) < 2)
        return 0;
    char *file = fuzz_copy(parts[1], sizes[1]);
    iso_status status = text_spm_check(&pieces, &arena, "spm", file, sizes[1], &error);
    if (status) {
        fuzz_check_error(status, &error);
    } else {
        text_spm *spm = NULL;
        FUZZ_CHECK(pieces.count > 0);
        status = text_spm_load(&spm, file, sizes[1], why, sizeof why);
        FUZZ_CHECK(status == ISOBIT_OK || (why[0] && status != ISOBIT_E_INTERNAL));
        if (!status)
            use(spm, parts[0], sizes[0]);
        text_spm_free(spm);
    }
    model_arena_free(&arena);
    free(file);
    return 0;
}
