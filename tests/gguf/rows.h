/* SPDX-License-Identifier: MIT
 *
 * What maker.c and the tables of rows share.
 */
#ifndef ISOBIT_TESTS_GGUF_ROWS_H
#define ISOBIT_TESTS_GGUF_ROWS_H

#include "../gguf_files.h"

/* Types of values, and of tensors, as the format numbers them. */
enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 };
enum { Q4_0 = 2, Q8_0 = 8, Q4_K = 12, IQ2_XXS = 16, I8_TENSOR = 24, F64_TENSOR = 28, BF16 = 30 };
#define ONE_F32 0x3f800000u

typedef struct gguf_table {
    const gguf_row *rows;
    size_t count;
} gguf_table;
extern const gguf_table gguf_file_rows, gguf_model_rows;

#endif
