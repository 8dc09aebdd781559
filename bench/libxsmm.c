/* SPDX-License-Identifier: MIT
 *
 * libxsmm as a peer (see peers.h): it makes a kernel for each shape of a small product of plain
 * matrices, ahead of the first call. Beyond 64 x 64 x 64 it would only pass on to a BLAS.
 */
#include "peers.h"

#include <libxsmm.h>
#include <stdio.h>
#include <string.h>

static libxsmm_smmfunction kernels[64];
static const struct bench_case *specs[64];
static size_t count;

/* It counts columns first: so the product of the transposed matrices, in the other order. */
static const void *prepare(const struct bench_job *job, float *out) {
    (void)out;
    const struct bench_case *s = job->spec;
    const float one = 1, zero = 0;
    const libxsmm_blasint m = (libxsmm_blasint)s->m, n = (libxsmm_blasint)s->n,
                          k = (libxsmm_blasint)s->k;
    if (bench_form_of(s) != BENCH_FORM_GEMM || s->m * s->n * s->k > 70 * 70 * 70)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (specs[i] == s)
            return kernels[i] ? &kernels[i] : NULL;
    if (count == sizeof kernels / sizeof *kernels)
        return NULL;
    specs[count] = s;
    kernels[count] = libxsmm_smmdispatch(n, m, k, &n, &k, &n, &one, &zero, NULL, NULL);
    count++;
    return kernels[count - 1] ? &kernels[count - 1] : NULL;
}

static void call(const void *state, const struct bench_job *job, float *out) {
    const libxsmm_smmfunction *kernel = state;
    (*kernel)(job->b, job->a, out);
}

static void set_threads(size_t n) { (void)n; } /* always the calling thread */

int bench_open_libxsmm(struct bench_peer *peer) {
    libxsmm_init();
    *peer = (struct bench_peer){
        .name = "libxsmm", .set_threads = set_threads, .prepare = prepare, .call = call};
    snprintf(peer->version, sizeof peer->version, "libxsmm %s, %s", LIBXSMM_CONFIG_VERSION,
             libxsmm_get_target_arch());
    return 1;
}
