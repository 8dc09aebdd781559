/* SPDX-License-Identifier: MIT */
#include "gbench_shim.h"
#include "totals.h"

#include <time.h>

enum { N = 4096, CALLS = 50 };
static double numbers[N];

struct benchmark {
    const char *name;
    double (*function)(const double *x, size_t n);
};

static double seconds(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run(gbench_state *state, void *user) {
    const struct benchmark *b = user;
    volatile double result;
    if (!gbench_begin(state))
        return;
    const double start = seconds();
    for (int i = 0; i < CALLS; i++)
        result = b->function(numbers, N);
    const double end = seconds();
    (void)result;
    gbench_resume(state);
    gbench_seconds(state, (end - start) / CALLS);
    gbench_end(state);
}

int main(int argc, char **argv) {
    static struct benchmark all[] = {{"total/4096", total}, {"total_squares/4096", total_squares}};
    for (int i = 0; i < N; i++)
        numbers[i] = i % 7;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        gbench_register(all[i].name, run, &all[i], 0);
    return gbench_run(argc, argv, 1);
}
