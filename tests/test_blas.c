/* SPDX-License-Identifier: MIT
 *
 * libisobit_blas by its public names: against definitions in double, written down here once more;
 * bits that depend neither on the instruction set, the threads, the layout, the language nor on
 * packing; bad arguments; memory that is not there; what the reference does with NaN and
 * infinities.
 */
#include "test_blas.h"

#define GOLDEN ISOBIT_TEST_DATA "/golden_blas.txt"
bool quick;

/* ------------------------------------------------------------------------- what is reported */

int reported, reports;
char reported_name[32];
int RowMajorStrg; /* as the reference has it, for cblas_xerbla to look at */

void xerbla_(const char *name, const int *info, size_t length);

void xerbla_(const char *name, const int *info, size_t length) {
    assert_int_equal(length, 6);
    snprintf(reported_name, sizeof reported_name, "%.6s", name);
    reported = *info, reports++;
}

void cblas_xerbla(int info, const char *routine, const char *form, ...);

void cblas_xerbla(int info, const char *routine, const char *form, ...) {
    (void)form;
    snprintf(reported_name, sizeof reported_name, "%s%s", routine, RowMajorStrg ? " (row)" : "");
    reported = info, reports++;
}

/* ---------------------------------------------------------------------------- memory that fails */

bool no_memory;
_Atomic size_t allocations;

void *__real_malloc(size_t n);
void *__real_aligned_alloc(size_t a, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_aligned_alloc(size_t a, size_t n);

void *__wrap_malloc(size_t n) {
    allocations++;
    return no_memory ? NULL : __real_malloc(n);
}
void *__wrap_aligned_alloc(size_t a, size_t n) {
    allocations++;
    return no_memory ? NULL : __real_aligned_alloc(a, n);
}

/* --------------------------------------------------------------------------------- operands */

uint32_t state = 1;
static float number(void) {
    state = state * 1664525 + 1013904223;
    return (float)((int32_t)(state >> 8) - (1 << 23)) * 0x1p-22f;
}
void fill(float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] = number();
}
float *numbers(size_t n) {
    float *x = malloc((n ? n : 1) * sizeof *x);
    assert_non_null(x);
    fill(x, n);
    return x;
}
float *copy_of(const float *x, size_t n) {
    float *y = malloc(n * sizeof *y);
    assert_non_null(y);
    memcpy(y, x, n * sizeof *y);
    return y;
}
void same(const float *x, const float *y, size_t n) { assert_memory_equal(x, y, n * sizeof *x); }

/* Each instruction set of the machine, one after the other; the last one is the best again. */
size_t sets(const char *names[8]) {
    size_t n = 0;
    for (size_t i = 0; i < iso_isa_count(); i++)
        if (!iso_isa_missing(iso_isa_get(i)))
            names[n++] = iso_isa_name(iso_isa_get(i));
    return n;
}

/* Of a sum of n products: its largest error in float, with some roundings at the end. */
double bound(size_t n, double magnitude) {
    return ((double)n + 8) * 0x1p-24 * magnitude + (double)(n + 8) * 0x1p-149;
}

void close_to(float got, double want, double most) {
    if (!(fabs((double)got - want) <= most))
        fail_msg("%a instead of %a, more than %g away", (double)got, want, most);
}

/* ------------------------------------------------------------------------- environment, sets */

/* In a program of its own: `test_blas --environment WHAT`. */
static int environment(const char *what) {
    if (strcmp(what, "threads") == 0) {
        printf("%d\n", openblas_get_num_threads());
        return 0;
    }
    /* ISOBIT_ISA names nothing: a line on stderr, once, and right results. */
    float c[4], y[2];
    const float a[4] = {1, 2, 3, 4};
    for (int i = 0; i < 2; i++)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 2, 2, 1, a, 2, a, 2, 0, c, 2);
    cblas_sgemv(CblasRowMajor, CblasNoTrans, 2, 2, 1, a, 2, a, 1, 0, y, 1);
    return c[0] == 7 && c[3] == 22 && y[1] == 11 ? 0 : 1;
}

/* ------------------------------------------------------------------------------ golden hashes */

static XXH3_state_t *hash;
static void hash_floats(const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, x + i, sizeof u);
        const unsigned char bytes[4] = {(unsigned char)u, (unsigned char)(u >> 8),
                                        (unsigned char)(u >> 16), (unsigned char)(u >> 24)};
        XXH3_64bits_update(hash, bytes, sizeof bytes);
    }
}

static const struct {
    const char *name;
    int routine;
} hashed[] = {{"sgemm", 0}, {"sgemv", 1}, {"sger", 2},  {"ssyrk", 3}, {"sdot", 4},
              {"saxpy", 5}, {"sscal", 6}, {"snrm2", 7}, {"sasum", 8}};

