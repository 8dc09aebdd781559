/* SPDX-License-Identifier: MIT
 *
 * What the files of test_ops share.
 */
#ifndef ISOBIT_TESTS_TEST_OPS_H
#define ISOBIT_TESTS_TEST_OPS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <isobit/ops.h>

#include "guard.h"
#include "kernels.h"
#include "oracle_kernels.h"

#define CANARY (-12345.675f)

struct way {
    char name[48];
    iso_context context;
};
enum { MAX_WAYS = 64 };

#define assert_ok(call) assert_int_equal((call), ISOBIT_OK)
#define assert_same(...) assert_true(same_bits(__VA_ARGS__))

enum { ROWS = 130, COLS = 77 };

struct row_op {
    const char *name;
    iso_status (*call)(float *y, size_t ldy, const float *x, size_t ldx, size_t first, size_t rows,
                       const iso_context *context);
};

struct attention_case {
    size_t B, H, Sq, Sk, dh;
    int causal;
    size_t past;
    int lengths, bias, weights; /* bias 2: broadcast over heads, 3: over all, 4: by distance */
    size_t window;
    float softcap;
};

struct attention_data {
    iso_attention_shape shape;
    iso_attention_options options;
    float *q, *k, *v, *o, *weights;
    size_t *lengths;
    size_t o_floats, w_floats;
};

/* test_ops.c */
extern bool quick;
extern const char *only_isa;
extern atomic_bool counting;
extern atomic_size_t allocations;
void *guarded(size_t bytes);
float *floats(size_t n);
int release(void **state);
extern uint64_t random_state;
uint64_t random_next(void);
float random_float(void);
float *random_floats(size_t n);
float *random_matrix(size_t rows, size_t cols, size_t ld);
float *canaries(size_t n);
bool all_canaries(const float *x, size_t n);
uint32_t bits(float x);
bool same_bits(const char *what, const float *x, size_t ldx, const float *y, size_t ldy,
               size_t rows, size_t cols);
bool gaps_kept(const float *x, size_t ld, size_t rows, size_t cols);
extern struct way ways[MAX_WAYS];
extern size_t way_count, isa_ways;

/* gemm.c */
void gemm_is_the_canonical_chain(void **state);
void gemm_is_the_same_every_way(void **state);
void gemm_reads_b_beyond_l2(void **state);
void gemm_transposes_rows_of_b_or_sums(void **state);
void gemm_packs_blocks_of_b(void **state);
void gemm_takes_few_rows_along(void **state);
void gemm_takes_bias_and_relu_along(void **state);
void gemm_rounds_once(void **state);
void gemm_keeps_special_values_in_place(void **state);
void gemm_leaves_unneeded_operands_alone(void **state);
void *aligned_block(size_t bytes);
iso_packed pack(const float *w, size_t ldw, size_t n, size_t k, int trans,
                const iso_context *context);
void linear_equals_gemm(void **state);
void gemm_and_linear_do_not_see_the_batch(void **state);
void gemv_has_its_orders(void **state);

/* rows.c */
extern const struct row_op row_ops[];
extern const size_t row_op_count;
int make_rows(void **state);
void rows_are_the_same_every_way(void **state);
void rows_do_not_see_the_batch(void **state);
void rows_beyond_l2_are_as_they_are_alone(void **state);
void rows_with_streaming_stores_are_as_they_are_alone(void **state);
void softmax_rows_do_not_meet(void **state);
void logsumexp_makes_the_log_softmax(void **state);
void eltwise_is_near_the_truth(void **state);
void axpby_is_as_written(void **state);
void gates_are_activations_times_factors(void **state);

/* attention.c */
void attention_make(struct attention_data *d, const struct attention_case *c);
iso_status attention_call(const struct attention_data *d, const iso_context *context);
extern const struct attention_case attention_cases[];
extern const size_t attention_case_count;
float *make_panels(struct attention_data *d, const iso_context *context);
void attention_is_right_and_the_same_every_way(void **state);
void attention_does_not_see_the_batch(void **state);
void attention_takes_views_of_one_buffer(void **state);
void attention_by_steps_equals_the_whole(void **state);
void attention_window_is_a_bias(void **state);
void attention_softcap_is_as_written(void **state);

/* embed.c */
void embeddings_are_right_every_way(void **state);
void rope_rotates_pairs_every_way(void **state);
void rope_tables_are_right_every_way(void **state);

/* refusals.c */
void gemm_refuses(void **state);
void pack_and_linear_refuse(void **state);
void softmax_refuses(void **state);
void norms_refuse(void **state);
void elementwise_refuses(void **state);
void attention_refuses(void **state);
void attention_workspace_refuses(void **state);
void key_panels_refuse(void **state);
void embeddings_refuse(void **state);
void nothing_to_do_is_success(void **state);

/* workspace.c */
void gemv_takes_the_workspace_of_a_product(void **state);
void workspace_for_more_rows_is_enough(void **state);
void scratch_of_all_threads_may_overflow(void **state);
void there_may_be_many_tasks(void **state);
void workspace_covers_a_residual_in_place(void **state);
void workspace_is_asked_for_whatever_the_epilogue(void **state);
void workspace_is_enough(void **state);
void rows_never_allocate(void **state);
void context_members_are_checked(void **state);

#endif
