/* SPDX-License-Identifier: MIT
 *
 * See peers.h. OpenBLAS and BLIS have the same C interface, CBLAS; its few declarations are ours,
 * so that no header is needed.
 */
#include "peers.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct bench_peer peers[BENCH_MAX_PEERS];
static size_t peer_count;

/* --------------------------------------------------------------------------------------- CBLAS */

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

struct cblas {
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
    void (*sgemv)(int order, int trans, int m, int n, float alpha, const float *a, int lda,
                  const float *x, int incx, float beta, float *y, int incy);
};
static struct cblas openblas, blis;

static void call_cblas(const void *state, const struct bench_job *job, float *out) {
    const struct cblas *blas = state;
    const int m = (int)job->spec->m, n = (int)job->spec->n, k = (int)job->spec->k;
    switch (bench_form_of(job->spec)) {
    case BENCH_FORM_LINEAR:
        if (m == 1)
            blas->sgemv(ROW_MAJOR, NO_TRANS, n, k, 1, job->b, k, job->a, 1, 0, out, 1);
        else
            blas->sgemm(ROW_MAJOR, NO_TRANS, TRANS, m, n, k, 1, job->a, k, job->b, k, 0, out, n);
        break;
    case BENCH_FORM_GEMM:
        if (m == 1)
            blas->sgemv(ROW_MAJOR, TRANS, k, n, 1, job->b, n, job->a, 1, 0, out, 1);
        else
            blas->sgemm(ROW_MAJOR, NO_TRANS, NO_TRANS, m, n, k, 1, job->a, k, job->b, n, 0, out, n);
        break;
    case BENCH_FORM_GEMM_BT:
        if (m == 1)
            blas->sgemv(ROW_MAJOR, NO_TRANS, n, k, 1, job->b, k, job->a, 1, 0, out, 1);
        else
            blas->sgemm(ROW_MAJOR, NO_TRANS, TRANS, m, n, k, 1, job->a, k, job->b, k, 0, out, n);
        break;
    case BENCH_FORM_GEMV:
        blas->sgemv(ROW_MAJOR, NO_TRANS, n, k, 1, job->b, k, job->a, 1, 0, out, 1);
        break;
    case BENCH_FORM_GEMV_T:
        blas->sgemv(ROW_MAJOR, TRANS, k, n, 1, job->b, n, job->a, 1, 0, out, 1);
        break;
    default: break;
    }
}

static const void *prepare_cblas(const struct cblas *blas, const struct bench_job *job) {
    switch (bench_form_of(job->spec)) {
    case BENCH_FORM_LINEAR:
    case BENCH_FORM_GEMM:
    case BENCH_FORM_GEMM_BT:
    case BENCH_FORM_GEMV:
    case BENCH_FORM_GEMV_T: return blas;
    default: return NULL;
    }
}

static const void *prepare_openblas(const struct bench_job *job, float *out) {
    (void)out;
    return prepare_cblas(&openblas, job);
}
static const void *prepare_blis(const struct bench_job *job, float *out) {
    (void)out;
    return prepare_cblas(&blis, job);
}

static void (*openblas_set_threads)(int);
static void (*blis_set_threads)(int64_t);
static void set_openblas_threads(size_t n) { openblas_set_threads((int)n); }
static void set_blis_threads(size_t n) { blis_set_threads((int64_t)n); }

/* ------------------------------------------------------------------------------------- opening */

void *bench_open_library(const char *name) {
    int flags = RTLD_NOW | RTLD_LOCAL;
#if defined(RTLD_DEEPBIND) && !defined(__SANITIZE_ADDRESS__)
    flags |= RTLD_DEEPBIND; /* each finds its own functions first: they share many names */
#endif
    return dlopen(name, flags);
}

/* Into a pointer to a function; a direct conversion is not what C promises. */
int bench_find_symbol(void *function, void *library, const char *name) {
    void *p = dlsym(library, name);
    memcpy(function, &p, sizeof p);
    return p != NULL;
}

static int open_cblas(struct cblas *blas, void *library) {
    return bench_find_symbol(&blas->sgemm, library, "cblas_sgemm") &&
           bench_find_symbol(&blas->sgemv, library, "cblas_sgemv");
}

static int open_openblas(struct bench_peer *peer) {
    void *library = bench_open_library("libopenblas.so.0");
    char *(*config)(void), *(*core)(void);
    if (!library || !open_cblas(&openblas, library) ||
        !bench_find_symbol(&openblas_set_threads, library, "openblas_set_num_threads"))
        return 0;
    *peer = (struct bench_peer){.name = "OpenBLAS",
                                .set_threads = set_openblas_threads,
                                .prepare = prepare_openblas,
                                .call = call_cblas};
    if (bench_find_symbol(&config, library, "openblas_get_config") &&
        bench_find_symbol(&core, library, "openblas_get_corename")) {
        int version = 0;
        sscanf(config(), "OpenBLAS %*s%n", &version);
        snprintf(peer->version, sizeof peer->version, "%.*s, %s", version, config(), core());
    }
    return 1;
}

/* It wants the number of an architecture, which differs between versions; the last is generic. */
static int narrow_blis;
static void choose_haswell(const char *(*name)(int)) {
    for (int i = 0; i < 64 && name(i) && strcmp(name(i), "generic") != 0; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        if (strcmp(name(i), "haswell") == 0)
            setenv("BLIS_ARCH_TYPE", number, 0);
    }
}

static int open_blis(struct bench_peer *peer) {
    void *library = bench_open_library("libblis.so.4");
    const char *(*version)(void), *(*name)(int);
    int (*architecture)(void);
    void (*init)(void);
    if (!library || !open_cblas(&blis, library) || !bench_find_symbol(&init, library, "bli_init") ||
        !bench_find_symbol(&blis_set_threads, library, "bli_thread_set_num_threads") ||
        !bench_find_symbol(&name, library, "bli_arch_string"))
        return 0;
    if (narrow_blis)
        choose_haswell(name);
    init(); /* before it is asked: else it stops the program when an architecture is chosen */
    *peer = (struct bench_peer){.name = "BLIS",
                                .set_threads = set_blis_threads,
                                .prepare = prepare_blis,
                                .call = call_cblas};
    if (bench_find_symbol(&version, library, "bli_info_get_version_str") &&
        bench_find_symbol(&architecture, library, "bli_arch_query_id"))
        snprintf(peer->version, sizeof peer->version, "BLIS %s, %s", version(),
                 name(architecture()));
    return 1;
}

static void add_peer(int (*open)(struct bench_peer *peer)) {
    if (peer_count < BENCH_MAX_PEERS && open(&peers[peer_count]))
        peer_count++;
}

void bench_peers_open(int avx2_only) {
    if (avx2_only) {
        narrow_blis = 1;
        setenv("OPENBLAS_CORETYPE", "Haswell", 0);
        setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 0);
        setenv("LIBXSMM_TARGET", "hsw", 0);
    }
    /* Idle threads shall sleep soon, or they would take the CPU from what is measured next. */
    setenv("OPENBLAS_THREAD_TIMEOUT", "18", 0);
    setenv("GOMP_SPINCOUNT", "20000", 0);
    add_peer(open_openblas);
    add_peer(open_blis);
#if defined(ISOBIT_BENCH_ONEDNN)
    add_peer(bench_open_onednn);
#endif
#if defined(ISOBIT_BENCH_LIBXSMM)
    add_peer(bench_open_libxsmm);
#endif
}

size_t bench_peer_count(void) { return peer_count; }
const struct bench_peer *bench_peer_get(size_t index) {
    return index < peer_count ? &peers[index] : NULL;
}
