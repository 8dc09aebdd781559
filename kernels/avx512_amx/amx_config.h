/* SPDX-License-Identifier: MIT
 *
 * The operand of ldtilecfg: palette 1, of the shapes of eight tiles.
 */
#ifndef ISOBIT_AMX_CONFIG_H
#define ISOBIT_AMX_CONFIG_H

#include <stdint.h>

enum { AMX_ROWS = 16, AMX_BYTES = 64, AMX_TILES = 8 }; /* at most, of a tile */

struct amx_config {
    uint8_t palette, start_row, zero[14];
    uint16_t bytes[16]; /* of a row of each tile */
    uint8_t rows[16];
};
_Static_assert(sizeof(struct amx_config) == 64, "as the CPU reads it");

#endif
