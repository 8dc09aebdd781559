/* SPDX-License-Identifier: MIT
 *
 * How the routines are called: from Fortran, from C with both layouts, dnnl_sgemm; with an argument
 * that is wrong; and for a part of the output only.
 */
#include "blas.h"

#include <string.h>

/* A column of the table below is a type, and the text that the trampolines read. */
#define IN_C(routine, arguments)                                                                   \
    { "cblas_" routine, arguments, 0 }
#define IN_FORTRAN(routine, arguments)                                                             \
    { routine "_", arguments, 0 }

#define P "const int *"
#define F "const float *"
static struct iso_check_function functions[BLAS_FUNCTIONS] = {
    IN_FORTRAN("sgemm", "(const char *, const char *, " P ", " P ", " P ", " F ", " F ", " P ", " F
                        ", " P ", " F ", float *, " P ", size_t a, size_t b)"),
    IN_C("sgemm", "(int layout, int ta, int tb, int m, int n, int k, float alpha, " F
                  ", int lda, " F ", int ldb, float beta, float *, int ldc)"),
    IN_FORTRAN("sgemv", "(const char *, " P ", " P ", " F ", " F ", " P ", " F ", " P ", " F
                        ", float *, " P ", size_t a)"),
    IN_C("sgemv", "(int layout, int ta, int m, int n, float alpha, " F ", int lda, " F
                  ", int incx, float beta, float *, int incy)"),
    IN_FORTRAN("sger", "(" P ", " P ", " F ", " F ", " P ", " F ", " P ", float *, " P ")"),
    IN_C("sger", "(int layout, int m, int n, float alpha, " F ", int incx, " F
                 ", int incy, float *, int lda)"),
    IN_FORTRAN("ssyrk", "(const char *, const char *, " P ", " P ", " F ", " F ", " P ", " F
                        ", float *, " P ", size_t a, size_t b)"),
    IN_C("ssyrk", "(int layout, int uplo, int ta, int n, int k, float alpha, " F
                  ", int lda, float beta, float *, int ldc)"),
    IN_FORTRAN("sdot", "(" P ", " F ", " P ", " F ", " P ")"),
    IN_C("sdot", "(int n, " F ", int incx, " F ", int incy)"),
    IN_FORTRAN("saxpy", "(" P ", " F ", " F ", " P ", float *, " P ")"),
    IN_C("saxpy", "(int n, float alpha, " F ", int incx, float *, int incy)"),
    IN_FORTRAN("sscal", "(" P ", " F ", float *, " P ")"),
    IN_C("sscal", "(int n, float alpha, float *, int incx)"),
    IN_FORTRAN("snrm2", "(" P ", " F ", " P ")"),
    IN_C("snrm2", "(int n, " F ", int incx)"),
    IN_FORTRAN("sasum", "(" P ", " F ", " P ")"),
    IN_C("sasum", "(int n, " F ", int incx)"),
    IN_FORTRAN("isamax", "(" P ", " F ", " P ")"),
    IN_C("isamax", "(int n, " F ", int incx)"),
    {"dnnl_sgemm",
     "(int ta, int tb, size_t m, size_t n, size_t k, float alpha, " F ", size_t lda, " F
     ", size_t ldb, float beta, float *, size_t ldc)",
     0},
};
#undef P
#undef F

const struct iso_check_target *blas_target(void) {
    static struct iso_check_target target = {.size = sizeof target,
                                             .version = ISO_CHECK_VERSION,
                                             .name = "blas",
                                             .functions = functions,
                                             .function_count = BLAS_FUNCTIONS,
                                             .table_bytes = sizeof(struct blas_table)};
    for (size_t i = 0; i < BLAS_FUNCTIONS; i++)
        functions[i].offset = offsetof(struct blas_table, f) + i * sizeof(blas_function);
    return &target;
}

/* ---------------------------------------------------------------------------------- arguments */

