/* SPDX-License-Identifier: MIT
 *
 * In a child process: one case, and everything that is looked at in a call. A signal of the
 * library, on whatever thread, becomes a finding in shared memory and ends the child.
 */
#include "blas.h"

#include <fenv.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <xxhash.h>

#include "../abi.h"
#include "../arena.h"
#include "../guard.h"
#include "../common.h"
#include "../oracle.h"
#include "../results.h"

static struct iso_check_operands operands;
static struct iso_check_tally tally;
static struct blas_table checked; /* through the trampolines */
static bool shy;
static struct blas_result *volatile current; /* of the call that runs */
static const struct blas_case *volatile current_case;

static const struct iso_check_suite suite = {.name = "blas"};

void blas_found(struct blas_result *r, enum blas_property property, const char *format, ...) {
    for (unsigned i = 0; i < r->count; i++)
        if (r->v[i].property == property)
            return; /* one of each */
    if (r->count == BLAS_FINDINGS)
        return;
    va_list list;
    va_start(list, format);
    r->v[r->count].property = property;
    vsnprintf(r->v[r->count].text, sizeof r->v->text, format, list);
    va_end(list);
    r->count++;
}

/* ------------------------------------------------------------------------------------ signals */

/* Whether the access was a write, where the machine tells: 1, 0, or -1. */
static int is_write(const void *context) {
#if defined(__x86_64__)
    const ucontext_t *c = context;
    return (c->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
    (void)context;
    return -1;
#endif
}

static void on_signal(int number, siginfo_t *info, void *context) {
    struct blas_result *r = current;
    char text[BLAS_TEXT];
    bool general = number == SIGSEGV && info->si_code == SI_KERNEL; /* x86 does not say where */
    if (!r)
        _exit(97);
    if ((number == SIGSEGV || number == SIGBUS) && !general &&
        iso_check_arena_fault(text, sizeof text, &operands, info->si_addr)) {
        static const char *const how[] = {"touched", "read", "wrote"};
        bool input = !strncmp(text, "wrote", 5);
        if (current_case->bad)
            blas_found(r, BLAS_ARGUMENTS, "went on with the wrong argument %d: %s",
                       current_case->bad, text);
        else if (input)
            blas_found(r, BLAS_INPUTS, "%s", text);
        else
            blas_found(r, BLAS_OUTSIDE, "%s%s", how[is_write(context) + 1],
                       text + strlen("touched"));
    } else if (general) {
        blas_found(r, BLAS_RETURNS, "general protection fault: an aligned access that is not?");
    } else {
        blas_found(r, BLAS_RETURNS, "%s",
                   number == SIGILL   ? "illegal instruction"
                   : number == SIGFPE ? "SIGFPE"
                   : number == SIGBUS ? "bus error"
                                      : "fault at an address that is no operand's");
    }
    _exit(98);
}

void blas_child_begin(const struct blas_table *table) {
    static char stack[64 << 10];
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    shy = iso_check_masked_loads_fault();
    iso_check_arena_init();
    iso_check_abi_init(blas_target());
    iso_check_abi_callers_stack();
    iso_check_abi_wrap(&checked, blas_target(), table);
    iso_check_tally_begin(&tally);
    sigaltstack(&alternative, NULL);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

const char *blas_not_checked(void) {
    iso_check_abi_init(blas_target());
    return iso_check_abi_missing();
}

/* ----------------------------------------------------------------------------------- one call */

static enum blas_property property_of(enum blas_family family) {
    static const enum blas_property of[BLAS_FAMILIES] = {
        [BLAS_PLAIN] = BLAS_ERROR,     [BLAS_RANGE] = BLAS_IN_RANGE,
        [BLAS_BETA0] = BLAS_ZERO_BETA, [BLAS_ALPHA0] = BLAS_ZERO_ALPHA,
        [BLAS_NAN] = BLAS_SPECIAL,     [BLAS_STRIDE] = BLAS_INCREMENTS,
        [BLAS_BAD] = BLAS_ARGUMENTS,   [BLAS_BITS] = BLAS_ERROR,
        [BLAS_LARGE] = BLAS_ERROR};
    return of[family];
}

static void judge_convention(struct blas_result *r, const char *abi, bool harmless, int raised) {
    enum blas_property property = BLAS_REGISTERS;
    if (abi && strstr(abi, "upper halves"))
        property = BLAS_VECTOR_STATE;
    else if (abi && (strstr(abi, "control") || strstr(abi, "x87")))
        property = BLAS_CONTROL;
    if (abi)
        blas_found(r, property, "%s", abi);
    if (harmless && raised)
        blas_found(r, BLAS_FLAGS, "raised%s%s%s on harmless input",
                   raised & FE_INVALID ? " INVALID" : "", raised & FE_DIVBYZERO ? " DIVBYZERO" : "",
                   raised & FE_OVERFLOW ? " OVERFLOW" : "");
}

/* Elements of bound 0 must not be written, not even with what they are. */
static void judge_untouched(struct blas_result *r, const struct blas_case *c,
                            enum blas_property property) {
    for (unsigned i = 0; i < operands.count; i++) {
        const struct iso_check_operand *v = &operands.v[i];
        for (size_t e = 0; v->bound && e < v->rows * v->cols; e++) {
            size_t at = e / v->cols * v->ld + e % v->cols;
            if (v->bound[e] != 0 ||
                !memcmp((const char *)v->at + 4 * at, (const char *)v->host + 4 * at, 4))
                continue;
            if (c->bad)
                blas_found(r, property, "argument %d is wrong, but %s[%zu][%zu] was written",
                           c->bad, v->name, e / v->cols, e % v->cols);
            else
                blas_found(r, property, "wrote to %s[%zu][%zu], which takes no part", v->name,
                           e / v->cols, e % v->cols);
        }
    }
}

static void judge_values(struct blas_result *r, const struct blas_case *c) {
    char text[BLAS_TEXT];
    enum blas_property property = property_of(c->family);
    struct iso_check_case shown = {.fill = c->fill};
    tally.worst = 0;
    judge_untouched(r, c,
                    c->family == BLAS_BAD || c->family == BLAS_STRIDE ? property : BLAS_OUTSIDE);
    if (!c->bad && !iso_check_values(text, sizeof text, &suite, &shown, &operands, &tally))
        blas_found(r, property, "%s", text);
    if (tally.worst > r->worst)
        r->worst = tally.worst;
}

/* The call with the operands where they are placed. */
static void call_here(const struct blas_case *c, struct blas_result *r) {
    struct blas_call call;
    bool harmless = c->family <= BLAS_ALPHA0 || c->family >= BLAS_STRIDE;
    blas_call_begin(&call, c, &operands);
    blas_reported = (struct blas_report){0};
    current_case = c;
    current = r;
    feclearexcept(FE_ALL_EXCEPT);
    iso_check_abi_begin();
    bool kept = blas_run(&checked, &call);
    int raised = fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
    size_t stack;
    const char *abi = iso_check_abi_end(&stack);
    feclearexcept(FE_ALL_EXCEPT);
    current = NULL;
    if (!kept)
        blas_found(r, BLAS_INPUTS, "changed a scalar argument");
    judge_convention(
        r, abi, harmless && c->fill != ISO_CHECK_FILL_HUGE && c->fill != ISO_CHECK_FILL_EXPONENTS,
        raised);
    const char *wrong = c->bad ? blas_report_wrong(&call) : NULL;
    if (wrong)
        blas_found(r, BLAS_ARGUMENTS, "%s", wrong);
    if (!c->bad && blas_reported.calls)
        blas_found(r, BLAS_ARGUMENTS, "reported argument %d of %s, where none is wrong",
                   blas_reported.info, blas_reported.name);
}

static void make(const struct blas_case *c) {
    iso_check_operands_free_overflow(&operands);
    iso_check_operands_begin(&operands, c->seed);
    blas_setup(&operands, c);
}

static void place(enum iso_check_side side, size_t offset) {
    if (side == ISO_CHECK_RIGHT && shy)
        side = ISO_CHECK_OFFSET, offset = 63;
    iso_check_arena_place(&operands, side, offset);
}

void blas_check_case(const struct blas_table *table, const struct blas_case *c,
                     struct blas_result *r) {
    static const enum iso_check_side sides[] = {ISO_CHECK_RIGHT, ISO_CHECK_LEFT, ISO_CHECK_OFFSET};
    char text[BLAS_TEXT];
    (void)table;
    make(c);
    blas_reference(&operands, c);
    for (unsigned i = 0; i < (c->family == BLAS_LARGE ? 1 : 3); i++) {
        place(sides[i], c->offset);
        call_here(c, r);
        if (!iso_check_arena_intact(text, sizeof text, &operands))
            blas_found(r, BLAS_OUTSIDE, "%s", text);
        judge_values(r, c);
    }
    if (c->family == BLAS_LARGE) {
        const struct iso_check_operand *v = &operands.v[operands.count - 1];
        XXH64_hash_t hash = 0;
        for (size_t row = 0; row < v->rows; row++)
            hash = XXH3_64bits_withSeed((float *)v->at + row * v->ld, v->cols * 4, hash);
        r->hash = hash;
    }
    r->looked |= 1u << property_of(c->family) | 1u << BLAS_OUTSIDE | 1u << BLAS_INPUTS |
                 1u << BLAS_RETURNS | 1u << BLAS_REGISTERS | 1u << BLAS_VECTOR_STATE |
                 1u << BLAS_CONTROL | (c->family != BLAS_NAN ? 1u << BLAS_FLAGS : 0);
}

/* -------------------------------------------------------------------------------------- bits */

static struct iso_check_first first;

/* The same values in the output as in the first call? */
static void same(struct blas_result *r, enum blas_property property, const char *how) {
    char text[BLAS_TEXT];
    r->looked |= 1u << property;
    if (!iso_check_bits(text, sizeof text, &operands, &first, "the first call", "", NULL))
        blas_found(r, property, "%s: %s", how, text);
}

/* Rows or elements one by one and in small groups, where the operands are as for the whole. */
static void check_parts(const struct blas_case *c, struct blas_result *r) {
    static const int counts[] = {1, 2, 3, 5};
    struct blas_shape s;
    blas_shape(&s, c);
    unsigned last = s.count - 1;
    const struct iso_check_operand *v = &operands.v[last];
    bool across = c->routine != BLAS_GEMV && c->routine < BLAS_DOT && c->api != BLAS_ROW &&
                  c->api != BLAS_DNNL; /* rows of the output lie across memory */
    size_t rows = across ? v->cols : v->rows;
    float *whole = iso_check_operands_alloc(&operands, v->bytes + 4);
    memcpy(whole, v->at, v->bytes);
    for (unsigned t = 0; t < 12 && rows > 1; t++) {
        size_t count = (size_t)counts[t % 4], start = (t * 5 + 1) % rows;
        struct blas_call call;
        struct blas_case part;
        if (start + count > rows)
            continue;
        place(ISO_CHECK_OFFSET, 0);
        blas_call_begin(&call, c, &operands);
        if (!blas_part(&call, &part, (int)start, (int)count))
            return;
        r->looked |= 1u << BLAS_BITS_PART;
        current_case = c;
        current = r;
        blas_run(&checked, &call);
        current = NULL;
        const float *at = v->at;
        for (size_t row = 0; row < v->rows; row++) {
            for (size_t n = 0; n < v->cols; n++) {
                size_t e = row * v->ld + n, i = across ? n : row, j = across ? row : n;
                bool in = i >= start && i < start + count &&
                          (c->routine != BLAS_SYRK || (j >= start && j < start + count));
                if (in && memcmp((const char *)(at + e), (const char *)(whole + e), 4) != 0)
                    blas_found(r, BLAS_BITS_PART,
                               "%s[%zu][%zu] is %a when %zu from %zu are computed alone, but %a",
                               v->name, row, n, (double)at[e], count, start, (double)whole[e]);
            }
        }
    }
}

void blas_check_bits(const struct blas_table *table, const struct blas_case *c,
                     struct blas_result *r) {
    static const int steps[] = {1, 3, 16, 61};
    char how[64];
    (void)table;
    make(c);
    first.who = NULL;
    for (int i = 0; i < 3; i++) { /* the first one is what all are compared with */
        place(ISO_CHECK_OFFSET, 0);
        call_here(c, r);
        same(r, BLAS_BITS_AGAIN, "run again");
    }
    check_parts(c, r);
    for (size_t offset = 1; offset < 64; offset += offset < 18 ? 1 : 9) {
        place(ISO_CHECK_OFFSET, offset);
        call_here(c, r);
        snprintf(how, sizeof how, "%zu elements past a page", offset);
        same(r, BLAS_BITS_ALIGNMENT, how);
    }
    for (unsigned side = 0; side < 2; side++) {
        place(side ? ISO_CHECK_LEFT : ISO_CHECK_RIGHT, 0);
        call_here(c, r);
        same(r, BLAS_BITS_ALIGNMENT, side ? "at the begin of a page" : "at the end of a page");
    }
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct blas_case other = *c;
        other.pad = c->pad + steps[i];
        if (c->routine != BLAS_GEMM && c->routine != BLAS_SYRK)
            other.incx = 1 + steps[i] / 3, other.incy = 1 + (steps[i] + 1) / 2;
        make(&other);
        place(ISO_CHECK_OFFSET, 0);
        call_here(&other, r);
        snprintf(how, sizeof how, "pad=%d incx=%d incy=%d", other.pad, other.incx, other.incy);
        same(r, BLAS_BITS_STRIDE, how);
    }
}
