/* SPDX-License-Identifier: MIT
 *
 * See bin_files.h: archives, and those with some bytes changed.
 */
#include "../bin_files.h"

#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

static void put(blob *b, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char byte = (unsigned char)(i < 8 ? value >> 8 * i : 0);
        blob_add(b, &byte, 1);
    }
}

/* What a member's own header and its entry in the directory share. */
static void put_member(blob *b, const bin_part *m) {
    put(b, 0x0808, 2); /* flags: a name in UTF-8, sizes behind the member */
    put(b, 0, 2);      /* stored */
    put(b, 0, 4);      /* time */
    put(b, 0, 4);      /* a checksum that nobody looks at */
    put(b, m->bytes, 4);
    put(b, m->bytes, 4);
    put(b, strlen(m->name), 2);
}

blob bin_zip(const bin_part *members, size_t count, int zip64, bin_places *places) {
    blob b = {0};
    for (size_t i = 0; i < count; i++) {
        places->local[i] = b.count;
        put(&b, 0x04034b50, 4);
        put(&b, 0, 2);
        put_member(&b, &members[i]);
        put(&b, 8, 2); /* an extra field, as that with which torch aligns storages */
        blob_add(&b, members[i].name, strlen(members[i].name));
        put(&b, 0x00044246, 4);
        put(&b, 0, 4);
        blob_add(&b, members[i].data, members[i].bytes);
    }
    const size_t directory = b.count;
    for (size_t i = 0; i < count; i++) {
        places->entry[i] = b.count;
        put(&b, 0x02014b50, 4);
        put(&b, 0, 4);
        put_member(&b, &members[i]);
        put(&b, zip64 ? 12 : 0, 2); /* extra */
        put(&b, 0, 10);             /* comment, disk, attributes */
        put(&b, zip64 ? UINT32_MAX : places->local[i], 4);
        blob_add(&b, members[i].name, strlen(members[i].name));
        if (zip64) {
            put(&b, 0x00080001, 4);
            put(&b, places->local[i], 8);
        }
    }
    const size_t bytes = b.count - directory;
    places->end64 = b.count;
    if (zip64) {
        put(&b, 0x06064b50, 4);
        put(&b, 44, 8);
        put(&b, 0, 12);
        put(&b, count, 8);
        put(&b, count, 8);
        put(&b, bytes, 8);
        put(&b, directory, 8);
    }
    places->locator = b.count;
    if (zip64) {
        put(&b, 0x07064b50, 4);
        put(&b, 0, 4);
        put(&b, places->end64, 8);
        put(&b, 1, 4);
    }
    places->end = b.count;
    put(&b, 0x06054b50, 4);
    put(&b, 0, 4);
    put(&b, zip64 ? UINT16_MAX : count, 2);
    put(&b, zip64 ? UINT16_MAX : count, 2);
    put(&b, zip64 ? UINT32_MAX : bytes, 4);
    put(&b, zip64 ? UINT32_MAX : directory, 4);
    put(&b, 0, 2);
    return b;
}

static const unsigned char floats[] = {0, 0, 0x80, 0x3f, 0, 0, 0,    0x40, 0, 0, 0x40, 0x40,
                                       0, 0, 0x80, 0x40, 0, 0, 0xa0, 0x40, 0, 0, 0xc0, 0x40};
static const unsigned char zeros[16];
const bin_part bin_storages[2] = {{"0", floats, sizeof floats}, {"1", zeros, sizeof zeros}};

blob bin_zip_of(const void *pickle, size_t bytes, int zip64, bin_places *places) {
    const bin_part members[] = {{"some name/data.pkl", pickle, bytes},
                                {"some name/byteorder", "little", 6},
                                {"some name/data/0", floats, sizeof floats},
                                {"some name/data/1", zeros, sizeof zeros}};
    return bin_zip(members, COUNT(members), zip64, places);
}

/* Where, of which member, from which byte on so many bytes become these. */
#define AT(place, which, at, bytes, ...)                                                           \
    place, which, at, bytes, { __VA_ARGS__ }

