/* SPDX-License-Identifier: MIT
 *
 * The choice of the instruction set: for the CPUs of cpus.h against a table, for this machine
 * against ISOBIT_EXPECT_ISA (set where an emulator pretends to be a certain CPU), its overrides,
 * the race of first users, and what iso_info_json tells of it.
 *
 * What depends on the first use of the library runs in children that are forked before anything
 * else: fork, not exec, so that it works under an emulator too.
 */
#include "test_dispatch.h"

/* -------------------------------------------------------------------------------- first users */

enum { RACERS = 64 };

static void first_of(const char *env) {
    if (env) {
        setenv("ISOBIT_ISA", env, 1);
    } else {
        unsetenv("ISOBIT_ISA");
    }
}

/* The calls without a set of their own are refused, those with one are not. */
static int refuses(const char *env) {
    first_of(env);
    const struct iso_kernels *k = NULL;
    const iso_isa *scalar = NULL;
    iso_context context = {.size = sizeof(context)};
    if (iso_isa_active() || iso_isa_active()) {
        return 1;
    }
    if (iso_context_kernels(&k, NULL) != ISOBIT_E_ISA || k) {
        return 2;
    }
    if (iso_context_kernels(&k, &context) != ISOBIT_E_ISA || k) {
        return 3;
    }
    if (iso_isa_find(&scalar, "scalar") != ISOBIT_OK) {
        return 4;
    }
    context.isa = scalar;
    if (iso_context_kernels(&k, &context) != ISOBIT_OK || k != &iso_kernels_scalar) {
        return 5;
    }
    if (iso_set_isa(NULL) != ISOBIT_E_ISA || iso_isa_active()) {
        return 6;
    }
    /* Naming one, or mending the variable, makes it work again. */
    if (iso_set_isa("scalar") != ISOBIT_OK || iso_isa_active() != scalar) {
        return 7;
    }
    unsetenv("ISOBIT_ISA");
    if (iso_set_isa(NULL) != ISOBIT_OK || !iso_isa_active()) {
        return 8;
    }
    return 0;
}

static int refuses_unknown(void) { return refuses("sse9"); }
static int refuses_case(void) { return refuses("SCALAR"); }
static int refuses_list(void) { return refuses("avx2,scalar"); }

#if defined(__aarch64__)
static int refuses_foreign(void) { return refuses("avx2"); }
#else
static int refuses_foreign(void) { return refuses("neon"); }
#endif

static int obeys_scalar(void) {
    first_of("scalar");
    const iso_isa *isa = iso_isa_active();
    return !(isa && strcmp(iso_isa_name(isa), "scalar") == 0);
}

static int empty_is_unset(void) {
    first_of("");
    return !(iso_isa_active() && iso_isa_active() == iso_pick(iso_machine()->cpu.usable, NULL));
}

/* A set that is compiled in and that the machine lacks is refused like an unknown one. */
static int refuses_absent(void) {
    for (size_t i = 0; i < iso_isa_count(); ++i) {
        const iso_isa *isa = iso_isa_get(i);
        if (iso_isa_missing(isa)) {
            return refuses(iso_isa_name(isa));
        }
    }
    return 0;
}

static int keeps_set_isa(void) {
    first_of("sse9");
    if (iso_set_isa("scalar") != ISOBIT_OK) {
        return 1;
    }
    return !(iso_isa_active() && strcmp(iso_isa_name(iso_isa_active()), "scalar") == 0);
}

static pthread_barrier_t start;

static void *race(void *arg) {
    const void **seen = arg;
    const struct iso_kernels *k = NULL;
    pthread_barrier_wait(&start);
    iso_context_kernels(&k, NULL);
    seen[0] = k;
    seen[1] = iso_isa_active();
    seen[2] = strlen(iso_isa_names()) > 0 ? iso_isa_names() : NULL;
    seen[3] = iso_isa_missing(iso_isa_get(0)) ? "" : "-";
    return NULL;
}

