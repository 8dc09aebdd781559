/* SPDX-License-Identifier: MIT
 *
 * The numbers of tuning.def, and the kinds of cores that have some of their own.
 */
#ifndef ISOBIT_TUNING_H
#define ISOBIT_TUNING_H

#include "select.h"

enum {
#define CONSTANT(name, value, ...) ISO_GEMM_##name = (value),
#define TUNING(...)
#include "tuning.def"
#undef CONSTANT
#undef TUNING
};

/* Kinds of cores that need other values. */
enum iso_gemm_class { ISO_GEMM_SERVER, ISO_GEMM_SMALL_L1, ISO_GEMM_OTHER, ISO_GEMM_CLASSES };

/* For one instruction set. */
struct iso_gemm_tuning {
#define CONSTANT(...)
#define TUNING(name, ...) unsigned name[ISO_GEMM_CLASSES];
#include "tuning.def"
#undef CONSTANT
#undef TUNING
};

/* What a plan knows of the machine. */
struct iso_gemm_machine {
    const struct iso_kernels *kernels;
    const struct iso_gemm_tuning *tuning;
    enum iso_gemm_class class;
};
#define TUNED(machine, name) ((machine)->tuning->name[(machine)->class])

/* This machine, or another one, with these kernels. */
struct iso_gemm_machine iso_gemm_this_machine(const struct iso_kernels *kernels);
struct iso_gemm_machine iso_gemm_machine_of(const struct iso_kernels *kernels,
                                            enum iso_gemm_class class);

#endif
