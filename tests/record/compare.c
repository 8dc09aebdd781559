/* SPDX-License-Identifier: MIT
 *
 * Runs that are compared.
 */
#include "test_record.h"

static const struct iso_check_suite suite = {.name = "sum", .params = "n"};
const struct iso_check_variant variants[] = {{"wide", NULL, NULL}, {"plain", NULL, NULL}};

static struct iso_check_case numbered(size_t n) {
    return (struct iso_check_case){.p = {n}, .seed = n};
}

/* The first call of case n on a variant, whose results are `steps` ULP from the truth. */
static struct iso_check_observation observed(struct output *x, struct iso_check_case *c, size_t n,
                                             unsigned variant, int steps) {
    *c = numbered(n);
    output(x, 1, 4, 4, 9 * 0x1p-23);
    x->at[n % 4] += (float)steps * 0x1p-23f;
    return (struct iso_check_observation){.suite = &suite,
                                          .c = c,
                                          .variant = &variants[variant],
                                          .operands = &x->o,
                                          .first = variant == 0,
                                          .bits = n < 100};
}

static char told[400];
static size_t telling;

static void tell(struct iso_comparison *k, const struct iso_check_observation *seen,
                 const char *text, size_t nth) {
    (void)k, (void)seen, (void)nth;
    telling++;
    snprintf(told, sizeof told, "%s", text);
}

/* Cases 0 .. 3 promise equal bits, 100 does not. 3 was wrong, in a later place. */
static void recorded(struct iso_recorder *r) {
    static struct output x;
    struct iso_check_case c;
    static const size_t numbers[] = {0, 1, 2, 3, 100};
    for (size_t i = 0; i < 5; i++) {
        for (unsigned v = 0; v < 2; v++) {
            struct iso_check_observation seen =
                observed(&x, &c, numbers[i], v, numbers[i] == 100 ? (int)v : 1);
            iso_recorder_observe(r, &seen);
            seen.place = 1;
            seen.wrong = numbers[i] == 3 && v == 1;
            iso_recorder_observe(r, &seen);
        }
    }
}

void test_recorder(void **state) {
    static struct iso_recorder r;
    recorded(&r);
    assert_false(r.failed);
    const struct iso_record_section *s = iso_record_find(&r.record, "sum", "");
    assert_non_null(s);
    assert_int_equal(s->count, 4); /* once, though two variants ran */
    for (size_t i = 0; i < 4; i++) {
        struct iso_check_case c = numbered(i);
        assert_true(s->cases[i].key == iso_record_key(&c));
        assert_int_equal(s->cases[i].bound == ISO_RECORD_WRONG, i == 3);
    }
    assert_int_equal(iso_record_find(&r.record, "sum", "wide")->count, 1);
    assert_int_equal(iso_record_find(&r.record, "sum", "plain")->count, 1);
    iso_record_free(&r.record);
    (void)state;
}

static void see(struct iso_comparison *k, size_t n, unsigned variant, int steps, bool wrong,
                bool wrong_later) {
    static struct output x;
    struct iso_check_case c;
    struct iso_check_observation seen = observed(&x, &c, n, variant, steps);
    told[0] = 0;
    telling = 0;
    seen.wrong = wrong;
    assert_true(iso_comparison_observe(k, &seen));
    if (wrong)
        return;
    seen.place = 1;
    seen.wrong = wrong_later;
    assert_true(iso_comparison_observe(k, &seen));
}

void expect(const struct iso_comparison *k, size_t equal, size_t different, size_t allowed,
            size_t wrong, size_t absent, size_t unmet) {
    size_t left;
    struct iso_compared all = iso_comparison_total(k, &left);
    assert_int_equal(all.count[ISO_EQUAL], equal);
    assert_int_equal(all.count[ISO_DIFFERENT], different);
    assert_int_equal(all.count[ISO_ALLOWED], allowed);
    assert_int_equal(all.count[ISO_WRONG], wrong);
    assert_int_equal(all.count[ISO_ABSENT], absent);
    assert_int_equal(left, unmet);
}

void test_comparison(void **state) {
    static struct iso_recorder r;
    struct iso_comparison k = {.differs = tell};
    memset(&r, 0, sizeof r);
    recorded(&r);
    assert_true(iso_comparison_begin(&k, &r.record));
    expect(&k, 0, 0, 0, 0, 0, 4);
    see(&k, 0, 0, 1, false, false);
    see(&k, 0, 1, 1, false, false);
    expect(&k, 2, 0, 0, 0, 0, 3);
    assert_int_equal(telling, 0);
    /* Within the bound, 3 ULP off: the largest error was 1 ULP of 9. */
    see(&k, 1, 0, 4, false, false);
    expect(&k, 2, 1, 0, 0, 0, 2);
    assert_int_equal(telling, 1);
    assert_string_equal(told,
                        "other bits than in the file, within the bound: 1 of 4 samples differ "
                        "by up to 3 ULP; largest error here 0.448 of the bound, there 0.112 "
                        "of the bound");
    /* Wrong here: that is for the engine to tell. */
    see(&k, 1, 1, 30, true, false);
    expect(&k, 2, 1, 0, 1, 0, 2);
    assert_int_equal(telling, 0);
    see(&k, 2, 0, 1, false, true); /* equal, until the left place */
    expect(&k, 2, 1, 0, 2, 0, 1);
    see(&k, 3, 0, 1, false, false); /* wrong there */
    expect(&k, 2, 1, 0, 3, 0, 0);
    assert_non_null(strstr(told, "wrong where the file was recorded"));
    see(&k, 9, 0, 1, false, false);
    expect(&k, 2, 1, 0, 3, 1, 0);
    /* No bits are promised: each variant is compared with itself. */
    see(&k, 100, 0, 0, false, false);
    see(&k, 100, 1, 1, false, false);
    expect(&k, 4, 1, 0, 3, 1, 0);
    see(&k, 100, 1, -1, false, false);
    expect(&k, 4, 1, 1, 3, 1, 0);
    assert_non_null(strstr(told, "by up to 2 ULP"));
    size_t unmet;
    assert_int_equal(iso_comparison_total(&k, &unmet).ulp, 3);
    iso_comparison_end(&k);
    iso_record_free(&r.record);
    (void)state;
}

/* A variant that the file lacks is compared with one that it has; two cases of one key. */
void test_other_variants(void **state) {
    static struct iso_recorder r;
    static struct output x;
    struct iso_check_case c;
    struct iso_comparison k = {.differs = tell};
    memset(&r, 0, sizeof r);
    struct iso_check_observation seen = observed(&x, &c, 100, 0, 2);
    iso_recorder_observe(&r, &seen);
    for (int steps = 0; steps < 3; steps++) {
        seen = observed(&x, &c, 7, 0, steps);
        iso_recorder_observe(&r, &seen);
    }
    assert_true(iso_comparison_begin(&k, &r.record));
    see(&k, 100, 1, 2, false, false);
    expect(&k, 1, 0, 0, 0, 0, 3);
    for (int steps = 2; steps >= 0; steps--)
        see(&k, 7, 0, steps, false, false);
    expect(&k, 4, 0, 0, 0, 0, 0);
    see(&k, 7, 0, 5, false, false);
    expect(&k, 4, 1, 0, 0, 0, 0);
    iso_comparison_end(&k);
    /* Only a suite that is not in the file: nothing is missing. */
    assert_true(iso_comparison_begin(&k, &r.record));
    k.only = "product";
    expect(&k, 0, 0, 0, 0, 0, 0);
    iso_comparison_end(&k);
    iso_record_free(&r.record);
    (void)state;
}
