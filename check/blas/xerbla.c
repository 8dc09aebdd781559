/* SPDX-License-Identifier: MIT
 *
 * What a library reports of bad arguments. The program exports these two functions, so that they
 * take the place of a library's own ones (the reference lets every program do that), and the
 * global that the reference CBLAS sets while it reports a row-major call.
 *
 * A position is counted from 1: in Fortran without the layout, so that it is one less than in C. A
 * row-major call is a column-major one with the operands exchanged; the reference reports the
 * position in the exchanged call, and leaves it to cblas_xerbla to exchange it back.
 */
#include "blas.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct blas_report blas_reported;

#define EXPORT __attribute__((visibility("default"), used))
EXPORT void xerbla_(const char *name, const int *info, size_t length);
EXPORT void cblas_xerbla(int info, const char *routine, const char *form, ...);
EXPORT int RowMajorStrg;

static void reported(const char *name, size_t length, int info, bool from_c) {
    blas_reported.calls++;
    blas_reported.info = info;
    blas_reported.from_c = from_c;
    snprintf(blas_reported.name, sizeof blas_reported.name, "%.*s", (int)length, name);
}

/* Not every caller gives the length: names have at most 6 letters. */
void xerbla_(const char *name, const int *info, size_t length) {
    (void)length;
    reported(name, strnlen(name, 6), *info, false);
}

void cblas_xerbla(int info, const char *routine, const char *form, ...) {
    (void)form;
    reported(routine, strnlen(routine, 20), info, true);
}

/* The position in the call with exchanged operands. */
static int exchanged(enum blas_routine routine, int position) {
    static const struct {
        enum blas_routine routine;
        int one, other;
    } pairs[] = {{BLAS_GEMM, 2, 3}, {BLAS_GEMM, 4, 5}, {BLAS_GEMM, 9, 11},
                 {BLAS_GEMV, 3, 4}, {BLAS_GER, 2, 3},  {BLAS_GER, 6, 8}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (pairs[i].routine == routine && position == pairs[i].one)
            return pairs[i].other;
        if (pairs[i].routine == routine && position == pairs[i].other)
            return pairs[i].one;
    }
    return position;
}

static bool names(const char *name, const char *routine) {
    if (!strncasecmp(name, "cblas_", 6))
        name += 6;
    return !strncasecmp(name, routine, strlen(routine));
}

const char *blas_report_wrong(const struct blas_call *call) {
    static char text[BLAS_TEXT];
    const struct blas_case *c = call->c;
    const struct blas_report *r = &blas_reported;
    if (c->api == BLAS_DNNL) {
        snprintf(text, sizeof text, "argument %d is wrong, but the status is success", c->bad - 1);
        return call->status ? NULL : text;
    }
    int want = c->api == BLAS_FORTRAN ? c->bad - 1 : c->bad;
    if (!r->calls) {
        snprintf(text, sizeof text, "argument %d is wrong, but %s was not called", want,
                 c->api == BLAS_FORTRAN ? "xerbla_" : "neither cblas_xerbla nor xerbla_");
        return text;
    }
    int info = r->from_c || c->api == BLAS_FORTRAN ? r->info : r->info + 1;
    bool right = info == want || (c->api == BLAS_ROW && info == exchanged(c->routine, want));
    if (!right) {
        snprintf(text, sizeof text, "argument %d is wrong, but %s was told of %d (as C counts: %d)",
                 want, r->from_c ? "cblas_xerbla" : "xerbla_", r->info, info);
        if (c->api == BLAS_FORTRAN)
            snprintf(text, sizeof text, "argument %d is wrong, but xerbla_ was told of %d", want,
                     r->info);
        return text;
    }
    if (!names(r->name, blas_name(c->routine))) {
        snprintf(text, sizeof text, "argument %d is wrong, but reported of '%s'", want, r->name);
        return text;
    }
    if (r->calls > 1) {
        snprintf(text, sizeof text, "argument %d is wrong, and reported %d times", want, r->calls);
        return text;
    }
    return NULL;
}
