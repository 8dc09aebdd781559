/* SPDX-License-Identifier: MIT
 *
 * The functions of llama2.c's run.c on isobit. integrations/README.md says how to build it into
 * the program. Compile it with -fopenmp if the program is: then both use the same threads.
 */
#define SHIM_NAME "isobit_llama2c"
#define SHIM_FUNCTIONS(X) X(matmul) X(softmax) X(rmsnorm)
#include "../shim.h"

void matmul(float *xout, float *x, float *w, int n, int d);
void softmax(float *x, int size);
void rmsnorm(float *o, float *x, float *weight, int size);

/* xout = w x; w is [d][n], anywhere in a mapped file. */
void matmul(float *xout, float *x, float *w, int n, int d) {
    SHIM_CALLED(matmul);
    const size_t rows = (size_t)d, k = (size_t)n;
    shim_check(iso_gemv_f32(xout, w, k, x, rows, k, 0, shim_context(rows * k)), "matmul");
}

/* In place. The program calls it from threads of its own, so it has none. */
void softmax(float *x, int size) {
    SHIM_CALLED(softmax);
    const size_t n = (size_t)size;
    shim_check(iso_softmax_f32(x, n, x, n, 1, n, NULL, NULL), "softmax");
}

/* o may be x. */
void rmsnorm(float *o, float *x, float *weight, int size) {
    SHIM_CALLED(rmsnorm);
    const size_t n = (size_t)size;
    const iso_norm_options options = {.size = sizeof options, .gamma = weight, .eps = 1e-5f};
    shim_check(iso_rmsnorm_f32(o, n, x, n, 1, n, &options, NULL), "rmsnorm");
}
