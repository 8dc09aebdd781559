/* SPDX-License-Identifier: MIT
 *
 * The choice of the instruction set: for the CPUs of cpus.h against a table, for this machine
 * against ISOBIT_EXPECT_ISA (set where an emulator pretends to be a certain CPU), its overrides,
 * the race of first users, and what iso_info_json tells of it.
 *
 * What depends on the first use of the library runs in children that are forked before anything
 * else: fork, not exec, so that it works under an emulator too.
 */
#include "select.h"

#include <isobit/isobit.h>
#include <isobit/ops.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

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

/* --------------------------------------------------------------------------------- foreign CPUs */

static const struct x86_case {
    const char *name;
    uint32_t highest, ecx1, eax7, ebx7, ecx7, edx7, eax71;
    uint64_t xcr0;
    const char *expected, *missing;
} x86_cases[] = {
#define X86(name, highest, ecx1, eax7, ebx7, ecx7, edx7, eax71, xcr0, expected, missing)           \
    {name, highest, ecx1, eax7, ebx7, ecx7, edx7, eax71, xcr0, expected, missing},
#define ARM(...)
#include "cpus.h"
#undef X86
#undef ARM
};

static const struct arm_case {
    const char *name;
    uint32_t hwcap, hwcap2;
    const char *features;
} arm_cases[] = {
#define X86(...)
#define ARM(name, hwcap, hwcap2, features) {name, hwcap, hwcap2, features},
#include "cpus.h"
#undef X86
#undef ARM
};

static const uint64_t need_avx2 = ISO_HAS(AVX2) | ISO_HAS(FMA) | ISO_HAS(AVX);
static const uint64_t need_avx512 = ISO_HAS(AVX512F) | ISO_HAS(AVX512BW) | ISO_HAS(AVX512DQ) |
                                    ISO_HAS(AVX512VL) | ISO_HAS(AVX2) | ISO_HAS(FMA) | ISO_HAS(AVX);

static struct iso_cpu show_x86(const struct x86_case *c) {
    struct iso_x86_raw raw;
    struct iso_cpu cpu;
    memset(&raw, 0, sizeof(raw));
    raw.leaf0[ISO_EAX] = c->highest;
    memcpy(&raw.leaf0[ISO_EBX], "Genu", 4);
    memcpy(&raw.leaf0[ISO_EDX], "ineT", 4);
    memcpy(&raw.leaf0[ISO_ECX], "est!", 4);
    raw.leaf1[ISO_ECX] = c->ecx1;
    raw.leaf7[ISO_EAX] = c->eax7;
    raw.leaf7[ISO_EBX] = c->ebx7;
    raw.leaf7[ISO_ECX] = c->ecx7;
    raw.leaf7[ISO_EDX] = c->edx7;
    raw.leaf7_1[ISO_EAX] = c->eax71;
    raw.xcr0 = c->xcr0;
    iso_cpu_decode_x86(&cpu, &raw);
    return cpu;
}

static bool same_text(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

static void test_x86_cpus(void **state) {
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < sizeof(x86_cases) / sizeof(x86_cases[0]); ++i) {
        const struct x86_case *c = &x86_cases[i];
        const struct iso_cpu cpu = show_x86(c);
        const char *missing = iso_cpu_missing(&cpu, need_avx512);
        const char *decoded = !missing                            ? "avx512"
                              : !iso_cpu_missing(&cpu, need_avx2) ? "avx2"
                                                                  : "scalar";
        if (strcmp(decoded, c->expected) != 0 || !same_text(missing, c->missing)) {
            print_error("%s: %s instead of %s (%s)\n", c->name, decoded, c->expected,
                        missing ? missing : "nothing is missing");
            ++bad;
        }
        assert_int_equal(cpu.usable & ~cpu.present, 0);
#if defined(__x86_64__)
        const struct iso_isa *picked = iso_pick(cpu.usable, NULL);
        if (!picked || strcmp(picked->name, c->expected) != 0) {
            print_error("%s: picked %s\n", c->name, picked ? picked->name : "none");
            ++bad;
        }
        /* A wanted set is given if it is not above that, never another one. */
        for (size_t k = 0, below = 0; k < iso_isa_count(); ++k) {
            const iso_isa *isa = iso_isa_get(k);
            below = below || isa == picked;
            assert_ptr_equal(iso_pick(cpu.usable, isa->name), below ? isa : NULL);
        }
        assert_null(iso_pick(cpu.usable, "neon"));
#endif
    }
    assert_int_equal(bad, 0);
}

