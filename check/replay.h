/* SPDX-License-Identifier: MIT
 *
 * "gemv isa=avx2 at=right n=19 ... fill=uniform kind=8 seed=0x12 offset=13": all that a case
 * consists of (kind is iso_check_case.flags). isa and at are for the reader: a replay runs all
 * variants and places, since bits are compared.
 */
#ifndef ISOBIT_CHECK_REPLAY_H
#define ISOBIT_CHECK_REPLAY_H

#include "engine.h"

void iso_check_replay_text(char *line, size_t bytes, const struct iso_check_failure *f);
/* NULL, or the word that makes no sense. */
const char *iso_check_replay_parse(const char *line, const struct iso_check_target *target,
                                   const struct iso_check_suite **suite, struct iso_check_case *c,
                                   size_t *offset);

/* A whole text that is a number, decimal or 0x. */
bool iso_check_number(uint64_t *value, const char *text);
/* The place of a parameter in suite->params, or -1. */
int iso_check_parameter(const struct iso_check_suite *suite, const char *name, size_t length);

#endif
