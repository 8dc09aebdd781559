/* SPDX-License-Identifier: MIT
 *
 * Calls BLAS as ggml's BLAS backend does: row-major, weights transposed, one plane after the other
 * where weights are shared by several planes, from whatever thread the program is in. */
#include "pattern.h"

#include <isobit/cblas.h>

#include <pthread.h>

/* dst[plane][token][out] = src1[plane][token][in] . src0[plane / shared][out][in]: weights have
 * their longest dimension in memory, and so have tokens. */
typedef struct {
    size_t out, tokens, in, planes, shared;
    const float *weights, *input;
} mul_mat;

static void run_mul_mat(const void *argument, float *dst) {
    const mul_mat *op = argument;
    for (size_t plane = 0; plane < op->planes; plane++)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)op->tokens, (int)op->out,
                    (int)op->in, 1.0F, op->input + plane * op->tokens * op->in, (int)op->in,
                    op->weights + plane / op->shared * op->out * op->in, (int)op->in, 0.0F,
                    dst + plane * op->tokens * op->out, (int)op->out);
}

/* dst[m][n] = src1^T src0, src1 [k][m] or already transposed [m][k], src0 [k][n]. */
typedef struct {
    size_t m, n, k;
    int transposed;
    const float *src0, *src1;
} out_prod;

static void run_out_prod(const void *argument, float *dst) {
    const out_prod *op = argument;
    cblas_sgemm(CblasRowMajor, op->transposed ? CblasNoTrans : CblasTrans, CblasNoTrans, (int)op->m,
                (int)op->n, (int)op->k, 1.0F, op->src1, (int)(op->transposed ? op->k : op->m),
                op->src0, (int)op->n, 0.0F, dst, (int)op->n);
}

/* An output that is not to be read: beta is 0. */
static float *not_numbers(size_t count) {
    float *values = must(malloc((count + 1) * sizeof *values));
    for (size_t i = 0; i < count; i++)
        values[i] = NAN;
    return values;
}

static void test_mul_mat(void) {
    static const mul_mat shapes[] = {
        {32, 32, 32, 1, 1, NULL, NULL},   {33, 47, 65, 1, 1, NULL, NULL},
        {96, 512, 64, 1, 1, NULL, NULL},  {256, 40, 1024, 1, 1, NULL, NULL},
        {64, 32, 128, 8, 4, NULL, NULL},  {1000, 33, 32, 1, 1, NULL, NULL},
        {32, 200, 2816, 1, 1, NULL, NULL}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        mul_mat op = shapes[s];
        char what[100];
        snprintf(what, sizeof what, "MUL_MAT %zux%zux%zu, %zu planes", op.out, op.tokens, op.in,
                 op.planes);
        float *weights = random_floats(op.planes / op.shared * op.out * op.in, 1);
        float *input = random_floats(op.planes * op.tokens * op.in, 2);
        const size_t plane_size = op.tokens * op.out, count = op.planes * plane_size;
        float *start = not_numbers(count), *result = not_numbers(count);
        op.weights = weights;
        op.input = input;
        same_bits(what, run_mul_mat, &op, start, result, count);
        for (size_t p = 0; p < op.planes; p++)
            check_product(what, (view){result + p * plane_size, op.out, 1},
                          (view){input + p * op.tokens * op.in, op.in, 1},
                          (view){weights + p / op.shared * op.out * op.in, 1, op.in},
                          (view){NULL, 0, 0}, op.tokens, op.out, op.in);
        free(weights);
        free(input);
        free(start);
        free(result);
    }
}

static void test_out_prod(void) {
    static const size_t shapes[][3] = {{1, 1, 1},   {256, 16, 16}, {16, 256, 10}, {3, 1, 64},
                                       {1, 64, 96}, {96, 80, 1},   {65, 33, 129}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int transposed = 0; transposed <= 1; transposed++) {
            const size_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
            char what[100];
            snprintf(what, sizeof what, "OUT_PROD %zux%zux%zu%s", m, n, k,
                     transposed ? ", transposed" : "");
            float *src0 = random_floats(k * n, 3), *src1 = random_floats(k * m, 4);
            float *start = not_numbers(m * n), *result = not_numbers(m * n);
            const out_prod op = {m, n, k, transposed, src0, src1};
            same_bits(what, run_out_prod, &op, start, result, m * n);
            check_product(what, (view){result, n, 1},
                          (view){src1, transposed ? k : 1, transposed ? 1 : m}, (view){src0, n, 1},
                          (view){NULL, 0, 0}, m, n, k);
            free(src0);
            free(src1);
            free(start);
            free(result);
        }
}

static void *in_thread(void *unused) {
    (void)unused;
    test_mul_mat();
    return NULL;
}

int main(void) {
    test_mul_mat();
    test_out_prod();
    /* A server decodes in another thread than the one that has loaded the model. */
    pthread_t thread;
    if (pthread_create(&thread, NULL, in_thread, NULL) != 0 || pthread_join(thread, NULL) != 0)
        FAIL("no thread");
    return end("pattern_ggml");
}
