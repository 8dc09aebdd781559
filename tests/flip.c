/* SPDX-License-Identifier: MIT
 *
 * Which wrong last bit of an intermediate result would no committed hash see? For each kernel and
 * each arithmetic operation of its sources (scalar set) that the golden cases reach: of its calls
 * one in a thousand gives a result whose last bit is flipped, and a hash must be another one than
 * is committed. If none is, one in 30, then each call. Counted are the kernel's own hash and those
 * of golden.def.
 *
 *   flip [OPTION...]
 *     --op KERNEL   one kernel only
 *     --rate N      only one call in N
 *     --seed N      chooses the calls (1)
 *     --quick       the quick plan
 *     --all         a line for each operation, not for those alone that one in a thousand misses
 *
 * Exit code 1 when no hash sees an operation that is wrong in each call, or, with --rate, so often;
 * but for `excused`.
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine.h"
#include "flip.h"
#include "kernel_target.h"
#include "plain.h"

extern const struct iso_kernels iso_kernels_flip;
struct flip_choice flip_choice = {.every = 1};

enum { MOST_SITES = 1024, MOST_SUITES = 16, RATES = 3 };

static const struct {
    const char *kernel, *function, *what; /* kernel: NULL for all */
} excused[] = {
    /* The double is rounded to a float, whose bits it changes once in 2^29 times. */
    {"positions", "positions", "sin"},
    {"positions", "positions", "cos"},
    {"rope_table", "rope_table", "sin"},
    {"rope_table", "rope_table", "cos"},
    /* The first element of a row, which layer norm alone takes from the others. */
    {"rmsnorm", "norm_rows", "first"},
    /* The leading term of exp, of which attention_exp sees this very line. */
    {"attention_w16", "exp_rest", "fma"},
    /* Terms of the tanh of a soft cap: a score and its exponential round them away. unary sees each
     * of these lines. */
    {"attention", "exp2_product", "fma"},
    {"attention_w16", "exp2_product", "fma"},
    {"attention_w16", "vf_tanhs", "fma"},
    /* n, which scaling by bits of t does without. */
    {NULL, "exp2_product", "sub"},
};

static const struct {
    const char *suite, *kernel;
} others[] = {
#define GOLDEN(name, kernel) {#name, #kernel},
#include "suites/golden.def"
#undef GOLDEN
};

struct options {
    const char *op;
    size_t rates[RATES], rate_count, seed;
    enum iso_check_plan plan;
    bool all;
};

/* A kernel, the suites whose hashes count for it, and how often these call each site. */
struct subject {
    const char *kernel;
    size_t suite_count, operations, seen[RATES + 1]; /* the last one: never */
    const struct iso_check_suite *suites[MOST_SUITES];
    uint64_t committed[MOST_SUITES];
    size_t calls[MOST_SUITES][MOST_SITES];
};

static size_t site_count(void) { return (size_t)(flip_end - flip_first); }

static uint64_t hash_of(const struct iso_check_suite *suite, enum iso_check_plan plan) {
    for (struct flip_site *s = flip_first; s < flip_end; s++)
        s->calls = 0;
    return plain_hash(suite, plan, &iso_kernels_flip);
}

/* Adds a suite; false when the kernels are wrong without any flip. */
static bool add_suite(struct subject *k, const struct iso_check_suite *suite,
                      enum iso_check_plan plan) {
    size_t n = k->suite_count;
    if (n == MOST_SUITES || !plain_committed(&k->committed[n], suite, plan))
        return n < MOST_SUITES; /* no golden cases */
    if (hash_of(suite, plan) != k->committed[n]) {
        fprintf(stderr, "flip: %s: not the committed hash without any flip\n", suite->name);
        return false;
    }
    for (size_t i = 0; i < site_count(); i++)
        k->calls[n][i] = flip_first[i].calls;
    k->suites[k->suite_count++] = suite;
    return true;
}

/* Whether some hash is another one; with fewer than `rate` calls, one of them is spoilt. */
static bool is_seen(const struct subject *k, const struct options *o, size_t site, size_t rate) {
    bool seen = false;
    for (size_t n = 0; n < k->suite_count && !seen; n++) {
        size_t calls = k->calls[n][site], every = calls < rate ? calls : rate;
        struct iso_check_random r = {o->seed * 1000003 + site};
        if (!calls)
            continue;
        flip_choice =
            (struct flip_choice){&flip_first[site], every, iso_check_random_below(&r, every)};
        seen = hash_of(k->suites[n], o->plan) != k->committed[n];
        flip_choice.site = NULL;
    }
    return seen;
}

