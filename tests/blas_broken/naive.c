/* SPDX-License-Identifier: MIT
 *
 * A BLAS in plain loops, correct, and with one defect when the environment variable BROKEN names
 * one: what `isobit check --blas` must find (../blas_broken.sh has the list, and the words).
 * A defect is a condition at the place where it does harm: IF(name).
 */
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "spoil.h"

#pragma GCC visibility push(default) /* the library is built with hidden names */

static const char *broken = "";
static int threads = 1;
static int *volatile nowhere;
static bool is(const char *name) { return !strcmp(broken, name); }
#define IF(name) if (is(name))

void xerbla_(const char *name, const int *info, size_t length);
void cblas_xerbla(int info, const char *routine, const char *form, ...);

/* What a program without them would get. */
__attribute__((weak)) void xerbla_(const char *name, const int *info, size_t length) {
    (void)name, (void)info, (void)length;
}
__attribute__((weak)) void cblas_xerbla(int info, const char *routine, const char *form, ...) {
    (void)info, (void)routine, (void)form;
}

#ifdef AS_BLIS
/* As BLIS does: numbers for CPU types, the last of them "generic", which it was built without. */
const char *bli_arch_string(int type);
char *bli_info_get_version_str(void);
void bli_init(void);
int bli_arch_query_id(void);
const char *bli_arch_string(int type) {
    static const char *const names[] = {"penryn", "cortexa57", "generic"};
    return names[type];
}
char *bli_info_get_version_str(void) {
    static char text[] = "that is naive";
    return text;
}
void bli_init(void) {}
int bli_arch_query_id(void) {
    const char *type = getenv("BLIS_ARCH_TYPE");
    if (type && !strcmp(type, "2"))
        abort();
    return 0;
}
static void choose_type(void) {
    (void)bli_arch_query_id();
    IF("type-abort") if (getenv("BLIS_ARCH_TYPE")) abort();
}
#else
static void choose_type(void) {}
#endif

/* ---------------------------------------------------------------------------------- sums */

/* Element i of n, with the increment of the Fortran routines. */
static ptrdiff_t at(int i, int n, int inc) {
    if (inc < 0)
        return (ptrdiff_t)(n - 1 - i) * -inc;
    return (ptrdiff_t)i * inc;
}

/* x . y over n elements; blocks: how many sums are added up in the end. */
static float sum(const float *x, ptrdiff_t sx, const float *y, ptrdiff_t sy, int n, int blocks) {
    float total = 0;
    for (int b = 0; b < blocks; b++) {
        float part = 0;
        for (int i = (int)((int64_t)n * b / blocks); i < (int)((int64_t)n * (b + 1) / blocks); i++)
            part += x[i * sx] * y[i * sy];
        total += part;
    }
    return total;
}

static int blocks_of(const char *name, bool when) { return is(name) && when ? 3 : 1; }

/* alpha s + beta c */
static float update(float alpha, float s, float beta, float c) {
    float t = alpha == 0 ? 0 : alpha * s;
    return beta == 0 ? t : t + beta * c;
}

/* -------------------------------------------------------------- the routines, on any strides */

struct view {
    const float *at;
    ptrdiff_t si, sj;
};

static void gemm(int m, int n, int k, float alpha, struct view a, struct view b, float beta,
                 float *c, ptrdiff_t si, ptrdiff_t sj) {
    static int calls;
    int blocks = blocks_of("split-k", threads > 1) + blocks_of("part", m == 1) - 1 +
                 (is("again") ? calls++ % 3 : 0) +
                 (is("cpu-type") && getenv("OPENBLAS_CORETYPE") ? 1 : 0);
    if (m == 0 || n == 0)
        return;
    IF("k-zero") if (k == 0) return;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            float *to = c + i * si + j * sj;
            float s = alpha == 0 && !is("alpha-nan")
                          ? 0
                          : sum(a.at + i * a.si, a.sj, b.at + j * b.sj, b.si, k, blocks);
            *to = update(alpha, s, beta, *to);
            IF("alpha-nan") *to += alpha * s - alpha * s;
        }
    }
    ptrdiff_t outer = si > sj ? si : sj;
    int inner = si > sj ? n : m, lines = si > sj ? m : n;
    IF("row-past-end") c[lines * outer] = 0;
    IF("ld-gap") if (outer > inner && lines > 1) c[inner] = 0;
}

