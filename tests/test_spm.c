/* SPDX-License-Identifier: MIT
 *
 * The strict reader of .spm files: files that are good but for one thing, each refused with a
 * sentence that names it. And limits: what is just allowed, the library must load.
 */
#include "spm_writer.h"
#include "text/sentencepiece.h"
#include "text/spm_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

/* -------------------------------------------------------------------------- the double array */

typedef struct charsmap {
    uint32_t units[512], count;
    const char *strings;
    size_t string_bytes;
    int size_error;
} charsmap;

static uint32_t node(unsigned label, unsigned offset, int leaf) {
    return label | offset << 10 | (uint32_t)leaf << 8;
}

/* One key, "A", for the first string. */
static charsmap good_map(void) {
    charsmap m = {.count = 256, .strings = "a\0", .string_bytes = 2};
    m.units['A'] = node('A', 'A' ^ 200, 1);
    m.units[200] = 0x80000000;
    return m;
}

/* Keys A, AA, AAA ...: so many begin with each other. */
static charsmap nested_map(unsigned keys) {
    charsmap m = {.count = 512, .strings = "a\0", .string_bytes = 2};
    unsigned at = 'A';
    for (unsigned k = 0; k < keys; k++) {
        const unsigned next = 256 + 128 + k, base = next ^ 'A';
        m.units[at] = node('A', at ^ base, 1);
        m.units[base] = 0x80000000;
        at = next;
    }
    return m;
}

static void map_field(bytes *b, unsigned number, const charsmap *m) {
    static bytes map, message;
    map.count = message.count = 0;
    const uint32_t size = 4 * m->count + (uint32_t)m->size_error;
    for (int i = 0; i < 4; i++)
        byte(&map, size >> 8 * i & 255);
    for (uint32_t u = 0; u < m->count; u++)
        for (int i = 0; i < 4; i++)
            byte(&map, m->units[u] >> 8 * i & 255);
    put(&map, m->strings, m->string_bytes);
    field(&message, 2, map.data, map.count);
    field(b, number, message.data, message.count);
}

/* ---------------------------------------------------------------------------------- checking */

