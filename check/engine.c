/* SPDX-License-Identifier: MIT
 *
 * The runs: a case in all its places on all variants, a suite, all of them, and the random stream.
 */
#include "engine.h"

#include <errno.h>
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "abi.h"
#include "arena.h"
#include "committed.h"
#include "fault.h"
#include "guard.h"
#include "common.h"
#include "results.h"

static bool shy_vectors; /* iso_check_masked_loads_fault, found by iso_check_run_init */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

const struct iso_check_suite *iso_check_suite_named(const struct iso_check_target *target,
                                                    const char *name) {
    for (size_t i = 0; i < target->suite_count; i++) {
        if (!strcmp(target->suites[i]->name, name))
            return target->suites[i];
    }
    return NULL;
}

const char *iso_check_missing(const struct iso_check_target *target,
                              const struct iso_check_suite *suite,
                              const struct iso_check_variant *variant) {
    if (variant->missing)
        return variant->missing;
    for (size_t i = 0; i < target->function_count; i++) {
        const struct iso_check_function *f = &target->functions[i];
        void (*function)(void);
        memcpy(&function, (const char *)variant->table + f->offset, sizeof function);
        if (!function && !strcmp(f->name, suite->name))
            return "it has no such function";
    }
    return target->missing ? target->missing(suite, variant) : NULL;
}

/* The case at hand, for when nothing else can be said any more. */
static struct {
    struct iso_check_run *run;
    struct iso_check_failure failure;
    struct iso_check_tally *tally;
    bool random;
} at_hand;

static void fail(struct iso_check_run *run, struct iso_check_tally *tally,
                 const struct iso_check_failure *f);

static void last_words(const char *reason) {
    struct iso_check_run *run = at_hand.run;
    struct iso_check_tally tally;
    if (!run || !run->ended)
        return;
    at_hand.run = NULL; /* once is enough */
    alarm(10);          /* the dead thread may hold a lock */
    at_hand.failure.reason = reason;
    tally = *at_hand.tally;
    tally.hashed = 0;
    fail(run, &tally, &at_hand.failure);
    run->row(run, at_hand.failure.suite, at_hand.failure.variant, &tally, at_hand.random);
    int code = run->ended(run);
    fflush(NULL);
    _exit(code);
}

void iso_check_run_init(struct iso_check_run *run, const struct iso_check_target *target) {
    *run = (struct iso_check_run){.target = target,
                                  .variants = target->variants,
                                  .variant_count = target->variant_count,
                                  .plan = ISO_CHECK_PLAN_FULL,
                                  .case_seconds = 120,
                                  .start = now()};
    iso_check_arena_init();
    iso_check_abi_init(target);
    iso_check_fault_init(last_words);
    shy_vectors = iso_check_masked_loads_fault();
}

bool iso_check_guards_are_shy(void) { return shy_vectors; }

double iso_check_run_seconds(const struct iso_check_run *run) { return now() - run->start; }

struct place_name {
    enum iso_check_side side;
    size_t offset;
    char text[24];
};

/* Whether all variants promise the same bits. */
static bool promises_bits(const struct iso_check_run *run, const struct iso_check_case *c) {
    return run->target->promises & ISO_CHECK_SAME_BITS && !(c->flags & ISO_CHECK_CASE_NO_BITS);
}

/* Whether bits are compared, of a case on this variant with the first run. */
static bool compares_bits(const struct iso_check_run *run, const struct iso_check_case *c) {
    return run->target->promises & (ISO_CHECK_SAME_PLACES | ISO_CHECK_SAME_BITS) &&
           !(c->flags & ISO_CHECK_CASE_NO_BITS);
}

