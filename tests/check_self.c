/* SPDX-License-Identifier: MIT
 *
 * Proof that the harness can fail: kernels that are broken on purpose, one defect each, and what
 * its report has to say about them. A kernel is replaced in a copy of a good table; the first
 * report about the copy is compared with the text.
 */
#include "check_self.h"

/* What the first report has to say when the named kernel is replaced. */
#define BROKEN(kernel, function, text) BROKEN_IN(kernel, kernel, function, text)
/* The same with another suite of the kernel. */
#define BROKEN_IN(suite, kernel, function, text)                                                   \
    { #suite, #function, text, {.kernel = function }, false }
/* No result is beyond its bound: compared with the calibrated errors, and with nothing else. */
#define SLOPPY(kernel, function, text)                                                             \
    { #kernel, #function, text, {.kernel = function }, true }
#define SPOILT(name, text) BROKEN(unary, iso_spoil_##name, text)
struct broken {
    const char *suite, *name, *text;
    struct iso_kernels with; /* one pointer set */
    bool sloppy;
};
static const struct broken broken_kernels[] = {
    BROKEN(gemv, gemv_reads_right, "past the right end of x"),
    BROKEN(gemv, gemv_reads_left, "past the left end of x"),
    BROKEN(gemv, gemv_writes_right, "past the right end of y"),
    BROKEN(gemv, gemv_writes_right_of_page, "wrote past the end of y"),
    BROKEN(gemv, gemv_writes_left_in_page, "wrote before the begin of y"),
    BROKEN(gemv, gemv_writes_input, "wrote to the input w"),
    BROKEN(gemv, gemv_changes_errno, "changed errno"),
    BROKEN(gemv, gemv_changes_rounding, "changed the floating-point control register"),
    BROKEN(gemv, gemv_never_returns, "did not return in time"),
    BROKEN(gemv, gemv_illegal, "illegal instruction"),
    BROKEN(gemv, gemv_wants_alignment, "bus error"),
    BROKEN(gemv, gemv_divides_by_zero, "raised DIVBYZERO"),
    BROKEN(gemv, gemv_forgets_last, "did not write y"),
    BROKEN(gemv, gemv_sums_plainly, ", to the bit"),
    BROKEN(gemm_strip, strip_slightly_off, "times the bound"),
    BROKEN(gemm_strip, strip_skips_tail, "c["),
    BROKEN(gemm_strip, strip_writes_gap, "wrote to the gap of c"),
    BROKEN(gemm_epilogue, epilogue_reads_c, "c[0][0]"),
    BROKEN(softmax, softmax_swallows_nan, "should be nan"),
    BROKEN(softmax, softmax_uses_padding, "nan, should be"),
    BROKEN(softmax, softmax_ignores_mask, "should be"),
    BROKEN(logsumexp, logsumexp_plain_zero, "should be -0x0p+0, to the bit"),
    BROKEN(logsumexp, logsumexp_swallows_nan, "should be nan"),
    BROKEN(logsumexp, logsumexp_empty_maximum, "max[0]["),
    BROKEN(logsumexp, logsumexp_off_by_one_ulp, "is not the log-softmax"),
    BROKEN(layernorm, layernorm_two_ulp, "bits of y"),
    BROKEN(rmsnorm, rmsnorm_differs_by_call, "bits of "),
    BROKEN(attention, attention_sees_too_much, "o["),
    BROKEN(attention, attention_forgets_scale, "times the bound"),
    BROKEN(unary, unary_loses_sign, "bits of y"),
    BROKEN(unary, unary_three_ulp, "times the bound"),
    BROKEN(gemm_pack, pack_leaves_rest, ", to the bit"),
    BROKEN(key_panels, panels_touch_others, ", to the bit"),
    BROKEN(gemv, gemv_reads_right_of_tail, "past the right end of x"),
    BROKEN(gemv, gemv_depends_on_address, "y[0]"),
    BROKEN(gemv, gemv_remembers_calls, "y["),
    BROKEN(gemv, gemv_computes_padding, "raised INVALID"),
    BROKEN(gemm_strip, strip_loses_minus_zero, "should be -0x0p+0, to the bit"),
    BROKEN(gemv, gemv_flushes_subnormals, "y[0][0] is 0x0p+0, should be"),
    BROKEN(gemm_strip, strip_off_for_large_k, "c["),
    BROKEN(gemm_strip, strip_wrong_ld, "c"),
    BROKEN(gemm_strip, strip_splits_k, ", to the bit"),
    BROKEN(gemm_epilogue, epilogue_adds_bias_late, "c["),
    BROKEN(softmax, softmax_without_maximum, "y["),
    BROKEN(layernorm, layernorm_one_pass, "y["),
    BROKEN(rmsnorm, rmsnorm_mixes_rows, "[1][0]"),
    BROKEN(attention, attention_trusts_scratch, "nan, should be"),
    BROKEN(attention, attention_multiplies_mask, "nan, should be"),
    BROKEN(attention, attention_forgets_hidden_weights, "did not write weights"),
    BROKEN(unary, unary_aliases_badly, "[0]"),
    BROKEN(embed, embed_takes_next_row, "past the right end of table"),
    BROKEN(positions, positions_in_float, "times the bound"),
    BROKEN(rope, rope_takes_other_pairs, "times the bound"),
    BROKEN(rope, rope_forgets_rest, "did not write y"),
    BROKEN(rope, rope_fuses, ", to the bit"),
    BROKEN(rope_table, rope_table_in_float, "times the bound"),
    BROKEN(gemv, gemv_dislikes_pages, "y["),
    BROKEN(gemm_strip, strip_dislikes_primes, "c[1][0]"),
    BROKEN(softmax, softmax_mask_as_wide_as_x, ""),
    BROKEN(softmax, softmax_misses_late_nan, "should be nan"),
    BROKEN(softmax, softmax_flushes_subnormals, "is 0x0p+0, should be"),
    BROKEN(gemm_epilogue, epilogue_residual_as_wide_as_c, "c[1][0]"),
    BROKEN(layernorm, layernorm_residual_as_wide_as_x, "[1][0]"),
    BROKEN(gate, gate_turns_the_other, "times the bound"),
    BROKEN(gate, gate_factor_as_wide_as_a, "y[1][0]"),
    BROKEN(gate, gate_three_units_off, "times the bound"),
    BROKEN(attention, attention_bias_without_gap, "o["),
    BROKEN(attention, attention_bias_of_first_query, "o["),
    BROKEN(attention, attention_wants_first_key, "o[0][0] is nan, should be"),
    BROKEN(embed, embed_rounds_twice, "times the bound"),
    BROKEN(quantize_s8, quantize_truncates, "q["),
    BROKEN(quantize_s8, quantize_keeps_scale, "should be nan"),
    BROKEN(quantize_s8, quantize_leaves_rest, "q[0]["),
    BROKEN(gemm_s8, s8_saturates, "c["),
    BROKEN(gemm_s8, s8_multiplies_scales, ", to the bit"),
    BROKEN(gemm_s8, s8_reads_past_bias, "past the right end of bias"),
    BROKEN(quantize_blocks, blocks_in_order, "numbers["),
    BROKEN(quantize_blocks, blocks_of_whole_rows, "numbers["),
    BROKEN(gemm_q_s8, q_s8_scales_twice, ", to the bit"),
    BROKEN(gemm_q_s8, q_s8_forgets_offsets, "c["),
    BROKEN(gemm_q_s8, q_s8_writes_whole_panels, "past the right end of c"),
    BROKEN_IN(gemm_q_s8_more, gemm_q_s8, q_s8_saturates, "c["),
    BROKEN_IN(gemm_q_s8_more, gemm_q_s8, q_s8_misses_least, "c["),
    BROKEN(round_b16, b16_truncates, "values["),
    BROKEN(gemm_b16, b16_forgets_last_step, "c["),
    BROKEN(gemm_b16, b16_reads_next_step, "past the right end of b"),
    SLOPPY(unary, unary_truncates, "of the group exp"),
    SLOPPY(unary, unary_sloppy_tail, "of the group gelu-erf"),
    SLOPPY(softmax, softmax_sloppy_reciprocal, "of the group plain"),
    SLOPPY(softmax, softmax_sloppy_log, "of the group log"),
    SLOPPY(layernorm, layernorm_estimates_root, "of the group "),
    SLOPPY(rmsnorm, rmsnorm_estimates_root, "of the group "),
    SLOPPY(attention, attention_sloppy_reciprocal, "of the group plain"),
    SLOPPY(gemm_epilogue, epilogue_sloppy_tanh, "of the group tanh"),
/* the calling convention; abi_*.S */
#if defined(__x86_64__) || defined(__aarch64__)
    SPOILT(illegal, "illegal instruction"),
    SPOILT(canary, "wrote to the stack of its caller"),
    SPOILT(stack, "bytes of stack, more than"),
    SPOILT(int_width, "did not write y"),
#endif
#if defined(__x86_64__)
    SPOILT(rbx, "did not preserve register rbx"),
    SPOILT(rbp, "did not preserve register rbp"),
    SPOILT(r12, "did not preserve register r12"),
    SPOILT(r13, "did not preserve register r13"),
    SPOILT(r14, "did not preserve register r14"),
    SPOILT(r15, "did not preserve register r15"),
    SPOILT(direction, "left the direction flag set"),
    SPOILT(mxcsr, "changed the floating-point control register"),
    SPOILT(x87_control, "changed the x87 control word"),
    SPOILT(x87_stack, "left x87 or MMX registers in use"),
    SPOILT(ymm, "left upper halves of ymm registers in use"),
    SPOILT(zmm, "left upper halves of "),
    SPOILT(tiles, "left tiles in use"),
    SPOILT(aligned, "general protection fault"),
#elif defined(__aarch64__)
    SPOILT(x19, "did not preserve register x19"),
    SPOILT(x28, "did not preserve register x28"),
    SPOILT(x29, "did not preserve register x29"),
    SPOILT(d8, "did not preserve register d8"),
    SPOILT(d15, "did not preserve register d15"),
    SPOILT(fpcr, "changed the floating-point control register"),
#endif
};

/* Why a defect cannot be found here, or NULL. */
static const char *not_here(const struct broken *b) {
    (void)b;
#if defined(__x86_64__)
    if (b->with.unary == iso_spoil_ymm && !iso_check_abi_sees_upper(false))
        return "the machine does not tell dirty ymm registers";
    if (b->with.unary == iso_spoil_zmm && !iso_check_abi_sees_upper(true))
        return "the machine does not tell dirty zmm registers";
    if (b->with.unary == iso_spoil_tiles &&
        !(iso_check_abi_sees_tiles() && iso_cpu_permits_tiles()))
        return "there are no tiles";
#endif
#if defined(__x86_64__) || defined(__aarch64__)
    if (b->with.unary == iso_spoil_stack && strstr(iso_check_abi_missing(), "stack"))
        return "the use of the stack is not measured under a sanitizer";
#endif
    return NULL;
}

static void breaks(struct iso_kernels *table, const struct iso_kernels *with) {
#define KERNEL(type, name, args)                                                                   \
    if (with->name)                                                                                \
        table->name = with->name;
#include "kernels.def"
#undef KERNEL
}

static bool found(const char *name, const struct iso_check_run *run, const char *text) {
    bool ok = run->failures > 0 && strstr(run->first_failure, text);
    printf("%-32s %s: %s\n", name, ok ? "found " : "MISSED",
           run->failures ? run->first_failure : "nothing was reported");
    fflush(stdout);
    return ok;
}

/* Does the full plan of a kernel hold what testing asks for? */
static bool plan_is_wide(const struct iso_check_suite *suite) {
    static const char *const without_fills[] = {"fma_peak", "s8_peak", "b16_peak", "positions"};
    bool seen[ISO_CHECK_FILL_ALL] = {false}, plain = false;
    size_t kinds = 0, aligned = 0;
    struct iso_check_cases list;
    for (size_t i = 0; i < sizeof without_fills / sizeof *without_fills; i++)
        plain |= !strcmp(suite->name, without_fills[i]);
    iso_check_suite_cases(suite, &list, ISO_CHECK_PLAN_FULL);
    for (size_t i = 0; i < list.count; i++) {
        kinds += !seen[list.v[i].fill];
        seen[list.v[i].fill] = true;
        aligned += (list.v[i].flags & ISO_CHECK_CASE_ALIGN) != 0;
    }
    free(list.v);
    /* pack and key_panels copy; a copy knows no difficult numbers */
    size_t least = plain                                                                     ? 1
                   : !strcmp(suite->name, "gemm_pack") || !strcmp(suite->name, "key_panels") ? 12
                                                                                             : 24;
    bool ok = kinds >= least && (aligned || strstr(suite->name, "_peak"));
    if (!ok)
        printf("%-32s THIN  : %zu kinds of inputs, at least %zu wanted; %zu cases at all 64 "
               "alignments\n",
               suite->name, kinds, least, aligned);
    return ok;
}

int iso_kernel_self_test(const struct iso_check_run *base) {
    size_t missed = 0, skipped = 0, count = sizeof broken_kernels / sizeof *broken_kernels;
    for (size_t i = 0; i < base->variant_count && !good; i++)
        if (!base->variants[i].missing && /* a level has few kernels */
            ((const struct iso_kernels *)base->variants[i].table)->unary)
            good = base->variants[i].table;
    for (size_t i = 0; i < count; i++) {
        const struct broken *b = &broken_kernels[i];
        const char *why = not_here(b);
        if (why) {
            printf("%-32s SKIPPED: %s\n", b->name, why);
            skipped++;
            continue;
        }
        iso_spoil_target = (void (*)(void))good->unary;
        struct iso_kernels table = *good;
        breaks(&table, &b->with);
        struct iso_check_variant variants[2] = {{"good", good, NULL}, {"broken", &table, NULL}};
        struct iso_check_run run = *base;
        run.plan = ISO_CHECK_PLAN_QUICK;
        run.variants = variants + b->sloppy; /* alone: bits that differ are found by comparing */
        run.variant_count = 2 - b->sloppy;
        run.update = NULL;
        run.golden = (struct iso_check_committed){0};
        run.errors = b->sloppy ? base->errors : run.golden;
        run.update_errors = NULL;
        run.row = NULL;
        run.failed = NULL;
        run.stop = true;
        run.case_seconds = 2;
        calls = 0;
        iso_check_run_suite(&run, iso_check_suite_named(base->target, b->suite));
        missed += !found(b->name, &run, b->text);
    }
    /* the committed files: a number that is another, and a file without the line */
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)
#define NUMERICS TEXT(ISOBIT_NUMERICS_VERSION)
    static const struct {
        const char *name, *line, *text;
        bool errors;
    } files[] = {
        {"tampered golden hash", "embed " NUMERICS " 0123456789abcdef",
         "the bits are not those committed", false},
        {"missing golden hash", "other " NUMERICS " 0123456789abcdef", "no committed hash", false},
        {"tampered rms", "embed quick plain 9 0.1 1 0", "rms error of the group plain", true},
        {"tampered quantile", "embed quick plain 9 1 0.1 0", "quantile of the errors of the", true},
        {"missing errors", "embed full plain 9 1 1 0", "no calibrated errors of the group", true}};
    size_t file_count = sizeof files / sizeof *files;
    for (size_t i = 0; i < file_count; i++) {
        char file[] = "/tmp/isobit-self-test-XXXXXX";
        int fd = mkstemp(file);
        if (fd < 0)
            return 2;
        dprintf(fd, "%s\n", files[i].line);
        close(fd);
        struct iso_check_run run = *base;
        run.plan = ISO_CHECK_PLAN_QUICK;
        if (files[i].errors)
            run.errors.file = file;
        else
            run.golden.file = file;
        run.update = run.update_errors = NULL;
        run.row = NULL;
        run.failed = NULL;
        iso_check_run_suite(&run, iso_check_suite_named(base->target, "embed"));
        unlink(file);
        missed += !found(files[i].name, &run, files[i].text);
    }
    /* the plan: every kernel at all alignments, and with enough kinds of inputs */
    size_t thin = 0;
    for (size_t i = 0; i < base->target->suite_count; i++)
        thin += !base->target->suites[i]->by_plan && !plan_is_wide(base->target->suites[i]);
    count += file_count;
    printf("self-test: %zu of %zu defects found, %zu skipped\n", count - missed - skipped, count,
           skipped);
    return missed || thin ? 1 : 0;
}
