/* SPDX-License-Identifier: MIT
 *
 * Plug-ins that cannot be used, one for each value of the environment variable BAD; without it, a
 * good one with an operation of its own.
 */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <isobit/check.h>

static const char *bad;
static int is(const char *name) { return bad && !strcmp(bad, name); }

__attribute__((constructor)) static void begin(void) {
    bad = getenv("BAD");
    if (is("crash"))
        raise(SIGSEGV);
    if (is("abort"))
        abort();
    if (is("exit"))
        exit(0);
    if (is("hang")) /* what it would get in the end */
        raise(SIGALRM);
}

struct mine {
    struct iso_check_operations known;
    void (*halve)(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n);
};

static void halve(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n) {
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < n; j++)
            y[i * ldy + j] =
                is("wrong") && n % 8 == 7 && j == 6 ? x[i * ldx + j] : x[i * ldx + j] / 2;
    }
}

static void setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    iso_check_out(o, "y", c->p[0], c->p[1], c->p[1] + c->p[2]);
    iso_check_in_f32(o, "x", c->p[0], c->p[1], c->p[1] + c->p[3], c->fill);
}

static void call(const void *table, const struct iso_check_case *c,
                 const struct iso_check_operands *o) {
    const struct mine *t = table;
    t->halve(o->v[0].at, o->v[0].ld, o->v[1].at, o->v[1].ld, c->p[0], c->p[1]);
}

static void reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    if (is("oracle") && c->p[1] == 5)
        raise(SIGSEGV);
    double *expect = iso_check_expect(o, 0), *bound = iso_check_bound(o, 0);
    const float *x = ISO_CHECK_HOST(float, o, 1);
    for (size_t i = 0; i < c->p[0]; i++) {
        for (size_t j = 0; j < c->p[1]; j++) {
            expect[i * c->p[1] + j] = (double)x[i * o->v[1].ld + j] / 2;
            bound[i * c->p[1] + j] = 0x1p-149;
        }
    }
}

static double flops(const void *table, const struct iso_check_case *c) {
    (void)table;
    return (double)(c->p[0] * c->p[1]);
}

static struct iso_check_suite suite = {.name = "halve",
                                       .params = "rows n ygap xgap",
                                       .setup = setup,
                                       .call = call,
                                       .reference = reference,
                                       .flops = flops,
                                       .most = {9, 600}};
static const struct iso_check_suite *suites[] = {&suite, &suite};
static struct iso_check_function function =
    ISO_CHECK_FUNCTION(struct mine, halve,
                       "(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n)");
static const struct mine table = {.halve = halve};
static struct iso_check_variant variants[] = {{"scalar", &table, NULL}, {"other", &table, NULL}};
static struct iso_check_target target = {.size = sizeof target,
                                         .version = ISO_CHECK_VERSION,
                                         .name = "halving",
                                         .variants = variants,
                                         .variant_count = 2,
                                         .promises = ISO_CHECK_SAME_BITS | ISO_CHECK_NO_FLAGS |
                                                     ISO_CHECK_NO_ERRNO,
                                         .stack_limit = 16384,
                                         .suites = suites,
                                         .suite_count = 1,
                                         .functions = &function,
                                         .function_count = 1,
                                         .table_bytes = sizeof(struct mine)};

static void spoil_target(void) {
    if (is("version"))
        target.version++;
    if (is("size"))
        target.size = 8;
    if (is("no name"))
        target.name = NULL;
    if (is("odd name"))
        target.name = "two words";
    if (is("no variants"))
        target.variants = NULL;
    if (is("many variants"))
        target.variant_count = 17;
    if (is("no suites"))
        target.suites = NULL;
    if (is("no functions"))
        target.functions = NULL;
    if (is("small table"))
        target.table_bytes = 8;
    if (is("tolerance"))
        target.tolerance = NAN;
    if (is("nothing"))
        target.suite_count = 0;
    if (is("suite twice"))
        target.suite_count = 2;
}

static void spoil_members(void) {
    if (is("variant name"))
        variants[1].name = NULL;
    if (is("variant table"))
        variants[1].table = NULL;
    if (is("variant twice"))
        variants[1].name = variants[0].name;
    if (is("null suite"))
        suites[0] = NULL;
    if (is("suite name"))
        suite.name = "";
    if (is("params"))
        suite.params = "a b c d e f g h i j k l m";
    if (is("odd params"))
        suite.params = "a  b";
    if (is("setup"))
        suite.setup = NULL;
    if (is("call"))
        suite.call = NULL;
    if (is("reference"))
        suite.reference = NULL;
    if (is("least"))
        suite.least[1] = 601;
    if (is("without"))
        suite.without = ~UINT64_C(0);
    if (is("arguments"))
        function.arguments = "float *y";
    if (is("structure"))
        function.arguments = "(struct big b)";
    if (is("many arguments"))
        function.arguments = "(float a, float b, float c, float d, float e, float f, float g, "
                             "float h, double i)";
    if (is("no arguments"))
        function.arguments = NULL;
    if (is("offset"))
        function.offset = sizeof(struct mine);
}

const struct iso_check_target *iso_check_plugin(void) {
    if (is("null"))
        return NULL;
    if (is("wild"))
        return (const struct iso_check_target *)(uintptr_t)64;
    spoil_target();
    spoil_members();
    if (is("absent"))
        variants[1] = (struct iso_check_variant){"other", NULL, "it is not here"};
    return &target;
}
