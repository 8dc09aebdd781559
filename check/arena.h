/* SPDX-License-Identifier: MIT
 *
 * The memory in which operands lie during a call, between pages that nobody may touch.
 */
#ifndef ISOBIT_CHECK_ARENA_H
#define ISOBIT_CHECK_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include <isobit/check.h>

/* Where an operand lies: against the right guard, against the left one, or `offset` elements past
 * a page boundary. */
enum iso_check_side { ISO_CHECK_RIGHT, ISO_CHECK_LEFT, ISO_CHECK_OFFSET };

/* Once; later calls do nothing. */
void iso_check_arena_init(void);
/* Copies the operands to their places and sets iso_check_operand.at. */
void iso_check_arena_place(struct iso_check_operands *o, enum iso_check_side side, size_t offset);
/* Gaps and surroundings of the outputs; false, and the reason, where one was written to. The inputs
 * look after themselves. */
bool iso_check_arena_intact(char *text, size_t bytes, const struct iso_check_operands *o);
/* The reason of a fault at this address when it is that of an operand. */
bool iso_check_arena_fault(char *text, size_t bytes, const struct iso_check_operands *o,
                           const char *address);

#endif
