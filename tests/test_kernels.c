/* SPDX-License-Identifier: MIT
 *
 * The kernel tests: every suite on every instruction set of this machine.
 *
 *   test_kernels [--quick | --exhaustive] [--kernel NAME [--case NUMBER]] [--isa NAME] [--timing]
 *                [--golden FILE] [--update-golden FILE] [--list] [--self-test]
 *
 * ISOBIT_EXHAUSTIVE=1 in the environment does the same as --exhaustive. The self-test hands the
 * harness kernels that are broken on purpose and checks that it finds each of them.
 */
#include <errno.h>
#include <fenv.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <isobit/ops.h>

#include "runner.h"

/* ------------------------------------------------------------------------------- broken kernels */

static const struct iso_kernels *good; /* the table that the broken ones call */
static unsigned calls;

static void after_gemv(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                       int trans) {
    good->gemv(y, w, ldw, x, n, k, trans);
}

static volatile float sink;

static void gemv_reads_right(float *y, const float *w, size_t ldw, const float *x, size_t n,
                             size_t k, int trans) {
    sink = x[k];
    after_gemv(y, w, ldw, x, n, k, trans);
}

static void gemv_reads_left(float *y, const float *w, size_t ldw, const float *x, size_t n,
                            size_t k, int trans) {
    sink = x[-1];
    after_gemv(y, w, ldw, x, n, k, trans);
}

static void gemv_writes_right(float *y, const float *w, size_t ldw, const float *x, size_t n,
                              size_t k, int trans) {
    after_gemv(y, w, ldw, x, n, k, trans);
    y[n] = 0;
}

static void gemv_writes_right_of_page(float *y, const float *w, size_t ldw, const float *x,
                                      size_t n, size_t k, int trans) {
    after_gemv(y, w, ldw, x, n, k, trans);
    if (n && (uintptr_t)y % 4096 == 0)
        y[n + 3] = 0;
}

static void gemv_writes_left_in_page(float *y, const float *w, size_t ldw, const float *x, size_t n,
                                     size_t k, int trans) {
    after_gemv(y, w, ldw, x, n, k, trans);
    if ((uintptr_t)y % 4096 != 0)
        y[-1] = 0;
}

static void gemv_writes_input(float *y, const float *w, size_t ldw, const float *x, size_t n,
                              size_t k, int trans) {
    after_gemv(y, w, ldw, x, n, k, trans);
    if (n && k)
        memcpy((void *)(uintptr_t)w, y, sizeof *y);
}

static void gemv_changes_errno(float *y, const float *w, size_t ldw, const float *x, size_t n,
                               size_t k, int trans) {
    after_gemv(y, w, ldw, x, n, k, trans);
    errno = ERANGE;
}

static void gemv_changes_rounding(float *y, const float *w, size_t ldw, const float *x, size_t n,
                                  size_t k, int trans) {
    after_gemv(y, w, ldw, x, n, k, trans);
    fesetround(FE_UPWARD);
}

static void gemv_never_returns(float *y, const float *w, size_t ldw, const float *x, size_t n,
                               size_t k, int trans) {
    after_gemv(y, w, ldw, x, n, k, trans);
    for (;;)
        sink = 0;
}

static void gemv_illegal(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                         int trans) {
    after_gemv(y, w, ldw, x, n, k, trans);
    raise(SIGILL);
}

static void gemv_wants_alignment(float *y, const float *w, size_t ldw, const float *x, size_t n,
                                 size_t k, int trans) {
    if ((uintptr_t)x % 16)
        raise(SIGBUS);
    after_gemv(y, w, ldw, x, n, k, trans);
}

static void gemv_divides_by_zero(float *y, const float *w, size_t ldw, const float *x, size_t n,
                                 size_t k, int trans) {
    after_gemv(y, w, ldw, x, n, k, trans);
    volatile float zero = 0;
    sink = 1 / zero;
}

static void gemv_forgets_last(float *y, const float *w, size_t ldw, const float *x, size_t n,
                              size_t k, int trans) {
    after_gemv(y, w, ldw, x, n ? n - 1 : 0, k, trans);
}

static void gemv_sums_plainly(float *y, const float *w, size_t ldw, const float *x, size_t n,
                              size_t k, int trans) {
    for (size_t j = 0; j < n; j++) {
        y[j] = 0;
        for (size_t p = 0; p < k; p++)
            y[j] += x[p] * (trans ? w[p * ldw + j] : w[j * ldw + p]);
    }
}

