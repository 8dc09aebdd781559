/* SPDX-License-Identifier: MIT
 *
 * compare A B: two files of floats. Prints the largest difference and the largest value of A.
 */
#include <math.h>
#include <stdio.h>

int main(int argc, char **argv) {
    FILE *a = argc == 3 ? fopen(argv[1], "rb") : NULL;
    FILE *b = argc == 3 ? fopen(argv[2], "rb") : NULL;
    if (!a || !b) {
        fprintf(stderr, "usage: compare A B\n");
        return 2;
    }
    enum { PART = 4096 };
    float x[PART], y[PART];
    double largest = 0, value = 0;
    size_t n, total = 0;
    while ((n = fread(x, sizeof *x, PART, a)) > 0) {
        if (fread(y, sizeof *y, n, b) != n)
            break;
        for (size_t i = 0; i < n; i++) {
            const double difference = fabs((double)x[i] - y[i]);
            if (!(difference <= largest)) /* a NaN too */
                largest = difference;
            value = fmax(value, fabs((double)x[i]));
        }
        total += n;
    }
    if (n > 0 || fgetc(b) != EOF || total == 0) {
        fprintf(stderr, "compare: the files have different lengths, or none\n");
        return 1;
    }
    printf("%.3g %.3g\n", largest, value);
    return 0;
}
