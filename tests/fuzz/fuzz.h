/* SPDX-License-Identifier: MIT
 *
 * What the fuzz targets share. A target is a file with LLVMFuzzerTestOneInput: with libFuzzer
 * (ISOBIT_FUZZ) it is fuzzed, with replay.c it runs over the files of a directory.
 */
#ifndef ISOBIT_TESTS_FUZZ_H
#define ISOBIT_TESTS_FUZZ_H

#include <isobit/model.h>

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* A promise of the library that does not hold: says so and aborts. */
#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fuzz_broken(__FILE__, __LINE__, #condition);                                           \
    } while (0)
_Noreturn void fuzz_broken(const char *file, int line, const char *condition);

/* What must hold of every refusal: the same code twice, one printable sentence. */
void fuzz_check_error(iso_status status, const iso_error *error);

/* Equal bits, of floats too. */
int fuzz_equal(const void *a, const void *b, size_t bytes);

/* A copy of exactly that size, so that a sanitizer sees the first byte too far. */
void *fuzz_copy(const void *data, size_t bytes);

/*
 * Files in memory: while one of that plain name is set, the libraries find it in the directory
 * "fuzz:" (the linker sends open, fstat, pread and close through files.c). No file system is
 * needed, nor as slow.
 */
#define FUZZ_DIRECTORY "fuzz:"
void fuzz_file(const char *name, const void *data, size_t bytes); /* data must stay; NULL: none */
void fuzz_no_files(void);

/* Splits at a byte that no UTF-8 text has. The last part takes the rest. */
enum { FUZZ_SPLIT = 0xff };
size_t fuzz_split(const uint8_t *data, size_t bytes, const uint8_t **parts, size_t *sizes,
                  size_t most);

#endif
