/* SPDX-License-Identifier: MIT
 *
 * Kernels that break a promise, for the test of the harness.
 */
#ifndef ISOBIT_TESTS_CHECK_SELF_H
#define ISOBIT_TESTS_CHECK_SELF_H

#include "kernel_target.h"

#include <errno.h>
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <isobit/ops.h>

#include "abi.h"
#include "cpu.h"
#include "engine.h"
#include "kernels.h"
#include "spoil.h"

/* promises.c */
extern const struct iso_kernels *good;
extern unsigned calls;
void after_gemv(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                int interleaved);
extern volatile float sink;
void gemv_reads_right(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                      int interleaved);
void gemv_reads_left(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                     int interleaved);
void gemv_writes_right(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                       int interleaved);
void gemv_writes_right_of_page(float *y, const float *w, size_t ldw, const float *x, size_t n,
                               size_t k, int interleaved);
void gemv_writes_left_in_page(float *y, const float *w, size_t ldw, const float *x, size_t n,
                              size_t k, int interleaved);
void gemv_writes_input(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                       int interleaved);
void gemv_changes_errno(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                        int interleaved);
void gemv_changes_rounding(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                           int interleaved);
void gemv_never_returns(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                        int interleaved);
void gemv_illegal(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                  int interleaved);
void gemv_wants_alignment(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                          int interleaved);
void gemv_divides_by_zero(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                          int interleaved);
void gemv_forgets_last(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                       int interleaved);
void gemv_sums_plainly(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                       int interleaved);
void strip_slightly_off(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t bs,
                        size_t bps, size_t m, size_t n, size_t k, int mode);
void strip_skips_tail(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t bs,
                      size_t bps, size_t m, size_t n, size_t k, int mode);
void strip_writes_gap(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t bs,
                      size_t bps, size_t m, size_t n, size_t k, int mode);
void epilogue_reads_c(float *c, size_t ldc, const float *t, size_t ldt, size_t m, size_t n,
                      const struct iso_epilogue *e);
void softmax_swallows_nan(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                          const size_t *lengths, const uint8_t *mask, size_t ldm, int flags);
void softmax_uses_padding(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                          const size_t *lengths, const uint8_t *mask, size_t ldm, int flags);
void softmax_ignores_mask(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                          const size_t *lengths, const uint8_t *mask, size_t ldm, int flags);
void layernorm_two_ulp(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                       const struct iso_norm *o);
void rmsnorm_differs_by_call(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                             size_t n, const struct iso_norm *o);
void attention_sees_too_much(const struct iso_attention *t);
void attention_forgets_scale(const struct iso_attention *t);
void unary_loses_sign(float *y, const float *x, size_t n, int function);
void unary_three_ulp(float *y, const float *x, size_t n, int function);
void pack_leaves_rest(float *dst, const float *src, size_t si, size_t sp, size_t n, size_t k,
                      size_t width);
void panels_touch_others(float *panels, size_t first, const float *k, size_t ldk, size_t count,
                         size_t dh);

/* more.c */
void gemv_reads_right_of_tail(float *y, const float *w, size_t ldw, const float *x, size_t n,
                              size_t k, int interleaved);
void gemv_depends_on_address(float *y, const float *w, size_t ldw, const float *x, size_t n,
                             size_t k, int interleaved);
void gemv_remembers_calls(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                          int interleaved);
void gemv_computes_padding(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                           int interleaved);
void strip_loses_minus_zero(float *c, size_t ldc, const float *a, size_t as, const float *b,
                            size_t bs, size_t bps, size_t m, size_t n, size_t k, int mode);
void gemv_flushes_subnormals(float *y, const float *w, size_t ldw, const float *x, size_t n,
                             size_t k, int interleaved);
void strip_off_for_large_k(float *c, size_t ldc, const float *a, size_t as, const float *b,
                           size_t bs, size_t bps, size_t m, size_t n, size_t k, int mode);
