/* SPDX-License-Identifier: MIT
 *
 * Recorded runs: the format byte by byte, damaged files, files that cannot be written, and what is
 * said about cases that are equal, different, allowed to differ, wrong, or in one run only.
 *
 *   test_record                     the tests
 *   test_record alter FILE WHAT     changes a good file for test_record.sh, its checksum too
 */
#include "compare.h"
#include "measure.h"
#include "record_corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ------------------------------------------------------------------------------- the format */

static void test_good(void **state) {
    struct iso_record r;
    char message[ISO_RECORD_MESSAGE];
    blob b = record_good();
    assert_true(iso_record_unpack(&r, b.bytes, b.count, message));
    assert_int_equal(r.numerics, 2);
    assert_int_equal(r.plan, 1);
    assert_int_equal(r.part, 1);
    assert_int_equal(r.parts, 4);
    assert_true(r.iters == 5 && r.seed == UINT64_C(0x8000000000000106));
    assert_string_equal(r.target, "isobit");
    assert_string_equal(r.version, "0.1.0");
    assert_string_equal(r.machine, "m");
    assert_string_equal(r.variants, "");
    assert_string_equal(r.compiler, "gcc");
    assert_int_equal(r.count, 3);
    const struct iso_record_section *s = iso_record_find(&r, "softmax", "");
    assert_non_null(s);
    assert_int_equal(s->count, 2);
    assert_true(s->cases[0].key == 0x04030201 && s->cases[0].hash == UINT64_C(0x1817161514131211));
    assert_true(s->cases[0].bound == 250 && s->cases[0].ulp == ISO_RECORD_NO_ULP);
    assert_int_equal(s->cases[0].count, 2);
    assert_int_equal(s->samples[0], -1);
    assert_int_equal(s->samples[1], ISO_RECORD_NO_SAMPLE);
    assert_true(s->cases[1].bound == ISO_RECORD_WRONG && s->cases[1].ulp == 10);
    s = iso_record_find(&r, "peak", "scalar");
    assert_non_null(s);
    assert_int_equal(s->samples[s->cases[0].first], 127);
    assert_int_equal(iso_record_find(&r, "peak", "avx2")->count, 0);
    assert_null(iso_record_find(&r, "peak", ""));
    unsigned char *again;
    size_t size;
    assert_true(iso_record_pack(&r, &again, &size));
    assert_int_equal(size, b.count);
    assert_memory_equal(again, b.bytes, size);
    free(again);
    iso_record_free(&r);
    blob_free(&b);
    (void)state;
}

/* Memory of exactly that size, so that a sanitizer sees the first byte too far. */
static bool unpack(const unsigned char *bytes, size_t size, char message[ISO_RECORD_MESSAGE]) {
    struct iso_record r;
    unsigned char *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    bool good = iso_record_unpack(&r, exact, size, message);
    if (good) {
        unsigned char *again;
        size_t packed;
        assert_true(iso_record_pack(&r, &again, &packed));
        assert_int_equal(packed, size);
        assert_memory_equal(again, exact, size);
        free(again);
    } else {
        assert_true(message[0] && !r.sections && !r.count);
        for (const char *m = message; *m; m++)
            assert_true(*m >= ' ' && *m <= '~');
    }
    iso_record_free(&r);
    free(exact);
    return good;
}

static void test_bad(void **state) {
    char message[ISO_RECORD_MESSAGE];
    for (size_t i = 0; i < record_row_count; i++) {
        blob b = record_spoilt(&record_rows[i]);
        if (unpack(b.bytes, b.count, message) || !strstr(message, record_rows[i].says))
            fail_msg("%s: '%s', expected '%s'", record_rows[i].name, message, record_rows[i].says);
        blob_free(&b);
    }
    (void)state;
}