static int race_of_first_users(void) {
    first_of(NULL);
    static const void *seen[RACERS][4];
    pthread_t threads[RACERS];
    pthread_barrier_init(&start, NULL, RACERS);
    for (int i = 0; i < RACERS; ++i) {
        if (pthread_create(&threads[i], NULL, race, (void *)seen[i]) != 0) {
            return 1;
        }
    }
    for (int i = 0; i < RACERS; ++i) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < RACERS; ++i) {
        if (!seen[i][0] || !seen[i][1] || !seen[i][2] ||
            memcmp(seen[i], seen[0], sizeof(seen[0])) != 0) {
            return 2;
        }
    }
    return 0;
}

static struct first {
    const char *name;
    int (*run)(void);
    int result;
} firsts[] = {
    {"ISOBIT_ISA=scalar is obeyed", obeys_scalar, -1},
    {"an empty ISOBIT_ISA is as none", empty_is_unset, -1},
    {"an unknown ISOBIT_ISA is refused", refuses_unknown, -1},
    {"ISOBIT_ISA in capitals is refused", refuses_case, -1},
    {"a list in ISOBIT_ISA is refused", refuses_list, -1},
    {"a set of another architecture is refused", refuses_foreign, -1},
    {"a set that the machine lacks is refused", refuses_absent, -1},
    {"iso_set_isa goes before ISOBIT_ISA", keeps_set_isa, -1},
    {"64 first users agree", race_of_first_users, -1},
};
enum { FIRSTS = sizeof(firsts) / sizeof(firsts[0]) };

static void run_firsts(void) {
    for (size_t i = 0; i < FIRSTS; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            _exit(firsts[i].run());
        }
        int status = 0;
        const bool good = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
        firsts[i].result = good ? WEXITSTATUS(status) : 255;
    }
}

static void test_first_use(void **state) {
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < FIRSTS; ++i) {
        if (firsts[i].result != 0) {
            print_error("%s: step %d failed\n", firsts[i].name, firsts[i].result);
            ++bad;
        }
    }
    assert_int_equal(bad, 0);
}

/* --------------------------------------------------------------------------------- this machine */