const bin_zip_row bin_zips[] = {
    {"good", ISOBIT_OK, "", 0, AT(BIN_END, 0, 0, 0, 0)},
    {"good, 64 bits", ISOBIT_OK, "", 1, AT(BIN_END, 0, 0, 0, 0)},
    {"end", ISOBIT_E_TRUNCATED, "does not end with its directory", 0, AT(BIN_END, 0, 0, 1, 1)},
    {"comment", ISOBIT_E_TRUNCATED, "has something behind", 0, AT(BIN_END, 0, 20, 1, 1)},
    {"disk", ISOBIT_E_UNSUPPORTED, "several parts", 0, AT(BIN_END, 0, 4, 1, 1)},
    {"disk of the directory", ISOBIT_E_UNSUPPORTED, "several parts", 0, AT(BIN_END, 0, 6, 1, 1)},
    {"members here", ISOBIT_E_UNSUPPORTED, "several parts", 0, AT(BIN_END, 0, 8, 1, 3)},
    {"fewer members", ISOBIT_E_CONFIG, "more than its members", 0, AT(BIN_END, 0, 8, 4, 3, 0, 3)},
    {"more members", ISOBIT_E_CONFIG, "cannot be read", 0, AT(BIN_END, 0, 8, 4, 5, 0, 5)},
    {"65534 members", ISOBIT_E_CONFIG, "too short for its members", 0,
     AT(BIN_END, 0, 8, 4, 0xfe, 0xff, 0xfe, 0xff)},
    {"size of the directory", ISOBIT_E_OFFSET, "right before its end", 0, AT(BIN_END, 0, 12, 1, 1)},
    {"place of the directory", ISOBIT_E_OFFSET, "right before its end", 0,
     AT(BIN_END, 0, 16, 1, 1)},
    {"directory behind the end", ISOBIT_E_OFFSET, "right before its end", 0,
     AT(BIN_END, 0, 16, 4, 0xff, 0xff, 0xff, 0x7f)},
    {"the ends disagree", ISOBIT_E_CONFIG, "two ends disagree", 1,
     AT(BIN_END, 0, 12, 4, 1, 0, 0, 0)},
    {"locator", ISOBIT_E_OFFSET, "right before its end", 1, AT(BIN_LOCATOR, 0, 0, 1, 1)},
    {"disk of the end", ISOBIT_E_UNSUPPORTED, "several parts", 1, AT(BIN_LOCATOR, 0, 4, 1, 1)},
    {"disks", ISOBIT_E_UNSUPPORTED, "several parts", 1, AT(BIN_LOCATOR, 0, 16, 1, 2)},
    {"place of the end", ISOBIT_E_OFFSET, "not where it should be", 1, AT(BIN_LOCATOR, 0, 8, 1, 1)},
    {"end far away", ISOBIT_E_OFFSET, "not where it should be", 1,
     AT(BIN_LOCATOR, 0, 8, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)},
    {"large end", ISOBIT_E_OFFSET, "not where it should be", 1, AT(BIN_END64, 0, 0, 1, 1)},
    {"size of the large end", ISOBIT_E_OFFSET, "not where it should be", 1,
     AT(BIN_END64, 0, 4, 1, 45)},
    {"disk, large", ISOBIT_E_UNSUPPORTED, "several parts", 1, AT(BIN_END64, 0, 16, 1, 1)},
    {"disk of the directory, large", ISOBIT_E_UNSUPPORTED, "several parts", 1,
     AT(BIN_END64, 0, 20, 1, 1)},
    {"members here, large", ISOBIT_E_UNSUPPORTED, "several parts", 1, AT(BIN_END64, 0, 24, 1, 3)},
    {"2^62 bytes of directory", ISOBIT_E_OFFSET, "right before its end", 1,
     AT(BIN_END64, 0, 47, 1, 0x40)},
    {"directory at 2^62", ISOBIT_E_OFFSET, "right before its end", 1,
     AT(BIN_END64, 0, 55, 1, 0x40)},
    {"entry", ISOBIT_E_CONFIG, "cannot be read", 0, AT(BIN_ENTRY, 1, 0, 1, 1)},
    {"name too long", ISOBIT_E_CONFIG, "cannot be read", 0, AT(BIN_ENTRY, 3, 28, 1, 99)},
    {"extra too long", ISOBIT_E_CONFIG, "cannot be read", 0, AT(BIN_ENTRY, 3, 30, 1, 99)},
    {"comment too long", ISOBIT_E_CONFIG, "cannot be read", 0, AT(BIN_ENTRY, 3, 32, 1, 99)},
    {"two sizes", ISOBIT_E_CONFIG, "cannot be read", 0, AT(BIN_ENTRY, 2, 20, 1, 23)},
    {"large place left out", ISOBIT_E_CONFIG, "cannot be read", 0,
     AT(BIN_ENTRY, 2, 42, 4, 0xff, 0xff, 0xff, 0xff)},
    {"large place of the last left out", ISOBIT_E_CONFIG, "cannot be read", 0,
     AT(BIN_ENTRY, 3, 42, 4, 0xff, 0xff, 0xff, 0xff)},
    {"field of another kind", ISOBIT_E_CONFIG, "cannot be read", 1,
     AT(BIN_ENTRY, 0, 46 + 18, 1, 2)},
    {"field too long", ISOBIT_E_CONFIG, "cannot be read", 1, AT(BIN_ENTRY, 0, 46 + 18 + 2, 1, 9)},
    {"field too short", ISOBIT_E_CONFIG, "cannot be read", 1, AT(BIN_ENTRY, 0, 46 + 18 + 2, 1, 7)},
    {"compressed", ISOBIT_E_UNSUPPORTED,
     "pytorch_model.bin: the ZIP archive: member \"some name/data/0\" is compressed", 0,
     AT(BIN_ENTRY, 2, 10, 1, 8)},
    {"compressed pickle", ISOBIT_E_UNSUPPORTED, "member \"some name/data.pkl\" is compressed", 0,
     AT(BIN_ENTRY, 0, 10, 1, 8)},
    {"encrypted", ISOBIT_E_UNSUPPORTED, "member \"some name/data/0\" is encrypted", 0,
     AT(BIN_ENTRY, 2, 8, 1, 9)},
    {"no pickle", ISOBIT_E_MISSING, "no member data.pkl", 0, AT(BIN_ENTRY, 0, 46 + 10, 1, 'D')},
    {"no folder", ISOBIT_E_MISSING, "no member data.pkl", 0, AT(BIN_ENTRY, 0, 46 + 9, 1, '.')},
    {"deeper folder", ISOBIT_E_MISSING, "no member data.pkl", 0, AT(BIN_ENTRY, 0, 46 + 2, 1, '/')},
    {"no storage", ISOBIT_E_MISSING, "storage \"0\" is not in", 0,
     AT(BIN_ENTRY, 2, 46 + 15, 1, '7')},
    {"the same name", ISOBIT_E_DUPLICATE, "two members \"some name/data/1\"", 0,
     AT(BIN_ENTRY, 2, 46 + 15, 1, '1')},
    {"member far away", ISOBIT_E_OFFSET, "\"some name/data/0\" is not inside the file", 0,
     AT(BIN_ENTRY, 2, 42, 4, 0xff, 0xff, 0xff, 0x7f)},
    {"member in the directory", ISOBIT_E_OFFSET, "\"some name/data.pkl\" is not inside the file", 1,
     AT(BIN_ENTRY, 0, 46 + 18 + 4, 8, 0, 0, 0, 0, 0, 0, 0, 0x80)},
    {"member of another place", ISOBIT_E_CONFIG, "\"some name/data/0\" is another one", 0,
     AT(BIN_ENTRY, 2, 42, 1, 1)},
    {"its own header", ISOBIT_E_CONFIG, "\"some name/data/0\" is another one", 0,
     AT(BIN_LOCAL, 2, 0, 1, 1)},
    {"its own method", ISOBIT_E_CONFIG, "\"some name/data/0\" is another one", 0,
     AT(BIN_LOCAL, 2, 8, 1, 8)},
    {"its own name", ISOBIT_E_CONFIG, "\"some name/data/0\" is another one", 0,
     AT(BIN_LOCAL, 2, 26, 1, 17)},
    {"its own extra", ISOBIT_E_OFFSET, "\"some name/data/0\" is not inside the file", 0,
     AT(BIN_LOCAL, 2, 28, 2, 0xff, 0xff)},
    {"member too long", ISOBIT_E_OFFSET, "\"some name/data/0\" is not inside the file", 0,
     AT(BIN_ENTRY, 2, 20, 8, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f)},
    {"member longer", ISOBIT_E_OFFSET, "storage \"0\" has another size", 0,
     AT(BIN_ENTRY, 2, 20, 5, 25, 0, 0, 0, 25)},
    {"big-endian", ISOBIT_E_UNSUPPORTED, "its byteorder is neither", 0,
     AT(BIN_LOCAL, 1, 30 + 19 + 8, 3, 'b', 'i', 'g')},
};
const size_t bin_zip_count = COUNT(bin_zips);

blob bin_zip_spoilt(const bin_zip_row *row) {
    bin_places p;
    blob b = bin_zip_of(bin_good_pickle.data, bin_good_pickle.bytes, row->zip64, &p);
    const size_t places[] = {p.local[row->which], p.entry[row->which], p.end64, p.locator, p.end};
    memcpy(b.bytes + places[row->place] + row->at, row->to, row->bytes);
    return b;
}
