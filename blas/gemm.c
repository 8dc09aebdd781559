/* SPDX-License-Identifier: MIT
 *
 * sgemm, ssyrk and batches on iso_gemm_f32, which has the order of operations.
 */
#include "core.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define K_BLOCK 512   /* of the order of a product, docs/numerics.md */
#define SYRK_BLOCK 16 /* rows of a triangle that is computed as a square: one panel */

/* ------------------------------------------------------------------------------ by definition */

float iso_blas_sum(size_t k, struct const_vector a, struct const_vector b, int skip) {
    float sum = 0;
    for (size_t first = 0; first < k; first += K_BLOCK) {
        const size_t end = k - first < K_BLOCK ? k : first + K_BLOCK;
        float chain = 0;
        for (size_t s = first; s < end; s++) {
            const float factor = a.p[(ptrdiff_t)s * a.inc];
            if (!skip || factor != 0)
                chain = fmaf(factor, b.p[(ptrdiff_t)s * b.inc], chain);
        }
        sum = first ? sum + chain : chain;
    }
    return sum;
}

static float plain_element(const struct product *p, const struct plain *l, size_t i, size_t j) {
    if (p->k == 0) /* A and B may be NULL */
        return 0;
    const float *b = p->b + j / 16 * l->bs + j % 16 * l->bj;
    return iso_blas_sum(p->k, (struct const_vector){p->a + i * l->ai, (ptrdiff_t)l->ap},
                        (struct const_vector){b, (ptrdiff_t)l->bp}, l->skip);
}

void iso_blas_plain(const struct product *p, const struct plain *l) {
    for (size_t i = 0; i < p->m; i++)
        for (size_t j = l->upper ? i : 0; j < (l->lower ? i + 1 : p->n); j++) {
            float *c = p->c + i * p->ldc + j;
            float t = plain_element(p, l, i, j);
            if (p->alpha != 1)
                t = p->alpha * t;
            *c = p->beta != 0 ? fmaf(p->beta, *c, t) : t;
        }
}

static void plain_product(const struct product *p) {
    const struct plain l = {.ai = p->trans_a ? 1 : p->lda,
                            .ap = p->trans_a ? p->lda : 1,
                            .bs = 16 * (p->trans_b ? p->ldb : 1),
                            .bj = p->trans_b ? p->ldb : 1,
                            .bp = p->trans_b ? 1 : p->ldb};
    struct product q = *p;
    if (q.alpha == 0 || q.k == 0)
        q.k = 0, q.alpha = 1;
    iso_blas_plain(&q, &l);
}

/* --------------------------------------------------------------------------------- a product */

static double work_of(const struct product *p) {
    return (double)p->m * (double)p->n * (double)p->k;
}

static iso_status try_gemm(const struct product *p, const iso_context *context) {
    const iso_gemm_options options = {.size = sizeof options,
                                      .trans_a = p->trans_a,
                                      .trans_b = p->trans_b,
                                      .alpha = p->alpha,
                                      .beta = p->beta};
    struct borrowed scratch = {.slot = NULL};
    size_t bytes;
    if (work_of(p) >= BLAS_SMALL_WORK &&
        !iso_gemm_f32_workspace_bytes(&bytes, p->m, p->n, p->k, &options, context))
        context = iso_blas_borrow(&scratch, bytes, context);
    const iso_status status =
        iso_gemm_f32(p->c, p->ldc, p->a, p->lda, p->b, p->ldb, p->m, p->n, p->k, &options, context);
    iso_blas_give_back(&scratch);
    return status;
}

/* C overlaps A or B, which no BLAS promises anything about, or may do so for all that
 * iso_gemm_f32 knows: rows of different strides that lie between each other. */
static int try_aside(const struct product *p, const iso_context *context) {
    struct product q = *p;
    size_t bytes;
    if (__builtin_mul_overflow(p->m * sizeof(float), p->n, &bytes))
        return 0;
    q.c = malloc(bytes), q.ldc = p->n;
    if (!q.c)
        return 0;
    for (size_t i = 0; p->beta != 0 && i < p->m; i++)
        memcpy(q.c + i * q.ldc, p->c + i * p->ldc, p->n * sizeof(float));
    const int done = try_gemm(&q, context) == ISOBIT_OK;
    for (size_t i = 0; done && i < p->m; i++)
        memcpy(p->c + i * p->ldc, q.c + i * q.ldc, p->n * sizeof(float));
    free(q.c);
    return done;
}