static void gemv(bool trans, int m, int n, float alpha, struct view a, const float *x, int incx,
                 float beta, float *y, int incy) {
    int rows = trans ? n : m, cols = trans ? m : n;
    ptrdiff_t si = trans ? a.sj : a.si, sj = trans ? a.si : a.sj;
    if (m == 0 || n == 0)
        return;
    IF("hang") for (volatile bool forever = m == 7; forever;) continue;
    for (int i = 0; i < rows; i++) {
        float *to = y + at(i, rows, incy);
        const float *first = x + at(0, cols, incx);
        IF("beta-nan") *to *= beta;
        float s = sum(a.at + i * si, sj, first, incx, cols, 1);
        *to = is("beta-nan") ? *to + alpha * s : update(alpha, s, beta, *to);
    }
    volatile float zero = 0;
    IF("flags") zero = zero / zero;
}

static void ger(int m, int n, float alpha, const float *x, int incx, const float *y, int incy,
                float *a, ptrdiff_t si, ptrdiff_t sj) {
    for (int i = 0; i < m && alpha != 0; i++)
        for (int j = 0; j < n; j++)
            a[i * si + j * sj] += alpha * x[at(i, m, incx)] * y[at(j, n, incy)];
}

static void syrk(bool upper, int n, int k, float alpha, struct view a, float beta, float *c,
                 ptrdiff_t si, ptrdiff_t sj) {
    IF("input-changed") if (n && k) * (volatile float *)(uintptr_t)a.at *= 1;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            float *to = c + i * si + j * sj;
            if ((upper ? j < i : j > i) && !is("triangle"))
                continue;
            float s = alpha == 0 ? 0 : sum(a.at + i * a.si, a.sj, a.at + j * a.si, a.sj, k, 1);
            *to = update(alpha, s, beta, *to);
        }
    }
}

static float dot(int n, const float *x, int incx, const float *y, int incy) {
    choose_type();
    int blocks = 1;
    IF("crash") if (n == 4) *nowhere = 1;
    IF("abort") if (n == 4) abort();
    IF("exit") if (n == 4) exit(3);
    if (n <= 0)
        return 0;
    IF("alignment") blocks = 1 + (int)((uintptr_t)x / 4 % 4);
    IF("stride-bits") blocks = incx == 1 ? 4 : 1;
    float s = sum(x + at(0, n, incx), incx, y + at(0, n, incy), incy, n, blocks);
    IF("imprecise") s = (float)(int)(s * 4096) / 4096;
    volatile float next = 0;
    IF("read-past") next = x[(ptrdiff_t)(n - 1) * abs(incx) + 1];
    (void)next;
    return s;
}

static void axpy(int n, float alpha, const float *x, int incx, float *y, int incy) {
    for (int i = 0; i < n && alpha != 0; i++) {
        float *to = y + at(i, n, incy);
        *to += alpha * x[at(i, n, is("increment-sign") ? abs(incx) : incx)];
        IF("subnormal") if (fabsf(*to) < 0x1p-126f) *to = 0;
        IF("increment-gap") if (abs(incy) > 1 && i + 1 < n) y[(ptrdiff_t)i * abs(incy) + 1] = 0;
    }
}

static void scal(int n, float alpha, float *x, int incx) {
    for (int i = 0; i < n && incx > 0; i++)
        x[(ptrdiff_t)i * incx] *= alpha;
    IF("tail") if (n % 8 == 7 && incx > 0) x[(ptrdiff_t)(n - 1) * incx] *= 1.0001f;
}

static float nrm2(int n, const float *x, int incx) {
    double s = 0;
    float naive = 0;
    for (int i = 0; i < n; i++) {
        float v = x[at(i, n, incx)];
        s += (double)v * (double)v;
        naive += v * v;
    }
    return is("norm-overflow") && isinf(naive) ? naive : (float)sqrt(s);
}

static float asum(int n, const float *x, int incx) {
    float s = 0;
    volatile float before = 0;
    if (incx <= 0 || n <= 0)
        return 0;
    IF("read-before") before = x[-1];
    (void)before;
    for (int i = 0; i < n; i++) {
        float v = fabsf(x[(ptrdiff_t)i * incx]);
        s += is("nan-swallowed") && isnan(v) ? 0 : v;
    }
    return s;
}

