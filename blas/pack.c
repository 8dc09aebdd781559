/* SPDX-License-Identifier: MIT
 *
 * cblas_sgemm_pack and cblas_sgemm_compute. The second operand of the row-major product is packed
 * into the panels of iso_pack_f32; the first one, which the kernels read where it lies, is copied
 * into rows without gaps. In front stands what it is, and the factor, which is applied to the sums
 * as that of sgemm is: so the bits are the same.
 */
#include "core.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64
#define PANEL 16

struct header {
    uint64_t magic;
    uint64_t rows, k;
    uint32_t offset; /* of the data, which lie at a multiple of ALIGNMENT where they were packed */
    float alpha;
};
#define MAGIC(left) ((left) ? 0x69736f6c65667431ULL : 0x69736f7269676831ULL)

size_t iso_blas_pack_bytes(size_t rows, size_t k) {
    size_t floats, bytes;
    if (rows > SIZE_MAX - PANEL ||
        __builtin_mul_overflow((rows + PANEL - 1) / PANEL * PANEL, k, &floats) ||
        __builtin_mul_overflow(floats, sizeof(float), &bytes) ||
        __builtin_add_overflow(bytes, sizeof(struct header) + ALIGNMENT, &bytes) ||
        bytes > PTRDIFF_MAX)
        return 0;
    return bytes;
}

static const struct header *header_of(struct header *h, const void *packed) {
    memcpy(h, packed, sizeof *h); /* dest has the alignment of a float, or none */
    return h;
}

static const float *data_of(const void *packed, const struct header *h) {
    return (const float *)(const void *)((const char *)packed + h->offset);
}

int iso_blas_is_packed(const void *packed, int left, size_t rows, size_t k) {
    struct header h;
    if (!packed)
        return 0;
    header_of(&h, packed);
    return h.magic == MAGIC(left) && h.rows == rows && h.k == k && h.offset >= sizeof h &&
           h.offset < sizeof h + ALIGNMENT;
}

/* dst [rows][k] from src, [rows][ld] or with k_major [k][ld]. */
static void copy_rows(float *dst, const float *src, size_t ld, size_t rows, size_t k, int k_major) {
    for (size_t i = 0; !k_major && i < rows; i++)
        memcpy(dst + i * k, src + i * ld, k * sizeof(float));
    /* 16 rows by 16 steps: lines of both stay in L1. */
    for (size_t i = 0; k_major && i < rows; i += PANEL)
        for (size_t p = 0; p < k; p += PANEL)
            for (size_t r = i; r < rows && r < i + PANEL; r++)
                for (size_t s = p; s < k && s < p + PANEL; s++)
                    dst[r * k + s] = src[s * ld + r];
}

/* The panels by their definition. */
static void copy_panels(float *dst, const float *src, size_t ld, size_t rows, size_t k,
                        int k_major) {
    for (size_t j = 0; j < (rows + PANEL - 1) / PANEL * PANEL; j++)
        for (size_t p = 0; p < k; p++)
            dst[(j / PANEL * k + p) * PANEL + j % PANEL] =
                j < rows ? src[k_major ? p * ld + j : j * ld + p] : 0;
}

void iso_blas_pack(void *dest, int left, const float *src, size_t ld, size_t rows, size_t k,
                   int k_major, float alpha) {
    struct header h = {.magic = MAGIC(left), .rows = rows, .k = k, .alpha = alpha};
    const double begin = iso_blas_begin();
    const uintptr_t place = (uintptr_t)dest + sizeof h;
    h.offset = (uint32_t)(sizeof h + (ALIGNMENT - place % ALIGNMENT) % ALIGNMENT);
    memcpy(dest, &h, sizeof h);
    float *data = (float *)(void *)((char *)dest + h.offset);
    struct call call;
    iso_packed packed;
    const iso_context *context = left ? NULL : iso_blas_context(&call, (double)rows * (double)k);
    size_t bytes = 0;
    iso_status status = ISOBIT_OK;
    if (left)
        copy_rows(data, src, ld, rows, k, k_major);
    else
        status = iso_pack_f32_bytes(&bytes, rows, k);
    if (!left && !status)
        status = iso_pack_f32(&packed, data, bytes, src, ld, rows, k, k_major, context);
    if (status && iso_blas_again(status))
        status = iso_pack_f32(&packed, data, bytes, src, ld, rows, k, k_major, context);
    if (status)
        copy_panels(data, src, ld, rows, k, k_major);
    if (begin > 0)
        iso_blas_end(begin, "sgemm_pack", context, "n%zuk%zu:%c:ld%zu", rows, k,
                     k_major ? 't' : 'n', ld);
}

