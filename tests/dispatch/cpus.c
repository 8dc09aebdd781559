/* SPDX-License-Identifier: MIT
 *
 * CPUs of others, shown to the dispatcher.
 */
#include "test_dispatch.h"

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

static const uint64_t need_avx2 = ISO_HAS(AVX2) | ISO_HAS(FMA) | ISO_HAS(F16C) | ISO_HAS(AVX);
static const uint64_t need_avx512 = ISO_HAS(AVX512F) | ISO_HAS(AVX512BW) | ISO_HAS(AVX512DQ) |
                                    ISO_HAS(AVX512VL) | ISO_HAS(AVX2) | ISO_HAS(FMA) |
                                    ISO_HAS(F16C) | ISO_HAS(AVX);

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

void test_x86_cpus(void **state) {
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < sizeof(x86_cases) / sizeof(x86_cases[0]); ++i) {
        const struct x86_case *c = &x86_cases[i];
        const struct iso_cpu cpu = show_x86(c);
        const char *missing = iso_cpu_missing(&cpu, need_avx512);
        const uint64_t vnni512 = need_avx512 | ISO_HAS(AVX512VNNI);
        const uint64_t vnni2 = need_avx2 | ISO_HAS(AVX_VNNI);
        const uint64_t bf16 = vnni512 | ISO_HAS(AVX512BF16);
        const uint64_t amx = bf16 | ISO_HAS(AMX_TILE) | ISO_HAS(AMX_INT8) | ISO_HAS(AMX_BF16);
        const char *decoded = !iso_cpu_missing(&cpu, amx)         ? "avx512_amx"
                              : !iso_cpu_missing(&cpu, bf16)      ? "avx512_bf16"
                              : !iso_cpu_missing(&cpu, vnni512)   ? "avx512_vnni"
                              : !missing                          ? "avx512"
                              : !iso_cpu_missing(&cpu, vnni2)     ? "avx2_vnni"
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
        /* A wanted set is given if it is not above that, never another one; a level below may
         * need what the CPU lacks. */
        for (size_t k = 0, below = 0; k < iso_isa_count(); ++k) {
            const iso_isa *isa = iso_isa_get(k);
            below = below || isa == picked;
            const bool given =
                below && (strcmp(isa->name, "avx2_vnni") != 0 || !iso_cpu_missing(&cpu, vnni2));
            assert_ptr_equal(iso_pick(cpu.usable, isa->name), given ? isa : NULL);
        }
        assert_null(iso_pick(cpu.usable, "neon"));
#endif
    }
    assert_int_equal(bad, 0);
}

void test_arm_cpus(void **state) {
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
        const char *best = strstr(c->features, "i8mm bf16") ? "neon_bf16"
                           : strstr(c->features, "i8mm")    ? "neon_i8mm"
                           : strstr(c->features, "asimddp") ? "neon_dotprod"
                           : simd                           ? "neon"
                                                            : "scalar";
        assert_string_equal(iso_pick(cpu.usable, NULL)->name, best);
#endif
    }
}

void test_x86_feature_bits(void **state) {
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

void test_names_and_caches(void **state) {
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
