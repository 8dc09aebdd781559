/* SPDX-License-Identifier: MIT
 *
 * Calls BLAS as PyTorch does where it has no MKL: the Fortran symbols, declared without the hidden
 * lengths of strings, and row-major tensors as transposed column-major ones. The shapes are those
 * of nn.Transformer, some of them smaller; a head of attention is a slice of rows that lie
 * batch x width apart. */
#include "pattern.h"

void sgemm_(const char *trans_a, const char *trans_b, const int *m, const int *n, const int *k,
            const float *alpha, const float *a, const int *lda, const float *b, const int *ldb,
            const float *beta, float *c, const int *ldc);
void sgemv_(const char *trans, const int *m, const int *n, const float *alpha, const float *a,
            const int *lda, const float *x, const int *incx, const float *beta, float *y,
            const int *incy);
void saxpy_(const int *n, const float *alpha, const float *x, const int *incx, float *y,
            const int *incy);
float sdot_(const int *n, const float *x, const int *incx, const float *y, const int *incy);

typedef struct {
    const char *what;
    char trans_a, trans_b;
    int m, n, k, lda, ldb, ldc;
    float beta;
} product_form;

/* From a forward pass and a training step of nn.Transformer. */
static const product_form forms[] = {
    {"linear, bias in C", 'T', 'N', 1536, 16, 512, 512, 512, 1536, 1},
    {"linear, bias in C", 'T', 'N', 512, 20, 512, 512, 512, 512, 1},
    {"linear, narrow", 'T', 'N', 48, 24, 2048, 2048, 2048, 48, 1},
    {"linear, one token", 'T', 'N', 512, 1, 512, 512, 512, 512, 1},
    {"query x key of a head", 'T', 'N', 128, 64, 64, 4096, 4096, 128, 0},
    {"query x key + mask", 'T', 'N', 64, 64, 64, 4096, 4096, 64, 1},
    {"weights x value of a head", 'N', 'N', 64, 64, 128, 4096, 128, 64, 0},
    {"gradient of the input", 'N', 'N', 512, 32, 128, 512, 128, 512, 0},
    {"gradient of the weights", 'N', 'T', 512, 96, 64, 512, 96, 512, 0},
    {"gradient of the keys", 'N', 'T', 64, 128, 64, 4096, 128, 64, 0},
    {"gradient of attention weights", 'T', 'N', 64, 128, 64, 64, 4096, 64, 0},
    {"gradient with both sliced", 'N', 'T', 64, 64, 128, 64, 4096, 64, 0},
    {"lower-case letters", 't', 'n', 40, 8, 100, 100, 100, 40, 1},
};

typedef struct {
    product_form form;
    const float *a, *b;
} product;

static void run_product(const void *argument, float *c) {
    const product *p = argument;
    const float alpha = 1;
    sgemm_(&p->form.trans_a, &p->form.trans_b, &p->form.m, &p->form.n, &p->form.k, &alpha, p->a,
           &p->form.lda, p->b, &p->form.ldb, &p->form.beta, c, &p->form.ldc);
}

static int transposed(char letter) { return letter == 'T' || letter == 't'; }

static void test_products(void) {
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        const product_form form = forms[f];
        const size_t m = (size_t)form.m, n = (size_t)form.n, k = (size_t)form.k;
        const size_t lda = (size_t)form.lda, ldb = (size_t)form.ldb, ldc = (size_t)form.ldc;
        const int ta = transposed(form.trans_a), tb = transposed(form.trans_b);
        float *a = random_floats(lda * (ta ? m : k), 1), *b = random_floats(ldb * (tb ? k : n), 2);
        float *start = random_floats(ldc * n, 3), *result = random_floats(ldc * n, 3);
        if (form.beta == 0) /* then C is not read */
            for (size_t i = 0; i < ldc * n; i++)
                start[i] = NAN;
        const product call = {form, a, b};
        same_bits(form.what, run_product, &call, start, result, ldc * n);
        check_product(form.what, (view){result, 1, ldc}, (view){a, ta ? lda : 1, ta ? 1 : lda},
                      (view){b, tb ? ldb : 1, tb ? 1 : ldb},
                      (view){form.beta == 0 ? NULL : start, 1, ldc}, m, n, k);
        free(a);
        free(b);
        free(start);
        free(result);
    }
}

