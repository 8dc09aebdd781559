/* SPDX-License-Identifier: MIT
 *
 * Reads and decodes the CPU. The only file that knows libcpuid, and it takes nothing but raw
 * leaves from it: version 0.6.2 has no AVX-512 flags for AMD and no version reads XCR0. Nor does
 * it use cpu_identify_all or the like, which move the calling thread from core to core.
 *
 * One core speaks for all: the kernel refuses to run, or masks, cores that differ in what user
 * programs may use (hybrid parts show AVX-512 on no core unless it is on all).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include "cpu.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <libcpuid.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <stdlib.h>
#include <sys/auxv.h>
#endif

/* ---------------------------------------------------------------------------------- decoding */

static const struct x86_feature {
    uint8_t leaf, reg, bit;
    uint32_t state;
} x86_features[] = {
#define FEATURE(id, name, leaf, reg, bit, state) [ISO_FEATURE_##id] = {leaf, ISO_##reg, bit, state},
    ISO_X86_FEATURES(FEATURE)
#undef FEATURE
};
enum { X86_COUNT = sizeof(x86_features) / sizeof(x86_features[0]) };

static const struct arm_feature {
    uint8_t word, bit;
} arm_features[] = {
#define FEATURE(id, name, word, bit) [ISO_FEATURE_##id - X86_COUNT] = {word, bit},
    ISO_ARM_FEATURES(FEATURE)
#undef FEATURE
};

static const struct {
    const char *name, *lacking;
} names[ISO_FEATURE_COUNT] = {
#define FEATURE(id, name, ...) [ISO_FEATURE_##id] = {name, "the CPU lacks " name},
    ISO_X86_FEATURES(FEATURE) ISO_ARM_FEATURES(FEATURE)
#undef FEATURE
};

const char *iso_feature_name(enum iso_feature feature) {
    return (unsigned)feature < ISO_FEATURE_COUNT ? names[feature].name : "";
}

const char *iso_cpu_missing(const struct iso_cpu *cpu, uint64_t required) {
    const uint64_t lacking = required & ~cpu->present;
    for (unsigned i = 0; i < ISO_FEATURE_COUNT; ++i) {
        if (lacking >> i & 1) {
            return names[i].lacking;
        }
    }
    const uint64_t masked = required & ~cpu->usable;
    for (unsigned i = 0; i < X86_COUNT; ++i) {
        if (!(masked >> i & 1)) {
            continue;
        }
        const uint64_t state = x86_features[i].state & ~cpu->xcr0;
        if (!cpu->osxsave) {
            return "OSXSAVE is off: the operating system saves no vector state beyond SSE";
        }
        if (state & ISO_XCR0_YMM) {
            return "XCR0 lacks YMM state: the operating system does not save it";
        }
        if (state & ISO_XCR0_ZMM) {
            return "XCR0 lacks ZMM state: the operating system does not save it";
        }
        return "XCR0 lacks tile state: the operating system does not save it";
    }
    return masked ? "the operating system hides a feature" : NULL;
}

/* Sane sizes for machines that do not tell: they only steer blocking, never the result. */
static void default_caches(struct iso_cpu *cpu) {
    cpu->l1d = cpu->l1d ? cpu->l1d : (size_t)32 << 10;
    cpu->l2 = cpu->l2 ? cpu->l2 : (size_t)512 << 10;
}

static void add_cache(struct iso_cpu *cpu, unsigned level, size_t bytes) {
    if (level == 1 && bytes > cpu->l1d) {
        cpu->l1d = bytes;
    } else if (level == 2 && bytes > cpu->l2) {
        cpu->l2 = bytes;
    } else if (level == 3 && bytes > cpu->l3) {
        cpu->l3 = bytes;
    }
}

/* The common form of leaf 4 and leaf 0x8000001D: one subleaf for each cache. */
static bool x86_caches(struct iso_cpu *cpu, const uint32_t leaves[ISO_CACHE_LEAVES][4]) {
    bool found = false;
    for (int i = 0; i < ISO_CACHE_LEAVES; ++i) {
        const uint32_t a = leaves[i][ISO_EAX], b = leaves[i][ISO_EBX], sets = leaves[i][ISO_ECX];
        const unsigned type = a & 31;
        if (type == 0) {
            break;
        }
        if (type == 2) { /* instructions */
            continue;
        }
        const uint64_t line = (b & 0xfff) + 1, partitions = (b >> 12 & 0x3ff) + 1;
        const uint64_t ways = (b >> 22) + 1;
        const uint64_t bytes = line * partitions * ways * ((uint64_t)sets + 1);
        if (bytes <= SIZE_MAX / 2) {
            add_cache(cpu, a >> 5 & 7, (size_t)bytes);
            found = true;
        }
    }
    return found;
}

