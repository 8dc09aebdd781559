/* SPDX-License-Identifier: MIT
 *
 * Loading a BLAS: which routines it has, what it is, and the ways in which it can be told to run
 * with other threads or for another CPU. Called in child processes only.
 */
#include "blas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void *handle;

static blas_function function(const char *name) {
    void *found = dlsym(handle, name);
    blas_function f = NULL;
    memcpy(&f, &found, sizeof f);
    return f;
}

static void one_line(char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < ' ')
            *text = ' ';
}

/* BLIS takes numbers, which differ between versions; "generic" is the last one. */
static void number_types(struct blas_library *library) {
    blas_function name = function("bli_arch_string");
    for (int i = 0; name && i < 40; i++) {
        const char *text = ((const char *(*)(int))name)(i);
        snprintf(library->types[i], sizeof library->types[i], "%s", text);
        if (!strcmp(text, "generic"))
            break;
    }
}

static void identify(struct blas_library *library) {
    blas_function config = function("openblas_get_config");
    blas_function blis = function("bli_info_get_version_str");
    char *about = library->about;
    size_t bytes = sizeof library->about;
    if (config) {
        const char *text = ((const char *(*)(void))config)();
        library->kind = !strncmp(text, "isobit", 6) ? BLAS_KIND_ISOBIT : BLAS_KIND_OPENBLAS;
        snprintf(about, bytes, "%s", text);
    } else if (blis) {
        library->kind = BLAS_KIND_BLIS;
        number_types(library);
        snprintf(about, bytes, "BLIS %s", ((const char *(*)(void))blis)());
    } else if (function("MKL_Get_Version_String")) {
        library->kind = BLAS_KIND_MKL;
        ((void (*)(char *, int))function("MKL_Get_Version_String"))(about, (int)bytes);
        about[bytes - 1] = 0;
    } else if (function("dnnl_sgemm")) {
        struct {
            int major, minor, patch;
        } const *version = NULL;
        library->kind = BLAS_KIND_DNNL;
        blas_function get = function("dnnl_version");
        if (get)
            version = ((const void *(*)(void))get)();
        if (version)
            snprintf(about, bytes, "oneDNN %d.%d.%d", version->major, version->minor,
                     version->patch);
    }
    one_line(about);
}

bool blas_set_threads(int threads) {
    static const char *const names[] = {"openblas_set_num_threads", "bli_thread_set_num_threads",
                                        "MKL_Set_Num_Threads", "omp_set_num_threads"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        blas_function f = function(names[i]);
        if (f && i == 1) /* of type dim_t there */
            ((void (*)(int64_t))f)(threads);
        else if (f)
            ((void (*)(int))f)(threads);
        if (f)
            return true;
    }
    return false;
}

void blas_choose_type(void) {
    blas_function init = function("bli_init"), choose = function("bli_arch_query_id");
    if (init)
        ((void (*)(void))init)();
    if (choose)
        ((int (*)(void))choose)();
}

void blas_load(const char *file, struct blas_table *table, struct blas_library *library) {
    bool any = false;
    const struct iso_check_target *target = blas_target();
    *library = (struct blas_library){0};
    handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *why = dlerror();
        snprintf(library->wrong, sizeof library->wrong, "%s", why ? why : "cannot be loaded");
        one_line(library->wrong);
        return;
    }
    for (size_t i = 0; i < BLAS_FUNCTIONS; i++) {
        table->f[i] = function(target->functions[i].name);
        library->has[i] = table->f[i] != NULL;
        any = any || table->f[i];
    }
    if (!any)
        snprintf(library->wrong, sizeof library->wrong, "%.200s: has none of the BLAS routines",
                 file);
    identify(library);
}

/* ------------------------------------------------------------------------------------ variants */

struct cpu_type {
    enum blas_kind kind;
    const char *variable, *name, *needs; /* a feature of the CPU, or NULL */
};

