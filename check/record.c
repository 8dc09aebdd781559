/* SPDX-License-Identifier: MIT
 *
 * The format of a recorded run. Numbers are little-endian, strings are a u16 length and printable
 * ASCII. Version 1:
 *
 *   8 bytes   "\x89ISOREC\n": not text, and a copy that changes line ends breaks it
 *   u32 u32   version of the format, ISOBIT_NUMERICS_VERSION
 *   u64       bytes of the whole file
 *   u32 u32   plan (0 quick, 1 full), number of sections
 *   u32 u32   part, parts
 *   u64 u64   random cases after the plan, their seed
 *   strings   target, version of the program, machine, variants, compiler
 *   sections  strings suite and variant, u32 number of cases, then for each case:
 *             u32 key, u64 hash, u8 largest error in the bound, u8 in ULP, u8 number of samples,
 *             then that many i8
 *   u64       XXH3 of all bytes before it
 *
 * A later version may change everything behind the version's number.
 */
#include "record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const unsigned char magic[8] = "\x89ISOREC\n";
enum { FIXED = 56, CASE_BYTES = 15, CHECKSUM = 8, SIZE_AT = 16 };

/* ------------------------------------------------------------------------------- in memory */

void iso_record_free(struct iso_record *r) {
    for (size_t i = 0; i < r->count; i++) {
        free(r->sections[i].cases);
        free(r->sections[i].samples);
    }
    free(r->sections);
    *r = (struct iso_record){0};
}

const struct iso_record_section *iso_record_find(const struct iso_record *r, const char *suite,
                                                 const char *variant) {
    for (size_t i = 0; i < r->count; i++) {
        const struct iso_record_section *s = &r->sections[i];
        if (!strcmp(s->suite, suite) && !strcmp(s->variant, variant))
            return s;
    }
    return NULL;
}

/* Room for one element more, by doubling; false without memory. */
static bool grow(void **array, size_t *room, size_t needed, size_t element) {
    if (needed <= *room)
        return true;
    size_t more = *room ? 2 * *room : 64;
    if (more < needed)
        more = needed;
    void *larger = more <= SIZE_MAX / element ? realloc(*array, more * element) : NULL;
    if (!larger)
        return false;
    *array = larger;
    *room = more;
    return true;
}

struct iso_record_section *iso_record_section(struct iso_record *r, const char *suite,
                                              const char *variant) {
    for (size_t i = 0; i < r->count; i++) {
        if (!strcmp(r->sections[i].suite, suite) && !strcmp(r->sections[i].variant, variant))
            return &r->sections[i];
    }
    void *sections = r->sections;
    if (r->count == ISO_RECORD_SECTIONS ||
        !grow(&sections, &r->room, r->count + 1, sizeof *r->sections))
        return NULL;
    r->sections = sections;
    struct iso_record_section *s = &r->sections[r->count++];
    *s = (struct iso_record_section){0};
    snprintf(s->suite, sizeof s->suite, "%s", suite);
    snprintf(s->variant, sizeof s->variant, "%s", variant);
    return s;
}

bool iso_record_add(struct iso_record_section *s, struct iso_record_case c, const int8_t *samples) {
    void *cases = s->cases, *bytes = s->samples;
    bool good = grow(&bytes, &s->sample_room, s->sample_count + c.count, 1);
    s->samples = bytes;
    good = good && grow(&cases, &s->room, s->count + 1, sizeof *s->cases);
    s->cases = cases;
    if (!good)
        return false;
    c.first = (uint32_t)s->sample_count;
    for (unsigned i = 0; i < c.count; i++)
        s->samples[s->sample_count++] = samples[i];
    s->cases[s->count++] = c;
    return true;
}

void iso_record_text(char to[ISO_RECORD_TEXT], const char *text) {
    size_t n = 0;
    for (; text[n] && n + 1 < ISO_RECORD_TEXT; n++)
        to[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
    to[n] = 0;
}

/* --------------------------------------------------------------------------------- writing */

static unsigned char *put(unsigned char *at, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++)
        *at++ = (unsigned char)(value >> 8 * i);
    return at;
}

static unsigned char *put_string(unsigned char *at, const char *text) {
    size_t n = strlen(text);
    at = put(at, n, 2);
    memcpy(at, text, n);
    return at + n;
}