/* Every length, and every bit; then every value of every byte, sealed again. */
static void test_every_byte(void **state) {
    char message[ISO_RECORD_MESSAGE];
    blob b = record_good();
    size_t accepted = 0;
    for (size_t n = 0; n < b.count; n++)
        assert_false(unpack(b.bytes, n, message));
    for (size_t i = 0; i < 8 * b.count; i++) {
        b.bytes[i / 8] ^= (unsigned char)(1u << i % 8);
        assert_false(unpack(b.bytes, b.count, message));
        b.bytes[i / 8] ^= (unsigned char)(1u << i % 8);
    }
    for (size_t i = 0; i < b.count - 8; i++) {
        unsigned char was = b.bytes[i];
        for (unsigned value = 0; value < 256; value++) {
            b.bytes[i] = (unsigned char)value;
            record_seal(b.bytes, b.count);
            accepted += unpack(b.bytes, b.count, message);
        }
        b.bytes[i] = was;
    }
    assert_true(accepted > 10000); /* hashes, keys, seed, ... */
    blob_free(&b);
    (void)state;
}

static void test_text(void **state) {
    char text[ISO_RECORD_TEXT], wide[2 * ISO_RECORD_TEXT];
    iso_record_text(text, "a\x1b[1m\xc3\xa9\n");
    assert_string_equal(text, "a?[1m???");
    memset(wide, 'x', sizeof wide - 1);
    wide[sizeof wide - 1] = 0;
    iso_record_text(text, wide);
    assert_int_equal(strlen(text), ISO_RECORD_TEXT - 1);
    (void)state;
}

/* --------------------------------------------------------------------------------- the files */

