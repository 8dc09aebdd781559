/* SPDX-License-Identifier: MIT
 *
 * Looks like an OpenMP runtime to who searches for one: its name, and two of its functions.
 */
int omp_in_parallel(void);
int omp_get_max_threads(void);
void fake_openmp(int in_parallel, int max_threads);

static int inside, threads = 64;

int omp_in_parallel(void) { return inside; }
int omp_get_max_threads(void) { return threads; }
void fake_openmp(int in_parallel, int max_threads) {
    inside = in_parallel;
    threads = max_threads;
}