void strip_wrong_ld(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t bs,
                    size_t bps, size_t m, size_t n, size_t k, int mode);
void strip_splits_k(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t bs,
                    size_t bps, size_t m, size_t n, size_t k, int mode);
void epilogue_adds_bias_late(float *c, size_t ldc, const float *t, size_t ldt, size_t m, size_t n,
                             const struct iso_epilogue *e);
void softmax_without_maximum(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                             size_t n, const size_t *lengths, const uint8_t *mask, size_t ldm,
                             int flags);
void layernorm_one_pass(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                        const struct iso_norm *o);
void rmsnorm_mixes_rows(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                        const struct iso_norm *o);
void attention_trusts_scratch(const struct iso_attention *t);
void attention_multiplies_mask(const struct iso_attention *t);
void attention_forgets_hidden_weights(const struct iso_attention *t);
void unary_aliases_badly(float *y, const float *x, size_t n, int function);
void embed_takes_next_row(float *y, size_t ldy, const uint32_t *ids, size_t count,
                          const float *table, size_t d, float scale, const float *positions,
                          const uint32_t *rows, int past);
void positions_in_float(float *y, size_t ldy, size_t first, size_t count, size_t d, int layout);
void rope_takes_other_pairs(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                            const struct iso_rope *o);
void rope_forgets_rest(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                       const struct iso_rope *o);
void rope_fuses(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                const struct iso_rope *o);
void rope_table_in_float(float *table, size_t ld, size_t first, size_t count, const float *inv_freq,
                         size_t rotary, float scaling);

/* places.c */
void gemv_dislikes_pages(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                         int interleaved);
void strip_dislikes_primes(float *c, size_t ldc, const float *a, size_t as, const float *b,
                           size_t bs, size_t bps, size_t m, size_t n, size_t k, int mode);
void softmax_mask_as_wide_as_x(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                               size_t n, const size_t *lengths, const uint8_t *mask, size_t ldm,
                               int flags);
void softmax_misses_late_nan(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                             size_t n, const size_t *lengths, const uint8_t *mask, size_t ldm,
                             int flags);
void softmax_flushes_subnormals(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                size_t n, const size_t *lengths, const uint8_t *mask, size_t ldm,
                                int flags);
void epilogue_residual_as_wide_as_c(float *c, size_t ldc, const float *t, size_t ldt, size_t m,
                                    size_t n, const struct iso_epilogue *e);
void gate_turns_the_other(float *y, size_t ldy, const float *a, size_t lda, const float *b,
                          size_t ldb, size_t rows, size_t n, int act, int far);
void gate_factor_as_wide_as_a(float *y, size_t ldy, const float *a, size_t lda, const float *b,
                              size_t ldb, size_t rows, size_t n, int act, int far);
void gate_three_units_off(float *y, size_t ldy, const float *a, size_t lda, const float *b,
                          size_t ldb, size_t rows, size_t n, int act, int far);
void layernorm_residual_as_wide_as_x(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                     size_t n, const struct iso_norm *o);
void attention_bias_without_gap(const struct iso_attention *t);
void attention_bias_of_first_query(const struct iso_attention *t);
void attention_wants_first_key(const struct iso_attention *t);
void embed_rounds_twice(float *y, size_t ldy, const uint32_t *ids, size_t count, const float *table,
                        size_t d, float scale, const float *positions, const uint32_t *rows,
                        int past);

/* worse.c */
void unary_truncates(float *y, const float *x, size_t n, int function);
void unary_sloppy_tail(float *y, const float *x, size_t n, int function);
void softmax_sloppy_reciprocal(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                               size_t n, const size_t *lengths, const uint8_t *mask, size_t ldm,
                               int flags);
void softmax_sloppy_log(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                        const size_t *lengths, const uint8_t *mask, size_t ldm, int flags);
void logsumexp_plain_zero(float *max, float *log_sum, const float *x, size_t ldx, size_t rows,
                          size_t n);
void logsumexp_swallows_nan(float *max, float *log_sum, const float *x, size_t ldx, size_t rows,
                            size_t n);