/* All arguments as C has them, and as letters. */
struct arguments {
    int layout, trans_a, trans_b, uplo; /* of CBLAS */
    char ta[2], tb[2], ul[4]; /* four, so that there is no padding: it is compared as bytes */
    int m, n, k, lda, ldb, ldc, incx, incy;
    float alpha, beta;
};

enum { ROW_MAJOR = 101, COLUMN_MAJOR = 102, NO_TRANS = 111, TRANS = 112, UPPER = 121, LOWER = 122 };

/* Positions of the arguments of C, from 1, that can be wrong. */
static int *position(struct arguments *a, enum blas_routine routine, int bad) {
    switch ((int)routine * 100 + bad) {
    case BLAS_GEMM * 100 + 4:
    case BLAS_GEMV * 100 + 3:
    case BLAS_GER * 100 + 2: return &a->m;
    case BLAS_GEMM * 100 + 5:
    case BLAS_GEMV * 100 + 4:
    case BLAS_GER * 100 + 3:
    case BLAS_SYRK * 100 + 4: return &a->n;
    case BLAS_GEMM * 100 + 6:
    case BLAS_SYRK * 100 + 5: return &a->k;
    case BLAS_GEMM * 100 + 9:
    case BLAS_GEMV * 100 + 7:
    case BLAS_GER * 100 + 10:
    case BLAS_SYRK * 100 + 8: return &a->lda;
    case BLAS_GEMM * 100 + 11: return &a->ldb;
    case BLAS_GEMM * 100 + 14:
    case BLAS_SYRK * 100 + 11: return &a->ldc;
    case BLAS_GEMV * 100 + 9:
    case BLAS_GER * 100 + 6: return &a->incx;
    case BLAS_GEMV * 100 + 12:
    case BLAS_GER * 100 + 8: return &a->incy;
    default: return NULL;
    }
}

const int *blas_bad_positions(enum blas_routine routine, enum blas_api api) {
    static const int gemm[] = {1, 2, 3, 4, 5, 6, 9, 11, 14, 0}, gemv[] = {1, 2, 3, 4, 7, 9, 12, 0};
    static const int ger[] = {1, 2, 3, 6, 8, 10, 0}, syrk[] = {1, 2, 3, 4, 5, 8, 11, 0},
                     none[] = {0};
    const int *all = routine == BLAS_GEMM   ? gemm
                     : routine == BLAS_GEMV ? gemv
                     : routine == BLAS_GER  ? ger
                     : routine == BLAS_SYRK ? syrk
                                            : none;
    return *all && (api == BLAS_FORTRAN || api == BLAS_DNNL) ? all + 1 : all; /* no layout */
}

static void spoil(struct arguments *a, const struct blas_case *c) {
    int *at = position(a, c->routine, c->bad);
    if (at == &a->m || at == &a->n || at == &a->k)
        *at = -1;
    else if (at == &a->incx || at == &a->incy)
        *at = 0;
    else if (at)
        *at -= c->pad + 1; /* one less than needed */
    else if (c->bad == 1)
        a->layout = 100;
    else if (c->routine == BLAS_SYRK && c->bad == 2)
        a->uplo = 120, a->ul[0] = '/';
    else if (c->routine == BLAS_GEMM && c->bad == 3)
        a->trans_b = 110, a->tb[0] = '/';
    else if (c->bad)
        a->trans_a = 110, a->ta[0] = '/';
}

static struct arguments arguments(const struct blas_call *call) {
    const struct blas_case *c = call->c;
    struct arguments a = {.layout = c->api == BLAS_ROW ? ROW_MAJOR : COLUMN_MAJOR,
                          .trans_a = c->trans_a == 'T' ? TRANS : NO_TRANS,
                          .trans_b = c->trans_b == 'T' ? TRANS : NO_TRANS,
                          .uplo = c->uplo == 'L' ? LOWER : UPPER,
                          .ta = {c->trans_a},
                          .tb = {c->trans_b},
                          .ul = {c->uplo},
                          .m = c->m,
                          .n = c->n,
                          .k = c->k,
                          .incx = c->incx,
                          .incy = c->incy,
                          .alpha = c->alpha,
                          .beta = c->beta};
    a.lda = call->ld[0];
    if (c->routine == BLAS_GEMM)
        a.ldb = call->ld[1], a.ldc = call->ld[2];
    else if (c->routine == BLAS_GER)
        a.lda = call->ld[2];
    else
        a.ldc = call->ld[1];
    spoil(&a, c);
    return a;
}

