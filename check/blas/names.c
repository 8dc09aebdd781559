/* SPDX-License-Identifier: MIT
 *
 * The names of routines, interfaces, families and properties; which property belongs to which
 * routine; a case as a line of text, and back.
 */
#include "blas.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const routines[BLAS_ROUTINES] = {"sgemm", "sgemv", "sger",  "ssyrk", "sdot",
                                                    "saxpy", "sscal", "snrm2", "sasum", "isamax"};
static const char *const apis[BLAS_APIS] = {"fortran", "cblas", "cblas-row", "dnnl"};
static const char *const families[BLAS_FAMILIES] = {"plain",  "range", "beta0", "alpha0", "nan",
                                                    "stride", "bad",   "bits",  "large"};
static const char *const properties[BLAS_PROPERTIES] = {
    [BLAS_ERROR] = "error",
    [BLAS_IN_RANGE] = "overflow, underflow",
    [BLAS_ZERO_BETA] = "beta = 0",
    [BLAS_ZERO_ALPHA] = "alpha = 0",
    [BLAS_SPECIAL] = "NaN, infinity",
    [BLAS_INCREMENTS] = "increments",
    [BLAS_ARGUMENTS] = "bad arguments",
    [BLAS_OUTSIDE] = "outside",
    [BLAS_INPUTS] = "inputs",
    [BLAS_RETURNS] = "returns",
    [BLAS_REGISTERS] = "registers",
    [BLAS_VECTOR_STATE] = "vector state",
    [BLAS_FLAGS] = "exception flags",
    [BLAS_CONTROL] = "floating-point control",
    [BLAS_BITS_AGAIN] = "bits: again",
    [BLAS_BITS_ALIGNMENT] = "bits: alignment",
    [BLAS_BITS_STRIDE] = "bits: strides",
    [BLAS_BITS_PART] = "bits: part alone",
    [BLAS_BITS_THREADS] = "bits: threads",
    [BLAS_BITS_CPU] = "bits: CPU types",
};

const char *blas_name(enum blas_routine routine) { return routines[routine]; }
const char *blas_api_name(enum blas_api api) { return apis[api]; }
const char *blas_family_name(enum blas_family family) { return families[family]; }
const char *blas_property_name(enum blas_property property) { return properties[property]; }

bool blas_has(const struct blas_library *library, enum blas_routine routine, enum blas_api api) {
    if (api == BLAS_DNNL)
        return routine == BLAS_GEMM && library->has[BLAS_FUNCTIONS - 1];
    return library->has[2 * routine + (api != BLAS_FORTRAN)] &&
           (api != BLAS_ROW || routine <= BLAS_SYRK);
}

bool blas_applies(enum blas_routine routine, enum blas_property property) {
    switch (property) {
    case BLAS_ZERO_BETA: return routine <= BLAS_SYRK && routine != BLAS_GER;
    case BLAS_ZERO_ALPHA: return routine <= BLAS_SYRK || routine == BLAS_AXPY;
    case BLAS_INCREMENTS: return routine != BLAS_GEMM && routine != BLAS_SYRK;
    case BLAS_ARGUMENTS: return routine <= BLAS_SYRK;
    case BLAS_BITS_PART:
        return routine <= BLAS_SYRK || routine == BLAS_AXPY || routine == BLAS_SCAL;
    default: return true;
    }
}

/* -------------------------------------------------------------------------- a case as a line */

/* Which fields a routine has, as letters: t, T: trans of A, of both; u, m, n, k, p, x, y, a, b. */
static const char *const fields[BLAS_ROUTINES] = {"Tmnkpab", "tmnpxyab", "mnpxya", "utnkpab", "nxy",
                                                  "nxya",    "nxa",      "nx",     "nx",      "nx"};

static bool field(const struct blas_case *c, char letter) {
    return strchr(fields[c->routine], letter) != NULL;
}

static const struct {
    char letter;
    const char *name;
    size_t offset;
} whole[] = {{'m', "m", offsetof(struct blas_case, m)},
             {'n', "n", offsetof(struct blas_case, n)},
             {'k', "k", offsetof(struct blas_case, k)},
             {'p', "pad", offsetof(struct blas_case, pad)},
             {'x', "incx", offsetof(struct blas_case, incx)},
             {'y', "incy", offsetof(struct blas_case, incy)}};
enum { WHOLE = sizeof whole / sizeof *whole };

void blas_case_text(char *text, size_t bytes, const struct blas_case *c) {
    char trans[16] = "", uplo[16] = "", numbers[120] = "", factors[80] = "", more[80] = "";
    size_t used = 0;
    if (field(c, 'T'))
        snprintf(trans, sizeof trans, " trans=%c%c", c->trans_a, c->trans_b);
    else if (field(c, 't'))
        snprintf(trans, sizeof trans, " trans=%c", c->trans_a);
    if (field(c, 'u'))
        snprintf(uplo, sizeof uplo, " uplo=%c", c->uplo);
    for (size_t i = 0; i < WHOLE; i++) {
        int value;
        memcpy(&value, (const char *)c + whole[i].offset, sizeof value);
        if (field(c, whole[i].letter))
            used += (size_t)snprintf(numbers + used, sizeof numbers - used, " %s=%d", whole[i].name,
                                     value);
    }
    used = 0;
    if (field(c, 'a'))
        used = (size_t)snprintf(factors, sizeof factors, " alpha=%.9g", (double)c->alpha);
    if (field(c, 'b'))
        snprintf(factors + used, sizeof factors - used, " beta=%.9g", (double)c->beta);
    if (c->bad)
        snprintf(more, sizeof more, " bad=%d", c->bad);
    else if (c->spot)
        snprintf(more, sizeof more, " spot=%zu", c->spot);
    snprintf(text, bytes, "%s check=%s api=%s%s%s%s%s fill=%s%s offset=%u seed=%" PRIu64,
             blas_name(c->routine), blas_family_name(c->family), blas_api_name(c->api), uplo, trans,
             numbers, factors, iso_check_fill_name(c->fill), more, c->offset, c->seed);
}