void logsumexp_empty_maximum(float *max, float *log_sum, const float *x, size_t ldx, size_t rows,
                             size_t n);
void logsumexp_off_by_one_ulp(float *max, float *log_sum, const float *x, size_t ldx, size_t rows,
                              size_t n);
void layernorm_estimates_root(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                              size_t n, const struct iso_norm *o);
void rmsnorm_estimates_root(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                            const struct iso_norm *o);
void attention_sloppy_reciprocal(const struct iso_attention *t);
void epilogue_sloppy_tanh(float *c, size_t ldc, const float *t, size_t ldt, size_t m, size_t n,
                          const struct iso_epilogue *e);

/* b16.c */
void b16_truncates(uint16_t *to, size_t ldt, const float *x, size_t ldx, size_t rows, size_t n);
void b16_forgets_last_step(float *c, size_t ldc, const uint16_t *a, size_t lda, const uint16_t *b,
                           size_t bps, size_t m, size_t n, size_t k, int mode);
void b16_reads_next_step(float *c, size_t ldc, const uint16_t *a, size_t lda, const uint16_t *b,
                         size_t bps, size_t m, size_t n, size_t k, int mode);

/* s8.c */
void quantize_truncates(int8_t *q, size_t ldq, float *scales, const float *x, size_t ldx,
                        size_t rows, size_t n, size_t padded, int flip);
void quantize_keeps_scale(int8_t *q, size_t ldq, float *scales, const float *x, size_t ldx,
                          size_t rows, size_t n, size_t padded, int flip);
void quantize_leaves_rest(int8_t *q, size_t ldq, float *scales, const float *x, size_t ldx,
                          size_t rows, size_t n, size_t padded, int flip);
void s8_saturates(float *c, size_t ldc, const int8_t *a, size_t lda, const float *row_scales,
                  const int8_t *b, size_t bps, const float *scales, const int32_t *start,
                  const float *bias, size_t m, size_t n, size_t k);
void s8_multiplies_scales(float *c, size_t ldc, const int8_t *a, size_t lda,
                          const float *row_scales, const int8_t *b, size_t bps, const float *scales,
                          const int32_t *start, const float *bias, size_t m, size_t n, size_t k);
void s8_reads_past_bias(float *c, size_t ldc, const int8_t *a, size_t lda, const float *row_scales,
                        const int8_t *b, size_t bps, const float *scales, const int32_t *start,
                        const float *bias, size_t m, size_t n, size_t k);
void blocks_in_order(struct iso_s8_block *to, size_t ldt, const float *x, size_t ldx, size_t rows,
                     size_t n);
void blocks_of_whole_rows(struct iso_s8_block *to, size_t ldt, const float *x, size_t ldx,
                          size_t rows, size_t n);
void q_s8_scales_twice(float *c, size_t ldc, const struct iso_s8_block *a, size_t lda,
                       const uint32_t *b, size_t bps, const float *bias, size_t m, size_t n,
                       size_t k, int type, int mode);
void q_s8_forgets_offsets(float *c, size_t ldc, const struct iso_s8_block *a, size_t lda,
                          const uint32_t *b, size_t bps, const float *bias, size_t m, size_t n,
                          size_t k, int type, int mode);
void q_s8_writes_whole_panels(float *c, size_t ldc, const struct iso_s8_block *a, size_t lda,
                              const uint32_t *b, size_t bps, const float *bias, size_t m, size_t n,
                              size_t k, int type, int mode);
void q_s8_saturates(float *c, size_t ldc, const struct iso_s8_block *a, size_t lda,
                    const uint32_t *b, size_t bps, const float *bias, size_t m, size_t n, size_t k,
                    int type, int mode);
void q_s8_misses_least(float *c, size_t ldc, const struct iso_s8_block *a, size_t lda,
                       const uint32_t *b, size_t bps, const float *bias, size_t m, size_t n,
                       size_t k, int type, int mode);

#endif
