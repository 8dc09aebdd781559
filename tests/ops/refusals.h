/* SPDX-License-Identifier: MIT
 *
 * What the tests of refusals share.
 */
#ifndef ISOBIT_TESTS_OPS_REFUSALS_H
#define ISOBIT_TESTS_OPS_REFUSALS_H

#include "test_ops.h"

/* Sizes that are wrong in one respect each. Outputs must stay as they were. */
enum { EM = 5, EN = 7, EK = 6, EX = 4096 };
extern float ea[EX], eb[EX], ec[EX], er[EX];
static const size_t huge = SIZE_MAX / 8;

#define refuses(status, call)                                                                      \
    do {                                                                                           \
        for (size_t i_ = 0; i_ < EX; i_++)                                                         \
            ec[i_] = CANARY;                                                                       \
        assert_int_equal((call), (status));                                                        \
        assert_true(all_canaries(ec, EX));                                                         \
    } while (0)

void fill_error_operands(void);

#endif
