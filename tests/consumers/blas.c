/* SPDX-License-Identifier: MIT
 *
 * A product of two matrices, as any program asks a BLAS for it.
 */
#include <isobit/cblas.h>
#include <stdio.h>

int main(void) {
    const float a[2][3] = {{1, 2, 3}, {4, 5, 6}}, b[3][2] = {{1, 0}, {0, 1}, {0.1f, 0.2f}};
    float c[2][2];
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 2, 3, 1.0f, a[0], 3, b[0], 2, 0.0f,
                c[0], 2);
    printf("%a %a %a %a\n", c[0][0], c[0][1], c[1][0], c[1][1]);
}