static bool is_excused(const struct subject *k, const struct flip_site *s) {
    for (size_t i = 0; i < sizeof excused / sizeof *excused; i++)
        if ((!excused[i].kernel || !strcmp(excused[i].kernel, k->kernel)) &&
            !strcmp(excused[i].function, s->function) && !strcmp(excused[i].what, s->what))
            return true;
    return false;
}

/* One operation; false when nothing sees it. */
static bool run_site(struct subject *k, const struct options *o, size_t site) {
    const struct flip_site *s = &flip_first[site];
    const char *slash = strrchr(s->file, '/');
    size_t calls = 0, rate = 0;
    for (size_t n = 0; n < k->suite_count; n++)
        calls += k->calls[n][site];
    if (!calls)
        return true;
    while (rate < o->rate_count && !is_seen(k, o, site, o->rates[rate]))
        rate++;
    k->operations++;
    k->seen[rate]++;
    if (rate || o->all) {
        printf("  %-14s %s:%d %s: %s, %zu calls: ", k->kernel, slash ? slash + 1 : s->file, s->line,
               s->function, s->what, calls);
        if (rate < o->rate_count)
            printf("seen if one in %zu is wrong\n", o->rates[rate]);
        else
            printf("never seen%s\n", is_excused(k, s) ? ", excused" : "");
    }
    return rate < o->rate_count || is_excused(k, s);
}

/* Returns how many operations nothing sees, or -1. */
static int run_kernel(const struct options *o, const struct iso_check_target *target,
                      const struct iso_check_suite *own) {
    static struct subject k;
    int unseen = 0;
    k = (struct subject){.kernel = own->name};
    if (!add_suite(&k, own, o->plan))
        return -1;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(others[i].kernel, k.kernel) &&
            !add_suite(&k, iso_check_suite_named(target, others[i].suite), o->plan))
            return -1;
    for (size_t i = 0; i < site_count(); i++)
        unseen += !run_site(&k, o, i);
    if (!k.operations)
        return 0;
    printf("%-14s %3zu operations", k.kernel, k.operations);
    for (size_t i = 0; i < o->rate_count; i++)
        printf(", %zu seen at 1/%zu", k.seen[i], o->rates[i]);
    printf(", %zu never\n", k.seen[o->rate_count]);
    fflush(stdout);
    return unseen;
}

static bool positive(size_t *n, const char *text) {
    char *end = NULL;
    *n = text ? strtoul(text, &end, 10) : 0;
    return text && *n > 0 && text[0] >= '0' && text[0] <= '9' && !*end;
}

int main(int argc, char **argv) {
    struct options o = {
        .rates = {1000, 30, 1}, .rate_count = RATES, .seed = 1, .plan = ISO_CHECK_PLAN_FULL};
    const struct iso_check_target *target = iso_kernel_target();
    int unseen = 0;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--quick")) {
            o.plan = ISO_CHECK_PLAN_QUICK;
        } else if (!strcmp(argv[i], "--all")) {
            o.all = true;
        } else if (!strcmp(argv[i], "--op") && value && iso_check_suite_named(target, value)) {
            o.op = argv[++i];
        } else if (!strcmp(argv[i], "--rate") && positive(&o.rates[0], value)) {
            o.rate_count = 1, i++;
        } else if (!strcmp(argv[i], "--seed") && positive(&o.seed, value)) {
            i++;
        } else {
            fprintf(stderr, "flip: unknown option, or without its value: %s\n", argv[i]);
            return 2;
        }
    }
    if (site_count() > MOST_SITES)
        return 2;
    for (size_t i = 0; i < target->suite_count; i++) {
        const struct iso_check_suite *suite = target->suites[i];
        if (suite->by_plan || (o.op && strcmp(o.op, suite->name) != 0))
            continue;
        int n = run_kernel(&o, target, suite);
        if (n < 0)
            return 1;
        unseen += n;
    }
    printf("flip: %d operations that nothing sees\n", unseen);
    return unseen > 0;
}