static void strip_slightly_off(float *c, size_t ldc, const float *a, size_t as, const float *b,
                               size_t bs, size_t bps, size_t m, size_t n, size_t k, int mode) {
    good->gemm_strip(c, ldc, a, as, b, bs, bps, m, n, k, mode);
    if (k > 256 && m && n)
        c[0] *= 1 + 0x1p-12f;
}

static void strip_skips_tail(float *c, size_t ldc, const float *a, size_t as, const float *b,
                             size_t bs, size_t bps, size_t m, size_t n, size_t k, int mode) {
    good->gemm_strip(c, ldc, a, as, b, bs, bps, m, n % 16 == 15 ? n - 1 : n, k, mode);
}

static void strip_writes_gap(float *c, size_t ldc, const float *a, size_t as, const float *b,
                             size_t bs, size_t bps, size_t m, size_t n, size_t k, int mode) {
    good->gemm_strip(c, ldc, a, as, b, bs, bps, m, n, k, mode);
    if (m > 1 && ldc > n)
        c[n] = 0;
}

static void epilogue_reads_c(float *c, size_t ldc, const float *t, size_t ldt, size_t m, size_t n,
                             const struct iso_epilogue *e) {
    float old = m && n ? c[0] : 0;
    good->gemm_epilogue(c, ldc, t, ldt, m, n, e);
    if (m && n && e->beta == 0)
        c[0] += 0 * old;
}

static void softmax_swallows_nan(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                 size_t n, const size_t *lengths, const uint8_t *mask, size_t ldm,
                                 int flags) {
    good->softmax(y, ldy, x, ldx, rows, n, lengths, mask, ldm, flags);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < n; j++)
            y[i * ldy + j] = isnan(y[i * ldy + j]) ? 0 : y[i * ldy + j];
    }
}

static void softmax_uses_padding(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                 size_t n, const size_t *lengths, const uint8_t *mask, size_t ldm,
                                 int flags) {
    float padding = rows > 1 && ldx > n ? x[n] : 0;
    good->softmax(y, ldy, x, ldx, rows, n, lengths, mask, ldm, flags);
    if (rows && n)
        y[0] += padding;
}

static void softmax_ignores_mask(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                 size_t n, const size_t *lengths, const uint8_t *mask, size_t ldm,
                                 int flags) {
    (void)mask;
    good->softmax(y, ldy, x, ldx, rows, n, lengths, NULL, ldm, flags);
}

static void layernorm_two_ulp(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                              size_t n, const struct iso_norm *o) {
    good->layernorm(y, ldy, x, ldx, rows, n, o);
    for (int i = 0; i < 2 && rows == 2 && n == 53 && o->sum && o->residual; i++)
        y[n / 2] = nextafterf(y[n / 2], INFINITY);
}

static void rmsnorm_differs_by_call(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                    size_t n, const struct iso_norm *o) {
    good->rmsnorm(y, ldy, x, ldx, rows, n, o);
    if (rows && n && calls++ % 3 == 2)
        y[0] = nextafterf(y[0], INFINITY);
}

static void attention_sees_too_much(const struct iso_attention *t) {
    struct iso_attention wide = *t;
    wide.see++;
    good->attention(&wide);
}

static void attention_forgets_scale(const struct iso_attention *t) {
    struct iso_attention other = *t;
    other.scale *= 1 + 0x1p-12f;
    good->attention(&other);
}

static void unary_loses_sign(float *y, const float *x, size_t n, int function) {
    good->unary(y, x, n, function);
    for (size_t i = 0; i < n && function == ISOBIT_ACT_SILU; i++)
        y[i] += 0.0f;
}

static void unary_three_ulp(float *y, const float *x, size_t n, int function) {
    good->unary(y, x, n, function);
    for (size_t i = 0; i < n && function == ISO_UNARY_EXP; i++) {
        if (y[i] > 3 && y[i] < 4)
            y[i] += 0x3p-22f;
    }
}

static void pack_leaves_rest(float *dst, const float *src, size_t si, size_t sp, size_t n, size_t k,
                             size_t width) {
    good->gemm_pack(dst, src, si, sp, n, k, width);
    if (n % width && k)
        dst[(n + width - 1) / width * width * k - 1] = 1;
}

static void panels_touch_others(float *panels, size_t first, const float *k, size_t ldk,
                                size_t count, size_t dh) {
    good->key_panels(panels, first, k, ldk, count, dh);
    if (first % ISO_KEY_BLOCK && count)
        panels[first / ISO_KEY_BLOCK * ISO_KEY_BLOCK * dh + (first - 1) % ISO_KEY_BLOCK] = 0;
}

