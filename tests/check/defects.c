/* SPDX-License-Identifier: MIT
 *
 * A plug-in of two variants: the plain operations, and the same with the one defect that the
 * environment variable DEFECT names. PROMISES is its promises, a number (by default all).
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "operations.h"

#define P plain_operations

/* --------------------------------------------------------------------------- numerical defects */

#define GEMM                                                                                       \
    (float *c, size_t ldc, const float *a, size_t lda, const float *b, size_t ldb, size_t m,       \
     size_t n, size_t k)
static void gemm_forgets_k GEMM { P.gemm(c, ldc, a, lda, b, ldb, m, n, k % 8 == 7 ? k - 1 : k); }
static void gemm_adds_to_c GEMM {
    float old = m && n ? c[0] : 0;
    P.gemm(c, ldc, a, lda, b, ldb, m, n, k);
    if (m && n)
        c[0] += old;
}
static void gemm_trusts_lda GEMM { P.gemm(c, ldc, a, k, b, ldb, m, n, k + 0 * lda); }
static void gemm_writes_gap GEMM {
    P.gemm(c, ldc, a, lda, b, ldb, m, n, k);
    if (m > 1 && ldc > n)
        c[n] = 0;
}

#define GEMV (float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k)
static volatile float sink;
static void gemv_reads_past GEMV {
    P.gemv(y, w, ldw, x, n, k);
    if (k % 4 == 3)
        sink = x[k];
}
static void gemv_skips_last GEMV { P.gemv(y, w, ldw, x, n % 16 == 15 ? n - 1 : n, k); }
static void gemv_writes_input GEMV {
    P.gemv(y, w, ldw, x, n, k);
    if (n && k)
        memcpy((void *)(uintptr_t)x, y, sizeof *y);
}

#define ROWS (float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n)
static void softmax_without_max ROWS {
    for (size_t i = 0; i < rows; i++) {
        float sum = 0;
        for (size_t j = 0; j < n; j++)
            sum += y[i * ldy + j] = expf(x[i * ldx + j]);
        for (size_t j = 0; j < n; j++)
            y[i * ldy + j] /= sum;
    }
}
static void softmax_swallows_nan ROWS {
    P.softmax(y, ldy, x, ldx, rows, n);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < n; j++)
            y[i * ldy + j] = isnan(y[i * ldy + j]) ? 0 : y[i * ldy + j];
    }
}

static void logsumexp_is_log_sum(float *y, const float *x, size_t ldx, size_t rows, size_t n) {
    P.logsumexp(y, x, ldx, rows, n);
    for (size_t i = 0; i < rows; i++)
        y[i] *= n == 3 ? 1 + 0x1p-18f : 1;
}

static void layernorm_one_pass(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                               size_t n, const float *gamma, const float *beta, float eps) {
    for (size_t i = 0; i < rows; i++, y += ldy, x += ldx) {
        float sum = 0, squares = 0;
        for (size_t j = 0; j < n; j++)
            sum += x[j], squares += x[j] * x[j];
        float mean = sum / (float)n, r = 1 / sqrtf(squares / (float)n - mean * mean + eps);
        for (size_t j = 0; j < n; j++)
            y[j] = (x[j] - mean) * r * gamma[j] + beta[j];
    }
}

static void rmsnorm_without_eps(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                size_t n, const float *gamma, float eps) {
    P.rmsnorm(y, ldy, x, ldx, rows, n, gamma, 0 * eps);
}

#define ATTENTION                                                                                  \
    (float *o, size_t ldo, const float *q, size_t ldq, const float *k, size_t ldk, const float *v, \
     size_t ldv, size_t nq, size_t nk, size_t dh, float scale, int causal)
static void attention_sees_all ATTENTION {
    P.attention(o, ldo, q, ldq, k, ldk, v, ldv, nq, nk, dh, scale, 0 * causal);
}
static void attention_other_scale ATTENTION {
    P.attention(o, ldo, q, ldq, k, ldk, v, ldv, nq, nk, dh, scale * 1.001f, causal);
}

#define UNARY (float *y, const float *x, size_t n)
static void gelu_is_tanh UNARY { P.gelu_tanh(y, x, n); }
static void gelu_tanh_is_erf UNARY { P.gelu(y, x, n); }
static void silu_loses_bits UNARY {
    P.silu(y, x, n);
    for (size_t i = 0; i < n; i++)
        y[i] *= 1 + 0x1p-20f;
}
static void relu_of_nan_is_0 UNARY {
    for (size_t i = 0; i < n; i++)
        y[i] = fmaxf(x[i], 0);
}

static void embed_next_row(float *y, size_t ldy, const uint32_t *ids, size_t count,
                           const float *table, size_t ldt, size_t d) {
    P.embed(y, ldy, ids, count, table, ldt, d);
    if (count > 2)
        memcpy(y, table + ids[1] * ldt, d * sizeof *y);
}

/* ------------------------------------------------------------------------------ broken promises */