/* Copies text, drops what is not printable and folds runs of spaces (brands are padded). */
static void set_name(struct iso_cpu *cpu, const char *text, size_t length) {
    size_t used = 0;
    for (size_t i = 0; i < length && text[i] && used + 1 < sizeof(cpu->name); ++i) {
        const bool space = text[i] == ' ' && (used == 0 || cpu->name[used - 1] == ' ');
        if (text[i] >= ' ' && text[i] <= '~' && !space) {
            cpu->name[used++] = text[i];
        }
    }
    while (used > 0 && cpu->name[used - 1] == ' ') {
        --used;
    }
    cpu->name[used] = '\0';
}

void iso_cpu_decode_x86(struct iso_cpu *cpu, const struct iso_x86_raw *raw) {
    enum { OSXSAVE = 27, TOPOLOGY = 22 };
    memset(cpu, 0, sizeof(*cpu));
    cpu->architecture = "x86-64";

    /* Beyond its highest leaf a CPU answers with any garbage, so each leaf is asked for first. */
    const uint32_t highest = raw->leaf0[ISO_EAX];
    const uint32_t highest_ext = raw->ext0[ISO_EAX] & 0x80000000 ? raw->ext0[ISO_EAX] : 0;
    const uint32_t *leaf1 = highest >= 1 ? raw->leaf1 : NULL;
    const uint32_t *leaf7 = highest >= 7 ? raw->leaf7 : NULL;
    const uint32_t *leaf7_1 = leaf7 && leaf7[ISO_EAX] >= 1 ? raw->leaf7_1 : NULL;

    cpu->osxsave = leaf1 && (leaf1[ISO_ECX] >> OSXSAVE & 1);
    cpu->xcr0 = cpu->osxsave ? raw->xcr0 : 0;
    for (unsigned i = 0; i < X86_COUNT; ++i) {
        const struct x86_feature f = x86_features[i];
        const uint32_t *leaf = f.leaf == 1 ? leaf1 : f.leaf == 7 ? leaf7 : leaf7_1;
        if (leaf && (leaf[f.reg] >> f.bit & 1)) {
            cpu->present |= UINT64_C(1) << i;
            if ((cpu->xcr0 & f.state) == f.state) {
                cpu->usable |= UINT64_C(1) << i;
            }
        }
    }

    const bool amd_leaf = highest_ext >= 0x8000001d && (raw->ext1[ISO_ECX] >> TOPOLOGY & 1);
    if (!(highest >= 4 && x86_caches(cpu, raw->leaf4)) && amd_leaf) {
        x86_caches(cpu, raw->leaf1d);
    }
    default_caches(cpu);

    char text[48];
    if (highest_ext >= 0x80000004) {
        memcpy(text, raw->brand, sizeof(text));
        set_name(cpu, text, sizeof(text));
    }
    if (cpu->name[0] == '\0') {
        memcpy(text, &raw->leaf0[ISO_EBX], 4);
        memcpy(text + 4, &raw->leaf0[ISO_EDX], 4);
        memcpy(text + 8, &raw->leaf0[ISO_ECX], 4);
        set_name(cpu, text, 12);
    }
}

void iso_cpu_decode_arm(struct iso_cpu *cpu, const struct iso_arm_raw *raw) {
    /* Only to show: nothing is decided by it. Implementer and part as in MIDR_EL1. */
    static const struct {
        uint32_t id;
        const char *name;
    } parts[] = {
        {0x41d03, "Arm Cortex-A53"},  {0x41d07, "Arm Cortex-A57"},  {0x41d08, "Arm Cortex-A72"},
        {0x41d0b, "Arm Cortex-A76"},  {0x41d0c, "Arm Neoverse N1"}, {0x41d40, "Arm Neoverse V1"},
        {0x41d49, "Arm Neoverse N2"}, {0x41d4f, "Arm Neoverse V2"}, {0x46001, "Fujitsu A64FX"},
    };
    memset(cpu, 0, sizeof(*cpu));
    cpu->architecture = "aarch64";
    const uint64_t words[2] = {raw->hwcap, raw->hwcap2};
    for (unsigned i = X86_COUNT; i < ISO_FEATURE_COUNT; ++i) {
        const struct arm_feature f = arm_features[i - X86_COUNT];
        cpu->present |= (words[f.word] >> f.bit & 1) << i;
    }
    cpu->usable = cpu->present;
    default_caches(cpu);

    const uint32_t id = raw->midr >> 24 << 12 | (raw->midr >> 4 & 0xfff);
    const char *name = "aarch64";
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i) {
        name = parts[i].id == id ? parts[i].name : name;
    }
    set_name(cpu, name, strlen(name));
}

/* --------------------------------------------------------------------------------- detection */

#if !defined(__x86_64__)
bool iso_cpu_permits_tiles(void) { return false; }
#endif

#if defined(__x86_64__)

