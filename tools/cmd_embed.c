/* SPDX-License-Identifier: MIT
 *
 * isobit embed: a vector for each line, as text or as a NumPy array.
 */
#include "cli.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------ as text */

/* Nine digits give a float back exactly. JSON has no NaN and no Inf. */
static void print_vector(const float *y, size_t d, bool hex) {
    fputs(hex ? "" : "[", stdout);
    for (size_t j = 0; j < d; j++) {
        fputs(j == 0 ? "" : hex ? " " : ",", stdout);
        if (!hex && !isfinite(y[j]))
            fputs("null", stdout);
        else
            printf(hex ? "%a" : "%.9g", (double)y[j]);
    }
    puts(hex ? "" : "]");
}

/* ------------------------------------------------------------------------------ as NumPy array */

/* Version 1.0 of the format: the magic, the length of the rest of the header, a dictionary, and
 * spaces up to a multiple of 64 bytes. This much has room for any number of rows. */
enum { NPY_HEADER = 128, NPY_BEFORE = 10 };

struct array {
    struct target target; /* file NULL: none */
    const char *path;
    size_t rows;
};

static int cannot_write(const struct array *array) {
    return fail("cannot write %s: %s", array->path, errno != 0 ? strerror(errno) : "output error");
}

static bool write_header(const struct array *array, size_t d) {
    char header[NPY_HEADER] = "\x93NUMPY\x01", dictionary[NPY_HEADER - NPY_BEFORE];
    const int bytes =
        snprintf(dictionary, sizeof dictionary,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", array->rows, d);
    memset(header + NPY_BEFORE, ' ', NPY_HEADER - NPY_BEFORE);
    memcpy(header + NPY_BEFORE, dictionary, (size_t)bytes);
    header[NPY_BEFORE - 2] = NPY_HEADER - NPY_BEFORE; /* 16 bits, little-endian */
    header[NPY_HEADER - 1] = '\n';
    return fseeko(array->target.file, 0, SEEK_SET) == 0 &&
           fwrite(header, 1, NPY_HEADER, array->target.file) == NPY_HEADER;
}

/* How many rows there are is known at the end only: the header is written once more then. */
static int array_open(struct array *array, const char *path, size_t d) {
    *array = (struct array){.path = path};
    if (!target_open(&array->target, path))
        return cannot_write(array);
    errno = 0;
    return write_header(array, d) ? 0 : cannot_write(array);
}

static int array_write(struct array *array, const float *y, size_t rows, size_t d) {
    errno = 0;
    for (size_t i = 0; i < rows * d; i++) {
        uint32_t word;
        memcpy(&word, y + i, sizeof word);
        word = htole32(word);
        if (fwrite(&word, sizeof word, 1, array->target.file) != 1)
            return cannot_write(array);
    }
    array->rows += rows;
    return 0;
}

static int array_close(struct array *array, size_t d) {
    errno = 0;
    if (!write_header(array, d))
        return cannot_write(array);
    return target_close(&array->target) ? 0 : cannot_write(array);
}

/* ---------------------------------------------------------------------------------- the loop */

static int choose(iso_sentence_options *how, const struct options *options) {
    static const struct {
        const char *name;
        iso_pooling pooling;
    } known[] = {{"mean", ISOBIT_POOLING_MEAN},
                 {"cls", ISOBIT_POOLING_CLS},
                 {"max", ISOBIT_POOLING_MAX},
                 {"pooler", ISOBIT_POOLING_POOLER}};
    *how = (iso_sentence_options){.size = sizeof *how};
    if (options->of != NULL && strcmp(options->of, "encoder") != 0)
        return usage("embed: --of %s: vectors are the encoder's", options->of);
    for (size_t i = 0; i < sizeof known / sizeof *known && options->pooling != NULL; i++)
        if (strcmp(options->pooling, known[i].name) == 0)
            how->pooling = known[i].pooling;
    if (options->pooling != NULL && how->pooling == ISOBIT_POOLING_DEFAULT)
        return usage("embed: --pooling %s: give mean, cls, max or pooler", options->pooling);
    if (options->normalize == NULL)
        return 0;
    how->normalize = strcmp(options->normalize, "yes") == 0  ? 1
                     : strcmp(options->normalize, "no") == 0 ? -1
                                                             : 0;
    if (how->normalize == 0)
        return usage("embed: --normalize %s: give yes or no", options->normalize);
    return 0;
}

struct embedding {
    iso_sentence_options how;
    struct array array;
    struct picture picture;
};

static int open_array(struct lines *l) {
    struct embedding *e = l->user;
    return l->options->npy != NULL
               ? array_open(&e->array, l->options->npy, l->session.info->sentence_d)
               : 0;
}

static int finish(struct lines *l) {
    struct embedding *e = l->user;
    const int code =
        l->options->npy != NULL ? array_close(&e->array, l->session.info->sentence_d) : 0;
    return code != 0 ? code : picture_draw(&e->picture, &l->session, l->options, NULL);
}

static int put_vectors(struct lines *l, const float *y, size_t count) {
    struct embedding *e = l->user;
    const size_t d = l->session.info->sentence_d;
    if (e->array.target.file != NULL)
        return array_write(&e->array, y, count, d);
    for (size_t i = 0; i < count; i++) {
        if (l->options->digest)
            digest_floats(&l->digest, y + i * d, d);
        else
            print_vector(y + i * d, d, l->options->hex);
    }
    return l->options->digest ? 0 : output_flush();
}

static int put_batch(struct lines *l) {
    struct embedding *e = l->user;
    const struct batch *batch = &l->batch;
    const size_t count = batch->source_lengths.count;
    float *y = calloc(count + 1, l->session.info->sentence_d * sizeof *y);
    if (y == NULL)
        return fail("out of memory for the vectors");
    iso_error error = {0};
    iso_status status =
        iso_sentence_embed_f32(y, l->session.model, batch->sources.data, batch->source_lengths.data,
                               count, &e->how, &l->session.context, &error);
    int code = status == ISOBIT_OK ? put_vectors(l, y, count) : fail_error(&error, status);
    if (code == 0)
        code = picture_keep(&e->picture, l->options, batch);
    free(y);
    return code;
}

int cmd_embed(const struct options *options) {
    static const struct lines_command command = {.needs = NEEDS_TEXT | NEEDS_ENCODER,
                                                 .parse = batch_parse_sentence,
                                                 .begin = open_array,
                                                 .put = put_batch,
                                                 .end = finish};
    struct embedding embedding = {0};
    int code = choose(&embedding.how, options);
    if (code == 0)
        code = lines_run(options, &command, &embedding);
    picture_free(&embedding.picture);
    target_discard(&embedding.array.target); /* unless it is complete */
    return code;
}
