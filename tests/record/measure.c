/* SPDX-License-Identifier: MIT
 *
 * What is measured of the cases of a run.
 */
#include "test_record.h"

void output(struct output *x, size_t rows, size_t cols, size_t ld, double bound) {
    memset(x, 0, sizeof *x);
    x->o.count = 1;
    x->o.v[0] = (struct iso_check_operand){.name = "y",
                                           .role = ISO_CHECK_OUT,
                                           .element = 4,
                                           .rows = rows,
                                           .cols = cols,
                                           .ld = ld,
                                           .bytes = 4 * ((rows - 1) * ld + cols),
                                           .at = x->at,
                                           .expect = x->expect,
                                           .bound = x->bound};
    for (size_t i = 0; i < rows * cols; i++) {
        x->expect[i] = 1.25 + (double)i * 0x1p-20;
        x->bound[i] = bound;
        x->at[i / cols * ld + i % cols] = (float)x->expect[i];
    }
}

void test_hash(void **state) {
    static struct output a, b;
    output(&a, 3, 5, 5, 1e-6);
    output(&b, 3, 5, 8, 1e-6);
    b.at[5] = b.at[7] = 77; /* a gap */
    assert_true(iso_record_hash(&a.o) == iso_record_hash(&b.o));
    b.at[8] = nextafterf(b.at[8], 2);
    assert_false(iso_record_hash(&a.o) == iso_record_hash(&b.o));
    output(&b, 3, 5, 5, 1e-6);
    a.at[3] = NAN;
    b.at[3] = -NAN;
    assert_true(iso_record_hash(&a.o) == iso_record_hash(&b.o));
    b.at[3] = INFINITY;
    assert_false(iso_record_hash(&a.o) == iso_record_hash(&b.o));
    a.at[3] = 0;
    b.at[3] = -0.0f;
    assert_false(iso_record_hash(&a.o) == iso_record_hash(&b.o));
    /* The same on each machine: these bytes are 1.25, 1.25 + 2^-20, little-endian. */
    output(&a, 1, 2, 2, 1e-6);
    assert_true(iso_record_hash(&a.o) == UINT64_C(0x9f4d7e8b6159011d));
    /* Beyond one block of words, too. */
    output(&b, 2, 300, 300, 1e-6);
    uint64_t hash = iso_record_hash(&b.o);
    const size_t places[] = {0, 255, 256, 511, 512, 599};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        float was = b.at[places[i]];
        b.at[places[i]] = 2;
        assert_false(iso_record_hash(&b.o) == hash);
        b.at[places[i]] = was;
    }
    /* An input is not looked at. */
    a.o.v[1] = a.o.v[0];
    a.o.v[1].role = ISO_CHECK_IN;
    a.o.count = 2;
    assert_true(iso_record_hash(&a.o) == UINT64_C(0x9f4d7e8b6159011d));
    (void)state;
}

void test_measure(void **state) {
    static struct output x;
    struct iso_record_case m;
    int8_t samples[ISO_RECORD_SAMPLES];
    output(&x, 1, 3, 3, 5 * 0x1p-23); /* an ULP of 1 .. 2 is 2^-23 */
    x.at[1] += 2 * 0x1p-23f;
    x.at[2] -= 1 * 0x1p-23f;
    iso_record_measure(&m, samples, &x.o);
    assert_int_equal(m.count, 3);
    assert_int_equal(samples[0], 0);
    assert_int_equal(samples[1], 2);
    assert_int_equal(samples[2], -1);
    assert_int_equal(m.bound, 100); /* 2/5 of 250 */
    assert_int_equal(m.ulp, 20);
    assert_true(m.hash == iso_record_hash(&x.o));

    /* To the nearest ULP. */
    x.expect[0] = 1.25 + 0.4 * 0x1p-23;
    x.expect[1] = 1.25 - 0.4 * 0x1p-23;
    x.at[0] = x.at[1] = 1.25f;
    iso_record_measure(&m, samples, &x.o);
    assert_true(samples[0] == 0 && samples[1] == 0);

    /* A wide bound: hundredths of it, and no ULP. */
    output(&x, 1, 2, 2, 0.5);
    x.at[1] -= 0.25f;
    iso_record_measure(&m, samples, &x.o);
    assert_int_equal(samples[1], -50);
    assert_int_equal(m.bound, 125);
    assert_int_equal(m.ulp, ISO_RECORD_NO_ULP);

    /* What has no error: NaN, infinities, exact results; and errors that fit no byte. */
    output(&x, 1, 4, 4, 1e-6);
    x.expect[0] = NAN, x.at[0] = NAN;
    x.expect[1] = INFINITY, x.at[1] = INFINITY;
    x.bound[2] = 0;
    x.at[3] = -1e30f;
    iso_record_measure(&m, samples, &x.o);
    for (int i = 0; i < 3; i++)
        assert_int_equal(samples[i], ISO_RECORD_NO_SAMPLE);
    assert_int_equal(samples[3], -127);
    assert_int_equal(m.bound, ISO_RECORD_BOUND_UNIT);
    x.o.v[0].expect = NULL;
    iso_record_measure(&m, samples, &x.o);
    assert_int_equal(samples[3], ISO_RECORD_NO_SAMPLE);
    assert_int_equal(m.bound, 0);

    /* The smallest numbers: an ULP is 2^-149 there. */
    output(&x, 1, 2, 2, 0x1p-148);
    x.expect[0] = x.expect[1] = 0;
    x.at[0] = 0x1p-149f, x.at[1] = 0;
    iso_record_measure(&m, samples, &x.o);
    assert_int_equal(samples[0], 1);
    assert_int_equal(m.ulp, 10);
    (void)state;
}

/* Samples are spread over the outputs, and differ as the outputs do. */
void test_samples(void **state) {
    static struct output x;
    struct iso_record_case m;
    int8_t samples[ISO_RECORD_SAMPLES], other[ISO_RECORD_SAMPLES];
    output(&x, 8, 8, 9, 50 * 0x1p-23);
    iso_record_measure(&m, samples, &x.o);
    assert_int_equal(m.count, ISO_RECORD_SAMPLES);
    size_t columns = 0, hits = 0;
    for (size_t c = 0; c < 8; c++) {
        for (size_t r = 0; r < 8; r++)
            x.at[r * 9 + c] += 7 * 0x1p-23f;
        iso_record_measure(&m, other, &x.o);
        struct iso_record_difference d = iso_record_differences(&x.o, samples, other, m.count);
        columns += d.samples > 0;
        hits += d.samples;
        assert_int_equal(d.ulp, d.samples ? 7 : 0);
        assert_int_equal(d.parts, 0);
        for (size_t r = 0; r < 8; r++)
            x.at[r * 9 + c] -= 7 * 0x1p-23f;
    }
    assert_int_equal(hits, ISO_RECORD_SAMPLES);
    assert_true(columns >= 4);
    output(&x, 1, 1, 1, 1.0);
    iso_record_measure(&m, samples, &x.o);
    x.at[0] += 0.5f;
    iso_record_measure(&m, other, &x.o);
    struct iso_record_difference d = iso_record_differences(&x.o, samples, other, m.count);
    assert_true(d.samples == 1 && d.ulp == 0 && d.parts == 50);
    (void)state;
}