iso_status iso_blas_linear(const struct product *p, const float *panels,
                           const iso_context *context) {
    const iso_packed w = {panels, p->n, p->k};
    const iso_linear_options options = {
        .size = sizeof options, .residual = p->beta == 1 ? p->c : NULL, .ldr = p->ldc};
    return iso_linear_f32(p->c, p->ldc, p->a, p->lda, &w, p->m, &options, context);
}

/* With any alpha and beta, by way of sums beside C. */
static iso_status linear(const struct product *p, const float *panels, const iso_context *context) {
    if (p->alpha == 1 && (p->beta == 0 || p->beta == 1))
        return iso_blas_linear(p, panels, context);
    struct product sums = *p;
    /* No more than C has; without memory iso_linear_f32 refuses the null pointer. */
    sums.c = malloc(p->m * p->n * sizeof(float)), sums.ldc = p->n, sums.beta = 0;
    iso_status status = iso_blas_linear(&sums, panels, context);
    if (!status)
        status =
            iso_axpby_f32(p->c, p->ldc, sums.c, sums.ldc, p->m, p->n, p->alpha, p->beta, context);
    free(sums.c);
    return status;
}

static void compute(const struct product *p, int packed_a, int packed_b,
                    const iso_context *context) {
    struct product q = *p;
    struct header h;
    q.alpha = 1;
    if (packed_a) {
        header_of(&h, p->a);
        q.a = data_of(p->a, &h), q.lda = p->k, q.trans_a = 0;
        q.alpha *= h.alpha;
    }
    if (!packed_b) {
        iso_blas_gemm_within(&q, context);
        return;
    }
    header_of(&h, p->b);
    q.alpha *= h.alpha;
    const float *panels = data_of(p->b, &h);
    if (q.alpha == 0 || q.k == 0) { /* as sgemm: nothing else is read */
        q.b = q.a, q.ldb = q.n, q.trans_b = 0, q.k = 0;
        iso_blas_gemm_within(&q, context);
        return;
    }
    if (q.m == 0 || q.n == 0)
        return;
    float *rows = NULL;
    iso_status status = ISOBIT_OK;
    if (q.trans_a) { /* the kernels of packed panels read rows */
        rows = malloc(q.m * q.k * sizeof(float));
        if (!rows)
            status = ISOBIT_E_NOMEM;
        else
            copy_rows(rows, q.a, q.lda, q.m, q.k, 1);
    }
    struct product r = q;
    if (rows)
        r.a = rows, r.lda = q.k, r.trans_a = 0;
    if (!status) {
        status = linear(&r, panels, context);
        if (status && iso_blas_again(status))
            status = linear(&r, panels, context);
    }
    free(rows);
    if (status) {
        const struct plain l = {.ai = q.trans_a ? 1 : q.lda,
                                .ap = q.trans_a ? q.lda : 1,
                                .bs = PANEL * q.k,
                                .bj = 1,
                                .bp = PANEL};
        q.b = panels;
        iso_blas_plain(&q, &l);
    }
}

void iso_blas_compute(const struct product *p, int packed_a, int packed_b) {
    struct call call;
    const double begin = iso_blas_begin();
    const iso_context *context =
        iso_blas_context(&call, (double)p->m * (double)p->n * (double)p->k);
    compute(p, packed_a, packed_b, context);
    if (begin > 0)
        iso_blas_end(begin, "sgemm_compute", context, "m%zun%zuk%zu:%c%c", p->m, p->n, p->k,
                     packed_a     ? 'p'
                     : p->trans_a ? 't'
                                  : 'n',
                     packed_b     ? 'p'
                     : p->trans_b ? 't'
                                  : 'n');
}
