/* SPDX-License-Identifier: MIT
 *
 * iso_gemm_f32: arguments, and products so small that each instruction counts.
 */
#include "gemm/product.h"
#include "plan_text.h"
#include "verbose.h"

#include <stdio.h>

static iso_status gemm_options(struct iso_epilogue *e, int *trans_a, int *trans_b,
                               const iso_gemm_options *o) {
    *e = (struct iso_epilogue){.alpha = 1.0f};
    *trans_a = *trans_b = 0;
    if (!o)
        return ISOBIT_OK;
    iso_gemm_options own;
    if (!(o = ISO_OPTIONS(o, own, ldr)))
        return ISOBIT_E_SIZE;
    *e = (struct iso_epilogue){o->alpha, o->beta, o->bias, (int)o->act, o->residual, o->ldr, 0, 0};
    *trans_a = o->trans_a != 0, *trans_b = o->trans_b != 0;
    return ISOBIT_OK;
}

/* C is added to the sums, and that is all. */
static int only_adds(const struct iso_epilogue *e) {
    return e->alpha == 1.0f && e->beta == 1.0f && !e->bias && !e->act && !e->residual;
}

/* Where each instruction around the kernel counts: one thread's work, with a B that is read in
 * place whatever the core. */
#define TINY_ROWS 1024
#define TINY_B 32768             /* floats */
#define TINY_NEXT 32             /* longer rows of A are prefetched: shorter ones are two lines */
#define TINY_SUMS 1536           /* floats on the stack */
#define TINY_WORKSPACE (1 << 19) /* bytes: more than is promised for any tiny product */

/* Where a matrix ends. */
static uintptr_t end_of(const float *p, size_t rows, size_t columns, size_t ld) {
    return (uintptr_t)(p + (rows - 1) * ld + columns);
}

static int is_plain(const iso_gemm_options *o) {
    return !o || (o->size == sizeof *o && o->alpha == 1.0f && o->beta == 0.0f && !o->act &&
                  !o->bias && !o->residual);
}

/* add: to C. With an epilogue, unless e is NULL: sums that cannot wait in C do so in `own`. */
static inline __attribute__((always_inline)) void
tiny_product(const struct iso_kernels *kernels, float *c, size_t ldc, const float *a, size_t lda,
             const float *b, size_t bs, size_t bps, size_t m, size_t n, size_t k, int trans_a,
             int add, const struct iso_epilogue *e, float *own) {
    size_t mr = trans_a ? kernels->mr : iso_gemm_direct_rows(kernels, n);
    if (own) /* which has TINY_SUMS */
        mr = iso_min_size(mr, TINY_SUMS / n);
    for (size_t i = 0; i < m;) { /* even heights at the end, 20 rows as 8 + 6 + 6: all is in L1 */
        const size_t left = m - i;
        const size_t rows = left <= mr ? left : left < 2 * mr ? (left + 1) / 2 : mr;
        float *sums = own ? own : c + i * ldc;
        const size_t ld = own ? n : ldc;
        if (trans_a)
            kernels->gemm_strip(sums, ld, a + i, lda, b, bs, bps, rows, n, k,
                                add ? ISO_STRIP_ADD : ISO_STRIP_ASSIGN);
        else
            kernels->gemm_direct(sums, ld, a + i * lda, lda, b, bs, bps, rows, n, k,
                                 add | (i + rows < m && k > TINY_NEXT ? ISO_DIRECT_NEXT : 0));
        if (e) {
            struct iso_epilogue here = *e;
            here.residual = e->residual ? e->residual + i * e->ldr : NULL;
            kernels->gemm_epilogue(c + i * ldc, ldc, sums, ld, rows, n, &here);
        }
        i += rows;
    }
}

