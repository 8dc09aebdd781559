/* SPDX-License-Identifier: MIT
 *
 * The library as the benchmarks see it: a table of its public functions. There is one of the
 * library that the program was linked with, and one of each libisobit.so that is loaded beside it,
 * so that two versions can be measured by the same program.
 */
#ifndef ISOBIT_BENCH_LIBRARY_H
#define ISOBIT_BENCH_LIBRARY_H

#include <isobit/ops.h>

#include <stddef.h>
#include <stdint.h>

/* What each library must have to be loaded at all. */
#define BENCH_BASIC_FUNCTIONS(X)                                                                   \
    X(version)                                                                                     \
    X(strerror)                                                                                    \
    X(isa_find)                                                                                    \
    X(isa_names)                                                                                   \
    X(pool_create)                                                                                 \
    X(pool_destroy)                                                                                \
    X(pool_executor)

/* The operations that the cases call. An older library may lack some. */
#define BENCH_OPERATIONS(X)                                                                        \
    X(gemm_f32)                                                                                    \
    X(gemm_f32_workspace_bytes)                                                                    \
    X(pack_f32_bytes)                                                                              \
    X(pack_f32)                                                                                    \
    X(linear_f32)                                                                                  \
    X(linear_f32_workspace_bytes)                                                                  \
    X(gemv_f32)                                                                                    \
    X(softmax_f32)                                                                                 \
    X(layernorm_f32)                                                                               \
    X(rmsnorm_f32)                                                                                 \
    X(eltwise_f32)                                                                                 \
    X(gate_f32)                                                                                    \
    X(attention_f32)                                                                               \
    X(attention_f32_workspace_bytes)                                                               \
    X(key_panels_floats)                                                                           \
    X(key_panels_append)                                                                           \
    X(embed_f32)                                                                                   \
    X(rope_f32)                                                                                    \
    X(rope_table_f32)                                                                              \
    X(pack_w16_bytes)                                                                              \
    X(pack_w16)                                                                                    \
    X(linear_w16)                                                                                  \
    X(linear_w16_workspace_bytes)                                                                  \
    X(pack_q_bytes)                                                                                \
    X(pack_q)                                                                                      \
    X(linear_q)                                                                                    \
    X(linear_q_workspace_bytes)                                                                    \
    X(linear_q_s8)                                                                                 \
    X(linear_q_s8_workspace_bytes)                                                                 \
    X(pack_s8_bytes)                                                                               \
    X(pack_s8)                                                                                     \
    X(linear_s8)                                                                                   \
    X(linear_s8_workspace_bytes)                                                                   \
    X(set_numerics)

#define BENCH_FUNCTIONS(X) BENCH_BASIC_FUNCTIONS(X) BENCH_OPERATIONS(X)

/* Sets of operations: bits by their place in the list above. */
enum bench_operation {
#define MEMBER(name) BENCH_PLACE_##name,
    BENCH_OPERATIONS(MEMBER)
#undef MEMBER
};
#define BENCH_BIT(name) ((uint64_t)1 << BENCH_PLACE_##name)

struct bench_library {
#define MEMBER(name) __typeof__(iso_##name) *name;
    BENCH_FUNCTIONS(MEMBER)
#undef MEMBER
    uint64_t lacks; /* operations: their pointers are NULL */
};

/* The name of the first function in a set. */
const char *bench_operation_name(uint64_t set);

/* The library that the program was linked with. */
extern const struct bench_library bench_linked;

/*
 * Loads the library in the file `path`, apart from all others that are loaded. Returns a handle for
 * dlclose(), or NULL and the reason in why[bytes].
 */
void *bench_library_load(struct bench_library *library, const char *path, char *why, size_t bytes);

/* Likewise a copy of the file, so that the same file can be loaded more than once. */
void *bench_library_load_copy(struct bench_library *library, const char *path, char *why,
                              size_t bytes);

#endif