static uint64_t digest(int routine) {
    static const int sizes[][3] = {
        {5, 7, 9}, {33, 20, 65}, {1, 40, 600}, {70, 1, 30}, {40, 90, 520}};
    XXH3_64bits_reset(hash);
    state = 4711;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int f = 0; f < 4; f++) {
            const int m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
            const float alpha = f & 1 ? 0.7f : 1, beta = f & 2 ? -1.3f : 0;
            float *a = numbers((size_t)m * (size_t)k), *b = numbers((size_t)k * (size_t)n);
            float *c = numbers((size_t)(m > n ? m : n) * (size_t)(m > n ? m : n)), one;
            switch (routine) {
            case 0:
                cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, alpha, a, k, b, n,
                            beta, c, n);
                hash_floats(c, (size_t)m * (size_t)n);
                break;
            case 1:
                cblas_sgemv(CblasRowMajor, CblasNoTrans, m, k, alpha, a, k, b, n, beta, c, 1);
                hash_floats(c, (size_t)m);
                cblas_sgemv(CblasRowMajor, CblasTrans, m, k, alpha, a, k, c, -1, 0, b, 1);
                hash_floats(b, (size_t)(k < k * n ? k : k * n));
                break;
            case 2:
                cblas_sger(CblasColMajor, m, n, alpha, a, 1, b, -1, c, m);
                hash_floats(c, (size_t)m * (size_t)n);
                break;
            case 3:
                cblas_ssyrk(CblasColMajor, f & 1 ? CblasLower : CblasUpper, CblasNoTrans, m, k,
                            alpha, a, m, beta, c, m);
                hash_floats(c, (size_t)m * (size_t)m);
                break;
            case 4:
                one = cblas_sdot(k, a, 1, b, f & 1 ? n : 1);
                hash_floats(&one, 1);
                break;
            case 5:
                cblas_saxpy(k, 0.3f + alpha, a, 1, b, f & 1 ? n : 1);
                hash_floats(b, (size_t)k * (size_t)n);
                break;
            case 6:
                cblas_sscal(k, 0.3f + alpha, b, f & 1 ? n : 1);
                hash_floats(b, (size_t)k * (size_t)n);
                break;
            case 7:
                one = cblas_snrm2(k, b, f & 1 ? n : 1);
                hash_floats(&one, 1);
                break;
            default: one = cblas_sasum(k, b, f & 1 ? n : 1); hash_floats(&one, 1);
            }
            free(a), free(b), free(c);
        }
    return XXH3_64bits_digest(hash);
}

static void test_golden(void **unused) {
    (void)unused;
    const char *names[8];
    char line[128], want[64];
    unsigned found = 0;
    FILE *file = fopen(GOLDEN, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char name[32];
        unsigned long long value;
        if (line[0] == '#')
            continue;
        assert_int_equal(sscanf(line, "%31s %llx", name, &value), 2);
        for (size_t r = 0; r < sizeof hashed / sizeof *hashed; r++)
            if (strcmp(hashed[r].name, name) == 0) {
                found |= 1U << r;
                snprintf(want, sizeof want, "%s %016llx", name, value);
                for (size_t set = sets(names); set-- > 0;) {
                    char got[64];
                    assert_int_equal(iso_set_isa(names[set]), ISOBIT_OK);
                    snprintf(got, sizeof got, "%s %016llx", name,
                             (unsigned long long)digest(hashed[r].routine));
                    assert_string_equal(got, want);
                }
            }
    }
    fclose(file);
    assert_int_equal(found, (1U << sizeof hashed / sizeof *hashed) - 1);
}

static int update_golden(void) {
    FILE *file = fopen(GOLDEN, "w");
    if (!file)
        return 1;
    fprintf(file,
            "# numerics %d: hash (XXH3) of each routine of libisobit_blas, by tests/test_blas.c\n",
            ISOBIT_NUMERICS_VERSION);
    for (size_t r = 0; r < sizeof hashed / sizeof *hashed; r++)
        fprintf(file, "%s %016llx\n", hashed[r].name,
                (unsigned long long)digest(hashed[r].routine));
    return fclose(file) ? 1 : 0;
}

int main(int argc, char **argv) {
    hash = XXH3_createState();
    for (int i = 1; i < argc; i++) {
        quick |= strcmp(argv[i], "--quick") == 0;
        if (strcmp(argv[i], "--environment") == 0 && i + 1 < argc)
            return environment(argv[i + 1]);
        if (strcmp(argv[i], "--update-golden") == 0)
            return update_golden();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_gemm_zeros),
        cmocka_unit_test(test_gemv),
        cmocka_unit_test(test_ger),
        cmocka_unit_test(test_syrk),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_vectors_special),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_errors_extensions),
        cmocka_unit_test(test_errors_alone),
        cmocka_unit_test(test_no_memory_and_alias),
        cmocka_unit_test(test_scratch_stays),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_many_callers),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_openmp),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_scratch_of_many_threads_goes),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(wide_a), free(wide_b);
    XXH3_freeState(hash);
    return failed;
}