static void run(const struct product *p, const iso_context *context) {
    iso_status status = try_gemm(p, context);
    if (status == ISOBIT_OK)
        return;
    if (iso_blas_again(status))
        status = try_gemm(p, context);
    if (status == ISOBIT_E_ALIAS && try_aside(p, context))
        return;
    if (status != ISOBIT_OK)
        plain_product(p);
}

static int is_nothing(const struct product *p) {
    return p->m == 0 || p->n == 0 || ((p->alpha == 0 || p->k == 0) && p->beta == 1);
}

void iso_blas_gemm_within(const struct product *p, const iso_context *context) {
    if (!is_nothing(p))
        run(p, context);
}

void iso_blas_gemm(const struct product *p) {
    struct call call;
    const double begin = iso_blas_begin();
    const iso_context *context = iso_blas_context(&call, work_of(p));
    iso_blas_gemm_within(p, context);
    if (begin > 0) /* row-major */
        iso_blas_end(begin, "sgemm", context, "m%zun%zuk%zu:%c%c:lda%zu:ldb%zu:ldc%zu" BLAS_FACTORS,
                     p->m, p->n, p->k, p->trans_a ? 't' : 'n', p->trans_b ? 't' : 'n', p->lda,
                     p->ldb, p->ldc, BLAS_FACTORS_OF(p->alpha, p->beta));
}

/* ------------------------------------------------------------------------------------ batches */

struct batch {
    void (*make)(struct product *p, size_t i, void *arg);
    void *arg;
};

static void run_one(void *arg, size_t i) {
    const struct batch *batch = arg;
    struct product p;
    batch->make(&p, i, batch->arg);
    iso_blas_gemm_within(&p, NULL);
}

/* Threads share out the products where there are enough of them, else each product. */
void iso_blas_batch(size_t count, double work, void (*make)(struct product *p, size_t i, void *arg),
                    void *arg) {
    struct batch batch = {make, arg};
    struct call call;
    const double begin = iso_blas_begin();
    const iso_context *context = iso_blas_context(&call, work);
    const int shared = context && count >= 2 * call.executor.max_threads;
    if (shared)
        call.executor.parallel_for(call.executor.user, count, run_one, &batch);
    for (size_t i = 0; !shared && i < count; i++) {
        struct product p;
        make(&p, i, arg);
        iso_blas_gemm_within(&p, context);
    }
    if (begin > 0)
        iso_blas_end(begin, "sgemm_batch", context, "%zu", count);
}

/* -------------------------------------------------------------------------------------- ssyrk */

struct triangle {
    struct product p; /* n is m, b is a */
    int upper;
    const float *panels; /* the rows of A as iso_pack_f32 lays them, or NULL */
    const iso_context *context;
};

/* q's rows and columns of the product, from these on; columns: a multiple of a panel's. */
static void block(const struct triangle *t, struct product *q, size_t rows, size_t columns) {
    if (q->a) { /* NULL where it is not read */
        q->a += q->trans_a ? rows : rows * q->lda;
        q->b += q->trans_a ? columns : columns * q->ldb;
    }
    const float *panels = t->panels ? t->panels + columns * q->k : NULL;
    if (panels && q->n <= SYRK_BLOCK) /* one is a row-major B, and a tiny product */
        q->b = panels, q->trans_b = 0, q->ldb = SYRK_BLOCK;
    else if (panels && iso_blas_linear(q, panels, t->context) == ISOBIT_OK)
        return;
    run(q, t->context);
}

/* One triangle of a square on the diagonal, by way of a square beside it: what lies in the other
 * triangle of C is neither read nor written. */
