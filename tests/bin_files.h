/* SPDX-License-Identifier: MIT
 *
 * Files as torch.save writes them, made piece by piece so that each rule can be broken alone, and
 * the rows of those that break one: test_checkpoints.c runs them, fuzz/seeds.c writes them out.
 */
#ifndef ISOBIT_TESTS_BIN_FILES_H
#define ISOBIT_TESTS_BIN_FILES_H

#include "model_files.h"

#include <isobit/isobit.h>

/* A member of an archive, a storage, a pickle: bytes, perhaps with a name. */
typedef struct bin_part {
    const char *name;
    const void *data;
    size_t bytes;
} bin_part;

enum { BIN_PARTS = 8 };

/* Where what is in an archive. */
typedef struct bin_places {
    size_t local[BIN_PARTS], entry[BIN_PARTS], end64, locator, end;
} bin_places;

/* A ZIP archive of up to BIN_PARTS members. zip64: with ends of 64 bits, as torch writes them. */
blob bin_zip(const bin_part *members, size_t count, int zip64, bin_places *places);
/* An archive with this data.pkl, the byte order, and the storages of bin_storages. */
blob bin_zip_of(const void *pickle, size_t bytes, int zip64, bin_places *places);
/* The older form: magic number, four pickles, the rest. */
blob bin_legacy(const bin_part pickles[4], const void *rest, size_t bytes);
/* The older form with this pickle, the keys and the data of bin_storages. */
blob bin_legacy_of(const void *pickle, size_t bytes);

/* "0": 24 bytes, the floats 1 to 6. "1": 16 bytes. */
extern const bin_part bin_storages[2];
/* A state dict of one tensor, "a", [2][3], in storage "0"; for the older form: of one more. */
extern const bin_part bin_good_pickle, bin_good_pair;

/* A pickle that is refused, or (ISOBIT_OK) is not. */
typedef struct bin_pickle_row {
    const char *name;
    iso_status status;
    const char *says;
    const char *text;
    size_t bytes;
} bin_pickle_row;
extern const bin_pickle_row bin_pickles[];
extern const size_t bin_pickle_count;

/* An archive of bin_good_pickle with some bytes of one place changed. */
typedef enum bin_place { BIN_LOCAL, BIN_ENTRY, BIN_END64, BIN_LOCATOR, BIN_END } bin_place;
typedef struct bin_zip_row {
    const char *name;
    iso_status status;
    const char *says;
    int zip64;
    bin_place place;
    size_t which; /* member: 0 data.pkl, 1 byteorder, 2 data/0, 3 data/1 */
    size_t at, bytes;
    unsigned char to[8];
} bin_zip_row;
extern const bin_zip_row bin_zips[];
extern const size_t bin_zip_count;
blob bin_zip_spoilt(const bin_zip_row *row);

/* The older form with one of its four pickles, or the rest, replaced. */
typedef struct bin_legacy_row {
    const char *name;
    iso_status status;
    const char *says;
    int which; /* 4: the rest */
    const char *text;
    size_t bytes;
} bin_legacy_row;
extern const bin_legacy_row bin_legacies[];
extern const size_t bin_legacy_count;
blob bin_legacy_spoilt(const bin_legacy_row *row);

#endif
