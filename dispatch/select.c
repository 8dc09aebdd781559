/* SPDX-License-Identifier: MIT
 *
 * The choice of the instruction set: what can run here (found out once), and the one pointer to
 * the active set. The sets are immutable and static, so the pointer may be relaxed: who sees it
 * sees all. Threads that race for the first use compute the same answer. No constructor, no
 * IFUNC: it works in a static library, and loading the library does nothing.
 */
#include "select.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const struct iso_isa isas[ISO_ISA_COUNT] = {
#define ISA(name, flags, required)                                                                 \
    {#name, &iso_kernels_##name, required, &iso_kernels_##name, "native (" #name ")"},
#define LEVEL(name, set, flags, required)                                                          \
    {#name, &iso_kernels_##set, required, &iso_kernels_##name, "native (" #name ")"},
#include "isas.def"
#undef ISA
};

/* &refused: ISOBIT_ISA names a set that cannot run. */
_Atomic(const struct iso_isa *) iso_isa_chosen;
static const struct iso_isa refused = {"", NULL, 0, NULL, ""};

static struct iso_machine machine;
static pthread_once_t machine_once = PTHREAD_ONCE_INIT;

static void find_machine(void) {
    size_t used = 0;
    iso_cpu_detect(&machine.cpu);
    for (size_t i = 0; i < ISO_ISA_COUNT; ++i) {
        machine.missing[i] = iso_cpu_missing(&machine.cpu, isas[i].required);
        const size_t length = strlen(isas[i].name);
        if (!machine.missing[i] && used + length + 3 <= sizeof(machine.names)) {
            if (used > 0) {
                memcpy(machine.names + used, ", ", 2);
                used += 2;
            }
            memcpy(machine.names + used, isas[i].name, length + 1);
            used += length;
        }
    }
}

const struct iso_machine *iso_machine(void) {
    /* After the first time this is one load and a branch. */
    pthread_once(&machine_once, find_machine);
    return &machine;
}

const struct iso_isa *iso_pick(uint64_t usable, const char *wanted) {
    for (size_t i = 0; i < ISO_ISA_COUNT; ++i) {
        const bool fits = (isas[i].required & ~usable) == 0;
        if (fits && (!wanted || strcmp(wanted, isas[i].name) == 0)) {
            return &isas[i];
        }
    }
    return NULL;
}

/* The automatic choice. An empty variable counts as none, as usual in shells. */
static const struct iso_isa *pick_automatic(void) {
    const char *wanted = getenv("ISOBIT_ISA");
    return iso_pick(iso_machine()->cpu.usable, wanted && *wanted ? wanted : NULL);
}

const iso_isa *iso_isa_active(void) {
    const struct iso_isa *isa = atomic_load_explicit(&iso_isa_chosen, memory_order_relaxed);
    if (!isa) {
        const struct iso_isa *chosen = pick_automatic();
        /* Only from NULL: an iso_set_isa that came in between stays. */
        if (atomic_compare_exchange_strong_explicit(&iso_isa_chosen, &isa,
                                                    chosen ? chosen : &refused,
                                                    memory_order_relaxed, memory_order_relaxed)) {
            return chosen;
        }
    }
    return isa == &refused ? NULL : isa;
}

iso_status iso_set_isa(const char *name) {
    const struct iso_isa *isa = name ? iso_pick(iso_machine()->cpu.usable, name) : pick_automatic();
    if (!isa) {
        return ISOBIT_E_ISA;
    }
    atomic_store_explicit(&iso_isa_chosen, isa, memory_order_relaxed);
    return ISOBIT_OK;
}

iso_status iso_isa_find(const iso_isa **isa, const char *name) {
    if (!isa || !name) {
        return ISOBIT_E_NULL;
    }
    const struct iso_isa *found = iso_pick(iso_machine()->cpu.usable, name);
    if (!found) {
        return ISOBIT_E_ISA;
    }
    *isa = found;
    return ISOBIT_OK;
}

size_t iso_isa_count(void) { return ISO_ISA_COUNT; }

const iso_isa *iso_isa_get(size_t index) { return index < ISO_ISA_COUNT ? &isas[index] : NULL; }

const char *iso_isa_name(const iso_isa *isa) { return isa ? isa->name : ""; }

/* The place of a set in the list; ISO_ISA_COUNT for a pointer that is none of ours. */
static size_t index_of(const iso_isa *isa) {
    size_t i = 0;
    while (i < ISO_ISA_COUNT && isa != &isas[i]) {
        ++i;
    }
    return i;
}

const char *iso_isa_missing(const iso_isa *isa) {
    const size_t i = index_of(isa);
    return i < ISO_ISA_COUNT ? iso_machine()->missing[i] : "not an instruction set of this library";
}

const char *iso_isa_names(void) { return iso_machine()->names; }

/* ---------------------------------------------------------------------------------- numerics */

#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

enum { NOT_CHOSEN, FIXED, NATIVE, WRONG };
static atomic_int numerics;

static int numerics_named(const char *name) {
    return strcmp(name, "fixed") == 0 ? FIXED : strcmp(name, "native") == 0 ? NATIVE : WRONG;
}

int iso_numerics_are_named(const char *name) { return numerics_named(name) != WRONG; }

static int automatic_numerics(void) {
    const char *wanted = getenv("ISOBIT_NUMERICS");
    return wanted && *wanted ? numerics_named(wanted) : FIXED;
}

int iso_numerics_are_native(void) {
    int now = atomic_load_explicit(&numerics, memory_order_relaxed);
    if (now == NOT_CHOSEN) {
        const int chosen = automatic_numerics();
        if (atomic_compare_exchange_strong_explicit(&numerics, &now, chosen, memory_order_relaxed,
                                                    memory_order_relaxed))
            now = chosen; /* else an iso_set_numerics came in between */
    }
    return now == WRONG ? -1 : now == NATIVE;
}

iso_status iso_set_numerics(const char *name) {
    const int wanted = name ? numerics_named(name) : automatic_numerics();
    if (wanted == WRONG)
        return ISOBIT_E_OPTION;
    atomic_store_explicit(&numerics, wanted, memory_order_relaxed);
    return ISOBIT_OK;
}

/* The set itself, or the level after it where the operating system refuses tiles. */
static const struct iso_isa *permitted(const struct iso_isa *isa) {
    while (isa->s8->tiles && !iso_cpu_permits_tiles()) {
        ++isa;
    }
    return isa;
}

const char *iso_numerics(const iso_isa *isa) {
    const int native = iso_numerics_are_native();
    if (!isa)
        isa = iso_isa_active();
    if (native < 0)
        return NULL;
    if (!native || !isa || !isa->s8->gemm_b16)
        return TEXT(ISOBIT_NUMERICS_VERSION);
    return permitted(isa)->native;
}

/* ----------------------------------------------------------------------------------- context */

iso_status iso_context_isa(const struct iso_isa **chosen, const iso_context *context) {
    const struct iso_isa *isa = NULL;
    if (context) {
        if (!iso_context_is_known(context)) {
            return ISOBIT_E_SIZE;
        }
        if (context->executor && !context->executor->parallel_for) {
            return ISOBIT_E_NULL;
        }
        if (context->executor && context->executor->max_threads == 0) {
            return ISOBIT_E_OPTION;
        }
        isa = context->isa;
    }
    if (!isa) {
        isa = iso_isa_active();
        if (!isa) {
            return ISOBIT_E_ISA;
        }
    } else if (isa != atomic_load_explicit(&iso_isa_chosen, memory_order_relaxed) &&
               iso_isa_missing(isa)) {
        /* it is not the active set, which is known to run */
        return ISOBIT_E_ISA;
    }
    *chosen = isa;
    return ISOBIT_OK;
}

iso_status iso_context_kernels(const struct iso_kernels **kernels, const iso_context *context) {
    const struct iso_isa *isa;
    const iso_status status = iso_context_isa(&isa, context);
    if (!status) {
        *kernels = isa->kernels;
    }
    return status;
}

const struct iso_kernels *iso_isa_s8(const struct iso_isa *isa) { return permitted(isa)->s8; }

size_t iso_context_threads(const iso_context *context) {
    return context && context->executor ? context->executor->max_threads : 1;
}

void iso_parallel(const iso_context *context, size_t n, void (*fn)(void *arg, size_t i),
                  void *arg) {
    if (n > 1 && iso_context_threads(context) > 1) {
        const iso_executor *executor = context->executor;
        executor->parallel_for(executor->user, n, fn, arg);
        return;
    }
    for (size_t i = 0; i < n; ++i) {
        fn(arg, i);
    }
}