/* With a transposed B, whose panels fit the stack: not inlined, so that others do not set it up. */
static __attribute__((noinline)) void tiny_product_bt(const struct iso_kernels *kernels, float *c,
                                                      size_t ldc, const float *a, size_t lda,
                                                      const float *b, size_t ldb, size_t m,
                                                      size_t n, size_t k, int trans_a, int add,
                                                      const struct iso_epilogue *e, float *own) {
    float panels[ISO_LOCAL_SCRATCH] __attribute__((aligned(64)));
    kernels->gemm_pack(panels, b, ldb, 1, n, k, ISO_PANEL);
    tiny_product(kernels, c, ldc, a, lda, panels, ISO_PANEL, k * ISO_PANEL, m, n, k, trans_a, add,
                 e, own);
}

/* Whether the caller's workspace may be smaller than a tiny product's promise. */
static int maybe_refused(const iso_context *context) {
    return context && context->workspace && context->workspace_bytes < TINY_WORKSPACE;
}

/* A product of a tiny size, if nothing about it is unusual; else 0, and nothing is done. In line,
 * although there are several callers: one of them counts. */
static inline __attribute__((always_inline)) int
run_tiny(float *c, size_t ldc, const float *a, size_t lda, const float *b, size_t ldb, size_t m,
         size_t n, size_t k, int trans_a, int trans_b, int add, const struct iso_epilogue *e,
         float *own, const iso_context *context) {
    const size_t a_rows = trans_a ? k : m, a_columns = trans_a ? m : k;
    const size_t b_rows = trans_b ? n : k, b_columns = trans_b ? k : n;
    if ((lda | ldb | ldc) >> 24 || lda < a_columns || ldb < b_columns || ldc < n || !a || !b || !c)
        return 0;
    if (m * n * k >= ISO_GEMM_SMALL_WORK && iso_context_threads(context) > 1)
        return 0;
    const uintptr_t c_end = end_of(c, m, n, ldc);
    if ((end_of(a, a_rows, a_columns, lda) > (uintptr_t)c && (uintptr_t)a < c_end) ||
        (end_of(b, b_rows, b_columns, ldb) > (uintptr_t)c && (uintptr_t)b < c_end) ||
        (trans_b && iso_round_up(n, ISO_PANEL) * k > ISO_LOCAL_SCRATCH) ||
        ((trans_a || trans_b || add || (e && (e->beta != 0.0f || e->residual))) &&
         maybe_refused(context)))
        return 0;
    const struct iso_kernels *kernels = iso_kernels_at_once();
    if ((context && iso_context_kernels(&kernels, context)) || !kernels ||
        (trans_a && !iso_gemm_reads_strips(kernels, m, k, lda, kernels->mr)))
        return 0;
    const size_t last = n & (kernels->vector_floats - 1);
    if (iso_gemm_is_narrow(kernels, m, last, k, last < n) && !own)
        return 0;
    if (trans_b)
        tiny_product_bt(kernels, c, ldc, a, lda, b, ldb, m, n, k, trans_a, add, e, own);
    else
        tiny_product(kernels, c, ldc, a, lda, b, ldb, ISO_PANEL, m, n, k, trans_a, add, e, own);
    return 1;
}

static __attribute__((noinline)) int run_tiny_transposed(float *c, size_t ldc, const float *a,
                                                         size_t lda, const float *b, size_t ldb,
                                                         size_t m, size_t n, size_t k, int trans_b,
                                                         const iso_context *context) {
    return run_tiny(c, ldc, a, lda, b, ldb, m, n, k, 1, trans_b, 0, NULL, NULL, context);
}

static __attribute__((noinline)) int run_tiny_with_epilogue(float *c, size_t ldc, const float *a,
                                                            size_t lda, const float *b, size_t ldb,
                                                            size_t m, size_t n, size_t k,
                                                            const iso_gemm_options *options,
                                                            const iso_context *context) {
    float own[TINY_SUMS] __attribute__((aligned(64)));
    struct iso_epilogue e;
    int trans_a, trans_b;
    if (gemm_options(&e, &trans_a, &trans_b, options) || iso_check_epilogue(c, ldc, m, n, &e) ||
        e.alpha == 0.0f)
        return 0;
    const int adds = only_adds(&e), waits = !adds && iso_needs_own_sums(&e, c);
    return run_tiny(c, ldc, a, lda, b, ldb, m, n, k, trans_a, trans_b, adds, adds ? NULL : &e,
                    waits ? own : NULL, context);
}