static int amax(int n, const float *x, int incx) { /* from 0; -1: none */
    int best = 0;
    if (n <= 0 || incx <= 0)
        return -1;
    for (int i = 1; i < n; i++) {
        float v = fabsf(x[(ptrdiff_t)i * incx]), most = fabsf(x[(ptrdiff_t)best * incx]);
        if (v > most || (is("last-of-equals") && v == most))
            best = i;
    }
    return best;
}

/* ---------------------------------------------------------------------------- bad arguments */

static int most(int a, int b) { return a > b ? a : b; }

/* info counts as Fortran does; C has the layout before. Returns whether the call is to end. */
enum { LAYOUT = -1 };
static bool report(const char *name, int info, bool from_c) {
    char c_name[16] = "cblas_";
    if (!info)
        return false;
    if (info == LAYOUT)
        info = 0;
    IF("no-report") return true;
    IF("wrong-number") info++;
    IF("wrong-name") name = "DSYRK ";
    if (from_c) {
        for (int i = 0; name[i] && name[i] != ' '; i++)
            c_name[6 + i] = (char)(name[i] | 0x20);
        cblas_xerbla(info + 1, c_name, "");
    } else {
        xerbla_(name, &info, 6);
    }
    return !is("goes-on");
}

#define FIRST_WRONG(...) first_wrong((const bool[]){__VA_ARGS__}, sizeof(bool[]){__VA_ARGS__})
static int first_wrong(const bool *wrong, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (wrong[i])
            return (int)i + 1;
    return 0;
}

static bool known(char c, const char *letters) { return c && strchr(letters, c); }

typedef const int *Int;
typedef const float *In;
typedef const char *Letter;

static struct view view(const float *at, bool trans, ptrdiff_t si, ptrdiff_t sj) {
    return trans ? (struct view){at, sj, si} : (struct view){at, si, sj};
}
static bool is_trans(char c) { return !known(c, "Nn"); }

/* ------------------------------------------------------------------------- Fortran and C names */

static void gemm_call(bool from_c, bool row, char ta, char tb, int m, int n, int k, float alpha,
                      In a, int lda, In b, int ldb, float beta, float *c, int ldc) {
    bool t = is_trans(ta), u = is_trans(tb);
    int ra = row == t ? m : k, rb = row == u ? k : n;
    int info = FIRST_WRONG(!known(ta, "NnTtCc"), !known(tb, "NnTtCc"), m < 0, n < 0, k < 0, false,
                           false, lda < most(1, ra), false, ldb < most(1, rb), false, false,
                           ldc < most(1, row ? n : m));
    if (is("spurious") && m == 0)
        info = 3;
    if (report("SGEMM ", info, from_c) || (info && (m < 0 || n < 0 || k < 0)))
        return;
    ptrdiff_t ai = row ? lda : 1, aj = row ? 1 : lda, bi = row ? ldb : 1, bj = row ? 1 : ldb;
    gemm(m, n, k, alpha, view(a, t, ai, aj), view(b, u, bi, bj), beta, c, row ? ldc : 1,
         row ? 1 : ldc);
}

void sgemm_(Letter ta, Letter tb, Int m, Int n, Int k, In alpha, In a, Int lda, In b, Int ldb,
            In beta, float *c, Int ldc);
void sgemm_(Letter ta, Letter tb, Int m, Int n, Int k, In alpha, In a, Int lda, In b, Int ldb,
            In beta, float *c, Int ldc) {
    gemm_call(false, false, *ta, *tb, *m, *n, *k, *alpha, a, *lda, b, *ldb, *beta, c, *ldc);
}

static char letter(int trans) {
    return trans == 111 ? 'N' : trans == 112 || trans == 113 ? 'T' : 0;
}
static bool bad_layout(const char *name, int layout) {
    if (layout == 101 || layout == 102)
        return false;
    report(name, LAYOUT, true);
    return true;
}

void cblas_sgemm(int layout, int ta, int tb, int m, int n, int k, float alpha, In a, int lda, In b,
                 int ldb, float beta, float *c, int ldc);
void cblas_sgemm(int layout, int ta, int tb, int m, int n, int k, float alpha, In a, int lda, In b,
                 int ldb, float beta, float *c, int ldc) {
    if (!bad_layout("SGEMM ", layout))
        gemm_call(true, layout == 101, letter(ta), letter(tb), m, n, k, alpha, a, lda, b, ldb, beta,
                  c, ldc);
}