static unsigned char *put_section(unsigned char *at, const struct iso_record_section *s) {
    at = put_string(put_string(at, s->suite), s->variant);
    at = put(at, s->count, 4);
    for (size_t i = 0; i < s->count; i++) {
        const struct iso_record_case *c = &s->cases[i];
        at = put(put(at, c->key, 4), c->hash, 8);
        *at++ = c->bound;
        *at++ = c->ulp;
        *at++ = c->count;
        if (c->count)
            memcpy(at, s->samples + c->first, c->count);
        at += c->count;
    }
    return at;
}

bool iso_record_pack(const struct iso_record *r, unsigned char **bytes, size_t *size) {
    const char *const texts[] = {r->target, r->version, r->machine, r->variants, r->compiler};
    const size_t most = ISO_RECORD_MOST_BYTES;
    size_t n = FIXED + CHECKSUM;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        n += 2 + strlen(texts[i]);
    for (size_t i = 0; i < r->count && n <= most; i++) {
        const struct iso_record_section *s = &r->sections[i];
        if (s->count > most / CASE_BYTES || s->sample_count > most)
            return false;
        n += strlen(s->suite) + strlen(s->variant) + 8 + s->count * CASE_BYTES + s->sample_count;
    }
    *bytes = n <= most ? malloc(n) : NULL;
    if (!*bytes)
        return false;
    memcpy(*bytes, magic, sizeof magic);
    unsigned char *at = put(*bytes + sizeof magic, ISO_RECORD_VERSION, 4);
    at = put(put(at, r->numerics, 4), n, 8);
    at = put(put(put(put(at, r->plan, 4), r->count, 4), r->part, 4), r->parts, 4);
    at = put(put(at, r->iters, 8), r->seed, 8);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        at = put_string(at, texts[i]);
    for (size_t i = 0; i < r->count; i++)
        at = put_section(at, &r->sections[i]);
    put(at, XXH3_64bits(*bytes, n - CHECKSUM), CHECKSUM);
    *size = n;
    return true;
}

/* --------------------------------------------------------------------------------- reading */

struct reader {
    const unsigned char *at, *end;
    char *message;
};

static bool bad(struct reader *in, const char *what) {
    snprintf(in->message, ISO_RECORD_MESSAGE, "%s", what);
    return false;
}

static size_t left(const struct reader *in) { return (size_t)(in->end - in->at); }

