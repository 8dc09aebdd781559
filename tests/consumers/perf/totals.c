/* SPDX-License-Identifier: MIT */
#include "totals.h"

#define ROUNDS 1

double total(const double *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

double total_squares(const double *x, size_t n) {
    double sum = 0;
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < n; i++)
            sum += x[i] * x[i];
    return sum / ROUNDS;
}