static size_t entries(const char *directory) {
    DIR *d = opendir(directory);
    size_t n = 0;
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static void refused(const char *path, const char *says) {
    struct iso_record r;
    char message[ISO_RECORD_MESSAGE];
    assert_false(iso_record_read(&r, path, message));
    assert_non_null(strstr(message, says));
}

static void test_read(void **state) {
    files f;
    char path[256];
    files_make(&f);
    files_path(&f, "r", path, sizeof path);
    refused(path, strerror(ENOENT));
    refused(f.directory, "not a regular file");
    refused("/dev/null", "not a regular file");
    assert_int_equal(mkfifo(path, 0600), 0);
    refused(path, "not a regular file");
    unlink(path);
    files_text(&f, "r", "");
    refused(path, "not a file that isobit");
    assert_int_equal(truncate(path, (off_t)ISO_RECORD_MOST_BYTES + 1), 0); /* a hole */
    refused(path, "too large");
    blob b = record_good();
    struct iso_record r;
    char message[ISO_RECORD_MESSAGE];
    files_write(&f, "r", b.bytes, b.count);
    assert_true(iso_record_read(&r, path, message));
    assert_int_equal(r.count, 3);
    iso_record_free(&r);
    blob_free(&b);
    files_remove(&f);
    (void)state;
}

static void test_write(void **state) {
    files f;
    char path[256], message[ISO_RECORD_MESSAGE];
    struct iso_record r, again;
    blob b = record_good();
    assert_true(iso_record_unpack(&r, b.bytes, b.count, message));
    files_make(&f);
    files_path(&f, "r", path, sizeof path);
    assert_true(iso_record_writable(path, message));
    assert_int_equal(entries(f.directory), 0);
    assert_true(iso_record_write(&r, path, message));
    assert_true(iso_record_read(&again, path, message));
    assert_int_equal(again.count, r.count);
    iso_record_free(&again);

    /* Where there is no room for it: what was there stays, and nothing else. */
    struct rlimit limit, small;
    files_text(&f, "r", "before");
    getrlimit(RLIMIT_FSIZE, &limit);
    small = limit;
    small.rlim_cur = 100;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    bool written = iso_record_write(&r, path, message);
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_false(written);
    assert_string_equal(message, "cannot be written: File too large");
    refused(path, "not a file that isobit");
    assert_int_equal(entries(f.directory), 1);

    /* It replaces what a link leads to, and keeps its mode; a device stays what it is. */
    char link[256];
    struct stat st;
    files_path(&f, "link", link, sizeof link);
    assert_int_equal(symlink("r", link), 0);
    assert_int_equal(chmod(path, 0640), 0);
    assert_true(iso_record_write(&r, link, message));
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal((size_t)st.st_size, b.count);
    assert_int_equal(entries(f.directory), 2);
    assert_false(iso_record_write(&r, "/dev/full", message));
    assert_string_equal(message, "cannot be written: No space left on device");
    assert_true(stat("/dev/full", &st) == 0 && S_ISCHR(st.st_mode));

    assert_false(iso_record_write(&r, f.directory, message));
    assert_false(iso_record_writable(f.directory, message));
    files_path(&f, "none/r", path, sizeof path);
    assert_false(iso_record_writable(path, message));
    assert_string_equal(message, "cannot be written: No such file or directory");
    unlink(link);
    files_remove(&f);
    blob_free(&b);
    iso_record_free(&r);
    (void)state;
}

/* ----------------------------------------------------------------------------- measuring */

enum { MOST = 600 };

/* Operands with one output of rows x cols. */
struct output {
    struct iso_check_operands o;
    float at[MOST];
    double expect[MOST], bound[MOST];
};

static void output(struct output *x, size_t rows, size_t cols, size_t ld, double bound) {
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

static void test_hash(void **state) {
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

static void test_measure(void **state) {
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
static void test_samples(void **state) {
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

/* ------------------------------------------------------------------------------ comparing */

static const struct iso_check_suite suite = {.name = "sum", .params = "n"};
static const struct iso_check_variant variants[] = {{"wide", NULL, NULL}, {"plain", NULL, NULL}};

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

static void test_recorder(void **state) {
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

static void expect(const struct iso_comparison *k, size_t equal, size_t different, size_t allowed,
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

static void test_comparison(void **state) {
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
static void test_other_variants(void **state) {
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

/* ----------------------------------------------------------------------------------- altering */

static int alter(const char *path, const char *what) {
    struct iso_record r;
    char message[ISO_RECORD_MESSAGE];
    unsigned char *bytes;
    size_t size;
    if (!iso_record_read(&r, path, message) || !r.count || !r.sections[0].count)
        return 2;
    struct iso_record_section *s = &r.sections[0];
    struct iso_record_case *c = &s->cases[s->count / 2];
    if (!strcmp(what, "hash")) {
        c->hash ^= 1;
        for (unsigned i = 0; i < c->count; i++)
            s->samples[c->first + i] = (int8_t)(s->samples[c->first + i] + 3);
    } else if (!strcmp(what, "wrong")) {
        c->bound = ISO_RECORD_WRONG;
    } else if (!strcmp(what, "target")) {
        iso_record_text(r.target, "other");
    } else if (!strcmp(what, "numerics")) {
        r.numerics++;
    } else if (!strcmp(what, "keys")) {
        for (size_t i = 0; i < s->count; i++)
            s->cases[i].key ^= 1;
    }
    if (!iso_record_pack(&r, &bytes, &size))
        return 2;
    if (!strcmp(what, "newer")) {
        bytes[8]++;
        record_seal(bytes, size);
    }
    FILE *f = fopen(path, "wb");
    bool good = f && fwrite(bytes, 1, size, f) == size;
    good = f && fclose(f) == 0 && good;
    free(bytes);
    iso_record_free(&r);
    return good ? 0 : 2;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),       cmocka_unit_test(test_bad),
        cmocka_unit_test(test_every_byte), cmocka_unit_test(test_text),
        cmocka_unit_test(test_read),       cmocka_unit_test(test_write),
        cmocka_unit_test(test_hash),       cmocka_unit_test(test_measure),
        cmocka_unit_test(test_samples),    cmocka_unit_test(test_recorder),
        cmocka_unit_test(test_comparison), cmocka_unit_test(test_other_variants),
    };
    if (argc == 4 && !strcmp(argv[1], "alter"))
        return alter(argv[2], argv[3]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