/* One call and all that is checked about it. Returns false with the reason in text. */
static bool one_call(const struct iso_check_run *run, const struct iso_check_suite *suite,
                     const struct iso_check_case *c, const struct iso_check_variant *variant,
                     const void *table, struct iso_check_operands *o, struct iso_check_first *first,
                     const struct place_name *where, struct iso_check_tally *tally,
                     XXH3_state_t *hash, char *text, size_t bytes) {
    iso_check_arena_place(o, where->side, where->offset);
    tally->calls++;
    if (sigsetjmp(iso_check_fault_return, 0)) {
        iso_check_fault_armed = 0;
        alarm(0);
        feclearexcept(FE_ALL_EXCEPT);
        iso_check_fault_text(text, bytes, o);
        return false;
    }
    alarm(run->case_seconds);
    bool trapless =
        run->target->promises & ISO_CHECK_NO_FLAGS && c->flags & ISO_CHECK_CASE_TRAPLESS;
    if (trapless)
        feclearexcept(FE_ALL_EXCEPT);
    iso_check_abi_begin();
    double start = run->timing ? now() : 0;
    errno = 12345;
    iso_check_fault_armed = 1;
    suite->call(table, c, o);
    iso_check_fault_armed = 0;
    int error = errno;
    int raised = trapless ? fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW) : 0;
    if (run->timing) {
        tally->call_seconds += now() - start;
        tally->flops += suite->flops ? suite->flops(table, c) : 0;
    }
    size_t stack = 0;
    const char *abi = iso_check_abi_end(&stack);
    if (stack > tally->stack)
        tally->stack = stack;
    /* first, so that a wrong value enters the hash like any other; other reports go before it */
    bool same = !compares_bits(run, c) ||
                iso_check_bits(text, bytes, o, first, variant->name, where->text, hash);
    if (abi) {
        snprintf(text, bytes, "%s", abi);
        return false;
    }
    if (run->target->promises & ISO_CHECK_NO_ERRNO && error != 12345) {
        snprintf(text, bytes, "changed errno to %d", error);
        return false;
    }
    if (!iso_check_arena_intact(text, bytes, o) ||
        !iso_check_values(text, bytes, suite, c, o, tally))
        return false;
    if (raised) {
        snprintf(text, bytes, "raised%s%s%s on harmless input",
                 raised & FE_INVALID ? " INVALID" : "", raised & FE_DIVBYZERO ? " DIVBYZERO" : "",
                 raised & FE_OVERFLOW ? " OVERFLOW" : "");
        return false;
    }
    const char *wrong = suite->check ? suite->check(o, c) : NULL;
    if (wrong)
        snprintf(text, bytes, "%s", wrong);
    return !wrong && same;
}

static void fail(struct iso_check_run *run, struct iso_check_tally *tally,
                 const struct iso_check_failure *f) {
    if (!run->failures)
        snprintf(run->first_failure, sizeof run->first_failure, "%s", f->reason);
    run->failures++;
    tally->failures++;
    if (run->failed)
        run->failed(run, f, tally->failures);
}

struct engine { /* what is kept from case to case */
    struct iso_check_operands o;
    struct iso_check_first first;
    void *table; /* of the variant, its functions behind trampolines */
};

static void engine_begin(struct engine *e, const struct iso_check_target *target) {
    *e = (struct engine){.table = malloc(target->table_bytes)};
    if (!e->table)
        iso_check_die("memory");
}

static void engine_end(struct engine *e) {
    free(e->table);
    iso_check_operands_end(&e->o);
    free(e->first.bits);
    free(e->first.other);
}

static void widen_bounds(struct iso_check_operands *o, double tolerance) {
    for (unsigned i = 0; i < o->count && tolerance > 1; i++) {
        const struct iso_check_operand *v = &o->v[i];
        for (size_t e = 0; v->bound && e < v->rows * v->cols; e++)
            v->bound[e] *= tolerance;
    }
}

/* `offset` is the third place, 0 .. 63 elements past a page. all: golden or not, the results of
 * the first place enter the hash. */
