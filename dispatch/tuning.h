/* SPDX-License-Identifier: MIT
 *
 * The numbers of tuning.def, the kinds of cores that have some of their own, and what products ask
 * that have no plan as well.
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

/* Most rows of gemm_direct with n columns. */
static inline size_t iso_gemm_direct_rows(const struct iso_kernels *kernels, size_t n) {
    return n <= kernels->vector_floats ? kernels->direct_tall : kernels->direct_mr;
}

/*
 * Whether n columns are so few that vectors along them would be half empty, or more, and the rows
 * many enough for vectors along those. Next to other columns they share a tile with a full vector,
 * which is faster unless they are fewer, and the product is not tiny.
 */
static inline int iso_gemm_is_narrow(const struct iso_kernels *kernels, size_t m, size_t n,
                                     size_t k, int others) {
    return n > 0 && n <= (others ? ISO_GEMM_NARROWEST / 2 : ISO_GEMM_NARROWEST) &&
           2 * n <= kernels->vector_floats && m >= kernels->vector_floats &&
           (!others || m * k >= ISO_GEMM_NARROW_FLOATS);
}

/* Tiny products (gemm.c) have fewer multiply-adds. */
#define ISO_GEMM_TINY_WORK (2 * ISO_GEMM_SMALL_WORK)

/*
 * Whether strips of up to mr rows read a transposed A [k][lda] where it lies, unless a plan has
 * them packed (strips_floats). Where its rows alias, each step of a tile is an L1 miss for the next
 * strip: only one of wide vectors takes long enough for that, and only as long as L2 has room for
 * the rows.
 */
static inline int iso_gemm_reads_strips(const struct iso_kernels *kernels, size_t m, size_t k,
                                        size_t lda, size_t mr) {
    return m <= mr || lda % kernels->aliased != 0 ||
           (kernels->vector_floats == ISO_PANEL && k <= ISO_GEMM_ALIASED_STEPS);
}

#endif
