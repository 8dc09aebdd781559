/* SPDX-License-Identifier: MIT
 *
 * More golden cases of kernels whose first ones are too few to see a wrong last bit now and then:
 * one in a thousand in an intermediate result, which mostly vanishes in the roundings that follow
 * (tests/flip.c has the figures). The operands and the call are those of the kernel's own suite,
 * the hash is another one, and there is no oracle: the errors are looked at elsewhere. By plan,
 * since emulators take few of them; none in the exhaustive plan.
 */
#include "kernels.h"
#include <isobit/check.h>
#include <isobit/ops.h>

#include "suites/suites.h"

enum { FLAGS = ISO_CHECK_CASE_GOLDEN | ISO_CHECK_CASE_ONCE };

/* How much of it: an eighth of rows or so in the quick plan, nothing where it is not wanted. */
static size_t share(const struct iso_check_cases *l, size_t full, size_t quick) {
    return l->plan == ISO_CHECK_PLAN_FULL ? full : l->plan == ISO_CHECK_PLAN_QUICK ? quick : 0;
}

/* rows n affine residual y sum eps: many short rows, since each has one mean, root and inverse */
static void norm_cases(struct iso_check_cases *l) {
    const size_t rows = share(l, 1 << 15, 1 << 9);
    for (size_t residual = 0; residual < 2 && rows; residual++) {
        iso_add(l, 1, ISO_CHECK_FILL_UNIFORM, FLAGS, rows, 40, 3, residual, 0, residual);
        for (size_t affine = 0; affine < 3; affine++)
            iso_add(l, 1, ISO_CHECK_FILL_UNIFORM, FLAGS, rows / 4, 19, affine, residual);
    }
}

/* m n alpha beta bias act residual: alpha 0.3, beta 0.5 */
static void epilogue_cases(struct iso_check_cases *l) {
    const size_t m = share(l, 128, 8);
    for (size_t act = 0; act <= ISOBIT_ACT_TANH && m; act++) {
        iso_add(l, 1, ISO_CHECK_FILL_NORMAL, FLAGS, m, 1019, 5, 3, 1, act, 1);
        iso_add(l, 1, ISO_CHECK_FILL_SCORES, FLAGS, m, 1019, 5, 0, 0, act, 0);
    }
}

typedef size_t way[10]; /* nq nk dh see bias weights gap poison, and of attention_w16 type cap */

/* Each of the ways that attention goes, so many times. */
static void add_ways(struct iso_check_cases *l, const way *ways, size_t count) {
    const size_t times = share(l, 20, 1);
    for (size_t i = 0; i < times; i++)
        for (size_t w = 0; w < count; w++)
            iso_check_cases_add(
                l,
                (struct iso_check_case){.p = {ways[w][0], ways[w][1], ways[w][2], ways[w][3],
                                              ways[w][4], ways[w][5], ways[w][6], ways[w][7],
                                              ways[w][8], ways[w][9]},
                                        .fill = ISO_CHECK_FILL_NORMAL,
                                        .flags = FLAGS,
                                        .seed = 1 + i * count + w},
                1);
}

static void attention_cases(struct iso_check_cases *l) {
    static const way ways[] = {{64, 640, 8},                 /* queries in the lanes */
                               {64, 650, 8, 577},            /* causal */
                               {4, 330, 8, 0, 2, 1},         /* few, bias, weights */
                               {8, 330, 8, 0, 0, 0, 0, 8},   /* heads that share their keys */
                               {32, 330, 8, 0, 1, 1},        /* many, bias, weights */
                               {16, 200, 8, 0, 0, 0, 0, 16}, /* keys as rows */
                               {16, 330, 8, 0, 0, 0, 0, 3},  /* an infinity in the values */
                               {4, 330, 8, 0, 4, 0, 0, 4}};  /* NaN that no query sees */
    add_ways(l, ways, iso_count(ways));
}

/* With windows, within a block of 64 keys, over its edge, of many. */
#define WINDOW(n) ((size_t)4096 * (n)) /* as attention.c has it */
static void window_cases(struct iso_check_cases *l) {
    static const way ways[] = {{64, 640, 8, WINDOW(100)},            /* the last keys alone */
                               {64, 650, 8, WINDOW(100) + 577},      /* causal */
                               {200, 650, 8, WINDOW(128) + 451},     /* blocks of queries */
                               {64, 650, 8, WINDOW(1) + 577},        /* each its own key */
                               {4, 330, 8, WINDOW(65) + 327, 2, 1},  /* few, bias, weights */
                               {1, 330, 8, WINDOW(200)},             /* one: a step */
                               {8, 330, 8, WINDOW(64), 0, 0, 0, 8},  /* heads that share keys */
                               {32, 330, 8, WINDOW(70) + 299, 1, 1}, /* many, bias, weights */
                               {16, 200, 8, WINDOW(33) + 185, 0, 0, 0, 16}, /* keys as rows */
                               {64, 640, 8, WINDOW(90) + 577, 17},          /* bias of distances */
                               {16, 330, 8, WINDOW(250), 0, 0, 0, 3},       /* an infinity */
                               {4, 330, 8, WINDOW(100), 4, 0, 0, 4}};       /* NaN that none sees */
    add_ways(l, ways, iso_count(ways));
}

