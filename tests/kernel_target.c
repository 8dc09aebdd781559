/* SPDX-License-Identifier: MIT
 *
 * isobit's own kernels as a target of the harness. Every kernel has to define `const struct
 * iso_check_suite iso_kernel_suite_<name>`; without it the test program does not link.
 */
#include "kernel_target.h"

#include <stdio.h>
#include <string.h>

#include <isobit/isobit.h>

#include "blas/blas.h"
#include "command.h"
#include "cpu.h"
#include "kernels.h"

#define KERNEL(type, name, args) extern const struct iso_check_suite iso_kernel_suite_##name;
#define GOLDEN(name, kernel) extern const struct iso_check_suite iso_kernel_suite_##name;
#include "kernels.def"
#include "suites/golden.def"
#undef KERNEL
#undef GOLDEN

static const struct iso_check_suite *const suites[] = {
#define KERNEL(type, name, args) &iso_kernel_suite_##name,
#define GOLDEN(name, kernel) &iso_kernel_suite_##name,
#include "kernels.def"
#include "suites/golden.def"
#undef KERNEL
#undef GOLDEN
};

static const struct iso_check_function functions[] = {
#define KERNEL(type, name, args) ISO_CHECK_FUNCTION(struct iso_kernels, name, #args),
#include "kernels.def"
#undef KERNEL
};

static struct iso_check_variant variants[] = {
#define ISA(name, ...) {#name, &iso_kernels_##name, NULL},
#include "isas.def"
#undef ISA
};

/* A level lacks most kernels, among them those that the suites of golden.def call. */
static const char *missing(const struct iso_check_suite *suite,
                           const struct iso_check_variant *variant) {
    const struct iso_kernels *table = variant->table;
#define GOLDEN(title, kernel)                                                                      \
    if (!table->kernel && !strcmp(suite->name, #title))                                            \
        return "it has no such function";
#include "suites/golden.def"
#undef GOLDEN
    return NULL;
}

enum { VARIANTS = sizeof variants / sizeof *variants };

const struct iso_check_target *iso_kernel_target(void) {
    static const struct iso_check_target target = {
        .size = sizeof target,
        .version = ISO_CHECK_VERSION,
        .name = "isobit",
        .variants = variants,
        .variant_count = VARIANTS,
        .promises =
            ISO_CHECK_SAME_PLACES | ISO_CHECK_SAME_BITS | ISO_CHECK_NO_FLAGS | ISO_CHECK_NO_ERRNO,
        .stack_limit = 8192,
        .own_table = true,
        .suites = suites,
        .suite_count = sizeof suites / sizeof *suites,
        .functions = functions,
        .function_count = sizeof functions / sizeof *functions,
        .table_bytes = sizeof(struct iso_kernels),
        .missing = missing};
    for (size_t i = 0; i < VARIANTS; i++) {
        variants[i].missing = "unknown to the library";
        for (size_t j = 0; j < iso_isa_count(); j++) {
            if (!strcmp(iso_isa_name(iso_isa_get(j)), variants[i].name))
                variants[i].missing = iso_isa_missing(iso_isa_get(j));
        }
        const struct iso_kernels *table = variants[i].table;
        if (!variants[i].missing && table->tiles && !iso_cpu_permits_tiles())
            variants[i].missing = "the operating system does not permit tiles";
    }
    return &target;
}

/* tests/data/golden.txt and errors.txt; committed.S */
extern const char iso_committed_golden[], iso_committed_errors[];

int isobit_check(int argc, char **argv) {
    static const struct iso_check_own own = {.command = "isobit check",
                                             .golden = iso_committed_golden,
                                             .errors = iso_committed_errors,
                                             .numerics = ISOBIT_NUMERICS_VERSION,
                                             .self_test = iso_kernel_self_test};
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--blas"))
            return isobit_check_blas(argc, argv);
    const char *numerics = iso_numerics(NULL);
    if (!numerics) {
        fputs("isobit: check: ISOBIT_NUMERICS is wrong: there are fixed and native\n", stderr);
        return 2;
    }
    if (!strncmp(numerics, "native", 6))
        fputs("NOTE: ISOBIT_NUMERICS=native changes nothing here: kernels with a hash are those of "
              "fixed numerics, those of native ones (gemm_b16) have a bound\n",
              stderr);
    return iso_check_command(iso_kernel_target(), &own, argc, argv);
}