static void test_arm_cpus(void **state) {
    (void)state;
    static const char *const known[] = {"asimd", "asimddp", "fphp", "i8mm", "bf16", "sve", "sve2"};
    for (size_t i = 0; i < sizeof(arm_cases) / sizeof(arm_cases[0]); ++i) {
        const struct arm_case *c = &arm_cases[i];
        const struct iso_arm_raw raw = {c->hwcap, c->hwcap2, 0};
        struct iso_cpu cpu;
        iso_cpu_decode_arm(&cpu, &raw);
        char seen[128] = "", list[128];
        snprintf(list, sizeof(list), " %s ", c->features);
        for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); ++k) {
            for (unsigned f = 0; f < ISO_FEATURE_COUNT; ++f) {
                /* "bf16" and the like occur once: x86 has avx512bf16 and amx-bf16 */
                if ((cpu.usable >> f & 1) &&
                    strcmp(iso_feature_name((enum iso_feature)f), known[k]) == 0) {
                    char word[32];
                    snprintf(word, sizeof(word), " %s ", known[k]);
                    if (!strstr(list, word)) {
                        fail_msg("%s: %s is not expected", c->name, known[k]);
                    }
                    strcat(strcat(seen, *seen ? " " : ""), known[k]);
                }
            }
        }
        /* Same length and each one listed: the same set. */
        if (strlen(seen) != strlen(c->features)) {
            fail_msg("%s: [%s] instead of [%s]", c->name, seen, c->features);
        }
        const char *missing = iso_cpu_missing(&cpu, ISO_HAS(ASIMD));
        const bool simd = strstr(c->features, "asimd") != NULL;
        assert_true(same_text(missing, simd ? NULL : "the CPU lacks asimd"));
#if defined(__aarch64__)
        assert_string_equal(iso_pick(cpu.usable, NULL)->name, simd ? "neon" : "scalar");
#endif
    }
}

static void test_x86_feature_bits(void **state) {
    (void)state;
    /* Some CPUs by their features, so that no bit of the table may move unseen. */
    static const struct {
        const char *cpu;
        uint64_t has, lacks;
    } facts[] = {
        {"Cascade Lake", ISO_HAS(AVX512VNNI) | ISO_HAS(F16C) | ISO_HAS(AVX512CD),
         ISO_HAS(AVX512BF16) | ISO_HAS(AVX512VBMI) | ISO_HAS(AVX512IFMA) | ISO_HAS(AVX512FP16)},
        {"Ice Lake",
         ISO_HAS(AVX512VBMI) | ISO_HAS(AVX512VBMI2) | ISO_HAS(AVX512IFMA) | ISO_HAS(AVX512VNNI),
         ISO_HAS(AVX512BF16) | ISO_HAS(AVX_VNNI) | ISO_HAS(AMX_TILE)},
        {"Alder Lake", ISO_HAS(AVX_VNNI) | ISO_HAS(AVX2), ISO_HAS(AVX512F) | ISO_HAS(AVX512VNNI)},
        {"Sapphire Rapids",
         ISO_HAS(AMX_TILE) | ISO_HAS(AMX_INT8) | ISO_HAS(AMX_BF16) | ISO_HAS(AVX512FP16) |
             ISO_HAS(AVX512BF16) | ISO_HAS(AVX_VNNI),
         0},
        {"Zen 4", ISO_HAS(AVX512BF16) | ISO_HAS(AVX512VNNI),
         ISO_HAS(AVX_VNNI) | ISO_HAS(AVX512FP16) | ISO_HAS(AMX_TILE)},
        {"Zen 5", ISO_HAS(AVX_VNNI) | ISO_HAS(AVX512BF16), ISO_HAS(AVX512FP16)},
        {"Nehalem", ISO_HAS(SSE42) | ISO_HAS(POPCNT), ISO_HAS(AVX)},
        {"Core 2", 0, ISO_HAS(SSE42) | ISO_HAS(POPCNT)},
        {"Sandy Bridge", ISO_HAS(AVX), ISO_HAS(F16C) | ISO_HAS(FMA) | ISO_HAS(AVX2)},
        {"Ivy Bridge", ISO_HAS(F16C), ISO_HAS(FMA) | ISO_HAS(AVX2)},
    };
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); ++i) {
        size_t k = 0;
        while (strcmp(x86_cases[k].name, facts[i].cpu) != 0) {
            ++k;
        }
        const struct iso_cpu cpu = show_x86(&x86_cases[k]);
        if ((cpu.usable & facts[i].has) != facts[i].has || (cpu.present & facts[i].lacks) != 0) {
            fail_msg("%s: features %llx", facts[i].cpu, (unsigned long long)cpu.usable);
        }
    }
}