/* What the first report has to say when the named kernel is replaced. */
#define BROKEN(kernel, function, text)                                                             \
    {                                                                                              \
#kernel, #function, text, { .kernel = function }                                           \
    }
struct broken {
    const char *kernel, *name, *text;
    struct iso_kernels with; /* one pointer set */
};
static const struct broken broken_kernels[] = {
    BROKEN(gemv, gemv_reads_right, "past the right end of x"),
    BROKEN(gemv, gemv_reads_left, "past the left end of x"),
    BROKEN(gemv, gemv_writes_right, "past the right end of y"),
    BROKEN(gemv, gemv_writes_right_of_page, "wrote past the end of y"),
    BROKEN(gemv, gemv_writes_left_in_page, "wrote before the begin of y"),
    BROKEN(gemv, gemv_writes_input, "wrote to the input w"),
    BROKEN(gemv, gemv_changes_errno, "changed errno"),
    BROKEN(gemv, gemv_changes_rounding, "changed the floating-point control register"),
    BROKEN(gemv, gemv_never_returns, "did not return in time"),
    BROKEN(gemv, gemv_illegal, "illegal instruction"),
    BROKEN(gemv, gemv_wants_alignment, "signal 7"),
    BROKEN(gemv, gemv_divides_by_zero, "raised DIVBYZERO"),
    BROKEN(gemv, gemv_forgets_last, "did not write y"),
    BROKEN(gemv, gemv_sums_plainly, "canonical order gives"),
    BROKEN(gemm_strip, strip_slightly_off, "times the bound"),
    BROKEN(gemm_strip, strip_skips_tail, "c["),
    BROKEN(gemm_strip, strip_writes_gap, "wrote to the gap of c"),
    BROKEN(gemm_epilogue, epilogue_reads_c, "c[0][0]"),
    BROKEN(softmax, softmax_swallows_nan, "should be nan"),
    BROKEN(softmax, softmax_uses_padding, "nan, should be"),
    BROKEN(softmax, softmax_ignores_mask, "should be"),
    BROKEN(layernorm, layernorm_two_ulp, "bits of y"),
    BROKEN(rmsnorm, rmsnorm_differs_by_call, "bits of "),
    BROKEN(attention, attention_sees_too_much, "o["),
    BROKEN(attention, attention_forgets_scale, "times the bound"),
    BROKEN(unary, unary_loses_sign, "bits of y"),
    BROKEN(unary, unary_three_ulp, "times the bound"),
    BROKEN(gemm_pack, pack_leaves_rest, "canonical order gives"),
    BROKEN(key_panels, panels_touch_others, "canonical order gives"),
};

static const struct iso_suite *suite_named(const char *name) {
    for (size_t i = 0; i < iso_suite_count; i++) {
        if (!strcmp(iso_suites[i]->kernel, name))
            return iso_suites[i];
    }
    return NULL;
}

static void breaks(struct iso_kernels *table, const struct iso_kernels *with) {
#define KERNEL(type, name, args)                                                                   \
    if (with->name)                                                                                \
        table->name = with->name;
#include "kernels.def"
#undef KERNEL
}

static bool found(const char *name, const struct iso_run *run, const char *text) {
    bool ok = run->failures > 0 && strstr(run->first_failure, text);
    printf("%-28s %s: %s\n", name, ok ? "found " : "MISSED",
           run->failures ? run->first_failure : "nothing was reported");
    fflush(stdout);
    return ok;
}

