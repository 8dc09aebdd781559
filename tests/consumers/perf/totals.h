/* SPDX-License-Identifier: MIT */
#ifndef TOTALS_H
#define TOTALS_H

#include <stddef.h>

double total(const double *x, size_t n);         /* x[0] + x[1] + ... */
double total_squares(const double *x, size_t n); /* x[0]^2 + x[1]^2 + ... */

#endif
