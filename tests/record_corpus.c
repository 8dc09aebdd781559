/* SPDX-License-Identifier: MIT
 *
 * See record_corpus.h. The numbers below are offsets in the good file.
 */
#include "record_corpus.h"

#include <stdint.h>
#include <string.h>
#include <xxhash.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* clang-format off */
static const unsigned char good[] =
    "\x89ISOREC\n"
    "\1\0\0\0" "\3\0\0\0"               /* 8: version 1, numerics 3 */
    "........"                          /* 16: size */
    "\1\0\0\0" "\3\0\0\0"               /* 24: full plan, 3 sections */
    "\1\0\0\0" "\4\0\0\0"               /* 32: part 1 (the second) of 4 */
    "\5\0\0\0\0\0\0\0"                  /* 40: 5 random cases */
    "\6\1\0\0\0\0\0\x80"                /* 48: of this seed */
    "\6\0isobit" "\5\0" "0.1.0"         /* 56, 64 */
    "\1\0m" "\0\0" "\3\0gcc"            /* 71, 74, 76 */
    "\7\0softmax" "\0\0" "\2\0\0\0"     /* 81, 90, 92 */
    "\1\2\3\4" "\x11\x12\x13\x14\x15\x16\x17\x18" /* 96, 100 */
    "\xfa\xff\2" "\xff\x80"             /* 108: error, ULP, samples; 111 */
    "\1\2\3\5" "\x21\x22\x23\x24\x25\x26\x27\x28" /* 113 */
    "\xff\x0a\0"                        /* 125 */
    "\4\0peak" "\4\0avx2" "\0\0\0\0"    /* 128, 134, 140 */
    "\4\0peak" "\6\0scalar" "\1\0\0\0"  /* 144, 150, 158 */
    "\1\0\0\0" "\1\0\0\0\0\0\0\0"       /* 162 */
    "\0\0\1" "\x7f"                     /* 174, 177 */
    "........";                         /* 178: checksum */
/* clang-format on */

static void put(unsigned char *to, uint64_t value) {
    for (unsigned i = 0; i < 8; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

void record_seal(unsigned char *bytes, size_t size) {
    if (size < 32)
        return;
    put(bytes + 16, size);
    put(bytes + size - 8, XXH3_64bits(bytes, size - 8));
}

blob record_good(void) {
    blob b = {0};
    blob_add(&b, good, sizeof good - 1);
    record_seal(b.bytes, b.count);
    return b;
}

blob record_spoilt(const record_row *row) {
    blob b = record_good();
    memcpy(b.bytes + row->at, row->with, row->bytes);
    for (long i = 0; i < row->more; i++)
        blob_add(&b, "", 1);
    if (row->more < 0)
        b.count -= (size_t)-row->more;
    if (row->sealed)
        record_seal(b.bytes, b.count);
    return b;
}

#define SEALED(name, says, at, with)                                                               \
    { name, says, at, with, sizeof(with) - 1, 0, 1 }
#define RAW(name, says, at, with, more)                                                            \
    { name, says, at, with, sizeof(with) - 1, more, 0 }

const record_row record_rows[] = {
    RAW("empty", "not a file", 0, "", -(long)(sizeof good - 1)),
    RAW("one byte", "not a file", 0, "", -(long)(sizeof good - 2)),
    RAW("other magic", "not a file", 0,
        "\x7f"
        "ELF",
        0),
    RAW("line ends of another system", "not a file", 7, "\r\n", 0),
    RAW("header cut", "ends within its header", 0, "", 60 - (long)(sizeof good - 1)),
    RAW("cut by a byte", "cut: it has 185 of 186 bytes", 0, "", -1),
    RAW("cut in the middle", "cut: it has 100 of 186 bytes", 0, "", 100 - (long)(sizeof good - 1)),
    RAW("a byte behind its end", "187 bytes instead of 186", 0, "", 1),
    RAW("size 0", "instead of 0", 16, "\0\0\0\0\0\0\0\0", 0),
    RAW("size 2^64-1", "cut: it has 186 of 18446744073709551615", 16,
        "\xff\xff\xff\xff\xff\xff\xff\xff", 0),
    RAW("checksum", "damaged", 178, "\0\0\0\0\0\0\0\0", 0),
    RAW("numerics changed", "damaged", 12, "\2", 0),
    RAW("a hash changed", "damaged", 100, "\x12", 0),
    RAW("newer", "version 2 of the format, of a newer isobit; this one reads 1", 8, "\2", 0),
    SEALED("newer and sealed", "version 4294967295", 8, "\xff\xff\xff\xff"),
    SEALED("version 0", "does not exist", 8, "\0"),
    SEALED("plan 2", "a plan or a number of sections", 24, "\2"),
    SEALED("plan 2^31", "a plan or a number of sections", 27, "\x80"),
    SEALED("many sections", "a plan or a number of sections", 28, "\xff\xff\xff\xff"),
    SEALED("a section more", "a text is cut", 28, "\4"),
    SEALED("a section less", "belong to no section", 28, "\2"),
    SEALED("no section", "belong to no section", 28, "\0"),
    SEALED("part 4 of 4", "a part", 32, "\4"),
    SEALED("part 1 of 0", "a part", 36, "\0"),
    SEALED("target too long", "longer than", 56, "\0\1"),
    SEALED("target 65535", "longer than", 56, "\xff\xff"),
    SEALED("target empty", "a name is empty", 56, "\0"),
    SEALED("escape in the target", "not printable", 58, "\x1b"),
    SEALED("NUL in the target", "not printable", 60, "\0"),
    SEALED("UTF-8 in the machine", "not printable", 73, "\xc3"),
    SEALED("suite empty", "a name is empty", 81, "\0"),
    SEALED("suite of 64 bytes", "longer than", 81, "\x40"),
    SEALED("newline in a variant", "not printable", 137, "\n"),
    SEALED("section twice", "twice", 134, "\4\0avx2\0\0\0\0\4\0peak\4\0avx2\0\0\1\0\0\0"),
    SEALED("2^32-1 cases", "fewer cases", 92, "\xff\xff\xff\xff"),
    SEALED("a case more", "fewer cases", 158, "\2"),
    SEALED("a case less", "belong to no section", 158, "\0"),
    SEALED("error beyond the bound", "beyond its bound", 108, "\xfb"),
    SEALED("17 samples", "more samples", 110, "\x11"),
    SEALED("a sample that is not there", "more samples", 176, "\2"),
};
const size_t record_row_count = COUNT(record_rows);