/* -------------------------------------------------------------------------------------- calls */

typedef const char *Letter;
typedef const int *Int;
typedef const float *In;

#define CALL(type, arguments) ((type)f) arguments

static void run_fortran(blas_function f, struct blas_call *call, struct arguments *a) {
    float *const *p = call->p, *result = call->result;
    switch (call->c->routine) {
    case BLAS_GEMM:
        CALL(void (*)(Letter, Letter, Int, Int, Int, In, In, Int, In, Int, In, float *, Int, size_t,
                      size_t),
             (a->ta, a->tb, &a->m, &a->n, &a->k, &a->alpha, p[0], &a->lda, p[1], &a->ldb, &a->beta,
              p[2], &a->ldc, 1, 1));
        break;
    case BLAS_GEMV:
        CALL(void (*)(Letter, Int, Int, In, In, Int, In, Int, In, float *, Int, size_t),
             (a->ta, &a->m, &a->n, &a->alpha, p[0], &a->lda, p[1], &a->incx, &a->beta, p[2],
              &a->incy, 1));
        break;
    case BLAS_GER:
        CALL(void (*)(Int, Int, In, In, Int, In, Int, float *, Int),
             (&a->m, &a->n, &a->alpha, p[0], &a->incx, p[1], &a->incy, p[2], &a->lda));
        break;
    case BLAS_SYRK:
        CALL(void (*)(Letter, Letter, Int, Int, In, In, Int, In, float *, Int, size_t, size_t),
             (a->ul, a->ta, &a->n, &a->k, &a->alpha, p[0], &a->lda, &a->beta, p[1], &a->ldc, 1, 1));
        break;
    case BLAS_DOT:
        *result = CALL(float (*)(Int, In, Int, In, Int), (&a->n, p[0], &a->incx, p[1], &a->incy));
        break;
    case BLAS_AXPY:
        CALL(void (*)(Int, In, In, Int, float *, Int),
             (&a->n, &a->alpha, p[0], &a->incx, p[1], &a->incy));
        break;
    case BLAS_SCAL:
        CALL(void (*)(Int, In, float *, Int), (&a->n, &a->alpha, p[0], &a->incx));
        break;
    case BLAS_NRM2:
    case BLAS_ASUM: *result = CALL(float (*)(Int, In, Int), (&a->n, p[0], &a->incx)); break;
    case BLAS_AMAX: *result = (float)CALL(int (*)(Int, In, Int), (&a->n, p[0], &a->incx)); break;
    case BLAS_ROUTINES: break;
    }
}

static void run_c(blas_function f, struct blas_call *call, struct arguments *a) {
    float *const *p = call->p, *result = call->result;
    switch (call->c->routine) {
    case BLAS_GEMM:
        CALL(void (*)(int, int, int, int, int, int, float, In, int, In, int, float, float *, int),
             (a->layout, a->trans_a, a->trans_b, a->m, a->n, a->k, a->alpha, p[0], a->lda, p[1],
              a->ldb, a->beta, p[2], a->ldc));
        break;
    case BLAS_GEMV:
        CALL(void (*)(int, int, int, int, float, In, int, In, int, float, float *, int),
             (a->layout, a->trans_a, a->m, a->n, a->alpha, p[0], a->lda, p[1], a->incx, a->beta,
              p[2], a->incy));
        break;
    case BLAS_GER:
        CALL(void (*)(int, int, int, float, In, int, In, int, float *, int),
             (a->layout, a->m, a->n, a->alpha, p[0], a->incx, p[1], a->incy, p[2], a->lda));
        break;
    case BLAS_SYRK:
        CALL(void (*)(int, int, int, int, int, float, In, int, float, float *, int),
             (a->layout, a->uplo, a->trans_a, a->n, a->k, a->alpha, p[0], a->lda, a->beta, p[1],
              a->ldc));
        break;
    case BLAS_DOT:
        *result = CALL(float (*)(int, In, int, In, int), (a->n, p[0], a->incx, p[1], a->incy));
        break;
    case BLAS_AXPY:
        CALL(void (*)(int, float, In, int, float *, int),
             (a->n, a->alpha, p[0], a->incx, p[1], a->incy));
        break;
    case BLAS_SCAL:
        CALL(void (*)(int, float, float *, int), (a->n, a->alpha, p[0], a->incx));
        break;
    case BLAS_NRM2:
    case BLAS_ASUM: *result = CALL(float (*)(int, In, int), (a->n, p[0], a->incx)); break;
    case BLAS_AMAX: /* size_t or int: both end up in the lower half */
        *result = (float)(int)CALL(size_t(*)(int, In, int), (a->n, p[0], a->incx));
        break;
    case BLAS_ROUTINES: break;
    }
}