static const struct cpu_type cpu_types[] = {
#if defined(__x86_64__)
    {BLAS_KIND_OPENBLAS, "OPENBLAS_CORETYPE", "Prescott", NULL},
    {BLAS_KIND_OPENBLAS, "OPENBLAS_CORETYPE", "Nehalem", "sse4.2"},
    {BLAS_KIND_OPENBLAS, "OPENBLAS_CORETYPE", "Sandybridge", "avx"},
    {BLAS_KIND_OPENBLAS, "OPENBLAS_CORETYPE", "Haswell", "avx2"},
    {BLAS_KIND_OPENBLAS, "OPENBLAS_CORETYPE", "Zen", "avx2"},
    {BLAS_KIND_OPENBLAS, "OPENBLAS_CORETYPE", "SkylakeX", "avx512"},
    {BLAS_KIND_OPENBLAS, "OPENBLAS_CORETYPE", "Cooperlake", "bf16"},
    {BLAS_KIND_BLIS, "BLIS_ARCH_TYPE", "generic", NULL},
    {BLAS_KIND_BLIS, "BLIS_ARCH_TYPE", "penryn", "sse4.2"},
    {BLAS_KIND_BLIS, "BLIS_ARCH_TYPE", "sandybridge", "avx"},
    {BLAS_KIND_BLIS, "BLIS_ARCH_TYPE", "haswell", "avx2"},
    {BLAS_KIND_BLIS, "BLIS_ARCH_TYPE", "zen", "avx2"},
    {BLAS_KIND_BLIS, "BLIS_ARCH_TYPE", "zen2", "avx2"},
    {BLAS_KIND_BLIS, "BLIS_ARCH_TYPE", "zen3", "avx2"},
    {BLAS_KIND_BLIS, "BLIS_ARCH_TYPE", "skx", "avx512"},
    {BLAS_KIND_MKL, "MKL_CBWR", "COMPATIBLE", NULL},
    {BLAS_KIND_MKL, "MKL_CBWR", "SSE4_2", "sse4.2"},
    {BLAS_KIND_MKL, "MKL_CBWR", "AVX2", "avx2"},
    {BLAS_KIND_MKL, "MKL_CBWR", "AVX512", "avx512"},
    {BLAS_KIND_ISOBIT, "ISOBIT_ISA", "scalar", NULL},
    {BLAS_KIND_ISOBIT, "ISOBIT_ISA", "avx2", "avx2"},
    {BLAS_KIND_ISOBIT, "ISOBIT_ISA", "avx512", "avx512"},
    {BLAS_KIND_DNNL, "ONEDNN_MAX_CPU_ISA", "SSE41", "sse4.2"},
    {BLAS_KIND_DNNL, "ONEDNN_MAX_CPU_ISA", "AVX", "avx"},
    {BLAS_KIND_DNNL, "ONEDNN_MAX_CPU_ISA", "AVX2", "avx2"},
    {BLAS_KIND_DNNL, "ONEDNN_MAX_CPU_ISA", "AVX512_CORE", "avx512"},
#elif defined(__aarch64__)
    {BLAS_KIND_OPENBLAS, "OPENBLAS_CORETYPE", "ARMV8", NULL},
    {BLAS_KIND_OPENBLAS, "OPENBLAS_CORETYPE", "CORTEXA53", NULL},
    {BLAS_KIND_OPENBLAS, "OPENBLAS_CORETYPE", "CORTEXA57", NULL},
    {BLAS_KIND_OPENBLAS, "OPENBLAS_CORETYPE", "NEOVERSEN1", NULL},
    {BLAS_KIND_BLIS, "BLIS_ARCH_TYPE", "generic", NULL},
    {BLAS_KIND_BLIS, "BLIS_ARCH_TYPE", "thunderx2", NULL},
    {BLAS_KIND_BLIS, "BLIS_ARCH_TYPE", "cortexa53", NULL},
    {BLAS_KIND_BLIS, "BLIS_ARCH_TYPE", "cortexa57", NULL},
    {BLAS_KIND_ISOBIT, "ISOBIT_ISA", "scalar", NULL},
    {BLAS_KIND_ISOBIT, "ISOBIT_ISA", "neon", NULL},
#else
    {BLAS_KIND_ISOBIT, "ISOBIT_ISA", "scalar", NULL},
#endif
};

static bool cpu_has(const char *needs) {
#if defined(__x86_64__)
    if (needs && !strcmp(needs, "sse4.2"))
        return __builtin_cpu_supports("sse4.2") != 0;
    if (needs && !strcmp(needs, "avx"))
        return __builtin_cpu_supports("avx") != 0;
    if (needs && !strcmp(needs, "avx2"))
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (needs && !strcmp(needs, "bf16") && !__builtin_cpu_supports("avx512bf16"))
        return false;
    if (needs)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
    (void)needs;
#endif
    return true;
}

/* Read when a library is loaded, by one that has no function for it. */
static const char *thread_variable(enum blas_kind kind) {
    static const char *const names[] = {
        [BLAS_KIND_OTHER] = "OMP_NUM_THREADS",     [BLAS_KIND_OPENBLAS] = "OPENBLAS_NUM_THREADS",
        [BLAS_KIND_BLIS] = "BLIS_NUM_THREADS",     [BLAS_KIND_MKL] = "MKL_NUM_THREADS",
        [BLAS_KIND_ISOBIT] = "ISOBIT_NUM_THREADS", [BLAS_KIND_DNNL] = "OMP_NUM_THREADS"};
    return names[kind];
}

size_t blas_variants(struct blas_variant *v, size_t room, const struct blas_library *library,
                     int most_threads) {
    size_t n = 0;
    for (int t = 1; t <= most_threads && n < room; t++) {
        snprintf(v[n].name, sizeof v[n].name, "%d thread%s", t, t > 1 ? "s" : "");
        snprintf(v[n].environment[0], sizeof v[n].environment[0], "%s=%d",
                 thread_variable(library->kind), t);
        v[n].environment[1][0] = 0;
        v[n++].threads = t;
    }
    for (size_t i = 0; i < sizeof cpu_types / sizeof *cpu_types && n < room; i++) {
        const struct cpu_type *type = &cpu_types[i];
        if (type->kind != library->kind || !cpu_has(type->needs))
            continue;
        v[n] = v[0];
        const char *variable = type->variable;
        if (type->kind != BLAS_KIND_BLIS) {
            snprintf(v[n].environment[1], sizeof v[n].environment[1], "%s=%s", variable,
                     type->name);
            snprintf(v[n].name, sizeof v[n].name, "%s", v[n].environment[1]);
        } else {
            int id = 0;
            while (id < 40 && strcmp(library->types[id], type->name) != 0)
                id++;
            if (id == 40)
                continue;
            snprintf(v[n].environment[1], sizeof v[n].environment[1], "%s=%d", variable, id);
            snprintf(v[n].name, sizeof v[n].name, "%s=%d (%s)", variable, id, type->name);
        }
        n++;
    }
    return n;
}
