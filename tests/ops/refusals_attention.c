/* SPDX-License-Identifier: MIT
 *
 * Arguments of attention that are refused.
 */
#include "ops/refusals.h"

/* An executor for calls that are refused, or only asked what they need. */
static void never_called(void *user, size_t n, void (*fn)(void *arg, size_t i), void *arg) {
    (void)user, (void)n, (void)fn, (void)arg;
    fail_msg("tasks of a call that had to be refused");
}

static const iso_attention_shape good_attention = {.B = 2,
                                                   .H = 2,
                                                   .Sq = 3,
                                                   .Sk = 4,
                                                   .dh = 5,
                                                   .q = {30, 5, 10},
                                                   .k = {40, 5, 10},
                                                   .v = {40, 5, 10},
                                                   .o = {30, 5, 10}};

void attention_refuses(void **state) {
    (void)state;
    fill_error_operands();
    const iso_attention_shape good = good_attention;
    iso_attention_shape s = good;
    iso_attention_options p = {.size = sizeof p, .scale = 1};
    size_t lengths[2] = {4, 5};
#define ATTENTION(o, q, k, v) iso_attention_f32(o, q, k, v, &s, &p, NULL)
    assert_ok(ATTENTION(ec, ea, eb, er));
    refuses(ISOBIT_E_NULL, ATTENTION(NULL, ea, eb, er));
    refuses(ISOBIT_E_NULL, ATTENTION(ec, NULL, eb, er));
    refuses(ISOBIT_E_NULL, ATTENTION(ec, ea, NULL, er));
    refuses(ISOBIT_E_NULL, ATTENTION(ec, ea, eb, NULL));
    refuses(ISOBIT_E_NULL, iso_attention_f32(ec, ea, eb, er, NULL, &p, NULL));
    refuses(ISOBIT_E_ALIAS, ATTENTION(ec, ec, eb, er));
    refuses(ISOBIT_E_ALIAS, ATTENTION(ec, ea, ec + 5, er));
    refuses(ISOBIT_E_ALIAS, ATTENTION(ec, ea, eb, ec + 59));
    s.q.seq = 4;
    refuses(ISOBIT_E_LD, ATTENTION(ec, ea, eb, er));
    s = good, s.k.seq = 4;
    refuses(ISOBIT_E_LD, ATTENTION(ec, ea, eb, er));
    s = good, s.v.seq = 4;
    refuses(ISOBIT_E_LD, ATTENTION(ec, ea, eb, er));
    s = good, s.o.seq = 4;
    refuses(ISOBIT_E_LD, ATTENTION(ec, ea, eb, er));
    s = good, s.q.batch = huge;
    refuses(ISOBIT_E_OVERFLOW, ATTENTION(ec, ea, eb, er));
    s = good, s.v.head = SIZE_MAX;
    refuses(ISOBIT_E_OVERFLOW, ATTENTION(ec, ea, eb, er));
    s = good, s.Sq = huge;
    refuses(ISOBIT_E_OVERFLOW, ATTENTION(ec, ea, eb, er));
    s = good, s.dh = 513;
    refuses(ISOBIT_E_DIM, ATTENTION(ec, ea, eb, er));
    s = good, p.key_lengths = lengths;
    refuses(ISOBIT_E_RANGE, ATTENTION(ec, ea, eb, er));
    p.key_lengths = NULL, p.causal = 1, p.past = SIZE_MAX;
    refuses(ISOBIT_E_OVERFLOW, ATTENTION(ec, ea, eb, er));
    p.causal = 0, p.past = 0;
    p.bias = er, p.bias_strides = (iso_strides){0, 0, 3};
    refuses(ISOBIT_E_LD, ATTENTION(ec, ea, eb, er));
    /* By distance: two heads of 6 elements, two of which lie before the first one. */
    p.bias_strides = (iso_strides){0, 6, ISOBIT_BY_DISTANCE};
    p.bias = ec + 2;
    assert_ok(ATTENTION(ec + 12, ea, eb, er));
    p.bias = ec + 3;
    refuses(ISOBIT_E_ALIAS, ATTENTION(ec + 12, ea, eb, er));
    p.bias = ec + 62;
    assert_ok(ATTENTION(ec, ea, eb, er));
    p.bias = ec + 61;
    refuses(ISOBIT_E_ALIAS, ATTENTION(ec, ea, eb, er));
    p.bias = er + 2, p.bias_strides.batch = SIZE_MAX;
    refuses(ISOBIT_E_OVERFLOW, ATTENTION(ec, ea, eb, er));
    p.bias = NULL;
    p.weights = ec + 1000, p.weights_strides = (iso_strides){24, 12, 3};
    refuses(ISOBIT_E_LD, ATTENTION(ec, ea, eb, er));
    p.weights = ec + 10, p.weights_strides = (iso_strides){24, 12, 4};
    refuses(ISOBIT_E_ALIAS, ATTENTION(ec, ea, eb, er));
    p.weights = NULL;
    static const float caps[] = {-1, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
        p.softcap = caps[i];
        refuses(ISOBIT_E_OPTION, ATTENTION(ec, ea, eb, er));
    }
    p.softcap = 0.5f;
    assert_ok(ATTENTION(ec, ea, eb, er));
    p.softcap = 0, p.size = 8;
    refuses(ISOBIT_E_SIZE, ATTENTION(ec, ea, eb, er));
#undef ATTENTION
    /* nothing to do */
    s = good, s.Sq = 0;
    assert_ok(iso_attention_f32(NULL, NULL, eb, er, &s, NULL, NULL));
    s = good, s.B = 0;
    assert_ok(iso_attention_f32(NULL, NULL, NULL, NULL, &s, NULL, NULL));
}

