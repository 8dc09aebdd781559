/* SPDX-License-Identifier: MIT
 *
 * Other libraries that do the same: those that are installed are opened when the program starts,
 * none is needed to build or to run it. Only libxsmm, which Debian has as a static library only,
 * and the primitives of oneDNN, which need its header, are found when it is configured.
 *
 * A peer gets what a careful program would give it: weights packed ahead where it has a public
 * function for that, the product of a matrix and a vector where there is only one row.
 */
#ifndef ISOBIT_BENCH_PEERS_H
#define ISOBIT_BENCH_PEERS_H

#include "cases.h"

enum { BENCH_MAX_PEERS = 4 };

struct bench_peer {
    const char *name;
    char version[128];
    void (*set_threads)(size_t threads);
    /* What `call` needs, or NULL where the peer has no such operation; kept until the end. */
    const void *(*prepare)(const struct bench_job *job, float *out);
    void (*call)(const void *state, const struct bench_job *job, float *out);
};

/* Opens what is installed; with `avx2_only` they are kept from using more than AVX2. */
void bench_peers_open(int avx2_only);
size_t bench_peer_count(void);
const struct bench_peer *bench_peer_get(size_t index);

/* A library of its own names; NULL when it is not installed. And a function of it: 1 if found. */
void *bench_open_library(const char *name);
int bench_find_symbol(void *function, void *library, const char *name);

/* The way of one peer each: they fill *peer and return 1, or return 0. */
int bench_open_onednn(struct bench_peer *peer);
int bench_open_libxsmm(struct bench_peer *peer);

#endif
