/* SPDX-License-Identifier: MIT
 *
 * Measures rows: the operation, its peak, and its rivals.
 */
#include "rows.h"

/* In what a row is shown: 1e9 units per second. */
const char *unit_of(const struct row *r) {
    if (r->spec->flags & BENCH_RATE)
        return "Gelem/s";
    if (!bench_is_compute(r->spec->bound))
        return "GB/s";
    return r->spec->bound == BENCH_INT8 ? "GOP/s" : "GFLOP/s";
}

static double work_of(const struct bench_job *job) {
    if (job->spec->flags & BENCH_RATE)
        return job->elements;
    return bench_is_compute(job->spec->bound) ? job->flops : job->bytes;
}

enum floor_kind floor_of(const struct row *r) {
    const struct bench_case *spec = r->spec;
    const bool x86 = strncmp(r->place.isa->name, "avx", 3) == 0;
    if (r->place.threads > 1)
        return NO_FLOOR;
    if (is_scalar(r->place.isa))
        return spec->bound == BENCH_FMA && bench_is_product(spec) ? FLOOR_RATE : NO_FLOOR;
    switch (spec->floor) {
    case BENCH_FLOOR_X86: return x86 ? FLOOR_OF_PEAK : NO_FLOOR;
    case BENCH_FLOOR_VECTOR: return FLOOR_OF_PEAK;
    case BENCH_FLOOR_RATE: return strcmp(r->place.isa->name, "avx512") ? NO_FLOOR : FLOOR_RATE;
    default: return NO_FLOOR;
    }
}

/* ---------------------------------------------------------------------------------- measuring */

/* Of all samples on one thread: how long they took, and how much of it this thread had a CPU. */
double wall_time, cpu_time;

static double thread_cpu_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The time of one call in a batch of so many. */
static double time_calls(const struct bench_job *job, size_t calls) {
    const double cpu = thread_cpu_time(), start = bench_now();
    for (size_t i = 0; i < calls; i++)
        bench_call(job);
    const double t = bench_now() - start;
    gbench_use(job->out);
    if (!job->context.executor)
        wall_time += t, cpu_time += thread_cpu_time() - cpu;
    return t / (double)calls;
}

/* How many calls make a sample. Whatever the caches need to be warm happens here. */
static size_t calls_for(const struct bench_job *job, double seconds, double *one) {
    size_t calls = 1;
    *one = time_calls(job, calls);
    while (*one * (double)calls < seconds / 4) {
        calls *= 4;
        *one = time_calls(job, calls);
    }
    double n = seconds / *one;
    return n > 1 ? (size_t)n : 1;
}

static double peak_of(const struct bench_job *job, const struct bench_place *place,
                      enum bench_bound bound, double seconds) {
    /* bench_output() is overwritten: after the checksum was taken, so nothing is lost. A case with
     * two inputs has more bytes than are there to copy; then as many as are there say the same. */
    const size_t most = 2 * bench_output_bytes(), bytes = (size_t)job->bytes;
    return bench_peak(place, bound, bench_input(), bench_output(), bytes < most ? bytes : most,
                      seconds);
}

/* Large cases take long and differ little from one round to the next: a third of the rounds. */
unsigned rounds_of(const struct row *r) {
    return r->spec->flags & BENCH_HEAVY ? (options.rounds + 2) / 3 : options.rounds;
}

static void progress(void) {
    unsigned long all = 0;
    for (size_t i = 0; i < row_count; i++)
        all += rounds_of(&rows[i]);
    done++;
    if (!options.gbench && isatty(STDERR_FILENO)) {
        if (done < all)
            fprintf(stderr, "\r%3lu %% ", 100 * done / all);
        else
            fputs("\r      \r", stderr);
    }
}

/* --------------------------------------------------------------------------------- the rivals */

const char *rival_name(size_t index) {
    return index < bench_peer_count() ? bench_peer_get(index)->name : "separate";
}

static void call_rival(const struct rival *rival, const struct bench_job *job) {
    if (rival->peer)
        rival->peer->call(rival->state, job, bench_other_output());
    else
        bench_call_separately(job, bench_other_output());
}