void attention_workspace_refuses(void **state) {
    (void)state;
    fill_error_operands();
    const iso_attention_shape good = good_attention;
    iso_attention_shape s = good;
    iso_attention_options p = {.size = 8, .scale = 1};
    size_t bytes = 77;
    refuses(ISOBIT_E_SIZE, iso_attention_f32_workspace_bytes(&bytes, &s, &p, NULL));
    assert_int_equal(bytes, 77);
    p.size = sizeof p;
    refuses(ISOBIT_E_NULL, iso_attention_f32_workspace_bytes(NULL, &s, &p, NULL));
    refuses(ISOBIT_E_NULL, iso_attention_f32_workspace_bytes(&bytes, NULL, &p, NULL));
    s = good, s.B = SIZE_MAX / 2;
    refuses(ISOBIT_E_OVERFLOW, iso_attention_f32_workspace_bytes(&bytes, &s, &p, NULL));
    s = good, s.Sq = SIZE_MAX / 2;
    refuses(ISOBIT_E_OVERFLOW, iso_attention_f32_workspace_bytes(&bytes, &s, &p, NULL));
    assert_int_equal(bytes, 77);
    /* One thread takes the scratch of one task, however many heads there are. */
    size_t one = 0, many = 0;
    s = good, s.B = s.H = 1, p.key_panels = 1;
    assert_ok(iso_attention_f32_workspace_bytes(&one, &s, &p, NULL));
    s.B = 5, s.H = 7, s.Sq = 1000;
    assert_ok(iso_attention_f32_workspace_bytes(&many, &s, &p, NULL));
    assert_true(one > 0 && many == one);
    p.key_panels = 0;
    /* Two tasks take that of two heads, also when the heads do not come out even but are many. */
    const iso_executor two = {never_called, NULL, 2};
    const iso_context pair = {.size = sizeof pair, .executor = &two};
    size_t alone = 0;
    s.B = 1, s.H = 8, s.Sk = 100;
    assert_ok(iso_attention_f32_workspace_bytes(&alone, &s, &p, NULL));
    assert_ok(iso_attention_f32_workspace_bytes(&one, &s, &p, &pair));
    s.H = 9;
    assert_ok(iso_attention_f32_workspace_bytes(&many, &s, &p, &pair));
    assert_true(one > alone && many == one);
    /* A copy of the values that is too large. */
    s = good, s.Sq = 512, s.Sk = SIZE_MAX / 4, p.key_panels = 1, bytes = 77;
    refuses(ISOBIT_E_OVERFLOW, iso_attention_f32_workspace_bytes(&bytes, &s, &p, NULL));
    s.Sk = SIZE_MAX / 8 + 1, s.dh = 8; /* with no bits of its size left */
    refuses(ISOBIT_E_OVERFLOW, iso_attention_f32_workspace_bytes(&bytes, &s, &p, NULL));
    p.key_panels = 0;
#if SIZE_MAX > UINT32_MAX
    /* The panels of one head would fit, those of 16 tasks are 2^64 floats. */
    const iso_executor sixteen = {never_called, NULL, 16};
    const iso_context tasks = {.size = sizeof tasks, .executor = &sixteen};
    s = (iso_attention_shape){.B = 1,
                              .H = 16,
                              .Sq = 2,
                              .Sk = (size_t)1 << 56,
                              .dh = 16,
                              .q = {0, 16, 256},
                              .k = {0, 0, 16},
                              .v = {0, 0, 16},
                              .o = {0, 16, 256}};
    refuses(ISOBIT_E_OVERFLOW, iso_attention_f32_workspace_bytes(&bytes, &s, &p, &tasks));
    refuses(ISOBIT_E_OVERFLOW, iso_attention_f32(ec, ea, ec + 512, ec + 512, &s, &p, &tasks));
#endif
    assert_int_equal(bytes, 77);
}

void key_panels_refuse(void **state) {
    (void)state;
    fill_error_operands();
    assert_int_equal(iso_key_panels_floats(SIZE_MAX, 2), 0);
    assert_int_equal(iso_key_panels_floats(SIZE_MAX / 64, 512), 0);
    assert_int_equal(iso_key_panels_floats(1, 3), 48);
    assert_int_equal(iso_key_panels_floats(16, 3), 48);
    assert_int_equal(iso_key_panels_floats(17, 3), 96);
#define APPEND(p, first, k, ldk) iso_key_panels_append(p, first, k, ldk, 3, 5, NULL)
    refuses(ISOBIT_E_NULL, APPEND(NULL, 0, ea, 5));
    refuses(ISOBIT_E_NULL, APPEND(ec, 0, NULL, 5));
    refuses(ISOBIT_E_LD, APPEND(ec, 0, ea, 4));
    refuses(ISOBIT_E_OVERFLOW, APPEND(ec, SIZE_MAX - 1, ea, 5));
    refuses(ISOBIT_E_OVERFLOW, APPEND(ec, 0, ea, huge));
    refuses(ISOBIT_E_ALIAS, APPEND(ec, 0, ec + 7, 5));
#undef APPEND
}
