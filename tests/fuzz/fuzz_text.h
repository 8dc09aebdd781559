/* SPDX-License-Identifier: MIT
 *
 * A tokenizer of one sequence for each text at work.
 */
#ifndef ISOBIT_TESTS_FUZZ_TEXT_H
#define ISOBIT_TESTS_FUZZ_TEXT_H

#include "fuzz.h"

/* Cuts a text with and without room, and joins it again, whole and token by token. */
void fuzz_use_tokenizer(const iso_tokenizer *t, const uint8_t *data, size_t bytes);

#endif