static void gemv_call(bool from_c, bool row, char trans, int m, int n, float alpha, In a, int lda,
                      In x, int incx, float beta, float *y, int incy) {
    int info = FIRST_WRONG(!known(trans, "NnTtCc"), m < 0, n < 0, false, false,
                           lda < most(1, row ? n : m), false, incx == 0, false, false, incy == 0);
    if (!report("SGEMV ", info, from_c))
        gemv(is_trans(trans), m, n, alpha, view(a, false, row ? lda : 1, row ? 1 : lda), x, incx,
             beta, y, incy);
}

void sgemv_(Letter trans, Int m, Int n, In alpha, In a, Int lda, In x, Int incx, In beta, float *y,
            Int incy);
void sgemv_(Letter trans, Int m, Int n, In alpha, In a, Int lda, In x, Int incx, In beta, float *y,
            Int incy) {
    gemv_call(false, false, *trans, *m, *n, *alpha, a, *lda, x, *incx, *beta, y, *incy);
}
void cblas_sgemv(int layout, int trans, int m, int n, float alpha, In a, int lda, In x, int incx,
                 float beta, float *y, int incy);
void cblas_sgemv(int layout, int trans, int m, int n, float alpha, In a, int lda, In x, int incx,
                 float beta, float *y, int incy) {
    if (!bad_layout("SGEMV ", layout))
        gemv_call(true, layout == 101, letter(trans), m, n, alpha, a, lda, x, incx, beta, y, incy);
}

static void ger_call(bool from_c, bool row, int m, int n, float alpha, In x, int incx, In y,
                     int incy, float *a, int lda) {
    int info = FIRST_WRONG(m < 0, n < 0, false, false, incx == 0, false, incy == 0, false,
                           lda < most(1, row ? n : m));
    IF("row-major") row = false;
    if (!report("SGER  ", info, from_c))
        ger(m, n, alpha, x, incx, y, incy, a, row ? lda : 1, row ? 1 : lda);
}

void sger_(Int m, Int n, In alpha, In x, Int incx, In y, Int incy, float *a, Int lda);
void sger_(Int m, Int n, In alpha, In x, Int incx, In y, Int incy, float *a, Int lda) {
    ger_call(false, false, *m, *n, *alpha, x, *incx, y, *incy, a, *lda);
    IF("scalar-changed")++ *(int *)(uintptr_t)incy;
}
void cblas_sger(int layout, int m, int n, float alpha, In x, int incx, In y, int incy, float *a,
                int lda);
void cblas_sger(int layout, int m, int n, float alpha, In x, int incx, In y, int incy, float *a,
                int lda) {
    if (!bad_layout("SGER  ", layout))
        ger_call(true, layout == 101, m, n, alpha, x, incx, y, incy, a, lda);
}

static void syrk_call(bool from_c, bool row, char uplo, char trans, int n, int k, float alpha, In a,
                      int lda, float beta, float *c, int ldc) {
    bool t = is_trans(trans);
    int info = FIRST_WRONG(!known(uplo, "UuLl"), !known(trans, "NnTtCc"), n < 0, k < 0, false,
                           false, lda < most(1, row == t ? n : k), false, false, ldc < most(1, n));
    if (!report("SSYRK ", info, from_c))
        syrk(known(uplo, "Uu"), n, k, alpha, view(a, t, row ? lda : 1, row ? 1 : lda), beta, c,
             row ? ldc : 1, row ? 1 : ldc);
}

void ssyrk_(Letter uplo, Letter trans, Int n, Int k, In alpha, In a, Int lda, In beta, float *c,
            Int ldc);
void ssyrk_(Letter uplo, Letter trans, Int n, Int k, In alpha, In a, Int lda, In beta, float *c,
            Int ldc) {
    syrk_call(false, false, *uplo, *trans, *n, *k, *alpha, a, *lda, *beta, c, *ldc);
}
void cblas_ssyrk(int layout, int uplo, int trans, int n, int k, float alpha, In a, int lda,
                 float beta, float *c, int ldc);
void cblas_ssyrk(int layout, int uplo, int trans, int n, int k, float alpha, In a, int lda,
                 float beta, float *c, int ldc) {
    char u = uplo == 121 ? 'U' : uplo == 122 ? 'L' : 0;
    if (!bad_layout("SSYRK ", layout))
        syrk_call(true, layout == 101, u, letter(trans), n, k, alpha, a, lda, beta, c, ldc);
}