static void run_case(struct iso_check_run *run, const struct iso_check_suite *suite,
                     const struct iso_check_case *c, size_t offset, bool all, struct engine *e,
                     struct iso_check_tally *tallies) {
    struct iso_check_operands *o = &e->o;
    iso_check_operands_begin(o, c->seed);
    o->spot = c->spot;
    at_hand.run = run;
    at_hand.tally = tallies;
    at_hand.failure = (struct iso_check_failure){
        .suite = suite, .c = c, .variant = run->variants, .place = "right", .offset = offset};
    suite->setup(o, c);
    suite->reference(o, c);
    widen_bounds(o, run->target->tolerance);
    e->first.who = NULL;
    struct place_name where[66] = {{ISO_CHECK_RIGHT, 0, "right"}, {ISO_CHECK_LEFT, 0, "left"}};
    unsigned places = c->flags & ISO_CHECK_CASE_ALIGN ? 66 : 3;
    if (run->once || (c->flags & ISO_CHECK_CASE_ONCE && places == 3))
        places = 1;
    for (unsigned i = 2; i < places; i++) {
        where[i].side = ISO_CHECK_OFFSET;
        where[i].offset = places == 3 ? offset : i - 2;
        snprintf(where[i].text, sizeof where[i].text, "%zu", where[i].offset);
    }
    bool hashed = (all || c->flags & ISO_CHECK_CASE_GOLDEN) && compares_bits(run, c);
    char text[400];
    bool first = true;
    for (size_t s = 0; s < run->variant_count; s++) {
        if (iso_check_missing(run->target, suite, &run->variants[s]))
            continue;
        double start = run->timing ? now() : 0;
        at_hand.failure.variant = &run->variants[s];
        at_hand.tally = &tallies[s];
        iso_check_abi_wrap(e->table, run->target, run->variants[s].table);
        tallies[s].cases++;
        if (!(run->target->promises & ISO_CHECK_SAME_BITS))
            e->first.who = NULL;
        tallies[s].hashed += hashed;
        bool shy = shy_vectors && strcmp(run->variants[s].name, "scalar") != 0;
        struct place_name right = where[0];
        if (shy)
            where[0] = (struct place_name){ISO_CHECK_OFFSET, 63, "63"};
        for (unsigned i = 0; i < places; i++) {
            XXH3_state_t *hash = hashed && i == 0 ? tallies[s].hash : NULL;
            bool good = one_call(run, suite, c, &run->variants[s], e->table, o, &e->first,
                                 &where[i], &tallies[s], hash, text, sizeof text);
            if (run->observe)
                run->observe(run->observer, &(struct iso_check_observation){
                                                suite, c, &run->variants[s], o, i, where[2].offset,
                                                first, promises_bits(run, c), !good});
            if (!good) {
                struct iso_check_failure f = {
                    suite, c, &run->variants[s], where[i].text, where[2].offset, text};
                fail(run, &tallies[s], &f);
                break;
            }
        }
        where[0] = right;
        first = false;
        if (run->timing)
            tallies[s].seconds += now() - start;
    }
    alarm(0);
    at_hand.run = NULL;
    iso_check_operands_free_overflow(o);
}

void iso_check_run_case(struct iso_check_run *run, const struct iso_check_suite *suite,
                        const struct iso_check_case *c, size_t offset,
                        struct iso_check_tally *tallies) {
    struct engine e;
    engine_begin(&e, run->target);
    run_case(run, suite, c, offset, true, &e, tallies);
    engine_end(&e);
}

static bool compares(const struct iso_check_committed *c) { return c->file || c->text; }

static void check_errors(struct iso_check_run *run, const struct iso_check_suite *suite,
                         const struct iso_check_variant *variant, struct iso_check_tally *t) {
    iso_check_tally_errors(t);
    /* Those of a suite without a hash depend on the variant: bounds are all that it has. */
    for (size_t i = 0; i < t->group_count && compares(&run->errors) && t->hashed; i++) {
        char text[400];
        if (t->groups[i].elements &&
            !iso_check_errors_compare(text, sizeof text, run, suite->name, &t->groups[i])) {
            struct iso_check_failure f = {.suite = suite, .variant = variant, .reason = text};
            fail(run, t, &f);
        }
    }
}

/* Ends the tallies of a suite, and hands its rows over. */
static void rows(struct iso_check_run *run, const struct iso_check_suite *suite,
                 struct iso_check_tally *tallies, bool random) {
    for (size_t s = 0; s < run->variant_count; s++) {
        iso_check_tally_end(&tallies[s]);
        if (run->row)
            run->row(run, suite, &run->variants[s], &tallies[s], random);
    }
}

/* Whether one of the variants has the function of the suite. */
static bool anyone_has(const struct iso_check_run *run, const struct iso_check_suite *suite) {
    for (size_t s = 0; s < run->variant_count; s++) {
        if (!iso_check_missing(run->target, suite, &run->variants[s]))
            return true;
    }
    return false;
}