static inline __attribute__((always_inline)) int
try_tiny(float *c, size_t ldc, const float *a, size_t lda, const float *b, size_t ldb, size_t m,
         size_t n, size_t k, const iso_gemm_options *options, const iso_context *context) {
    if (m - 1 >= TINY_ROWS || n - 1 >= ISO_GEMM_COLUMN_BLOCK || k - 1 >= ISO_K_BLOCK ||
        n * k > TINY_B || m * n * k >= ISO_GEMM_TINY_WORK)
        return 0;
    if (!is_plain(options))
        return run_tiny_with_epilogue(c, ldc, a, lda, b, ldb, m, n, k, options, context);
    const int trans_b = options && options->trans_b;
    return options && options->trans_a
               ? run_tiny_transposed(c, ldc, a, lda, b, ldb, m, n, k, trans_b, context)
               : run_tiny(c, ldc, a, lda, b, ldb, m, n, k, 0, trans_b, 0, NULL, NULL, context);
}

static struct iso_gemm_shape shape_of(size_t m, size_t n, size_t k, size_t lda, size_t ldb,
                                      int trans_a, int trans_b, const iso_context *context) {
    return (struct iso_gemm_shape){.m = m,
                                   .n = n,
                                   .k = k,
                                   .lda = lda,
                                   .ldb = ldb,
                                   .threads = iso_context_threads(context),
                                   .trans_a = trans_a,
                                   .trans_b = trans_b};
}

iso_status iso_gemm_f32_workspace_bytes(size_t *bytes, size_t m, size_t n, size_t k,
                                        const iso_gemm_options *options,
                                        const iso_context *context) {
    struct iso_epilogue e;
    const struct iso_kernels *kernels;
    int trans_a, trans_b;
    size_t floats = 0;
    if (!bytes)
        return ISOBIT_E_NULL;
    iso_status status = gemm_options(&e, &trans_a, &trans_b, options);
    if (!status)
        status = iso_context_kernels(&kernels, context);
    if (!status && m && n && k && e.alpha != 0.0f) {
        const struct iso_gemm_machine machine = iso_gemm_this_machine(kernels);
        const struct iso_gemm_shape shape = shape_of(m, n, k, 0, 0, trans_a, trans_b, context);
        status = iso_gemm_promise(&floats, &shape, &machine, e.beta != 0.0f || e.residual);
    }
    if (!status)
        *bytes = iso_scratch_bytes(floats);
    return status;
}

/* Not in iso_gemm_f32, so that tiny products do not set up its stack. */
static __attribute__((noinline)) iso_status
run_gemm(float *c, size_t ldc, const float *a, size_t lda, const float *b, size_t ldb, size_t m,
         size_t n, size_t k, const iso_gemm_options *options, const iso_context *context) {
    struct iso_epilogue e;
    const struct iso_kernels *kernels;
    int trans_a, trans_b;
    iso_status status = gemm_options(&e, &trans_a, &trans_b, options);
    if (!status)
        status = iso_check_epilogue(c, ldc, m, n, &e);
    if (!status)
        status = iso_context_kernels(&kernels, context);
    if (status || m == 0 || n == 0)
        return status;
    struct iso_product t = {.machine = iso_gemm_this_machine(kernels),
                            .m = m,
                            .n = n,
                            .k = k,
                            .c = c,
                            .ldc = ldc,
                            .e = &e};
    if (k == 0 || e.alpha == 0.0f) {
        e.alpha = 1.0f;
        iso_finish_zeros(&t);
        return ISOBIT_OK;
    }
    const size_t a_rows = trans_a ? k : m, a_columns = trans_a ? m : k;
    const size_t b_rows = trans_b ? n : k, b_columns = trans_b ? k : n;
    if ((status = iso_check_matrix(a, a_rows, a_columns, lda)) ||
        (status = iso_check_matrix(b, b_rows, b_columns, ldb)))
        return status;
    if (iso_overlap(c, m, n, ldc, a, a_rows, a_columns, lda) ||
        iso_overlap(c, m, n, ldc, b, b_rows, b_columns, ldb))
        return ISOBIT_E_ALIAS;

    struct iso_gemm_shape shape = shape_of(m, n, k, lda, ldb, trans_a, trans_b, context);
    status = iso_check_workspace(context, &shape, &t.machine, e.beta != 0.0f || e.residual);
    if (status)
        return status;
    shape.own_sums = iso_needs_own_sums(&e, c), shape.adds = only_adds(&e);
    t.plan = iso_gemm_plan(&shape, &t.machine);
    if (t.plan.adds)
        e.beta = 0.0f;
    t.a = a, t.ai = trans_a ? 1 : lda, t.ap = trans_a ? lda : 1;
    t.b = b, t.bs = trans_b ? 1 : ldb, t.bps = trans_b ? ldb : ISO_PANEL, t.trans_b = trans_b;
    return iso_product_run(context, &t);
}