static void diagonal(const struct triangle *t, size_t first, size_t n) {
    float square[SYRK_BLOCK * SYRK_BLOCK];
    struct product q = t->p;
    float *c = q.c + first * q.ldc + first;
    q.m = q.n = n;
    q.c = square, q.ldc = n;
    for (size_t i = 0; i < n; i++) {
        const size_t j = t->upper ? i : 0, count = t->upper ? n - i : i + 1;
        if (q.beta != 0) {
            memset(q.c + i * n, 0, n * sizeof(float));
            memcpy(q.c + i * n + j, c + i * t->p.ldc + j, count * sizeof(float));
        }
    }
    block(t, &q, first, first);
    for (size_t i = 0; i < n; i++) {
        const size_t j = t->upper ? i : 0, count = t->upper ? n - i : i + 1;
        memcpy(c + i * t->p.ldc + j, q.c + i * n + j, count * sizeof(float));
    }
}

/* Halves: two triangles, and the rectangle between them, which is most of the work, in one piece.
 */
static void triangle(const struct triangle *t, size_t first, size_t n) {
    if (n <= SYRK_BLOCK) {
        diagonal(t, first, n);
        return;
    }
    const size_t half = (n / 2 + SYRK_BLOCK - 1) / SYRK_BLOCK * SYRK_BLOCK, left = n - half;
    struct product q = t->p;
    const size_t top = first, bottom = first + half;
    const size_t rows = t->upper ? top : bottom, columns = t->upper ? bottom : top;
    q.m = t->upper ? half : left, q.n = t->upper ? left : half;
    q.c += rows * q.ldc + columns;
    triangle(t, top, half);
    triangle(t, bottom, left);
    block(t, &q, rows, columns);
}

/* With panels of all rows, if they can be had: else each part packs what it needs of them. */
static void packed_triangle(struct triangle *t) {
    const struct product *p = &t->p;
    struct borrowed memory = {.slot = NULL};
    iso_packed packed;
    size_t bytes;
    if (p->n > SYRK_BLOCK && !p->trans_a && p->alpha == 1 && (p->beta == 0 || p->beta == 1) &&
        p->k && !iso_pack_f32_bytes(&bytes, p->n, p->k) &&
        iso_blas_borrow(&memory, bytes + 64, NULL)) { /* without memory nothing is packed */
        const uintptr_t place = (uintptr_t)memory.context.workspace;
        float *aligned = (float *)((place + 63) / 64 * 64);
        if (!iso_pack_f32(&packed, aligned, bytes, p->a, p->lda, p->n, p->k, 0, t->context))
            t->panels = packed.data;
    }
    triangle(t, 0, p->n);
    iso_blas_give_back(&memory);
}

/* The reference leaves out steps where an element of A is 0, so that an infinity or a NaN beside it
 * does not make a NaN; but only in one of the two layouts. */
static int is_finite(const float *a, size_t rows, size_t columns, size_t ld) {
    uint32_t all = 0;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            uint32_t bits;
            memcpy(&bits, a + i * ld + j, sizeof bits);
            all |= ((bits & 0x7f800000U) + 0x00800000U) & 0x80000000U;
        }
    return all == 0;
}

void iso_blas_syrk(int upper, int trans, size_t n, size_t k, float alpha, const float *a,
                   size_t lda, float beta, float *c, size_t ldc) {
    struct triangle t = {.p = {.m = n,
                               .n = n,
                               .k = k,
                               .trans_a = trans,
                               .trans_b = !trans,
                               .alpha = alpha,
                               .beta = beta,
                               .a = a,
                               .b = a,
                               .c = c,
                               .lda = lda,
                               .ldb = lda,
                               .ldc = ldc},
                         .upper = upper};
    struct call call;
    const double begin = iso_blas_begin();
    const int nothing = is_nothing(&t.p);
    if (!nothing && trans && alpha != 0 && !is_finite(a, k, n, lda)) {
        const struct plain l = {.ai = 1,
                                .ap = lda,
                                .bs = 16,
                                .bj = 1,
                                .bp = lda,
                                .lower = !upper,
                                .upper = upper,
                                .skip = 1};
        iso_blas_plain(&t.p, &l);
    } else if (!nothing) {
        t.context = iso_blas_context(&call, work_of(&t.p) / 2);
        packed_triangle(&t);
    }
    if (begin > 0)
        iso_blas_end(begin, "ssyrk", t.context, "n%zuk%zu:%s:%c:lda%zu:ldc%zu" BLAS_FACTORS, n, k,
                     upper ? "upper" : "lower", trans ? 't' : 'n', lda, ldc,
                     BLAS_FACTORS_OF(alpha, beta));
}