bool blas_run(const struct blas_table *table, struct blas_call *call) {
    const struct blas_case *c = call->c;
    struct arguments a = arguments(call), before;
    memset(&before, 0, sizeof before);
    memcpy(&before, &a, sizeof a);
    if (c->api == BLAS_DNNL) {
        blas_function f = table->f[BLAS_FUNCTIONS - 1];
        call->status = CALL(int (*)(int, int, int64_t, int64_t, int64_t, float, In, int64_t, In,
                                    int64_t, float, float *, int64_t),
                            (a.ta[0], a.tb[0], a.m, a.n, a.k, a.alpha, call->p[0], a.lda,
                             call->p[1], a.ldb, a.beta, call->p[2], a.ldc));
    } else if (c->api == BLAS_FORTRAN) {
        run_fortran(table->f[2 * c->routine], call, &a);
    } else {
        run_c(table->f[2 * c->routine + 1], call, &a);
    }
    return memcmp((const char *)&a, (const char *)&before, sizeof a) == 0;
}

void blas_call_begin(struct blas_call *call, const struct blas_case *c,
                     const struct iso_check_operands *o) {
    struct blas_shape s;
    blas_shape(&s, c);
    *call = (struct blas_call){.c = c};
    for (unsigned i = 0; i < s.count; i++) {
        call->p[i] = o->v[i].at;
        call->ld[i] = (int)s.v[i].ld;
    }
    if (o->count > s.count)
        call->result = o->v[s.count].at;
}

bool blas_part(struct blas_call *call, struct blas_case *part, int first, int count) {
    const struct blas_case *c = call->c;
    bool row = c->api == BLAS_ROW || c->api == BLAS_DNNL;
    size_t i = (size_t)first, ld = (size_t)call->ld[0], out = (size_t)call->ld[2];
    /* row i of op(A), and of the output */
    size_t a = (c->trans_a == 'T') == row ? i : i * ld;
    *part = *c;
    switch (c->routine) {
    case BLAS_GEMM:
        part->m = count;
        call->p[0] += a;
        call->p[2] += row ? i * out : i;
        break;
    case BLAS_GEMV:
        *(c->trans_a == 'T' ? &part->n : &part->m) = count;
        call->p[0] += a;
        call->p[2] += i * (size_t)c->incy;
        break;
    case BLAS_GER:
        part->m = count;
        call->p[0] += i * (size_t)c->incx;
        call->p[2] += row ? i * out : i;
        break;
    case BLAS_SYRK:
        part->n = count;
        call->p[0] += a;
        call->p[1] += i * (size_t)call->ld[1] + i;
        break;
    case BLAS_AXPY:
        call->p[1] += i * (size_t)c->incy; /* and x, as for */
        /* fall through */
    case BLAS_SCAL:
        part->n = count;
        call->p[0] += i * (size_t)c->incx;
        break;
    default: return false;
    }
    call->c = part;
    return true;
}
