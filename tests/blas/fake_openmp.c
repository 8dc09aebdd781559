/* SPDX-License-Identifier: MIT
 *
 * Looks like an OpenMP runtime to who searches for one: its name, and some of its functions. A
 * parallel region has a team of threads that are started for it; those of all threads are counted.
 */
#include <pthread.h>
#include <stdatomic.h>

int omp_in_parallel(void);
int omp_get_max_threads(void);
void GOMP_parallel(void (*body)(void *), void *arg, unsigned threads, unsigned flags);
void fake_openmp(int in_parallel, int max_threads);
int fake_openmp_regions(void);
int fake_openmp_most(void);

static int inside, threads = 64;
static atomic_int regions, now, most; /* regions at the same time */

int omp_in_parallel(void) { return inside; }
int omp_get_max_threads(void) { return threads; }
void fake_openmp(int in_parallel, int max_threads) {
    inside = in_parallel;
    threads = max_threads;
}
int fake_openmp_regions(void) { return regions; }
int fake_openmp_most(void) { return most; }

struct region {
    void (*body)(void *);
    void *arg;
};
static void *member(void *arg) {
    const struct region *region = arg;
    region->body(region->arg);
    return NULL;
}

void GOMP_parallel(void (*body)(void *), void *arg, unsigned count, unsigned flags) {
    struct region region = {body, arg};
    pthread_t team[64];
    int members = 0;
    (void)flags;
    if (++now > most)
        most = now;
    for (int i = 1; i < (count ? (int)count : threads) && members < 64; i++)
        members += pthread_create(&team[members], NULL, member, &region) == 0;
    body(arg);
    for (int i = 0; i < members; i++)
        pthread_join(team[i], NULL);
    regions += count == 0;
    now--;
}