static void relu_by_address UNARY { /* other bits, as close */
    P.relu(y, x, n);
    for (size_t i = 0; i < n && (uintptr_t)x % 64 == 4; i++)
        y[i] = y[i] == 0 ? -y[i] : y[i];
}
static void silu_other_bits UNARY {
    P.silu(y, x, n);
    for (size_t i = 0; i < n; i++)
        y[i] = y[i] > 1 && y[i] < 2 ? nextafterf(y[i], 0) : y[i];
}
static void relu_raises UNARY {
    volatile float zero = 0;
    P.relu(y, x, n);
    sink = 1 / zero;
}
static void relu_sets_errno UNARY {
    P.relu(y, x, n);
    errno = EDOM;
}
static void relu_uses_stack UNARY {
    volatile char much[7000];
    for (size_t i = 0; i < sizeof much; i += 512)
        much[i] = 1;
    __asm__ volatile("" ::"r"(much) : "memory"); /* else clang keeps the bytes written, no array */
    P.relu(y, x, n);
}
static void relu_exits UNARY {
    P.relu(y, x, n);
    if (n == 5)
        exit(0);
}
static void relu_aborts UNARY {
    P.relu(y, x, n);
    if (n == 5)
        abort();
}
static void *crash(void *n) {
    raise(SIGSEGV);
    return n;
}
static void relu_thread_crashes UNARY {
    pthread_t thread;
    P.relu(y, x, n);
    if (n == 5 && !pthread_create(&thread, NULL, crash, &n))
        pthread_join(thread, NULL);
}
static void relu_crashes UNARY {
    P.relu(y, x, n);
    *(volatile int *)(uintptr_t)(n == 5 ? 4096 : (uintptr_t)y) += 0;
}

/* ---------------------------------------------------------------------------------- the plug-in */

static const struct {
    const char *name;
    struct iso_check_operations with; /* one pointer */
} defects[] = {
#define DEFECT(operation, function)                                                                \
    {                                                                                              \
#function, { .operation = function }                                                       \
    }
    DEFECT(gemm, gemm_forgets_k),
    DEFECT(gemm, gemm_adds_to_c),
    DEFECT(gemm, gemm_trusts_lda),
    DEFECT(gemm, gemm_writes_gap),
    DEFECT(gemv, gemv_reads_past),
    DEFECT(gemv, gemv_skips_last),
    DEFECT(gemv, gemv_writes_input),
    DEFECT(softmax, softmax_without_max),
    DEFECT(softmax, softmax_swallows_nan),
    DEFECT(logsumexp, logsumexp_is_log_sum),
    DEFECT(layernorm, layernorm_one_pass),
    DEFECT(rmsnorm, rmsnorm_without_eps),
    DEFECT(attention, attention_sees_all),
    DEFECT(attention, attention_other_scale),
    DEFECT(gelu, gelu_is_tanh),
    DEFECT(gelu_tanh, gelu_tanh_is_erf),
    DEFECT(silu, silu_loses_bits),
    DEFECT(relu, relu_of_nan_is_0),
    DEFECT(embed, embed_next_row),
    DEFECT(relu, relu_by_address),
    DEFECT(silu, silu_other_bits),
    DEFECT(relu, relu_raises),
    DEFECT(relu, relu_sets_errno),
    DEFECT(relu, relu_uses_stack),
    DEFECT(relu, relu_crashes),
    DEFECT(relu, relu_exits),
    DEFECT(relu, relu_aborts),
    DEFECT(relu, relu_thread_crashes)};

/* Functions of `with` in place of those of `table`. */
static void replace(struct iso_check_operations *table, const struct iso_check_operations *with) {
    for (size_t at = 0; at < sizeof *table; at += sizeof(void (*)(void))) {
        void (*function)(void);
        memcpy(&function, (const char *)with + at, sizeof function);
        if (function)
            memcpy((char *)table + at, &function, sizeof function);
    }
}

const struct iso_check_target *iso_check_plugin(void) {
    static struct iso_check_operations broken;
    static const struct iso_check_variant variants[] = {{"scalar", &plain_operations, NULL},
                                                        {"broken", &broken, NULL}};
    static struct iso_check_target target = {.size = sizeof target,
                                             .version = ISO_CHECK_VERSION,
                                             .name = "defects",
                                             .variants = variants,
                                             .variant_count = 2,
                                             .promises = ISO_CHECK_SAME_BITS | ISO_CHECK_NO_FLAGS};
    const char *name = getenv("DEFECT"), *promises = getenv("PROMISES");
    const char *stack = getenv("STACK_LIMIT"), *tolerance = getenv("TOLERANCE");
    broken = plain_operations;
    for (size_t i = 0; name && i < sizeof defects / sizeof *defects; i++) {
        if (!strcmp(defects[i].name, name))
            replace(&broken, &defects[i].with);
    }
    if (promises)
        target.promises = (unsigned)atoi(promises);
    if (stack)
        target.stack_limit = (size_t)atoi(stack);
    if (tolerance)
        target.tolerance = atof(tolerance);
    return &target;
}
