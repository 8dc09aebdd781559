/* SPDX-License-Identifier: MIT
 *
 * What the benchmarks need of Google Benchmark, for C.
 *
 * Google Benchmark counts repetitions, shuffles them, and writes the JSON that its tools (and
 * others) read. It does not time: a benchmark measures by itself, because it has to measure the
 * peak of the machine beside, and reports one time per repetition.
 */
#ifndef ISOBIT_BENCH_GBENCH_SHIM_H
#define ISOBIT_BENCH_GBENCH_SHIM_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gbench_state gbench_state;

/*
 * Registers a benchmark; fn is called once per repetition. repetitions: how many, 0 for as many as
 * the flags of Google Benchmark say.
 */
void gbench_register(const char *name, void (*fn)(gbench_state *state, void *user), void *user,
                     int repetitions);

/*
 * Within fn: true exactly once. Until gbench_resume is called, CPU time does not count; what
 * follows it should be one call of what is measured.
 */
int gbench_begin(gbench_state *state);
void gbench_resume(gbench_state *state);
void gbench_end(gbench_state *state);

/* The result of the repetition: seconds for one call, and other numbers by name. */
void gbench_seconds(gbench_state *state, double seconds);
void gbench_counter(gbench_state *state, const char *name, double value);
void gbench_error(gbench_state *state, const char *why);

/*
 * Instead of measuring, between nothing else: this repetition is left out of the JSON. The means
 * there count it with `seconds`, since Google Benchmark wants as many results as repetitions.
 */
void gbench_leave_out(gbench_state *state, double seconds);

/* Makes the compiler believe that the memory at p is looked at. */
void gbench_use(const void *p);

/* A key of the "context" in the JSON. */
void gbench_context(const char *key, const char *value);

/*
 * Runs all benchmarks. argv holds flags of Google Benchmark (argv[0] is not one); of those given
 * twice the last one counts. console: prints its own table on stdout. 0, or 2 when a flag is not
 * known (it has said so on stderr).
 */
int gbench_run(int argc, char **argv, int console);

#ifdef __cplusplus
}
#endif

#endif
