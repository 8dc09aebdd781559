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

void progress_show(struct progress *progress, const struct input *input) {
    if (!progress->on)
        return;
    double now = seconds_now(), spent = now - progress->start;
    if (now < progress->shown + then_every)
        return;
    progress->shown = now;
    fprintf(stderr, "\r%llu lines, %.0f lines/s", input->lines, (double)input->lines / spent);
    if (input->total > 0 && input->done > 0) {
        double share = input->done < input->total ? input->done / input->total : 1;
        fprintf(stderr, ", %.0f %%, ETA ", 100 * share);
        print_duration(spent * (1 - share) / share);
    }
    fputs("\033[K", stderr);
    fflush(stderr);
}

void progress_end(struct progress *progress) {
    if (progress->on && progress->shown > progress->start + first_after - then_every)
        fputs("\r\033[K", stderr);
    progress->on = false;
}