/* weights + 2, 4, 6: with soft caps of 1.5, 50 and 0.3, as attention.c has it. */
static void softcap_cases(struct iso_check_cases *l) {
    static const way ways[] = {{64, 640, 8, 0, 0, 2},                  /* queries in the lanes */
                               {64, 650, 8, 577, 0, 4},                /* causal */
                               {200, 650, 8, WINDOW(128) + 451, 0, 2}, /* blocks of queries */
                               {4, 330, 8, 0, 2, 3},                   /* few, bias, weights */
                               {1, 333, 8, 0, 0, 4},                   /* one: a step */
                               {8, 330, 8, 0, 0, 2, 0, 8},             /* heads that share keys */
                               {32, 330, 8, 0, 1, 7},                  /* many, bias, weights */
                               {16, 200, 8, 0, 0, 6, 0, 16},           /* keys as rows */
                               {64, 640, 8, 577, 17, 2},               /* bias of distances */
                               {16, 330, 8, 0, 0, 4, 0, 3},            /* an infinity */
                               {4, 330, 8, 0, 4, 2, 0, 4}};            /* NaN that none sees */
    add_ways(l, ways, iso_count(ways));
}

static void softcap_w16_cases(struct iso_check_cases *l) {
    static const way ways[] = {{1, 333, 8, 0, 0, 0, 0, 0, 0, 2},
                               {1, 333, 8, 0, 0, 0, 0, 0, 1, 1},
                               {7, 330, 40, WINDOW(100) + 324, 0, 0, 0, 0, 0, 1},
                               {5, 330, 40, 0, 1, 1, 0, 0, 1, 3},
                               {33, 330, 8, 298, 0, 0, 0, 0, 0, 2},
                               {12, 330, 8, 0, 2, 0, 0, 4, 1, 1}};
    add_ways(l, ways, iso_count(ways));
}

/* first count d layout: so far out that the last bits of the angle, a double, count */
static void positions_cases(struct iso_check_cases *l) {
    const size_t d = share(l, 8192, 512);
    for (size_t layout = 0; layout < 3 && d; layout++)
        iso_add(l, 1, 0, FLAGS, (size_t)1 << 31, 8, d, layout);
}

static void no_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    (void)o, (void)c;
}

/* function: of the suite; base: of the kernel's own suite; list: its cases */
#define MORE(function, base, list)                                                                 \
    extern const struct iso_check_suite iso_kernel_suite_##base;                                   \
    static void function##_setup(struct iso_check_operands *o, const struct iso_check_case *c) {   \
        iso_kernel_suite_##base.setup(o, c);                                                       \
    }                                                                                              \
    static void function##_call(const void *table, const struct iso_check_case *c,                 \
                                const struct iso_check_operands *o) {                              \
        iso_kernel_suite_##base.call(table, c, o);                                                 \
    }                                                                                              \
    const struct iso_check_suite iso_kernel_suite_##function = {.name = #function,                 \
                                                                .params = base##_parameters,       \
                                                                .by_plan = true,                   \
                                                                .cases = list,                     \
                                                                .setup = function##_setup,         \
                                                                .call = function##_call,           \
                                                                .reference = no_reference};
#define layernorm_parameters "rows n affine residual y sum eps"
#define rmsnorm_parameters layernorm_parameters
#define gemm_epilogue_parameters "m n alpha# beta# bias act residual"
#define attention_parameters "nq nk dh see bias weights gap poison"
#define attention_w16_parameters attention_parameters " type cap"
#define positions_parameters "first count d layout"
MORE(layernorm_more, layernorm, norm_cases)
MORE(rmsnorm_more, rmsnorm, norm_cases)
MORE(gemm_epilogue_more, gemm_epilogue, epilogue_cases)
MORE(attention_more, attention, attention_cases)
MORE(positions_more, positions, positions_cases)
MORE(attention_window, attention, window_cases)
MORE(attention_softcap, attention, softcap_cases)
MORE(attention_w16_softcap, attention_w16, softcap_w16_cases)