static double time_rival(const struct rival *rival, const struct bench_job *job, size_t calls) {
    const double start = bench_now();
    for (size_t i = 0; i < calls; i++)
        call_rival(rival, job);
    const double t = bench_now() - start;
    gbench_use(bench_other_output());
    return t / (double)calls;
}

/*
 * Brings the operands back into the caches: of a rival, or of the library (NULL). Once is not
 * enough where L3 takes what leaves L2 only if it has been used some times (Intel's servers): who
 * has packed weights of his own would seem slower than those who share the plain ones.
 */
static void warm_up(const struct rival *rival, const struct bench_job *job, const struct row *r) {
    const int large = !bench_is_compute(r->spec->bound) && job->bytes > 4 << 20;
    for (int i = 0; i < (large ? 8 : 1); i++)
        if (rival)
            call_rival(rival, job);
        else
            bench_call(job);
}

/*
 * Its threads go to sleep a moment after they have run out of work; until then they would take the
 * CPU from whoever is measured next.
 */
static void wait_for_rival(const struct rival *rival, const struct bench_job *job) {
    if (rival->peer && job->context.executor)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* Whether a rival computed the same as we, up to rounding. */
static bool agrees(const struct bench_job *job) {
    const float *x = job->out, *y = bench_other_output();
    double most = 0, difference = 0;
    for (size_t i = 0; i < job->out_floats; i++) {
        const double d = fabs((double)x[i] - (double)y[i]);
        if (!(d <= 1e30))
            return false;
        most = fmax(most, fabs((double)x[i]));
        difference = fmax(difference, d);
    }
    return difference <= 1e-3 * most;
}

static size_t find_rivals(struct rival *rivals, struct row *r, const struct bench_job *job,
                          double sample) {
    size_t n = 0;
    for (size_t i = 0; i <= bench_peer_count(); i++) {
        struct rival v = {.index = i, .peer = bench_peer_get(i)};
        if (v.peer ? !r->peers : !bench_is_fused(r->spec))
            continue;
        if (v.peer) {
            v.peer->set_threads(r->place.threads);
            v.state = v.peer->prepare(job, bench_other_output());
            if (!v.state)
                continue;
        }
        memset(bench_other_output(), 0xff, job->out_floats * sizeof(float));
        double one = time_rival(&v, job, 1);
        if (r->rounds == 0 && !agrees(job)) {
            complain("%s computes something else than %s", rival_name(i), r->name);
            r->rivals_differ = true;
        }
        for (v.calls = 1; one * (double)v.calls < sample / 4;)
            v.calls *= 4, one = time_rival(&v, job, v.calls);
        v.calls = sample > one ? (size_t)(sample / one) : 1;
        wait_for_rival(&v, job);
        rivals[n++] = v;
    }
    return n;
}

/* One round of a row. */
void measure(gbench_state *state, void *user) {
    struct row *r = user;
    struct bench_job job;
    if (bench_now() - began > options.seconds && r->rounds > 0) { /* at least one, always */
        gbench_leave_out(state, r->seconds);
        left_out++;
        progress();
        return;
    }
    iso_status status = bench_prepare(&job, &bench_linked, r->spec, &r->place);
    double first = 0;
    if (!status) {
        bench_spoil(&job);
        first = bench_now();
        status = bench_call(&job);
        first = bench_now() - first;
    }
    if (status) {
        r->status = status;
        gbench_error(state, iso_strerror(status));
        progress();
        return;
    }
    if (r->rounds == 0)
        r->checksum = bench_checksum(&job);

    if (!gbench_begin(state))
        return;
    const double sample = options.quick ? 1e-3 : 2e-3;
    const double shot = r->place.threads > 1 ? 1e-3 : 0.3e-3;
    const enum floor_kind floor = floor_of(r);
    const bool floor_needs_fma = floor == FLOOR_RATE && !is_scalar(r->place.isa);
    double one = first, best = 0, peak = 0, fma = 0;
    struct rival rivals[MAX_RIVALS];
    const size_t rival_count = find_rivals(rivals, r, &job, sample);
    const size_t calls = first > 20e-3 ? 1 : calls_for(&job, sample, &one);
    const int samples = one > 100e-3 ? 1 : one > 20e-3 ? 2 : options.quick ? 3 : 5;
    for (int i = 0; i <= samples; i++) {
        double p = peak_of(&job, &r->place, r->spec->bound, shot);
        peak = p > peak ? p : peak;
        if (floor_needs_fma) {
            p = peak_of(&job, &r->place, BENCH_FMA, shot);
            fma = p > fma ? p : fma;
        }
        if (i == samples) /* the last sample has a peak on both sides, too */
            break;
        for (size_t j = 0; j <= rival_count; j++) { /* each is the first one in turn */
            const size_t who = (j + (size_t)i) % (rival_count + 1);
            if (who < rival_count) {
                struct rival *v = &rivals[who];
                if (v->peer)
                    v->peer->set_threads(r->place.threads);
                if (one < 20e-3)
                    warm_up(v, &job, r);
                double t = time_rival(v, &job, v->calls);
                v->best = i == 0 || t < v->best ? t : v->best;
                wait_for_rival(v, &job);
            } else {
                if (one < 20e-3)
                    warm_up(NULL, &job, r);
                double t = time_calls(&job, calls);
                best = i == 0 || t < best ? t : best;
            }
        }
    }
    gbench_resume(state);
    bench_call(&job);
    gbench_seconds(state, best);
    gbench_end(state);

    const double limited = bench_is_compute(r->spec->bound) ? job.flops : job.bytes;
    const double ratio = limited / best / peak, value = work_of(&job) / best * 1e-9;
    if (job.flops > 0)
        gbench_counter(state, "GFLOP/s", job.flops / best * 1e-9);
    gbench_counter(state, "GB/s", job.bytes / best * 1e-9);
    if (job.elements > 0)
        gbench_counter(state, "Gelem/s", job.elements / best * 1e-9);
    gbench_counter(state, bench_is_compute(r->spec->bound) ? "peak_GFLOP/s" : "peak_GB/s",
                   peak * 1e-9);
    gbench_counter(state, "pct_peak", 100 * ratio);
    gbench_counter(state, "checksum", r->checksum);
    double floor_ratio = 0;
    if (floor == FLOOR_OF_PEAK) {
        floor_ratio = 100 * ratio / r->spec->floor_value;
    } else if (floor == FLOOR_RATE) {
        double rate = floor_needs_fma ? r->spec->floor_value * fma * 1e-9 : BENCH_SCALAR_FLOOR;
        r->floor = rate > r->floor ? rate : r->floor;
        floor_ratio = value / rate;
    }
    if (floor != NO_FLOOR)
        gbench_counter(state, "pct_floor", 100 * floor_ratio);

    for (size_t i = 0; i < rival_count; i++) {
        const struct rival *v = &rivals[i];
        char key[48];
        snprintf(key, sizeof key, "times_%s", rival_name(v->index));
        gbench_counter(state, key, v->best / best);
        if (r->rival_rounds[v->index] < MAX_ROUNDS)
            r->rival_ratio[v->index][r->rival_rounds[v->index]++] = (float)(v->best / best);
        const double rate = work_of(&job) / v->best * 1e-9;
        if (rate > r->rival_value[v->index])
            r->rival_value[v->index] = rate;
    }

    r->value = value > r->value ? value : r->value;
    r->operations = job.operations, r->bytes = job.bytes;
    r->seconds = r->rounds == 0 || best < r->seconds ? best : r->seconds;
    if (r->rounds < MAX_ROUNDS) {
        r->ratio[r->rounds] = (float)ratio;
        r->floor_ratio[r->rounds] = (float)floor_ratio;
        r->rounds++;
    }
    progress();
}

static int compare_floats(const void *a, const void *b) {
    float x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

double median(float *v, unsigned n) {
    if (n == 0)
        return 0;
    qsort(v, n, sizeof *v, compare_floats);
    return 0.5 * ((double)v[(n - 1) / 2] + (double)v[n / 2]);
}
