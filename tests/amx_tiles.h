/* SPDX-License-Identifier: MIT
 *
 * In place of kernels/avx512_amx/tiles.h: the words of AMX, as functions of test_amx.c.
 */
#ifndef ISOBIT_TESTS_AMX_TILES_H
#define ISOBIT_TESTS_AMX_TILES_H

#include <stddef.h>

#include "avx512_amx/amx_config.h"

void amx_tiles_configure(const struct amx_config *shape);
void amx_tiles_release(void);
void amx_tiles_load(size_t t, const void *from, size_t stride);
void amx_tiles_store(size_t t, void *to, size_t stride);
void amx_tiles_dot_u8_s8(size_t c, size_t a, size_t b);
void amx_tiles_dot_b16(size_t c, size_t a, size_t b);

#define TILE_CONFIGURE(config) amx_tiles_configure(config)
#define TILE_RELEASE() amx_tiles_release()
#define TILE_LOAD(t, from, stride) amx_tiles_load(t, from, stride)
#define TILE_STORE(t, to, stride) amx_tiles_store(t, to, stride)
#define TILE_DOT_U8_S8(c, a, b) amx_tiles_dot_u8_s8(c, a, b)
#define TILE_DOT_B16(c, a, b) amx_tiles_dot_b16(c, a, b)

#endif