static uint64_t number_at(const unsigned char *at, unsigned bytes) {
    uint64_t value = 0;
    for (unsigned i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

/* The caller knows that so many bytes are there. */
static uint64_t take(struct reader *in, unsigned bytes) {
    in->at += bytes;
    return number_at(in->at - bytes, bytes);
}

/* A string into room bytes; `empty` may be. */
static bool take_string(struct reader *in, char *to, size_t room, bool empty) {
    if (left(in) < 2)
        return bad(in, "a text is cut");
    size_t n = (size_t)take(in, 2);
    if (n > left(in) || n >= room)
        return bad(in, "a text is longer than it may be");
    for (size_t i = 0; i < n; i++) {
        if (in->at[i] < ' ' || in->at[i] > '~')
            return bad(in, "a text has a character that is not printable");
    }
    if (!n && !empty)
        return bad(in, "a name is empty");
    memcpy(to, in->at, n);
    to[n] = 0;
    in->at += n;
    return true;
}

static bool take_case(struct reader *in, struct iso_record_section *s) {
    if (left(in) < CASE_BYTES)
        return bad(in, "a section has fewer cases than it says");
    struct iso_record_case c = {.key = (uint32_t)take(in, 4)};
    c.hash = take(in, 8);
    c.bound = (uint8_t)take(in, 1);
    c.ulp = (uint8_t)take(in, 1);
    c.count = (uint8_t)take(in, 1);
    if (c.bound > ISO_RECORD_BOUND_UNIT && c.bound != ISO_RECORD_WRONG)
        return bad(in, "a case has an error beyond its bound that is not marked as wrong");
    if (c.count > ISO_RECORD_SAMPLES || c.count > left(in))
        return bad(in, "a case has more samples than there are");
    int8_t samples[ISO_RECORD_SAMPLES];
    for (unsigned i = 0; i < c.count; i++) {
        int value = in->at[i];
        samples[i] = (int8_t)(value < 128 ? value : value - 256);
    }
    in->at += c.count;
    return iso_record_add(s, c, samples) || bad(in, "out of memory");
}

static bool take_section(struct reader *in, struct iso_record *r) {
    char suite[ISO_RECORD_NAME], variant[ISO_RECORD_NAME];
    if (!take_string(in, suite, sizeof suite, false) ||
        !take_string(in, variant, sizeof variant, true))
        return false;
    if (iso_record_find(r, suite, variant))
        return bad(in, "a section is there twice");
    if (left(in) < 4)
        return bad(in, "a section is cut");
    size_t cases = (size_t)take(in, 4);
    if (cases > left(in) / CASE_BYTES) /* before memory is asked for */
        return bad(in, "a section has fewer cases than it says");
    struct iso_record_section *s = iso_record_section(r, suite, variant);
    if (!s)
        return bad(in, "out of memory");
    for (size_t i = 0; i < cases; i++) {
        if (!take_case(in, s))
            return false;
    }
    return true;
}

/* What stands before the strings, and the frame: size and checksum. */
static bool take_header(struct reader *in, struct iso_record *r, size_t *sections) {
    size_t size = left(in);
    const unsigned char *start = in->at;
    if (size < sizeof magic || memcmp(start, magic, sizeof magic) != 0)
        return bad(in, "not a file that isobit check --record has written");
    if (size < FIXED + CHECKSUM)
        return bad(in, "cut: it ends within its header");
    uint64_t version = number_at(start + 8, 4), all = number_at(start + SIZE_AT, 8);
    if (version != ISO_RECORD_VERSION) {
        snprintf(in->message, ISO_RECORD_MESSAGE,
                 version > ISO_RECORD_VERSION
                     ? "version %llu of the format, of a newer isobit; this one reads %d"
                     : "version %llu of the format, which does not exist; this one reads %d",
                 (unsigned long long)version, ISO_RECORD_VERSION);
        return false;
    }
    if (all != size) {
        snprintf(in->message, ISO_RECORD_MESSAGE,
                 all > size ? "cut: it has %llu of %llu bytes"
                            : "something stands behind its end: it has %llu bytes instead of %llu",
                 (unsigned long long)size, (unsigned long long)all);
        return false;
    }
    if (XXH3_64bits(start, size - CHECKSUM) != number_at(in->end - CHECKSUM, CHECKSUM))
        return bad(in, "damaged: its checksum is wrong");
    in->end -= CHECKSUM;
    in->at += 12;
    r->numerics = (uint32_t)take(in, 4);
    take(in, 8);
    r->plan = (uint32_t)take(in, 4);
    *sections = (size_t)take(in, 4);
    r->part = (uint32_t)take(in, 4);
    r->parts = (uint32_t)take(in, 4);
    r->iters = take(in, 8);
    r->seed = take(in, 8);
    if (r->plan > 1 || *sections > ISO_RECORD_SECTIONS)
        return bad(in, "a plan or a number of sections that cannot be");
    if (r->parts ? r->part >= r->parts : r->part)
        return bad(in, "a part that its whole does not have");
    return true;
}

bool iso_record_unpack(struct iso_record *r, const unsigned char *bytes, size_t size,
                       char message[ISO_RECORD_MESSAGE]) {
    struct reader in = {bytes, bytes + size, message};
    size_t sections = 0;
    *r = (struct iso_record){0};
    message[0] = 0;
    bool good = take_header(&in, r, &sections) &&
                take_string(&in, r->target, ISO_RECORD_TEXT, false) &&
                take_string(&in, r->version, ISO_RECORD_TEXT, true) &&
                take_string(&in, r->machine, ISO_RECORD_TEXT, true) &&
                take_string(&in, r->variants, ISO_RECORD_TEXT, true) &&
                take_string(&in, r->compiler, ISO_RECORD_TEXT, true);
    for (size_t i = 0; i < sections && good; i++)
        good = take_section(&in, r);
    if (good && left(&in))
        good = bad(&in, "bytes that belong to no section");
    if (!good)
        iso_record_free(r);
    return good;
}