void iso_check_run_suite(struct iso_check_run *run, const struct iso_check_suite *suite) {
    struct iso_check_cases list;
    struct iso_check_tally *tallies = calloc(run->variant_count, sizeof *tallies);
    struct engine e;
    engine_begin(&e, run->target);
    if (!tallies)
        iso_check_die("memory");
    iso_check_suite_cases(suite, &list, run->plan);
    if (!anyone_has(run, suite)) /* else the oracle would compute for nobody */
        list.count = 0;
    for (size_t s = 0; s < run->variant_count; s++)
        iso_check_tally_begin(&tallies[s]);
    size_t only = run->only_case ? (size_t)strtoull(run->only_case, NULL, 10) : 0;
    for (size_t i = 0; i < list.count && !(run->stop && run->failures); i++) {
        if ((!run->only_case || i == only) && (run->parts < 2 || i % run->parts == run->part) &&
            (!run->where || list.v[i].p[run->where_index] == run->where_value))
            run_case(run, suite, &list.v[i], (i * 7 + 1) % 64, false, &e, tallies);
    }
    bool updated = false, calibrated = false;
    bool whole = !run->only_case && run->parts < 2 && !run->where && !(run->stop && run->failures);
    for (size_t s = 0; s < run->variant_count && whole; s++) {
        struct iso_check_tally *t = &tallies[s];
        if (iso_check_missing(run->target, suite, &run->variants[s]) ||
            !iso_check_plan_name(run->plan))
            continue;
        check_errors(run, suite, &run->variants[s], t);
        if (run->update_errors && !calibrated && t->hashed)
            iso_check_errors_append(run, suite->name, t);
        calibrated = true;
    }
    for (size_t s = 0; s < run->variant_count && whole; s++) {
        struct iso_check_tally *t = &tallies[s];
        if (!t->hashed)
            continue;
        uint64_t hash = XXH3_64bits_digest(t->hash);
        char name[ISO_CHECK_GOLDEN_NAME];
        iso_check_golden_name(name, suite, run->plan);
        const char *wrong =
            compares(&run->golden) ? iso_check_golden_compare(run, name, hash) : NULL;
        if (wrong) {
            struct iso_check_failure f = {
                .suite = suite, .variant = &run->variants[s], .reason = wrong};
            fail(run, t, &f);
        }
        if (run->update && !updated) {
            iso_check_golden_append(run, name, hash);
            updated = true;
        }
    }
    rows(run, suite, tallies, false);
    engine_end(&e);
    free(list.v);
    free(tallies);
}

void iso_check_run_all(struct iso_check_run *run) {
    for (size_t i = 0; i < run->target->suite_count; i++) {
        if (!run->name || !strcmp(run->name, run->target->suites[i]->name))
            iso_check_run_suite(run, run->target->suites[i]);
    }
}

/* Whatever way a case is found, it depends on the seed and its number only. */
static struct iso_check_case random_case(const struct iso_check_suite *suite, uint64_t seed,
                                         size_t number, size_t *offset) {
    struct iso_check_random r = {(seed * ISO_CHECK_SPREAD ^ number) * ISO_CHECK_SPREAD};
    struct iso_check_case c = {0};
    iso_check_random_next(&r);
    iso_check_random_case(suite, &c, &r);
    c.seed = iso_check_random_next(&r) | 1;
    if (iso_check_fill_has_spot(c.fill))
        c.spot = iso_check_random_below(&r, 256);
    *offset = iso_check_random_below(&r, 64);
    return c;
}

void iso_check_run_random(struct iso_check_run *run) {
    const struct iso_check_suite *suites[64];
    size_t count = 0, sets = run->variant_count;
    for (size_t i = 0; i < run->target->suite_count && count < 64; i++) {
        if (iso_check_has_random(run->target->suites[i]) &&
            (!run->name || !strcmp(run->name, run->target->suites[i]->name)))
            suites[count++] = run->target->suites[i];
    }
    if (!count)
        return;
    struct iso_check_tally *tallies = calloc(count * sets, sizeof *tallies);
    struct engine e;
    engine_begin(&e, run->target);
    if (!tallies)
        iso_check_die("memory");
    for (size_t i = 0; i < count * sets; i++)
        iso_check_tally_begin(&tallies[i]);
    for (size_t i = 0; (run->iters == 0 || i < run->iters) && !(run->stop && run->failures); i++) {
        if (run->time_box > 0 && i % 16 == 0 && iso_check_run_seconds(run) >= run->time_box)
            break;
        size_t offset;
        struct iso_check_case c = random_case(suites[i % count], run->seed, i, &offset);
        at_hand.random = true;
        run_case(run, suites[i % count], &c, offset, true, &e, &tallies[i % count * sets]);
    }
    at_hand.random = false;
    for (size_t i = 0; i < count; i++)
        rows(run, suites[i], &tallies[i * sets], true);
    engine_end(&e);
    free(tallies);
}
