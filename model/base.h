/* SPDX-License-Identifier: MIT
 *
 * What all files of the model layer share: errors with a sentence, memory that is freed at once,
 * and options of callers that may be older.
 *
 * The layer does no arithmetic on tensors of its own: it decides shapes, weights and the order of
 * calls into <isobit/ops.h>. Letters: B sentences, S source length, T target length, d model width,
 * H heads, dh width of a head, f width of the feed-forward layer, V vocabulary.
 */
#ifndef ISOBIT_MODEL_BASE_H
#define ISOBIT_MODEL_BASE_H

#include <isobit/model.h>

#include <stddef.h>
#include <string.h>

/* Fills *error, if there is one, and returns `status`. The sentence is cut to what fits. */
iso_status model_fail(iso_error *error, iso_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Text from a file, made fit for a message: quoted, non-ASCII and control bytes as \xNN, cut. */
typedef struct model_quoted {
    char text[104]; /* room for the longest names of tensors that there are */
} model_quoted;
const char *model_quote(model_quoted *out, const char *text, size_t bytes);

/* Blocks that live and die together, each aligned to 64 bytes. All zero is an empty arena. */
typedef struct model_arena {
    struct model_block *newest, *spare;
    size_t bytes; /* handed out so far */
    char *room;   /* what is left of a reserve */
    size_t room_bytes;
} model_arena;

void *model_alloc(model_arena *arena, size_t count, size_t size); /* NULL: no memory, overflow */
void *model_alloc3(model_arena *arena, size_t a, size_t b, size_t c, size_t size); /* a x b x c */
/* The same for memory of which a large part may never be used. */
void *model_alloc_sparse(model_arena *arena, size_t a, size_t b, size_t c, size_t size);
/* One block for the next pieces, each rounded up to 64 bytes; 0: no memory. */
int model_arena_reserve(model_arena *arena, size_t bytes);
void model_arena_recycle(model_arena *arena); /* all that it gave is over, its memory is kept */
void model_arena_free(model_arena *arena);

/* The length in bytes of the UTF-8 sequence at `text`, its code point in *code; 0 if invalid. */
size_t model_utf8(const char *text, size_t bytes, uint32_t *code);

/*
 * Structs that begin with their size may come from an older header, and be shorter: not shorter
 * than in the first version, which ended with `last`. Beyond that, members may be used only if
 * `size` reaches them.
 */
#define MODEL_SIZE_UP_TO(type, last)                                                               \
    ((offsetof(type, last) + sizeof((type){0}.last) + _Alignof(type) - 1) / _Alignof(type) *       \
     _Alignof(type))
#define MODEL_SIZE_IS_KNOWN(p, last)                                                               \
    ((p)->size >= MODEL_SIZE_UP_TO(__typeof__(*(p)), last) && (p)->size <= sizeof *(p))

/* The options in `own`, what their caller does not know being 0; NULL when the size is unknown. */
#define MODEL_OPTIONS(options, own, last)                                                          \
    (MODEL_SIZE_IS_KNOWN(options, last)                                                            \
         ? memcpy(memset(&(own), 0, sizeof(own)), options, (options)->size)                        \
         : NULL)

#endif
