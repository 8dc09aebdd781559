/* SPDX-License-Identifier: MIT
 *
 * Bad arguments. Whoever wants to hear of them defines xerbla_ or cblas_xerbla, in the program or
 * in a library that is loaded with it: these are weak references, so that this library does not
 * take the place of another one's. Without them a line on stderr has to do.
 *
 * The reference CBLAS exchanges the operands of a row-major call, reports the number of the
 * parameter in the exchanged call, and leaves it to cblas_xerbla to exchange it back where the
 * global RowMajorStrg is set. Programs that define cblas_xerbla rely on that.
 */
#include "core.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define WEAK __attribute__((weak))
extern void xerbla_(const char *name, const int *info, size_t name_length) WEAK;
extern void xerbla_64_(const char *name, const int64_t *info, size_t name_length) WEAK;
extern void cblas_xerbla(int info, const char *routine, const char *form, ...) WEAK;
extern void cblas_xerbla_64(int64_t info, const char *routine, const char *form, ...) WEAK;
extern int RowMajorStrg WEAK;
extern int CBLAS_CallFromC WEAK;

static void say(const char *routine, size_t length, int info) {
    fprintf(stderr, "isobit: parameter %d to %.*s had an illegal value\n", info, (int)length,
            routine);
}

/* For who looks at what happens; there a routine has the same name in every language. */
static void note(const char *routine, size_t length, int info) {
    char name[40] = "", shape[32];
    const size_t prefix = strncmp(routine, "cblas_", 6) == 0 ? 6 : 0;
    if (iso_verbose() == 0)
        return;
    for (size_t i = prefix; i < length && i - prefix < sizeof name - 1; i++)
        name[i - prefix] = (char)(routine[i] == '_' ? '_' : routine[i] | 0x20);
    snprintf(shape, sizeof shape, "parameter%d", info);
    iso_verbose_call(name, NULL, shape, NULL, ISOBIT_E_OPTION, 0);
}

static void tell_c(const char *routine, int ilp64, int info, int exchanged, int row_major,
                   const char *what) {
    note(routine, strlen(routine), exchanged);
    if (ilp64 ? !cblas_xerbla_64 : !cblas_xerbla) {
        say(routine, strlen(routine), exchanged);
        return;
    }
    if (&RowMajorStrg)
        RowMajorStrg = row_major;
    if (&CBLAS_CallFromC)
        CBLAS_CallFromC = 1;
    if (ilp64)
        cblas_xerbla_64(info, routine, "%s", what);
    else
        cblas_xerbla(info, routine, "%s", what);
    if (&RowMajorStrg)
        RowMajorStrg = 0;
    if (&CBLAS_CallFromC)
        CBLAS_CallFromC = 0;
}

void iso_blas_bad(const struct caller *caller, int info, int exchanged) {
    const char *name = caller->name;
    const size_t length = name[5] == ' ' ? 5 - (name[4] == ' ') : 6;
    if (caller->from_c) {
        char routine[16] = "cblas_";
        for (size_t i = 0; i < length; i++)
            routine[6 + i] = (char)(name[i] | 0x20);
        tell_c(routine, caller->ilp64, info + 1, exchanged + 1, caller->row_major, "");
        return;
    }
    note(name, length, info);
    if (caller->ilp64) {
        const int64_t number = info;
        if (xerbla_64_)
            xerbla_64_(name, &number, 6);
        else
            say(name, length, info);
    } else if (xerbla_) {
        xerbla_(name, &info, 6);
    } else {
        say(name, length, info);
    }
}

void iso_blas_bad_c(const char *name, int ilp64, int info, const char *what) {
    tell_c(name, ilp64, info, info, 0, what);
}
