/* SPDX-License-Identifier: MIT
 *
 * One line on stderr that says how far a long input is. Only on a terminal, only where nothing
 * else scrolls there, and only after the first second: short runs stay quiet.
 */
#include "cli.h"

#include <time.h>
#include <unistd.h>

static const double first_after = 1.0, then_every = 0.1; /* seconds */

double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress_start(struct progress *progress) {
    progress->on = is_fancy_terminal(stderr) && !isatty(STDOUT_FILENO);
    progress->start = seconds_now();
    progress->shown = progress->start + first_after - then_every;
}

static void print_duration(double seconds) {
    unsigned long whole = (unsigned long)(seconds + 0.5);
    if (whole >= 3600)
        fprintf(stderr, "%luh%02lum", whole / 3600, whole / 60 % 60);
    else if (whole >= 60)
        fprintf(stderr, "%lum%02lus", whole / 60, whole % 60);
    else
        fprintf(stderr, "%lus", whole);
}

/* Whether a line is due, and how many seconds have gone by. */
static bool is_due(struct progress *progress, double *spent) {
    if (!progress->on)
        return false;
    const double now = seconds_now();
    *spent = now - progress->start;
    if (now < progress->shown + then_every)
        return false;
    progress->shown = now;
    return true;
}

static void print_share(double done, double total, double spent) {
    if (total > 0 && done > 0) {
        const double share = done < total ? done / total : 1;
        fprintf(stderr, ", %.0f %%, ETA ", 100 * share);
        print_duration(spent * (1 - share) / share);
    }
    fputs("\033[K", stderr);
    fflush(stderr);
}

void progress_show(struct progress *progress, const struct input *input) {
    double spent;
    if (!is_due(progress, &spent))
        return;
    fprintf(stderr, "\r%llu lines, %.0f lines/s", input->lines, (double)input->lines / spent);
    print_share(input->done, input->total, spent);
}

void progress_bytes(struct progress *progress, uint64_t done, uint64_t total) {
    double spent;
    if (!is_due(progress, &spent))
        return;
    fprintf(stderr, "\r%.0f of %.0f MB", (double)done / 1e6, (double)total / 1e6);
    print_share((double)done, (double)total, spent);
}

void progress_end(struct progress *progress) {
    if (progress->on && progress->shown > progress->start + first_after - then_every)
        fputs("\r\033[K", stderr);
    progress->on = false;
}
