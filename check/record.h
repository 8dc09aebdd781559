/* SPDX-License-Identifier: MIT
 *
 * The file that `isobit check --record` writes and `--compare` reads: what every case of a run
 * gave, small enough to be carried to another machine. record.c has the format, byte by byte.
 * It is read as untrusted input: a file is taken whole or refused with one sentence.
 *
 * Nothing here is safe to be used by two threads at once on the same struct.
 */
#ifndef ISOBIT_CHECK_RECORD_H
#define ISOBIT_CHECK_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ISO_RECORD_VERSION = 1,
    ISO_RECORD_NAME = 64,    /* bytes of the name of a suite or a variant, its 0 included */
    ISO_RECORD_TEXT = 256,   /* of a text of the header */
    ISO_RECORD_SAMPLES = 16, /* errors of single outputs, for a case */
    ISO_RECORD_SECTIONS = 1024,
    ISO_RECORD_MESSAGE = 256,
    /* a larger file is refused unread: that of the fixed plan has less than 5 MB */
    ISO_RECORD_MOST_BYTES = 64 << 20,
    /* largest error of a case, in 1/250 of its bound, rounded up; or: it was wrong */
    ISO_RECORD_BOUND_UNIT = 250,
    ISO_RECORD_WRONG = 255,
    /* the same in tenths of an ULP; or: more than that, or ULP say nothing */
    ISO_RECORD_ULP_UNIT = 10,
    ISO_RECORD_NO_ULP = 255,
    /* a sample is the error of one output in steps; this one has none: NaN, infinity, exact */
    ISO_RECORD_NO_SAMPLE = -128
};

/* What a case gave on a variant, or on all variants where they promise equal bits. */
struct iso_record_case {
    uint64_t hash;  /* of the outputs' bits (iso_record_hash) */
    uint32_t key;   /* of suite, parameters, fill, flags, seed: which case it is */
    uint8_t bound;  /* largest error: see ISO_RECORD_BOUND_UNIT, ISO_RECORD_WRONG */
    uint8_t ulp;    /* ISO_RECORD_ULP_UNIT, ISO_RECORD_NO_ULP */
    uint8_t count;  /* of its samples */
    uint32_t first; /* its first sample among those of the section */
};

/* The cases of a suite, in the order in which they ran. */
struct iso_record_section {
    char suite[ISO_RECORD_NAME];
    char variant[ISO_RECORD_NAME]; /* "": its cases promise the same bits on all variants */
    struct iso_record_case *cases;
    size_t count, room;
    int8_t *samples;
    size_t sample_count, sample_room;
};

struct iso_record {
    uint32_t numerics;            /* ISOBIT_NUMERICS_VERSION */
    uint32_t plan;                /* 0 quick, 1 full */
    uint32_t part, parts;         /* parts > 1: the cases whose number is part modulo parts */
    uint64_t iters, seed;         /* random cases after the plan; 0: none */
    char target[ISO_RECORD_TEXT]; /* whose kernels: "isobit", or the name of a plug-in */
    char version[ISO_RECORD_TEXT], machine[ISO_RECORD_TEXT], variants[ISO_RECORD_TEXT],
        compiler[ISO_RECORD_TEXT];
    struct iso_record_section *sections;
    size_t count, room;
};

/* Frees what it holds, and empties it. */
void iso_record_free(struct iso_record *r);

/* The section, made if it is not there; NULL without memory, or where there are too many. */
struct iso_record_section *iso_record_section(struct iso_record *r, const char *suite,
                                              const char *variant);
/* The section, or NULL. */
const struct iso_record_section *iso_record_find(const struct iso_record *r, const char *suite,
                                                 const char *variant);
/* Appends a case with c->count samples (c->first is set here); false without memory. */
bool iso_record_add(struct iso_record_section *s, struct iso_record_case c, const int8_t *samples);

/* Copies a text for the header: cut to its room, what is not printable ASCII becomes '?'. */
void iso_record_text(char to[ISO_RECORD_TEXT], const char *text);

/*
 * The bytes of the file, the same on every machine; *bytes is theirs to free. False without
 * memory, or when it would be larger than ISO_RECORD_MOST_BYTES.
 */
bool iso_record_pack(const struct iso_record *r, unsigned char **bytes, size_t *size);

/*
 * What such bytes say. False when they are not a whole, undamaged file of a version that is known:
 * then *r is empty and message says what is wrong, to stand behind "FILE: ".
 */
bool iso_record_unpack(struct iso_record *r, const unsigned char *bytes, size_t size,
                       char message[ISO_RECORD_MESSAGE]);

/*
 * The same from and to a file. A file is written beside `path` and then takes its place, so that
 * there is never half of one; what is not a regular file (a pipe, a device) is written as it is.
 * False with a message, which has no name in it; what stood there before is still there then.
 */
bool iso_record_read(struct iso_record *r, const char *path, char message[ISO_RECORD_MESSAGE]);
/* Could it be written there? To be asked before a long run. */
bool iso_record_writable(const char *path, char message[ISO_RECORD_MESSAGE]);
bool iso_record_write(const struct iso_record *r, const char *path,
                      char message[ISO_RECORD_MESSAGE]);

#endif