static uint64_t read_xcr0(void) {
    uint32_t low, high;
    /* The mnemonic is xgetbv; the intrinsic would need a flag that this file is not built with. */
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool tiles_permitted;

static void ask_for_tiles(void) {
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* of arch_prctl, asm/prctl.h */
    tiles_permitted = syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

bool iso_cpu_permits_tiles(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ask_for_tiles);
    return tiles_permitted;
}

void iso_cpu_detect(struct iso_cpu *cpu) {
    struct iso_x86_raw raw;
    struct cpu_raw_data_t data;
    memset(&raw, 0, sizeof(raw));
    memset(&data, 0, sizeof(data));
    if (cpuid_get_raw_data(&data) == 0) {
        memcpy(raw.leaf0, data.basic_cpuid[0], sizeof(raw.leaf0));
        memcpy(raw.leaf1, data.basic_cpuid[1], sizeof(raw.leaf1));
        memcpy(raw.leaf7, data.basic_cpuid[7], sizeof(raw.leaf7));
        memcpy(raw.ext0, data.ext_cpuid[0], sizeof(raw.ext0));
        memcpy(raw.ext1, data.ext_cpuid[1], sizeof(raw.ext1));
        memcpy(raw.brand, data.ext_cpuid[2], sizeof(raw.brand));
        _Static_assert((size_t)MAX_INTELFN4_LEVEL <= ISO_CACHE_LEAVES &&
                           (size_t)MAX_AMDFN8000001DH_LEVEL <= ISO_CACHE_LEAVES,
                       "room for the cache leaves");
        memcpy(raw.leaf4, data.intel_fn4, sizeof(data.intel_fn4));
        memcpy(raw.leaf1d, data.amd_fn8000001dh, sizeof(data.amd_fn8000001dh));
        /* libcpuid stores subleaf 0 only. */
        uint32_t registers[4] = {7, 0, 1, 0};
        cpu_exec_cpuid_ext(registers);
        memcpy(raw.leaf7_1, registers, sizeof(raw.leaf7_1));
        if (raw.leaf0[ISO_EAX] >= 1 && (raw.leaf1[ISO_ECX] >> 27 & 1)) {
            raw.xcr0 = read_xcr0();
        }
    }
    iso_cpu_decode_x86(cpu, &raw);
}

const char *iso_cpuid_version(void) { return cpuid_lib_version(); }

#elif defined(__aarch64__)

/* The first line of a small file, without its newline. */
static bool read_line(char *text, size_t bytes, const char *path) {
    FILE *file = fopen(path, "re");
    if (!file) {
        return false;
    }
    const bool good = fgets(text, (int)bytes, file) != NULL;
    fclose(file);
    if (good) {
        text[strcspn(text, "\n")] = '\0';
    }
    return good;
}

static void read_caches(struct iso_cpu *cpu) {
    static const char base[] = "/sys/devices/system/cpu/cpu0/cache/index";
    size_t found[4] = {0};
    for (unsigned i = 0; i < 8; ++i) {
        char path[96], level[16], type[32], size[32];
        snprintf(path, sizeof(path), "%s%u/level", base, i);
        if (!read_line(level, sizeof(level), path)) {
            break;
        }
        snprintf(path, sizeof(path), "%s%u/type", base, i);
        if (!read_line(type, sizeof(type), path) || strcmp(type, "Instruction") == 0) {
            continue;
        }
        snprintf(path, sizeof(path), "%s%u/size", base, i);
        if (!read_line(size, sizeof(size), path)) {
            continue;
        }
        char *unit;
        size_t bytes = (size_t)strtoul(size, &unit, 10);
        bytes <<= *unit == 'K' ? 10 : *unit == 'M' ? 20 : 0;
        const unsigned long n = strtoul(level, NULL, 10);
        if (n >= 1 && n <= 3 && bytes > found[n]) {
            found[n] = bytes;
        }
    }
    cpu->l1d = found[1] ? found[1] : cpu->l1d;
    cpu->l2 = found[2] ? found[2] : cpu->l2;
    cpu->l3 = found[3];
}

void iso_cpu_detect(struct iso_cpu *cpu) {
    struct iso_arm_raw raw = {getauxval(AT_HWCAP), getauxval(AT_HWCAP2), 0};
    char text[32];
    if (read_line(text, sizeof(text),
                  "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1")) {
        raw.midr = (uint32_t)strtoul(text, NULL, 16);
    }
    iso_cpu_decode_arm(cpu, &raw);
    read_caches(cpu);
}

const char *iso_cpuid_version(void) { return ""; }

#else

/* Elsewhere there is only the scalar set, which asks nothing of the CPU. */
void iso_cpu_detect(struct iso_cpu *cpu) {
    memset(cpu, 0, sizeof(*cpu));
#if defined(__s390x__)
    cpu->architecture = "s390x";
#elif defined(__i386__)
    cpu->architecture = "x86";
#elif defined(__arm__)
    cpu->architecture = "arm";
#else
    cpu->architecture = "other";
#endif
    default_caches(cpu);
    set_name(cpu, cpu->architecture, strlen(cpu->architecture));
}

const char *iso_cpuid_version(void) { return ""; }

#endif
