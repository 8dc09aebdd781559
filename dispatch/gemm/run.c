/* SPDX-License-Identifier: MIT
 *
 * From a plan to tasks. Work is cut by rows and columns of C, and for few rows of A by the blocks
 * of k that all sums are made of, which are added in their order.
 */
#include "../packed_weights.h"

#define MOST_OWNERS 64

void iso_finish(const struct iso_product *t, const struct iso_epilogue *as, const float *sums,
                size_t ld, size_t i, size_t j, size_t m, size_t n) {
    float *c = t->c + i * t->ldc + j;
    if (n == 0 || (sums == c && as->alpha == 1.0f && as->beta == 0.0f && !as->bias && !as->act &&
                   !as->residual))
        return;
    struct iso_epilogue e = *as;
    if (e.bias)
        e.bias += j;
    if (e.residual)
        e.residual += i * e.ldr + j;
    t->machine.kernels->gemm_epilogue(c, t->ldc, sums, ld, m, n, &e);
}

void iso_finish_zeros(const struct iso_product *t) {
    static const float zeros[ISO_GEMM_COLUMN_BLOCK];
    for (size_t j = 0; j < t->n; j += ISO_GEMM_COLUMN_BLOCK)
        iso_finish(t, t->e, zeros, 0, 0, j, t->m, iso_min_size(t->n - j, ISO_GEMM_COLUMN_BLOCK));
}

void iso_product_by_way(const struct iso_product *t, size_t i, size_t m, size_t j, size_t n,
                        float *scratch, int packed) {
    switch (t->plan.way) {
    case ISO_GEMM_STREAMS: iso_product_streams(t, j, n, scratch); break;
    case ISO_GEMM_TRANSPOSED_C: iso_product_transposed_c(t, j, n, scratch, packed); break;
    case ISO_GEMM_W16:
    case ISO_GEMM_B16:
    case ISO_GEMM_Q: iso_product_weights(t, i, m, j, n, scratch); break;
    default: iso_product_block(t, i, m, j, n, scratch);
    }
}

/*
 * A task has its own blocks, mostly the same columns, so that this part of B stays in its cache.
 * When it has done them it takes what the others have not begun: a thread that comes late, or
 * never, holds nobody up.
 */
static void run_blocks(void *arg, size_t task) {
    const struct iso_product *t = arg;
    const size_t rows = t->plan.rows, chunks = (t->n + t->plan.columns - 1) / t->plan.columns;
    const size_t blocks =
        t->plan.by_k ? (t->k + ISO_K_BLOCK - 1) / ISO_K_BLOCK : (t->m + rows - 1) / rows * chunks;
    float *scratch = t->scratch + task * t->plan.task_floats;
    int packed = 0;
    for (size_t d = 0; d < t->owners; d++) {
        const size_t owner = (task + d) % t->owners;
        for (;;) {
            size_t at = atomic_fetch_add_explicit(&t->taken[owner], 1, memory_order_relaxed);
            at = at * t->owners + owner;
            if (at >= blocks)
                break;
            if (t->plan.by_k) {
                iso_product_streams_block(t, at);
                continue;
            }
            const size_t i = at / chunks * rows, j = at % chunks * t->plan.columns;
            const size_t m = iso_min_size(t->m - i, rows);
            const size_t n = iso_min_size(t->n - j, t->plan.columns);
            iso_product_by_way(t, i, m, j, n, scratch, packed);
            packed = 1;
        }
    }
}

/* Not in iso_product_run, so that small products do not set up its stack. */
static __attribute__((noinline)) iso_status run_with_scratch(const iso_context *context,
                                                             struct iso_product *t) {
    float local[ISO_LOCAL_SCRATCH] __attribute__((aligned(64)));
    atomic_size_t taken[MOST_OWNERS];
    void *owned = NULL;
    size_t floats;
    iso_status status = ISOBIT_OK;
    if (iso_mul_overflows(&floats, t->plan.task_floats, t->plan.tasks))
        return ISOBIT_E_OVERFLOW;
    t->scratch = local;
    if (floats > ISO_LOCAL_SCRATCH || (floats > 0 && context && context->workspace))
        status = iso_scratch(&t->scratch, &owned, context, floats);
    if (status)
        return status;
    t->owners = iso_min_size(t->plan.tasks, MOST_OWNERS), t->taken = taken;
    for (size_t i = 0; i < t->owners; i++)
        atomic_init(&taken[i], 0);
    iso_parallel(context, t->plan.tasks, run_blocks, t);
    if (t->plan.by_k)
        iso_product_streams_sum(t);
    free(owned);
    return ISOBIT_OK;
}

iso_status iso_product_run(const iso_context *context, struct iso_product *t) {
    if (!iso_gemm_is_single(&t->plan, t->m, t->n))
        return run_with_scratch(context, t);
    iso_product_by_way(t, 0, t->m, 0, t->n, t->c, 0); /* which is no scratch: there is none */
    return ISOBIT_OK;
}

iso_status iso_check_workspace(const iso_context *context, const struct iso_gemm_shape *shape,
                               const struct iso_gemm_machine *machine, int sums) {
    size_t floats;
    if (!context || !context->workspace)
        return ISOBIT_OK;
    const iso_status status = iso_gemm_promise(&floats, shape, machine, sums);
    return !status && context->workspace_bytes < iso_scratch_bytes(floats) ? ISOBIT_E_WORKSPACE
                                                                           : status;
}
