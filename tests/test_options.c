/* SPDX-License-Identifier: MIT
 *
 * What the library makes of a struct from an older header. Compiled with headers whose structs all
 * have a member more, `grown`, which is not in version 0.1.
 */
#include "dispatch/check.h"
#include "base.h"

#include <isobit/ops.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

static const int something;

/* Each struct of options of ops.h: `last` is the last member of version 0.1. */
#define GROWS(type, last)                                                                          \
    do {                                                                                           \
        type own, caller;                                                                          \
        const size_t first = ISO_SIZE_UP_TO(type, last);                                           \
        assert_true(first <= offsetof(type, grown));                                               \
        memset(&own, 0xff, sizeof own);                                                            \
        memset(&caller, 0x55, sizeof caller);                                                      \
        caller.size = first;                                                                       \
        const type *o = &caller;                                                                   \
        assert_ptr_equal(o = ISO_OPTIONS(o, own, last), &own);                                     \
        assert_memory_equal(o, &caller, first);                                                    \
        assert_null(o->grown);                                                                     \
        caller.size = sizeof caller;                                                               \
        caller.grown = &something;                                                                 \
        o = &caller;                                                                               \
        assert_ptr_equal(ISO_OPTIONS(o, own, last), &caller);                                      \
        caller.size = first - 1;                                                                   \
        assert_null(ISO_OPTIONS(o, own, last));                                                    \
        caller.size = sizeof caller + 1;                                                           \
        assert_null(ISO_OPTIONS(o, own, last));                                                    \
    } while (0)

static void options(void **state) {
    (void)state;
    GROWS(iso_gemm_options, ldr);
    GROWS(iso_linear_options, ldr);
    GROWS(iso_softmax_options, ldm);
    GROWS(iso_norm_options, lds);
    GROWS(iso_eltwise_options, ldr);
    GROWS(iso_attention_options, key_panels);
}

/* A context is read where it lies. */
static void context(void **state) {
    (void)state;
    iso_context c = {.size = offsetof(iso_context, grown)};
    assert_true(iso_context_is_known(&c));
    c.size--;
    assert_false(iso_context_is_known(&c));
    c.size = sizeof c;
    assert_true(iso_context_is_known(&c));
    c.size++;
    assert_false(iso_context_is_known(&c));
}

#define MODEL_GROWS(type, last)                                                                    \
    do {                                                                                           \
        type own, caller;                                                                          \
        const size_t first = MODEL_SIZE_UP_TO(type, last);                                         \
        assert_true(first <= offsetof(type, grown));                                               \
        memset(&own, 0xff, sizeof own);                                                            \
        memset(&caller, 0x55, sizeof caller);                                                      \
        caller.size = first;                                                                       \
        const type *o = MODEL_OPTIONS(&caller, own, last);                                         \
        assert_ptr_equal(o, &own);                                                                 \
        assert_memory_equal(o, &caller, first);                                                    \
        assert_null(o->grown);                                                                     \
        caller.size = sizeof caller;                                                               \
        caller.grown = &something;                                                                 \
        o = MODEL_OPTIONS(&caller, own, last);                                                     \
        assert_ptr_equal(o->grown, &something);                                                    \
        caller.size = first - 1;                                                                   \
        assert_null(MODEL_OPTIONS(&caller, own, last));                                            \
        caller.size = sizeof caller + 1;                                                           \
        assert_null(MODEL_OPTIONS(&caller, own, last));                                            \
    } while (0)

static void model_options(void **state) {
    (void)state;
    MODEL_GROWS(iso_load_options, max_header_bytes);
    MODEL_GROWS(iso_generate_options, batch_tokens);
    MODEL_GROWS(iso_profile, step_weight_bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options),
        cmocka_unit_test(context),
        cmocka_unit_test(model_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
