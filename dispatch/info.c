/* SPDX-License-Identifier: MIT
 *
 * Tells what the library sees of the machine and what it made of it, as JSON. The appender counts
 * what it would have written, so one pass gives both the text and the size that it needs.
 */
#include "select.h"
#include "threads.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ISOBIT_SLEEF_VERSION
#define ISOBIT_SLEEF_VERSION ""
#endif

struct text {
    char *at;
    size_t bytes; /* room, the NUL included */
    size_t used;  /* without the NUL; may exceed the room */
    bool first;   /* no comma before the next member */
};

static void put(struct text *t, const char *s, size_t length) {
    for (size_t i = 0; i < length; ++i, ++t->used) {
        if (t->used + 1 < t->bytes) {
            t->at[t->used] = s[i];
        }
    }
}

static void puts_text(struct text *t, const char *s) { put(t, s, strlen(s)); }

/* A quoted string. Bytes beyond ASCII, which only the environment has, stand for the characters of
 * the same numbers. */
static void put_string(struct text *t, const char *s) {
    puts_text(t, "\"");
    for (; *s; ++s) {
        char escaped[8];
        const unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') {
            const char pair[2] = {'\\', *s};
            put(t, pair, 2);
        } else if (c < ' ' || c > '~') {
            snprintf(escaped, sizeof(escaped), "\\u%04x", (unsigned)c);
            puts_text(t, escaped);
        } else {
            put(t, s, 1);
        }
    }
    puts_text(t, "\"");
}

/* The beginning of a member (key given) or of an element (NULL). */
static void begin(struct text *t, const char *key) {
    if (!t->first) {
        puts_text(t, ", ");
    }
    t->first = false;
    if (key) {
        put_string(t, key);
        puts_text(t, ": ");
    }
}

static void open_group(struct text *t, const char *key, const char *bracket) {
    begin(t, key);
    puts_text(t, bracket);
    t->first = true;
}

static void close_group(struct text *t, const char *bracket) {
    puts_text(t, bracket);
    t->first = false;
}

static void member_string(struct text *t, const char *key, const char *value) {
    begin(t, key);
    if (value) {
        put_string(t, value);
    } else {
        puts_text(t, "null");
    }
}

static void member_size(struct text *t, const char *key, size_t value) {
    char digits[24];
    begin(t, key);
    snprintf(digits, sizeof(digits), "%zu", value);
    puts_text(t, digits);
}

static void member_bool(struct text *t, const char *key, bool value) {
    begin(t, key);
    puts_text(t, value ? "true" : "false");
}

static void put_cpu(struct text *t, const struct iso_cpu *cpu) {
    open_group(t, "cpu", "{");
    member_string(t, "name", cpu->name);
    member_string(t, "architecture", cpu->architecture);
    open_group(t, "features", "[");
    for (unsigned i = 0; i < ISO_FEATURE_COUNT; ++i) {
        if (cpu->usable >> i & 1) {
            member_string(t, NULL, iso_feature_name((enum iso_feature)i));
        }
    }
    close_group(t, "]");
    /* What the CPU has and the operating system does not save. */
    open_group(t, "masked", "[");
    for (unsigned i = 0; i < ISO_FEATURE_COUNT; ++i) {
        if ((cpu->present & ~cpu->usable) >> i & 1) {
            member_string(t, NULL, iso_feature_name((enum iso_feature)i));
        }
    }
    close_group(t, "]");
    if (cpu->osxsave) {
        char hex[24];
        snprintf(hex, sizeof(hex), "0x%" PRIx64, cpu->xcr0);
        member_string(t, "xcr0", hex);
    } else {
        member_string(t, "xcr0", NULL);
    }
    open_group(t, "caches", "{");
    member_size(t, "l1d", cpu->l1d);
    member_size(t, "l2", cpu->l2);
    member_size(t, "l3", cpu->l3);
    close_group(t, "}");
    close_group(t, "}");
}

static void put_isas(struct text *t) {
    const iso_isa *active = iso_isa_active();
    member_string(t, "isa", active ? active->name : NULL);
    open_group(t, "isas", "[");
    for (size_t i = 0; i < iso_isa_count(); ++i) {
        const iso_isa *isa = iso_isa_get(i);
        const char *missing = iso_isa_missing(isa);
        open_group(t, NULL, "{");
        member_string(t, "name", isa->name);
        member_bool(t, "available", !missing);
        member_bool(t, "chosen", isa == active);
        member_string(t, "missing", missing);
        close_group(t, "}");
    }
    close_group(t, "]");
}