/* The plan of a product in words. */
static void say_plan(char *text, size_t bytes, const float *c, size_t lda, size_t ldb, size_t m,
                     size_t n, size_t k, const iso_gemm_options *options,
                     const iso_context *context) {
    struct iso_epilogue e;
    const struct iso_kernels *kernels;
    int trans_a, trans_b;
    if (gemm_options(&e, &trans_a, &trans_b, options) || iso_context_kernels(&kernels, context))
        return;
    if (m == 0 || n == 0 || k == 0 || e.alpha == 0.0f) {
        snprintf(text, bytes, "no product");
        return;
    }
    const struct iso_gemm_machine machine = iso_gemm_this_machine(kernels);
    struct iso_gemm_shape shape = shape_of(m, n, k, lda, ldb, trans_a, trans_b, context);
    shape.own_sums = iso_needs_own_sums(&e, c), shape.adds = only_adds(&e);
    iso_gemm_say(text, bytes, &shape, &machine);
}

/* iso_gemm_f32 with a line about it. */
static __attribute__((cold, noinline)) iso_status
gemm_with_line(float *c, size_t ldc, const float *a, size_t lda, const float *b, size_t ldb,
               size_t m, size_t n, size_t k, const iso_gemm_options *options,
               const iso_context *context) {
    static const iso_gemm_options none = {.alpha = 1.0f};
    iso_gemm_options own;
    const iso_gemm_options *o = ISO_OPTIONS_OR(options, own, ldr, &none);
    const uint64_t begin = iso_verbose_clock();
    const int tiny = try_tiny(c, ldc, a, lda, b, ldb, m, n, k, options, context);
    const iso_status status =
        tiny ? ISOBIT_OK : run_gemm(c, ldc, a, lda, b, ldb, m, n, k, options, context);
    if (!begin)
        return status;
    const uint64_t end = iso_verbose_clock();
    char way[400] = "tiny";
    if (!tiny && !status)
        say_plan(way, sizeof way, c, lda, ldb, m, n, k, options, context);
    iso_verbose_end(begin, end, "gemm_f32", context, status, way,
                    "m%zun%zuk%zu:%c%c:lda%zu:ldb%zu:ldc%zu%s%s%s%s%s", m, n, k,
                    o->trans_a ? 't' : 'n', o->trans_b ? 't' : 'n', lda, ldb, ldc,
                    o->alpha != 1.0f ? ":alpha" : "", o->beta != 0.0f ? ":beta" : "",
                    o->bias ? ":bias" : "", iso_verbose_act((int)o->act),
                    o->residual ? ":residual" : "");
    return status;
}

iso_status iso_gemm_f32(float *c, size_t ldc, const float *a, size_t lda, const float *b,
                        size_t ldb, size_t m, size_t n, size_t k, const iso_gemm_options *options,
                        const iso_context *context) {
    if (!iso_verbose_is_off())
        return gemm_with_line(c, ldc, a, lda, b, ldb, m, n, k, options, context);
    if (try_tiny(c, ldc, a, lda, b, ldb, m, n, k, options, context))
        return ISOBIT_OK;
    return run_gemm(c, ldc, a, lda, b, ldb, m, n, k, options, context);
}