static void test_expected_isa(void **state) {
    (void)state;
    const char *expected = getenv("ISOBIT_EXPECT_ISA");
    unsetenv("ISOBIT_ISA");
    assert_int_equal(iso_set_isa(NULL), ISOBIT_OK);
    const iso_isa *isa = iso_isa_active();
    assert_non_null(isa);
    assert_ptr_equal(isa, iso_pick(iso_machine()->cpu.usable, NULL));
    if (!expected) {
        print_message("          (ISOBIT_EXPECT_ISA is not set; this machine: %s)\n", isa->name);
        return;
    }
    assert_string_equal(iso_isa_name(isa), expected);
    /* The compiler's own view of the CPU must not be wider. */
#if defined(__x86_64__) && !defined(__clang__)
    if (strncmp(expected, "avx512", 6) == 0) {
        assert_true(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"));
    } else {
        assert_int_equal(strncmp(expected, "avx2", 4) == 0, __builtin_cpu_supports("avx2") != 0);
    }
#endif
}

static void test_list(void **state) {
    (void)state;
    const size_t count = iso_isa_count();
#if defined(__x86_64__) || defined(__aarch64__)
    assert_true(count >= 2);
#else
    assert_int_equal(count, 1);
#endif
    assert_null(iso_isa_get(count));
    assert_null(iso_isa_get((size_t)-1));
    assert_string_equal(iso_isa_name(iso_isa_get(count - 1)), "scalar");
    assert_null(iso_isa_missing(iso_isa_get(count - 1)));
    assert_string_equal(iso_isa_name(NULL), "");
    assert_non_null(iso_isa_missing(NULL));

    char names[128] = "";
    for (size_t i = 0; i < count; ++i) {
        const iso_isa *isa = iso_isa_get(i), *found = NULL;
        assert_string_equal(isa->name, isa->s8->name);
        assert_non_null(isa->s8->gemm_s8); /* a level has it, and shares all others with its set */
        assert_int_equal(strncmp(isa->name, isa->kernels->name, strlen(isa->kernels->name)), 0);
        assert_non_null(isa->kernels->unary);
        if (isa->s8->tiles) { /* the next one is what is left without them */
            const iso_isa *next = iso_isa_get(i + 1);
            assert_non_null(next);
            assert_ptr_equal(next->kernels, isa->kernels);
            assert_int_equal(next->required & ~isa->required, 0);
            assert_ptr_equal(iso_isa_s8(isa), iso_cpu_permits_tiles() ? isa->s8 : next->s8);
        } else {
            assert_ptr_equal(iso_isa_s8(isa), isa->s8);
        }
        const iso_status status = iso_isa_find(&found, isa->name);
        if (iso_isa_missing(isa)) {
            assert_int_equal(status, ISOBIT_E_ISA);
            assert_null(found);
            assert_int_equal(iso_set_isa(isa->name), ISOBIT_E_ISA);
        } else {
            assert_int_equal(status, ISOBIT_OK);
            assert_ptr_equal(found, isa);
            strcat(strcat(names, *names ? ", " : ""), isa->name);
        }
    }
    assert_string_equal(iso_isa_names(), names);
}

static void test_set_isa(void **state) {
    (void)state;
    static const char *const wrong[] = {"",     "sse9", "Scalar",  "scalar ", " scalar",
                                        "avx1", "scal", "scalars", "avx512f"};
    const iso_isa *found = NULL;
    assert_int_equal(iso_set_isa("scalar"), ISOBIT_OK);
    const iso_isa *scalar = iso_isa_active();
    assert_string_equal(iso_isa_name(scalar), "scalar");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        assert_int_equal(iso_set_isa(wrong[i]), ISOBIT_E_ISA);
        assert_int_equal(iso_isa_find(&found, wrong[i]), ISOBIT_E_ISA);
        assert_null(found);
        assert_ptr_equal(iso_isa_active(), scalar);
    }
    assert_int_equal(iso_isa_find(&found, NULL), ISOBIT_E_NULL);
    assert_int_equal(iso_isa_find(NULL, "scalar"), ISOBIT_E_NULL);

    /* The variable is read again by iso_set_isa(NULL), and by nothing else. */
    setenv("ISOBIT_ISA", "sse9", 1);
    assert_ptr_equal(iso_isa_active(), scalar);
    assert_int_equal(iso_set_isa(NULL), ISOBIT_E_ISA);
    assert_ptr_equal(iso_isa_active(), scalar);
    unsetenv("ISOBIT_ISA");
    assert_int_equal(iso_set_isa(NULL), ISOBIT_OK);
    assert_ptr_equal(iso_isa_active(), iso_pick(iso_machine()->cpu.usable, NULL));
    setenv("ISOBIT_ISA", "scalar", 1);
    assert_int_equal(iso_set_isa(NULL), ISOBIT_OK);
    assert_ptr_equal(iso_isa_active(), scalar);
    unsetenv("ISOBIT_ISA");
    assert_int_equal(iso_set_isa(NULL), ISOBIT_OK);
}

static void count_calls(void *arg, size_t i) {
    (void)i;
    ++*(size_t *)arg;
}

static size_t most_tasks;

static void foreign_for(void *user, size_t n, void (*fn)(void *, size_t), void *arg) {
    ++*(size_t *)user;
    most_tasks = n > most_tasks ? n : most_tasks;
    for (size_t i = n; i-- > 0;) {
        fn(arg, i);
    }
}