/* A copy flush against a page that nobody may touch. */
static char *at_the_end(const bytes *b) {
    enum { PAGE = 1 << 16, ROOM = sizeof b->data }; /* of any machine */
    static char *room;
    if (!room) {
        room = mmap(NULL, ROOM + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(room != MAP_FAILED);
        assert_int_equal(mprotect(room + ROOM, PAGE, PROT_NONE), 0);
    }
    return memcpy(room + ROOM - b->count, b->data, b->count);
}

static iso_status check(const bytes *b, iso_error *error) {
    model_arena arena = {0};
    text_pieces pieces;
    char *exact = at_the_end(b);
    *error = (iso_error){0};
    iso_status status = text_spm_check(&pieces, &arena, "x.spm", exact, b->count, error);
    model_arena_free(&arena);
    return status;
}

static void refused(const char *title, const bytes *b, iso_status status, const char *says) {
    iso_error error;
    const iso_status got = check(b, &error);
    if (got != status || !strstr(error.message, says) || strncmp(error.message, "x.spm: ", 7) != 0)
        fail_msg("%s: %d \"%s\"", title, (int)got, error.message);
}

static void count_piece(void *to, const char *text, size_t count) {
    (void)text, (void)count;
    ++*(size_t *)to;
}

/* Passes, and the library takes it where there is one. */
static void accepted(const char *title, const bytes *b, size_t wanted) {
    iso_error error;
    text_spm *spm = NULL;
    char why[200] = "";
    size_t pieces = 0;
    if (check(b, &error))
        fail_msg("%s: %s", title, error.message);
    const iso_status status = text_spm_load(&spm, (const char *)b->data, b->count, why, sizeof why);
    if (status == ISOBIT_E_UNSUPPORTED)
        return;
    if (status)
        fail_msg("%s: %s", title, why);
    assert_int_equal(text_spm_encode(spm, "Ab", 2, count_piece, &pieces), ISOBIT_OK);
    if (pieces != wanted)
        fail_msg("%s: %zu pieces", title, pieces);
    text_spm_free(spm);
}

/* ------------------------------------------------------------------------------------- tests */

static void test_pieces(void **state) {
    static char long_text[1025];
    static const struct {
        const char *title, *text, *says;
        size_t count;
        uint32_t score;
        unsigned type;
    } rows[] = {
        {"empty", "", "its length", 0, 0, 1},
        {"long", long_text, "its length", 1025, 0, 1},
        {"not UTF-8", "\xff", "not valid UTF-8", 1, 0, 1},
        {"cut off", "\xe2\x96", "not valid UTF-8", 2, 0, 1},
        {"NUL", "a\0b", "not valid UTF-8", 3, 0, 1},
        {"NaN", "x", "not finite", 1, 0x7fc00000, 1},
        {"infinite", "x", "not finite", 1, 0xff800000, 1},
        {"type 0", "x", "an unknown type", 1, 0, 0},
        {"type 7", "x", "an unknown type", 1, 0, 7},
    };
    static bytes b;
    (void)state;
    memset(long_text, 'x', sizeof long_text);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        b.count = 0;
        good_pieces(&b);
        piece(&b, rows[i].text, rows[i].count, rows[i].score, rows[i].type);
        refused(rows[i].title, &b, ISOBIT_E_CONFIG, rows[i].says);
        refused(rows[i].title, &b, ISOBIT_E_CONFIG, "piece 4 is damaged");
    }
    b.count = 0;
    good_pieces(&b);
    piece(&b, long_text, 1024, minus_one, TEXT_PIECE_NORMAL);
    piece(&b, "y", 1, minus_one, TEXT_PIECE_BYTE - 1);
    accepted("the longest piece", &b, 3); /* the bar, A, b */
    b.count = 0;
    good_pieces(&b);
    field(&b, 1, "\x0a\x05x", 3);
    refused("a piece that is no message", &b, ISOBIT_E_CONFIG, "piece 4 is damaged: not protobuf");
    for (size_t count = 32; count <= 33; count++) {
        b.count = 0;
        good_pieces(&b);
        for (size_t n = 1; n <= count; n++)
            piece(&b, long_text, n, 0, TEXT_PIECE_USER_DEFINED);
        piece(&b, "z", 1, 0, TEXT_PIECE_USER_DEFINED); /* begins with none of them */
        if (count == 32)
            accepted("32 nested pieces", &b, 3);
        else
            refused("33 nested pieces", &b, ISOBIT_E_CONFIG, "user-defined pieces");
    }
}

static void test_wire(void **state) {
    static const struct {
        const char *title;
        unsigned char data[12];
        size_t count;
    } rows[] = {
        {"a key that ends", {0x80}, 1},
        {"a value that ends", {0x50, 0x80}, 2},
        {"a value of more than 64 bits",
         {0x50, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02},
         11},
        {"a value of eleven bytes",
         {0x50, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00},
         12},
        {"a length that ends", {0x52, 0x80}, 2},
        {"field 0", {0x00, 0x00}, 2},
        {"a field number beyond 2^29", {0x80, 0x80, 0x80, 0x80, 0x10, 0x00}, 6},
        {"a group", {0x53, 1, 2, 3, 4, 5, 6, 7, 8}, 9},
        {"the end of a group", {0x54, 1, 2, 3, 4, 5, 6, 7, 8}, 9},
        {"type 6", {0x56, 1, 2, 3, 4, 5, 6, 7, 8}, 9},
        {"type 7", {0x57, 1, 2, 3, 4, 5, 6, 7, 8}, 9},
        {"a length beyond the end", {0x52, 0x02, 'x'}, 3},
        {"a huge length", {0x52, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 11},
        {"four bytes that end", {0x55, 1, 2, 3}, 4},
        {"eight bytes that end", {0x51, 1, 2, 3, 4, 5, 6, 7}, 8},
    };
    static bytes b;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        b.count = 0;
        good_pieces(&b);
        put(&b, rows[i].data, rows[i].count);
        refused(rows[i].title, &b, ISOBIT_E_CONFIG, "not a SentencePiece model, or damaged");
        b.count = 0;
        good_pieces(&b);
        field(&b, 2, rows[i].data, rows[i].count);
        refused(rows[i].title, &b, ISOBIT_E_CONFIG, "the trainer's part is damaged");
        b.count = 0;
        good_pieces(&b);
        field(&b, 3, rows[i].data, rows[i].count);
        refused(rows[i].title, &b, ISOBIT_E_CONFIG, "the normaliser is damaged");
    }
    b.count = 0;
    refused("empty", &b, ISOBIT_E_CONFIG, "it has no pieces");
    number_field(&b, 1, 7);
    refused("pieces that are numbers", &b, ISOBIT_E_CONFIG, "it has no pieces");
    b.count = 0;
    good_pieces(&b);
    static const unsigned char unknown[] = {
        0x50, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x55, 1,    2,
        3,    4,    0x51, 1,    2,    3,    4,    5,    6,    7,    8,    0x52, 0x01, 'x'};
    put(&b, unknown, sizeof unknown);
    accepted("unknown fields", &b, 3);
}