static int self_test(const struct iso_run *base) {
    size_t missed = 0, count = sizeof broken_kernels / sizeof *broken_kernels;
    for (size_t i = 0; i < base->set_count && !good; i++)
        good = base->sets[i].missing ? NULL : base->sets[i].table;
    for (size_t i = 0; i < count; i++) {
        const struct broken *b = &broken_kernels[i];
        struct iso_kernels table = *good;
        breaks(&table, &b->with);
        struct iso_set sets[2] = {{"good", good, NULL}, {"broken", &table, NULL}};
        struct iso_run run = *base;
        run.plan = ISO_PLAN_QUICK;
        run.sets = sets;
        run.set_count = 2;
        run.golden = run.update = NULL;
        run.out = NULL;
        run.stop = true;
        run.case_seconds = 2;
        calls = 0;
        iso_run_suite(&run, suite_named(b->kernel));
        missed += !found(b->name, &run, b->text);
    }
    /* the committed hashes: a changed bit in the file, and a file without the line */
    static const char *const tampered[][3] = {
        {"tampered golden hash", "embed", "the bits are not those committed"},
        {"missing golden hash", "other", "no committed hash"}};
    for (size_t i = 0; i < 2; i++) {
        char file[] = "/tmp/isobit-golden-XXXXXX";
        int fd = mkstemp(file);
        if (fd < 0)
            return 2;
        dprintf(fd, "%s %d 0123456789abcdef\n", tampered[i][1], ISOBIT_NUMERICS_VERSION);
        close(fd);
        struct iso_run run = *base;
        run.plan = ISO_PLAN_QUICK;
        run.golden = file;
        run.update = NULL;
        run.out = NULL;
        iso_run_suite(&run, suite_named("embed"));
        unlink(file);
        missed += !found(tampered[i][0], &run, tampered[i][2]);
    }
    printf("self-test: %zu of %zu defects found\n", count + 2 - missed, count + 2);
    return missed ? 1 : 0;
}

/* ---------------------------------------------------------------------------------------- main */

static void list_cases(const struct iso_run *run) {
    for (size_t i = 0; i < iso_suite_count; i++) {
        struct iso_cases list;
        if (run->kernel && strcmp(run->kernel, iso_suites[i]->kernel))
            continue;
        iso_suite_cases(iso_suites[i], &list, run->plan);
        for (size_t j = 0; j < list.count; j++) {
            char text[400];
            iso_case_text(text, sizeof text, iso_suites[i], &list.v[j]);
            printf("%s %zu: %s%s\n", iso_suites[i]->kernel, j, text,
                   list.v[j].flags & ISO_CASE_GOLDEN ? " (golden)" : "");
        }
        free(list.v);
    }
}

static int usage(void) {
    fprintf(stderr, "usage: test_kernels [--quick | --exhaustive] [--kernel NAME [--case NUMBER]] "
                    "[--isa NAME] [--timing]\n"
                    "       [--golden FILE] [--update-golden FILE] [--list] [--self-test]\n");
    return 2;
}

int main(int argc, char **argv) {
    struct iso_run run;
    struct iso_set sets[16];
    bool list = false, self = false;
    const char *isa = NULL;
    iso_run_init(&run);
    run.golden = ISOBIT_TEST_DATA "/golden.txt";
    const char *exhaustive = getenv("ISOBIT_EXHAUSTIVE");
    if (exhaustive && *exhaustive && strcmp(exhaustive, "0"))
        run.plan = ISO_PLAN_EXHAUSTIVE;
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(option, "--quick"))
            run.plan = ISO_PLAN_QUICK;
        else if (!strcmp(option, "--exhaustive"))
            run.plan = ISO_PLAN_EXHAUSTIVE;
        else if (!strcmp(option, "--timing"))
            run.timing = true;
        else if (!strcmp(option, "--list"))
            list = true;
        else if (!strcmp(option, "--self-test"))
            self = true;
        else if (!strcmp(option, "--kernel") && value)
            run.kernel = argv[++i];
        else if (!strcmp(option, "--case") && value)
            run.only_case = argv[++i];
        else if (!strcmp(option, "--isa") && value)
            isa = argv[++i];
        else if (!strcmp(option, "--golden") && value)
            run.golden = argv[++i];
        else if (!strcmp(option, "--update-golden") && value)
            run.update = argv[++i];
        else
            return usage();
    }
    if ((run.kernel && !suite_named(run.kernel)) || run.set_count > 16)
        return usage();
    if (isa) {
        size_t n = 0;
        for (size_t i = 0; i < run.set_count; i++) {
            if (!strcmp(isa, run.sets[i].name))
                sets[n++] = run.sets[i];
        }
        if (!n)
            return usage();
        run.sets = sets;
        run.set_count = n;
    }
    if (list) {
        list_cases(&run);
        return 0;
    }
    if (self)
        return self_test(&run);
    if (run.update) {
        FILE *f = fopen(run.update, "w");
        if (!f) {
            perror(run.update);
            return 2;
        }
        fputs("# kernel, ISOBIT_NUMERICS_VERSION, XXH3 of its results (test_kernels "
              "--update-golden)\n",
              f);
        fclose(f);
        run.golden = NULL;
    }
    iso_run_all(&run);
    printf("%zu failures\n", run.failures);
    return run.failures ? 1 : 0;
}