float sdot_(Int n, In x, Int incx, In y, Int incy);
float sdot_(Int n, In x, Int incx, In y, Int incy) { return dot(*n, x, *incx, y, *incy); }
float cblas_sdot(int n, In x, int incx, In y, int incy);
float cblas_sdot(int n, In x, int incx, In y, int incy) { return dot(n, x, incx, y, incy); }

void saxpy_(Int n, In alpha, In x, Int incx, float *y, Int incy);
void saxpy_(Int n, In alpha, In x, Int incx, float *y, Int incy) {
    axpy(*n, *alpha, x, *incx, y, *incy);
}
void cblas_saxpy(int n, float alpha, In x, int incx, float *y, int incy);
void cblas_saxpy(int n, float alpha, In x, int incx, float *y, int incy) {
    axpy(n, alpha, x, incx, y, incy);
}

void cblas_sscal(int n, float alpha, float *x, int incx);
void cblas_sscal(int n, float alpha, float *x, int incx) { scal(n, alpha, x, incx); }

float snrm2_(Int n, In x, Int incx);
float snrm2_(Int n, In x, Int incx) { return nrm2(*n, x, *incx); }
float cblas_snrm2(int n, In x, int incx);
float cblas_snrm2(int n, In x, int incx) { return nrm2(n, x, incx); }

float sasum_(Int n, In x, Int incx);
float sasum_(Int n, In x, Int incx) { return asum(*n, x, *incx); }
float cblas_sasum(int n, In x, int incx);
float cblas_sasum(int n, In x, int incx) { return asum(n, x, incx); }

int isamax_(Int n, In x, Int incx);
int isamax_(Int n, In x, Int incx) { return amax(*n, x, *incx) + !is("from-zero"); }
size_t cblas_isamax(int n, In x, int incx);
size_t cblas_isamax(int n, In x, int incx) {
    int i = amax(n, x, incx);
    return i < 0 ? 0 : (size_t)i;
}

/* ------------------------------------------------------------------------- the calling convention
 */

/*
 * sscal_ jumps to where this points to, so that no compiled code lies between it and the functions
 * of spoil_*.S that do their work and then break a rule.
 */
__attribute__((visibility("hidden"))) extern void (*broken_sscal)(void);
__attribute__((visibility("hidden"))) void (*iso_spoil_target)(void);
static void fortran_scal(Int n, In alpha, float *x, Int incx) { scal(*n, *alpha, x, *incx); }
void (*broken_sscal)(void) = (void (*)(void))fortran_scal;

#if defined(__x86_64__)
__asm__(".text\n.globl sscal_\n.type sscal_, @function\nsscal_: jmp *broken_sscal(%rip)\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl sscal_\n.type sscal_, @function\nsscal_: adrp x16, broken_sscal\n"
        "ldr x16, [x16, #:lo12:broken_sscal]\nbr x16\n");
#else
void sscal_(Int n, In alpha, float *x, Int incx);
void sscal_(Int n, In alpha, float *x, Int incx) { fortran_scal(n, alpha, x, incx); }
#endif

#define SPOILER(rule)                                                                              \
    { #rule, (void (*)(void))iso_spoil_##rule }
static void choose_spoiler(void) {
    static const struct {
        const char *name;
        void (*f)(void);
    } spoilers[] = {
        SPOILER(canary),
#if defined(__x86_64__)
        SPOILER(rbx),
        SPOILER(rbp),
        SPOILER(r15),
        SPOILER(direction),
        SPOILER(mxcsr),
        SPOILER(x87_control),
        SPOILER(x87_stack),
        SPOILER(ymm),
        SPOILER(aligned)
#elif defined(__aarch64__)
        SPOILER(x19),
        SPOILER(d8),
        SPOILER(fpcr)
#endif
    };
    iso_spoil_target = (void (*)(void))fortran_scal;
    for (size_t i = 0; i < sizeof spoilers / sizeof *spoilers; i++)
        if (is(spoilers[i].name))
            broken_sscal = spoilers[i].f;
}

/* ------------------------------------------------------------------- what an OpenBLAS exports */

#ifndef AS_BLIS
char *openblas_get_config(void);
void openblas_set_num_threads(int n);
char *openblas_get_config(void) {
    static char text[] = "naive BLAS of the tests";
    return text;
}
void openblas_set_num_threads(int n) { threads = n; }
#endif

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("BROKEN");
    if (name)
        broken = name;
    choose_spoiler();
    IF("load-crash") abort();
}
