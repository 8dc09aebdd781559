/* SPDX-License-Identifier: MIT
 *
 * The good model that inputs of fuzz_model patch: config.json followed by model.safetensors.
 */
#ifndef ISOBIT_TESTS_FUZZ_BASE_H
#define ISOBIT_TESTS_FUZZ_BASE_H

#include <stddef.h>
#include <stdint.h>

typedef struct fuzz_base {
    uint8_t *bytes;
    size_t config_bytes, weights_bytes;
} fuzz_base;

const fuzz_base *fuzz_base_model(int int8); /* made at the first call */

#endif