/* leaf 4 and 0x8000001D: type and level, ways and line, sets */
#define CACHE(type, level, ways, line, sets)                                                       \
    { (type) | (level) << 5, ((ways)-1u) << 22 | ((line)-1u), (sets)-1u, 0 }

static void test_names_and_caches(void **state) {
    (void)state;
    static const uint32_t intel[ISO_CACHE_LEAVES][4] = {
        CACHE(1u, 1u, 12u, 64u, 64u), CACHE(2u, 1u, 8u, 64u, 64u), CACHE(3u, 2u, 16u, 64u, 2048u),
        CACHE(3u, 3u, 15u, 64u, 57344u)};
    static const uint32_t amd[ISO_CACHE_LEAVES][4] = {
        CACHE(1u, 1u, 8u, 64u, 64u), CACHE(2u, 1u, 8u, 64u, 64u), CACHE(3u, 2u, 8u, 64u, 2048u),
        CACHE(3u, 3u, 16u, 64u, 32768u)};
    struct iso_x86_raw raw;
    struct iso_cpu cpu;
    memset(&raw, 0, sizeof(raw));

    /* Nothing known: defaults, and the vendor for a name. */
    memcpy(&raw.leaf0[ISO_EBX], "Auth", 4);
    memcpy(&raw.leaf0[ISO_EDX], "enti", 4);
    memcpy(&raw.leaf0[ISO_ECX], "cAMD", 4);
    memcpy(raw.leaf4, intel, sizeof(intel));
    memcpy(raw.leaf1d, amd, sizeof(amd));
    iso_cpu_decode_x86(&cpu, &raw);
    assert_string_equal(cpu.name, "AuthenticAMD");
    assert_int_equal(cpu.l1d, 32 << 10);
    assert_int_equal(cpu.l2, 512 << 10);
    assert_int_equal(cpu.l3, 0);

    /* Intel's list goes first, where there is one. */
    raw.leaf0[ISO_EAX] = 0x1b;
    raw.ext0[ISO_EAX] = 0x8000001f;
    raw.ext1[ISO_ECX] = 1u << 22;
    memcpy(raw.brand, "   Some  CPU\n\"@\\~\x80 3.00GHz   ", 30);
    iso_cpu_decode_x86(&cpu, &raw);
    assert_string_equal(cpu.name, "Some CPU\"@\\~ 3.00GHz");
    assert_int_equal(cpu.l1d, 48 << 10);
    assert_int_equal(cpu.l2, 2 << 20);
    assert_int_equal(cpu.l3, 15 * 64 * 57344);

    memset(raw.leaf4, 0, sizeof(raw.leaf4));
    iso_cpu_decode_x86(&cpu, &raw);
    assert_int_equal(cpu.l1d, 32 << 10);
    assert_int_equal(cpu.l2, 1 << 20);
    assert_int_equal(cpu.l3, 32 << 20);

    /* A brand without end, and caches that are impossible. */
    memset(raw.brand, 'x', sizeof(raw.brand));
    memset(raw.leaf4, 0xff, sizeof(raw.leaf4));
    iso_cpu_decode_x86(&cpu, &raw);
    assert_int_equal(strlen(cpu.name), 48);

    static const struct {
        uint32_t midr;
        const char *name;
    } parts[] = {
        {0x410fd034, "Arm Cortex-A53"},  {0x411fd071, "Arm Cortex-A57"},
        {0x410fd083, "Arm Cortex-A72"},  {0x414fd0b1, "Arm Cortex-A76"},
        {0x413fd0c1, "Arm Neoverse N1"}, {0x411fd401, "Arm Neoverse V1"},
        {0x410fd490, "Arm Neoverse N2"}, {0x410fd4f1, "Arm Neoverse V2"},
        {0x461f0010, "Fujitsu A64FX"},
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i) {
        const struct iso_arm_raw arm = {2, 0, parts[i].midr};
        iso_cpu_decode_arm(&cpu, &arm);
        assert_string_equal(cpu.name, parts[i].name);
        assert_string_equal(cpu.architecture, "aarch64");
    }
    const struct iso_arm_raw unknown = {2, 0, 0};
    iso_cpu_decode_arm(&cpu, &unknown);
    assert_string_equal(cpu.name, "aarch64");
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
    if (strcmp(expected, "avx512") == 0) {
        assert_true(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"));
    } else {
        assert_int_equal(strcmp(expected, "avx2") == 0, __builtin_cpu_supports("avx2") != 0);
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
        assert_string_equal(isa->name, isa->kernels->name);
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
    const struct iso_isa stranger = {"scalar", &iso_kernels_scalar, 0};
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

/* ----------------------------------------------------------------------------------------- JSON */

/* A strict reader of JSON that keeps nothing: NULL when the text is not valid. */
static const char *json_value(const char *s);

static const char *json_space(const char *s) { return s ? s + strspn(s, " \t\r\n") : NULL; }

static const char *json_string(const char *s) {
    if (*s++ != '"') {
        return NULL;
    }
    for (; *s != '"'; ++s) {
        if ((unsigned char)*s < ' ' || (unsigned char)*s > '~') {
            return NULL;
        }
        if (*s == '\\') {
            ++s;
            if (*s == 'u') {
                if (strspn(s + 1, "0123456789abcdefABCDEF") < 4) {
                    return NULL;
                }
                s += 4;
            } else if (!*s || !strchr("\"\\/bfnrt", *s)) {
                return NULL;
            }
        }
    }
    return s + 1;
}

static const char *json_group(const char *s, char close, bool keys) {
    s = json_space(s + 1);
    if (*s == close) {
        return s + 1;
    }
    for (;;) {
        if (keys) {
            s = json_space(json_string(s));
            if (!s || *s != ':') {
                return NULL;
            }
            s = json_space(s + 1);
        }
        s = json_space(json_value(s));
        if (!s) {
            return NULL;
        }
        if (*s == close) {
            return s + 1;
        }
        if (*s != ',') {
            return NULL;
        }
        s = json_space(s + 1);
    }
}

static const char *json_value(const char *s) {
    static const char *const words[] = {"true", "false", "null"};
    if (*s == '{') {
        return json_group(s, '}', true);
    }
    if (*s == '[') {
        return json_group(s, ']', false);
    }
    if (*s == '"') {
        return json_string(s);
    }
    for (size_t i = 0; i < 3; ++i) {
        if (strncmp(s, words[i], strlen(words[i])) == 0) {
            return s + strlen(words[i]);
        }
    }
    const size_t digits = strspn(s, "0123456789");
    if (digits == 0 || (*s == '0' && digits > 1)) {
        return NULL;
    }
    s += digits;
    if (*s == '.') {
        const size_t more = strspn(s + 1, "0123456789");
        return more ? s + 1 + more : NULL;
    }
    return s;
}

static bool json_valid(const char *s) {
    s = json_space(json_value(json_space(s)));
    return s && *s == '\0';
}

static void test_info(void **state) {
    (void)state;
    size_t needed = 0, again = 0;
    assert_false(json_valid("{\"a\": }"));
    assert_false(json_valid("{\"a\": 1,}"));
    assert_true(json_valid("{\"a\": [1, {}, \"\\\"\"], \"b\": 1.500}"));

    assert_int_equal(iso_set_isa(NULL), ISOBIT_OK);
    assert_int_equal(iso_info_json(NULL, 0, &needed), ISOBIT_E_WORKSPACE);
    assert_int_equal(iso_info_json(NULL, 1, &again), ISOBIT_E_NULL);
    assert_true(needed > 100);
    char *text = malloc(needed);
    char *cut = malloc(needed + 1);
    assert_non_null(text);
    assert_non_null(cut);
    assert_int_equal(iso_info_json(text, needed, &again), ISOBIT_OK);
    assert_int_equal(again, needed);
    assert_int_equal(strlen(text), needed - 1);
    assert_true(json_valid(text));
    assert_int_equal(iso_info_json(text, needed, NULL), ISOBIT_OK);

    /* Every cut: a terminated beginning of the whole, nothing written behind it. */
    for (size_t room = 1; room < needed; room += room < 64 || room + 64 > needed ? 1 : 13) {
        memset(cut, '#', needed + 1);
        assert_int_equal(iso_info_json(cut, room, &again), ISOBIT_E_WORKSPACE);
        assert_int_equal(again, needed);
        assert_int_equal(strlen(cut), room - 1);
        assert_memory_equal(cut, text, room - 1);
        assert_int_equal(cut[room], '#');
    }

    /* It names the features, the choice and the reasons. */
    char piece[256];
    for (size_t i = 0; i < iso_isa_count(); ++i) {
        const iso_isa *isa = iso_isa_get(i);
        const char *missing = iso_isa_missing(isa);
        snprintf(piece, sizeof(piece),
                 "{\"name\": \"%s\", \"available\": %s, \"chosen\": %s, \"missing\": %s%s%s}",
                 isa->name, missing ? "false" : "true", isa == iso_isa_active() ? "true" : "false",
                 missing ? "\"" : "", missing ? missing : "null", missing ? "\"" : "");
        assert_non_null(strstr(text, piece));
    }
    static const char *const keys[] = {
        "cpu",      "features", "xcr0",     "caches",   "isas",     "threads",     "usable",
        "affinity", "sleef",    "libcpuid", "versions", "compiler", "cgroup_cpus", "isobit",
        "numerics", "l1d",      "l2",       "l3",       "isa",      "architecture"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); ++i) {
        snprintf(piece, sizeof(piece), "\"%s\": ", keys[i]);
        assert_non_null(strstr(text, piece));
    }
    /* A CPU with an odd name and masked features. */
    struct iso_cpu odd = iso_machine()->cpu;
    strcpy(odd.name, "a\"b\\c~ \n\x7f\x80");
    odd.present = ISO_HAS(AVX) | ISO_HAS(AVX512F) | ISO_HAS(SVE);
    odd.usable = ISO_HAS(AVX);
    odd.osxsave = false;
    char *other = malloc(needed + 256);
    assert_non_null(other);
    assert_int_equal(iso_info_json_of(other, needed + 256, NULL, &odd), ISOBIT_OK);
    assert_true(json_valid(other));
    assert_non_null(strstr(other, "{\"name\": \"a\\\"b\\\\c~ \\u000a\\u007f\\u0080\", "));
    assert_non_null(strstr(other, "\"features\": [\"avx\"], \"masked\": [\"avx512f\", \"sve\"], "
                                  "\"xcr0\": null, "));
    free(other);
    free(text);
    free(cut);
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
