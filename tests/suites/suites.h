/* SPDX-License-Identifier: MIT
 *
 * Shorthand for the lists of cases.
 */
#ifndef ISOBIT_TESTS_SUITES_H
#define ISOBIT_TESTS_SUITES_H

#define iso_count(array) (sizeof(array) / sizeof *(array))

/* iso_add(list, thin, fill, flags, parameters ...) */
#define iso_add(list, thin, kind, flag_bits, ...)                                                  \
    iso_cases_add(                                                                                 \
        list, (struct iso_case){.p = {__VA_ARGS__}, .fill = (kind), .flags = (flag_bits)}, thin)

#endif
