/* SPDX-License-Identifier: MIT
 *
 * Asks a build of constants_kernels.c, in which the constants are variables, whether the fixed plan
 * would notice one of them that is wrong in its last place:
 *
 *   constants_probe FILE.so SUITE... [INDEX:STEP]    the suites whose committed hashes come out
 *                                                    otherwise, a line for each: name, then quick
 *                                                    and/or full; STEP is 1 or -1
 *   constants_probe --exhaustive FUNCTION FILE.so INDEX:STEP...
 *                                                    over all 2^32 inputs (exp_neg: those below 0),
 *                                                    for each change a line: how many results
 *                                                    differ, 8 at most, and the inputs
 *
 * Exit code 0 whatever it finds, 2 for wrong usage.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "kernel_target.h"
#include "mutate/constants.h"
#include "plain.h"

static const struct iso_kernels *table;
static float *constants;

static void fail(const char *what, const char *name) {
    fprintf(stderr, "constants_probe: %s%s\n", what, name);
    exit(2);
}

static void load(const char *file) {
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    table = library ? dlsym(library, PROBE_TABLE_NAME) : NULL;
    constants = table ? dlsym(library, PROBE_CONSTANTS_NAME) : NULL;
    if (!constants)
        fail("", dlerror());
}

/* One change: of a constant, by one unit in the last place. */
enum { SHOWN = 8, MOST = 64 };
struct mutant {
    size_t index;
    float right, wrong;
    uint32_t shown[SHOWN]; /* the first inputs that it treats otherwise */
    size_t count;
};

static struct mutant mutant_of(const char *text) {
    struct mutant m = {0};
    char *end = NULL;
    uint32_t bits;
    m.index = strtoul(text, &end, 10);
    if (*end != ':')
        fail("not INDEX:STEP: ", text);
    m.right = constants[m.index];
    memcpy(&bits, &m.right, sizeof bits);
    bits += (uint32_t)atoi(end + 1);
    memcpy(&m.wrong, &bits, sizeof bits);
    return m;
}

static bool misses(const struct iso_check_suite *suite, enum iso_check_plan plan) {
    uint64_t committed;
    if (!plain_committed(&committed, suite, plan))
        fail("no committed hash: ", suite->name);
    return plain_hash(suite, plan, table) != committed;
}

static void compare_hashes(const char *name) {
    const struct iso_check_suite *suite = iso_check_suite_named(iso_kernel_target(), name);
    if (!suite)
        fail("no such suite: ", name);
    bool quick = misses(suite, ISO_CHECK_PLAN_QUICK), full = misses(suite, ISO_CHECK_PLAN_FULL);
    if (quick || full)
        printf("%s%s%s\n", name, quick ? " quick" : "", full ? " full" : "");
}

static bool differ(float a, float b) {
    return memcmp((const char *)&a, (const char *)&b, sizeof a) && !(isnan(a) && isnan(b));
}

enum { AT_ONCE = 1 << 14 };

static void compare_some(struct mutant *m, const float *x, const float *y, int function) {
    static float z[AT_ONCE];
    constants[m->index] = m->wrong;
    table->unary(z, x, AT_ONCE, function);
    constants[m->index] = m->right;
    if (!memcmp((const char *)y, (const char *)z, sizeof z))
        return;
    for (size_t i = 0; i < AT_ONCE && m->count < SHOWN; i++)
        if (differ(y[i], z[i]))
            memcpy(&m->shown[m->count++], &x[i], sizeof *x);
}

static void compare_all(struct mutant *mutants, size_t count, int function) {
    static float x[AT_ONCE], y[AT_ONCE];
    uint64_t first = function == PROBE_EXP_NEG ? UINT64_C(1) << 31 : 0;
    for (; first < UINT64_C(1) << 32; first += AT_ONCE) {
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            uint32_t bits = (uint32_t)first + i;
            memcpy(&x[i], &bits, sizeof bits);
        }
        table->unary(y, x, AT_ONCE, function);
        for (size_t m = 0; m < count; m++)
            if (mutants[m].count < SHOWN)
                compare_some(&mutants[m], x, y, function);
    }
    for (size_t m = 0; m < count; m++) {
        printf("%zu", mutants[m].count);
        for (size_t i = 0; i < mutants[m].count; i++)
            printf(" %08x", (unsigned)mutants[m].shown[i]);
        printf("\n");
    }
}

static int function_of(const char *name) {
    static const struct {
        const char *name;
        int code;
    } functions[] = {{"relu", ISO_UNARY_RELU},         {"silu", ISO_UNARY_SILU},
                     {"gelu_erf", ISO_UNARY_GELU_ERF}, {"gelu_tanh", ISO_UNARY_GELU_TANH},
                     {"tanh", ISO_UNARY_TANH},         {"exp", ISO_UNARY_EXP},
                     {"erf", ISO_UNARY_ERF},           {"exp_neg", PROBE_EXP_NEG}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(functions[i].name, name))
            return functions[i].code;
    fail("no such function: ", name);
    return 0;
}

int main(int argc, char **argv) {
    static struct mutant mutants[MOST];
    if (argc > 4 && argc - 4 <= MOST && !strcmp(argv[1], "--exhaustive")) {
        load(argv[3]);
        for (int m = 4; m < argc; m++)
            mutants[m - 4] = mutant_of(argv[m]);
        compare_all(mutants, (size_t)argc - 4, function_of(argv[2]));
        return 0;
    }
    if (argc < 3)
        fail("usage: FILE.so SUITE... [INDEX:STEP], or --exhaustive ",
             "FUNCTION FILE.so INDEX:STEP...");
    load(argv[1]);
    if (strchr(argv[argc - 1], ':')) {
        mutants[0] = mutant_of(argv[--argc]);
        constants[mutants[0].index] = mutants[0].wrong;
    }
    for (int i = 2; i < argc; i++)
        compare_hashes(argv[i]);
    return 0;
}