static void test_context(void **state) {
    (void)state;
    const struct iso_kernels *k = NULL;
    size_t regions = 0, calls = 0;
    assert_int_equal(iso_set_isa(NULL), ISOBIT_OK);
    assert_int_equal(iso_context_kernels(&k, NULL), ISOBIT_OK);
    assert_ptr_equal(k, iso_isa_active()->kernels);

    iso_context context = {0};
    assert_int_equal(iso_context_kernels(&k, &context), ISOBIT_E_SIZE);
    context.size = sizeof(context) - 1;
    assert_int_equal(iso_context_kernels(&k, &context), ISOBIT_E_SIZE);
    context.size = sizeof(context) + 8;
    assert_int_equal(iso_context_kernels(&k, &context), ISOBIT_E_SIZE);
    context.size = sizeof(context);
    for (size_t i = 0; i < iso_isa_count(); ++i) {
        context.isa = iso_isa_get(i);
        const bool can = iso_isa_missing(context.isa) == NULL;
        k = NULL;
        assert_int_equal(iso_context_kernels(&k, &context), can ? ISOBIT_OK : ISOBIT_E_ISA);
        assert_ptr_equal(k, can ? context.isa->kernels : NULL);
    }
    const struct iso_isa stranger = {"scalar", &iso_kernels_scalar, 0, &iso_kernels_scalar, ""};
    context.isa = &stranger;
    assert_int_equal(iso_context_kernels(&k, &context), ISOBIT_E_ISA);
    context.isa = NULL;

    iso_executor executor = {foreign_for, &regions, 0};
    context.executor = &executor;
    assert_int_equal(iso_context_kernels(&k, &context), ISOBIT_E_OPTION);
    executor.max_threads = 3;
    executor.parallel_for = NULL;
    assert_int_equal(iso_context_kernels(&k, &context), ISOBIT_E_NULL);
    executor.parallel_for = foreign_for;
    assert_int_equal(iso_context_kernels(&k, &context), ISOBIT_OK);

    assert_int_equal(iso_context_threads(NULL), 1);
    assert_int_equal(iso_context_threads(&context), 3);
    iso_parallel(&context, 5, count_calls, &calls);
    assert_int_equal(regions, 1);
    iso_parallel(&context, 1, count_calls, &calls); /* nothing to share */
    iso_parallel(&context, 0, count_calls, &calls);
    executor.max_threads = 1;
    iso_parallel(&context, 4, count_calls, &calls);
    iso_parallel(NULL, 4, count_calls, &calls);
    assert_int_equal(regions, 1);
    assert_int_equal(calls, 5 + 1 + 4 + 4);

    /* A matrix without elements is nothing to share either. */
    iso_packed packed;
    executor.max_threads = 3;
    assert_int_equal(iso_pack_f32(&packed, NULL, 0, NULL, 0, 0, 5, 0, &context), ISOBIT_OK);
    assert_int_equal(iso_pack_f32(&packed, NULL, 0, NULL, 0, 5, 0, 0, &context), ISOBIT_OK);
    assert_int_equal(regions, 1);

    /* Rows are shared out among the threads, not one by one. */
    static float rows[1024][64];
    most_tasks = 0;
    assert_int_equal(iso_softmax_f32(rows[0], 64, rows[0], 64, 1024, 64, NULL, &context),
                     ISOBIT_OK);
    assert_int_equal(regions, 2);
    assert_int_equal(most_tasks, 3);
}

static void test_texts(void **state) {
    (void)state;
    const char *none = iso_strerror((iso_status)9999);
    assert_non_null(none);
    assert_string_equal(iso_strerror((iso_status)-1), none);
    for (int i = 0; i <= ISOBIT_E_CANCELLED; ++i) {
        const char *text = iso_strerror((iso_status)i);
        assert_true(strlen(text) > 3 && !strchr(text, '\n'));
        assert_string_not_equal(text, none);
        for (int k = 0; k < i; ++k) {
            assert_string_not_equal(text, iso_strerror((iso_status)k));
        }
    }
    char version[32];
    snprintf(version, sizeof(version), "%d.%d.%d", ISOBIT_VERSION_MAJOR, ISOBIT_VERSION_MINOR,
             ISOBIT_VERSION_PATCH);
    assert_string_equal(iso_version(), version);
}

int main(void) {
    run_firsts();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_use),
        cmocka_unit_test(test_x86_cpus),
        cmocka_unit_test(test_arm_cpus),
        cmocka_unit_test(test_x86_feature_bits),
        cmocka_unit_test(test_names_and_caches),
        cmocka_unit_test(test_expected_isa),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_set_isa),
        cmocka_unit_test(test_context),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_info),
    };
    return cmocka_run_group_tests_name("dispatch", tests, NULL, NULL);
}
