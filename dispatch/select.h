/* SPDX-License-Identifier: MIT
 *
 * From the machine to a table of kernels, and what every public entry point does first: turn the
 * caller's context into a table and a way to run tasks. See isobit.h for the rules of the choice.
 */
#ifndef ISOBIT_SELECT_H
#define ISOBIT_SELECT_H

#include "cpu.h"
#include "kernels.h"

#include <isobit/isobit.h>

#include <stdatomic.h>
#include <stddef.h>

struct iso_isa {
    const char *name;
    const struct iso_kernels *kernels;
    uint64_t required; /* features, see cpu.h */
    /* gemm_s8, gemm_b16: `kernels`, or the table of a level; see iso_isa_s8 */
    const struct iso_kernels *s8;
    const char *native; /* what iso_numerics says, where there is gemm_b16 */
};

/* What the first use of the library finds out, once. */
struct iso_machine {
    struct iso_cpu cpu;
    const char *missing[ISO_ISA_COUNT]; /* NULL: can run */
    char names[16 * ISO_ISA_COUNT];     /* of those that can */
};
const struct iso_machine *iso_machine(void);

/* Cores with much L2 have, as a rule, a slow L3: servers of Intel read it at a third of what Zen 5
 * does. */
static inline int iso_l3_is_slow(void) {
    return iso_machine()->cpu.l2 > ISO_L2_FLOATS * sizeof(float);
}

/* L1 caches of 32 KiB have 8 ways, larger ones 12. */
static inline int iso_l1_has_low_associativity(void) { return iso_machine()->cpu.l1d <= 32768; }

/*
 * The choice as a pure function: the best set that the features allow (wanted is NULL), or the
 * one of that name; NULL when there is none of that name or the features do not allow it.
 */
const struct iso_isa *iso_pick(uint64_t usable, const char *wanted);

/* Whether native numerics are in force: 0, 1, or -1 where ISOBIT_NUMERICS is neither. */
int iso_numerics_are_native(void);
int iso_numerics_are_named(const char *name);

/* What sizeof(type) was when `last` was its last member. */
#define ISO_SIZE_UP_TO(type, last)                                                                 \
    ((offsetof(type, last) + sizeof((type){0}.last) + _Alignof(type) - 1) / _Alignof(type) *       \
     _Alignof(type))

/*
 * Whether a context has a size that this version knows. That of a caller with an older header ends
 * earlier: members after workspace_bytes may be read only if `size` reaches them.
 */
static inline int iso_context_is_known(const iso_context *context) {
    return context->size == sizeof(iso_context) ||
           (context->size >= ISO_SIZE_UP_TO(iso_context, workspace_bytes) &&
            context->size < sizeof(iso_context));
}

/*
 * The table for a call. context may be NULL. ISOBIT_E_SIZE: its size is not one that we know.
 * ISOBIT_E_ISA: its set cannot run here, or it names none and ISOBIT_ISA is wrong.
 * ISOBIT_E_NULL, ISOBIT_E_OPTION: its executor has no parallel_for or no threads.
 */
iso_status iso_context_kernels(const struct iso_kernels **kernels, const iso_context *context);

/* What iso_isa_active chose: NULL if nothing yet, and without kernels if nothing can run. */
extern _Atomic(const struct iso_isa *) iso_isa_chosen;

/* The table without a context, for calls of some nanoseconds: NULL where it is not had at once. */
static inline const struct iso_kernels *iso_kernels_at_once(void) {
    const struct iso_isa *isa = atomic_load_explicit(&iso_isa_chosen, memory_order_relaxed);
    return isa ? isa->kernels : NULL;
}

/* The same, for the set itself. */
iso_status iso_context_isa(const struct iso_isa **isa, const iso_context *context);

/* The products of int8 and BF16 of a set that runs here: s8, or where the operating system refuses
 * tiles, that of the next level, which gives the same bits of int8. */
const struct iso_kernels *iso_isa_s8(const struct iso_isa *isa);

/* How many tasks can run at once: 1 without executor. The context has been checked. */
size_t iso_context_threads(const iso_context *context);

/* Runs fn(arg, i) for all i below n, on the context's executor if that may be of use. */
void iso_parallel(const iso_context *context, size_t n, void (*fn)(void *arg, size_t i), void *arg);

/* iso_info_json with another CPU in place of this one (for the tests). */
iso_status iso_info_json_of(char *text, size_t bytes, size_t *needed, const struct iso_cpu *cpu);

#endif