static void test_trainer(void **state) {
    static bytes b, message;
    (void)state;
    for (unsigned type = 0; type < 6; type++) {
        b.count = message.count = 0;
        good_pieces(&b);
        number_field(&message, 3, type);
        field(&b, 2, message.data, message.count);
        if (type == 1 || type == 2)
            accepted("unigram and BPE", &b, 3);
        else
            refused("another type", &b, ISOBIT_E_UNSUPPORTED, "a SentencePiece model of type");
    }
    b.count = message.count = 0;
    good_pieces(&b);
    field(&message, 44, "\xff", 1);
    field(&b, 2, message.data, message.count);
    refused("text of the unknown piece", &b, ISOBIT_E_CONFIG, "text of the unknown piece");
}

static void test_charsmap(void **state) {
    static const struct {
        const char *title, *says;
    } rows[] = {
        {"good", NULL},
        {"a size of its own", "has a wrong size"},
        {"no array", "has a wrong size"},
        {"an array that is too long", "has a wrong size"},
        {"no strings", "do not end"},
        {"a string without its end", "do not end"},
        {"a string that is no UTF-8", "is not valid UTF-8"},
        {"a second string that is no UTF-8", "is not valid UTF-8"},
        {"a child outside", "points outside"},
        {"a string that is not there", "names one that is not there"},
        {"a circle", "goes in circles"},
        {"32 keys", NULL},
        {"33 keys", "begin with each other"},
        {"a shared child", NULL},
        {"a root that points outside", "points outside"},
    };
    static bytes b;
    (void)state;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        for (unsigned number = 3; number <= 5; number += 2) {
            charsmap m = i == 11 ? nested_map(32) : i == 12 ? nested_map(33) : good_map();
            if (i == 1)
                m.size_error = -4;
            if (i == 2)
                m.count = 0;
            if (i == 3)
                m.size_error = 1024;
            if (i == 4)
                m.string_bytes = 0;
            if (i == 5)
                m.strings = "ab";
            if (i == 6)
                m.strings = "\xff\0";
            if (i == 7) {
                m.strings = "a\0\xe2\x96\0";
                m.string_bytes = 5;
            }
            if (i == 8)
                m.units['A'] = node('A', 256, 0);
            if (i == 9)
                m.units[200] = 0x80000002;
            if (i == 10)
                m.units['A'] = node('A', 'A', 0);
            if (i == 13) { /* B and A lead to the same place */
                m.units['A'] = node('A', 'A' ^ 200, 1);
                m.units['B'] = node('B', 'B' ^ 200, 1);
            }
            if (i == 14)
                m.units[0] = node(0, 256, 0);
            b.count = 0;
            good_pieces(&b);
            map_field(&b, number, &m);
            if (rows[i].says)
                refused(rows[i].title, &b, ISOBIT_E_CONFIG, rows[i].says);
            else /* A becomes a, if it is the normaliser; else it is unknown */
                accepted(rows[i].title, &b, 3);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_wire),
        cmocka_unit_test(test_trainer),
        cmocka_unit_test(test_charsmap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