/* torch.mv and torch.addmv; rows of a tensor are columns of A. */
typedef struct {
    char trans;
    int m, n, lda, incx, incy;
    float beta;
    const float *a, *x;
} vector_product;

static void run_vector_product(const void *argument, float *y) {
    const vector_product *p = argument;
    const float alpha = 1;
    sgemv_(&p->trans, &p->m, &p->n, &alpha, p->a, &p->lda, p->x, &p->incx, &p->beta, y, &p->incy);
}

static void test_vector_products(void) {
    static const vector_product forms_of_vectors[] = {
        {'t', 512, 2048, 512, 1, 1, 0, NULL, NULL}, {'n', 512, 300, 512, 1, 1, 1, NULL, NULL},
        {'t', 65, 33, 70, 3, 2, 1, NULL, NULL},     {'n', 33, 65, 40, 2, 5, 0, NULL, NULL},
        {'t', 1, 64, 1, 1, 1, 0, NULL, NULL},       {'n', 64, 1, 64, 1, 1, 0, NULL, NULL}};
    for (size_t f = 0; f < sizeof forms_of_vectors / sizeof *forms_of_vectors; f++) {
        vector_product p = forms_of_vectors[f];
        char what[100];
        snprintf(what, sizeof what, "sgemv %c %dx%d", p.trans, p.m, p.n);
        const size_t rows = (size_t)(p.trans == 't' ? p.n : p.m); /* of op(A) */
        const size_t columns = (size_t)(p.trans == 't' ? p.m : p.n);
        const size_t lda = (size_t)p.lda, incx = (size_t)p.incx, incy = (size_t)p.incy;
        float *a = random_floats(lda * (size_t)p.n, 1), *x = random_floats(columns * incx, 2);
        float *start = random_floats(rows * incy, 3), *result = random_floats(rows * incy, 4);
        p.a = a;
        p.x = x;
        same_bits(what, run_vector_product, &p, start, result, rows * incy);
        check_product(what, (view){result, incy, 0},
                      (view){a, p.trans == 't' ? lda : 1, p.trans == 't' ? 1 : lda},
                      (view){x, incx, 0}, (view){p.beta == 0 ? NULL : start, incy, 0}, rows, 1,
                      columns);
        for (size_t i = 0; i < rows * incy; i++)
            if (i % incy != 0 && result[i] != start[i]) {
                FAIL("%s: wrote between the elements of y", what);
                break;
            }
        free(a);
        free(x);
        free(start);
        free(result);
    }
}

/* torch.dot, and add_ of two tensors of one type. */
typedef struct {
    int n, incx, incy;
    const float *x, *y;
} vectors;

static void run_dot(const void *argument, float *result) {
    const vectors *v = argument;
    *result = sdot_(&v->n, v->x, &v->incx, v->y, &v->incy);
}

static void run_axpy(const void *argument, float *y) {
    const vectors *v = argument;
    const float alpha = 1;
    saxpy_(&v->n, &alpha, v->x, &v->incx, y, &v->incy);
}

static void test_vectors(void) {
    static const int sizes[][3] = {{1, 1, 1},  {64, 1, 1},    {1000, 1, 1},
                                   {77, 3, 1}, {70000, 1, 1}, {77, 1, 2}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int n = sizes[s][0], incx = sizes[s][1], incy = sizes[s][2];
        const size_t count = (size_t)n * (size_t)incy;
        float *x = random_floats((size_t)n * (size_t)incx, 1), *y = random_floats(count, 2);
        const vectors v = {n, incx, incy, x, y};
        float dot = 0;
        same_bits("sdot", run_dot, &v, &dot, &dot, 1);
        check_product("sdot", (view){&dot, 0, 0}, (view){x, 0, (size_t)incx},
                      (view){y, (size_t)incy, 0}, (view){NULL, 0, 0}, 1, 1, (size_t)n);
        float *result = random_floats(count, 3);
        same_bits("saxpy", run_axpy, &v, y, result, count);
        for (size_t i = 0; i < (size_t)n; i++) {
            const double sum = (double)x[i * (size_t)incx] + (double)y[i * (size_t)incy];
            if (result[i * (size_t)incy] != (float)sum) {
                FAIL("saxpy: [%zu] is %a, not %a", i, (double)result[i * (size_t)incy], sum);
                break;
            }
        }
        free(x);
        free(y);
        free(result);
    }
}

int main(void) {
    test_products();
    test_vector_products();
    test_vectors();
    return end("pattern_torch");
}
