/* SPDX-License-Identifier: MIT
 *
 * What the tests of operations on 16, 8 and 4 bits share.
 */
#ifndef ISOBIT_TESTS_FEW_BITS_H
#define ISOBIT_TESTS_FEW_BITS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <isobit/ops.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define assert_ok(call) assert_int_equal((call), ISOBIT_OK)
#define REFUSED(why, call) assert_int_equal((call), ISOBIT_E_##why)
/* What each of them refuses of x [m][k] and y [m][n]; LINEAR(y, ldy, x, ldx, packed). */
#define WRONG_OPERANDS_ARE_REFUSED(LINEAR, y, n, x, k, packed)                                     \
    do {                                                                                           \
        REFUSED(NULL, LINEAR(NULL, n, x, k, packed));                                              \
        REFUSED(NULL, LINEAR(y, n, NULL, k, packed));                                              \
        REFUSED(NULL, LINEAR(y, n, x, k, NULL));                                                   \
        REFUSED(LD, LINEAR(y, (n)-1, x, k, packed));                                               \
        REFUSED(LD, LINEAR(y, n, x, (k)-1, packed));                                               \
        REFUSED(ALIAS, LINEAR(y, n, (y) + 3, k, packed));                                          \
    } while (0)

/* Memory that ends at a page nobody may touch; release_one gives the last of it back. For vectors
 * there are 64 bytes more under emulators, which may load a whole one for a masked load. */
extern size_t slack; /* 0, or these */
void *guarded(size_t bytes);
float *floats(size_t n);
uint16_t *halves(size_t n);
void release_one(void);
void release(void);

uint32_t draw(void);
float *random_floats(size_t n);

/* The same bits, or both NaN. */
int same(const float *x, size_t ldx, const float *y, size_t ldy, size_t rows, size_t n);

/* Every set that can run, alone, then with pools of 3, 2 and 16 threads; emulated with the first
 * alone. Levels differ in products of int8. */
extern iso_context ways[];
extern size_t way_count, set_count;
int make_ways(void **unused);
int make_ways_with_levels(void **unused);
int drop_ways(void **unused);

/* A linear layer with packed weights of some kind. */
struct few_linear {
    const void *packed;
    iso_status (*linear)(float *y, size_t ldy, const float *x, size_t ldx, const void *packed,
                         size_t m, const iso_linear_options *options, const iso_context *context);
    iso_status (*workspace_bytes)(size_t *bytes, const void *packed, size_t m,
                                  const iso_context *context);
};

/* It gives m rows the bits of iso_linear_f32 with the weights `wide`: each way, with gaps between
 * the rows of y, with y as the residual, in part, in a workspace; which must not be too small. */
void has_the_bits_of_f32(const struct few_linear *few, const iso_packed *wide, size_t m,
                         iso_activation act);
/* The same of another definition, with weights [n][k]. */
typedef void few_definition(float *y, size_t ldy, const float *x, size_t ldx, const void *arg,
                            size_t m, const iso_linear_options *options);
void has_the_bits(const struct few_linear *few, few_definition *definition, const void *arg,
                  size_t n, size_t k, size_t m, iso_activation act);

/* iso_embed_f32 with a table of some kind. */
struct few_table {
    const void *table;
    iso_status (*embed)(float *y, size_t ldy, const uint32_t *ids, size_t count,
                        const struct few_table *table, size_t vocabulary, size_t d, float scale,
                        const float *positions, const uint32_t *position_rows,
                        size_t position_count, const iso_context *context);
    iso_w16 type;
    const iso_q_format *format;
};
enum { FEW_VOCABULARY = 37 };
void embeds_as_f32(const struct few_table *table, const float *wide, size_t d, int positions);

#endif