/* The place of a word in a list, or its length. */
static unsigned find(const char *const *list, unsigned count, const char *word) {
    unsigned i = 0;
    while (i < count && strcmp(list[i], word) != 0)
        i++;
    return i;
}

static bool letters(char *to, const char *value, size_t count, const char *allowed) {
    for (size_t i = 0; i < count; i++) {
        if (!value[i] || !strchr(allowed, value[i]))
            return false;
        to[i] = value[i];
    }
    return !value[count];
}

static bool integer(int64_t *to, const char *value, int64_t least, int64_t most) {
    char *end = NULL;
    errno = 0;
    *to = strtoll(value, &end, 10);
    return end != value && !*end && !errno && *to >= least && *to <= most;
}

static bool factor(float *to, const char *value) {
    char *end = NULL;
    *to = strtof(value, &end);
    return end != value && !*end;
}

enum { MOST_SIZE = 4096, MOST_LENGTH = 2000000, MOST_PAD = 100 };

/* One "name=value". */
static bool set(struct blas_case *c, const char *name, const char *value) {
    int64_t n = 0;
    for (size_t i = 0; i < WHOLE; i++) {
        char letter = whole[i].letter;
        bool inc = letter == 'x' || letter == 'y';
        if (strcmp(name, whole[i].name) != 0 || !field(c, letter))
            continue;
        int64_t most = inc || letter == 'p'      ? MOST_PAD
                       : c->routine <= BLAS_SYRK ? MOST_SIZE
                                                 : MOST_LENGTH;
        if (!integer(&n, value, inc ? -MOST_PAD : 0, most) || (inc && n == 0))
            return false;
        int number = (int)n;
        memcpy((char *)c + whole[i].offset, &number, sizeof number);
        return true;
    }
    if (!strcmp(name, "check"))
        return (c->family = find(families, BLAS_FAMILIES, value)) < BLAS_FAMILIES;
    if (!strcmp(name, "api"))
        return (c->api = find(apis, BLAS_APIS, value)) < BLAS_APIS;
    if (!strcmp(name, "trans") && (field(c, 'T') || field(c, 't'))) {
        char trans[2] = {'N', 'N'};
        bool good = letters(trans, value, field(c, 'T') ? 2 : 1, "NT");
        c->trans_a = trans[0];
        c->trans_b = trans[1];
        return good;
    }
    if (!strcmp(name, "uplo") && field(c, 'u'))
        return letters(&c->uplo, value, 1, "UL");
    if ((!strcmp(name, "alpha") && field(c, 'a')) || (!strcmp(name, "beta") && field(c, 'b')))
        return factor(name[0] == 'a' ? &c->alpha : &c->beta, value);
    if (!strcmp(name, "fill")) {
        for (c->fill = 0; c->fill < ISO_CHECK_FILL_ALL; c->fill++)
            if (!strcmp(iso_check_fill_name(c->fill), value))
                return true;
        return false;
    }
    if (!strcmp(name, "bad")) {
        const int *p = blas_bad_positions(c->routine, c->api);
        bool known = integer(&n, value, 1, 20);
        while (*p && *p != n)
            p++;
        c->bad = (int)n;
        return known && *p;
    }
    bool good = integer(&n, value, 0, INT64_MAX);
    if (!strcmp(name, "spot"))
        c->spot = (size_t)n;
    else if (!strcmp(name, "offset"))
        c->offset = (unsigned)n, good = good && n < 64;
    else if (!strcmp(name, "seed"))
        c->seed = (uint64_t)n;
    else
        return false;
    return good;
}

const char *blas_case_parse(struct blas_case *c, const char *text) {
    static char token[128];
    *c = (struct blas_case){.routine = BLAS_ROUTINES,
                            .trans_a = 'N',
                            .trans_b = 'N',
                            .uplo = 'U',
                            .n = 1,
                            .m = 1,
                            .k = 1,
                            .incx = 1,
                            .incy = 1,
                            .alpha = 1};
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t length = strcspn(text, " ");
        if (length >= sizeof token)
            return "a word that is too long";
        memcpy(token, text, length);
        token[length] = 0;
        text += length;
        if (c->routine == BLAS_ROUTINES) {
            c->routine = find(routines, BLAS_ROUTINES, token);
            if (c->routine == BLAS_ROUTINES)
                return token;
            continue;
        }
        char name[128];
        size_t sign = strcspn(token, "=");
        memcpy(name, token, sign);
        name[sign] = 0;
        if (!token[sign] || !set(c, name, token + sign + 1))
            return token;
    }
    if (c->routine == BLAS_ROUTINES)
        return "an empty line";
    bool stored =
        (double)c->m * c->n <= 4e6 && (double)c->m * c->k <= 4e6 && (double)c->n * c->k <= 4e6;
    bool known = c->api != BLAS_DNNL ? c->api != BLAS_ROW || c->routine <= BLAS_SYRK
                                     : c->routine == BLAS_GEMM;
    return !stored ? "sizes that are too large" : !known ? "api of another routine" : NULL;
}