static void put_threads(struct text *t) {
    const size_t millicpus = iso_cgroup_millicpus("");
    open_group(t, "threads", "{");
    member_size(t, "usable", iso_usable_threads());
    member_size(t, "affinity", iso_affinity_threads());
    if (millicpus) {
        char cpus[32];
        snprintf(cpus, sizeof(cpus), "%zu.%03zu", millicpus / 1000, millicpus % 1000);
        begin(t, "cgroup_cpus");
        puts_text(t, cpus);
    } else {
        member_string(t, "cgroup_cpus", NULL);
    }
    close_group(t, "}");
}

static void put_versions(struct text *t) {
    open_group(t, "versions", "{");
    member_string(t, "isobit", iso_version());
    member_size(t, "numerics", ISOBIT_NUMERICS_VERSION);
    member_string(t, "sleef", ISOBIT_SLEEF_VERSION);
    const char *cpuid = iso_cpuid_version();
    member_string(t, "libcpuid", *cpuid ? cpuid : NULL);
#if defined(__clang__)
    member_string(t, "compiler", "clang " __clang_version__);
#else
    member_string(t, "compiler", "gcc " __VERSION__);
#endif
    close_group(t, "}");
}

/* ------------------------------------------------------------------------------- environment */

static const char *no_problem(const char *value) {
    (void)value;
    return NULL;
}

static const char *isa_problem(const char *value) {
    return iso_pick(iso_machine()->cpu.usable, value)
               ? NULL
               : "no instruction set that can run here: calls are refused";
}

static const char *numerics_problem(const char *value) {
    return iso_numerics_are_named(value)
               ? NULL
               : "neither fixed nor native: products with BF16 weights are refused";
}

static const char *level_problem(const char *value) {
    return strlen(value) == 1 && *value >= '0' && *value <= '2' ? NULL
                                                                : "none of 0 1 2: counts as 0";
}

/* Of a list, as OMP_NUM_THREADS may be, the first number counts. */
static const char *count_problem(const char *value) {
    char *end;
    const long count = strtol(value, &end, 10);
    return end != value && (*end == '\0' || *end == ',') && count > 0 && count < INT_MAX
               ? NULL
               : "no number of threads: counts as not set";
}

static void put_env(struct text *t, const char *name, const char *(*problem_of)(const char *),
                    const char *reader, const char *otherwise, const char *effect) {
    const char *value = getenv(name);
    const bool given = value && *value; /* an empty variable counts as none */
    const char *problem = given ? problem_of(value) : NULL;
    open_group(t, NULL, "{");
    member_string(t, "name", name);
    member_string(t, "value", value);
    member_string(t, "source", problem ? "invalid" : given ? "environment" : "default");
    member_string(t, "problem", problem);
    member_string(t, "default", otherwise);
    member_string(t, "reader", reader);
    member_string(t, "effect", effect);
    close_group(t, "}");
}

static iso_status end_text(const struct text *t, size_t *needed) {
    if (t->bytes > 0) {
        t->at[t->used < t->bytes ? t->used : t->bytes - 1] = '\0';
    }
    if (needed) {
        *needed = t->used + 1;
    }
    return t->used < t->bytes ? ISOBIT_OK : ISOBIT_E_WORKSPACE;
}

iso_status iso_env_json(char *text, size_t bytes, size_t *needed) {
    if (!text && bytes > 0) {
        return ISOBIT_E_NULL;
    }
    struct text t = {text, bytes, 0, true};
    open_group(&t, NULL, "[");
#define ENV(name, ...) put_env(&t, #name, __VA_ARGS__);
#include "env.def"
#undef ENV
    close_group(&t, "]");
    return end_text(&t, needed);
}

/* ----------------------------------------------------------------------------------- machine */

iso_status iso_info_json_of(char *text, size_t bytes, size_t *needed, const struct iso_cpu *cpu) {
    if (!text && bytes > 0) {
        return ISOBIT_E_NULL;
    }
    struct text t = {text, bytes, 0, true};
    open_group(&t, NULL, "{");
    put_cpu(&t, cpu);
    put_isas(&t);
    member_string(&t, "numerics", iso_numerics(NULL));
    put_threads(&t);
    put_versions(&t);
    close_group(&t, "}");
    return end_text(&t, needed);
}

iso_status iso_info_json(char *text, size_t bytes, size_t *needed) {
    return iso_info_json_of(text, bytes, needed, &iso_machine()->cpu);
}
