/* SPDX-License-Identifier: MIT
 *
 * The tile instructions. Written in assembly, since what the intrinsics of gcc 12 say of the memory
 * that they read is not the truth: a store before them may be left out.
 */
#ifndef ISOBIT_AMX_TILES_H
#define ISOBIT_AMX_TILES_H

#include <stddef.h>
#include <stdint.h>

#include "amx_config.h"

#define TILE_CONFIGURE(config) __asm__ volatile("ldtilecfg %0" ::"m"(*(config)))
#define TILE_RELEASE() __asm__ volatile("tilerelease" ::)
/* Tile t: rows of bytes, `stride` bytes apart. */
/* clang-format off */
#define TILE_LOAD(t, from, stride)                                                                 \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t                                               \
                     : : "r"(from), "r"((size_t)(stride)) : "memory")
#define TILE_STORE(t, to, stride)                                                                  \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)"                                           \
                     : : "r"(to), "r"((size_t)(stride)) : "memory")
/* clang-format on */
/* Sums c += products of a, bytes without sign, and b, bytes with one; four of them each. */
#define TILE_DOT_U8_S8(c, a, b) __asm__ volatile("tdpbusd %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::)
/* The same of pairs of BF16, whose sums are f32. */
#define TILE_DOT_B16(c, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::)

#endif
