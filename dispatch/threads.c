/* SPDX-License-Identifier: MIT
 *
 * Counts the threads that are of use: more than the affinity mask holds only take turns, and more
 * than the cgroup's quota pays for are stopped by the kernel in the middle of their work.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity, CPU_ALLOC */
#endif
#include "threads.h"

#include <isobit/isobit.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t iso_affinity_threads(void) {
    /* The kernel refuses a mask smaller than its own, whose size it does not tell: grow it. */
    for (int cpus = 1024; cpus <= 1 << 18; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        if (!set) {
            break;
        }
        const size_t bytes = CPU_ALLOC_SIZE((size_t)cpus);
        CPU_ZERO_S(bytes, set);
        const bool good = sched_getaffinity(0, bytes, set) == 0;
        const int count = good ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (good) {
            return count > 0 ? (size_t)count : 1;
        }
    }
    return 1;
}

enum { PATH_BYTES = 512 };

/* a and b one after the other; false when they do not fit. `path` may be a. */
static bool join(char path[PATH_BYTES], const char *a, const char *b) {
    const size_t first = strlen(a), second = strlen(b);
    if (first + second >= PATH_BYTES) {
        return false;
    }
    memmove(path, a, first);
    memcpy(path + first, b, second + 1);
    return true;
}

static bool read_first_line(char *text, size_t bytes, const char *path) {
    FILE *file = fopen(path, "re");
    if (!file) {
        return false;
    }
    const bool good = fgets(text, (int)bytes, file) != NULL;
    fclose(file);
    return good;
}

/* The quota of one directory, in thousandths of a CPU, 0 for none. */
static size_t quota_of(const char *directory, bool v2) {
    char path[PATH_BYTES], text[64];
    long long quota = 0, period = 0;
    if (!join(path, directory, v2 ? "/cpu.max" : "/cpu.cfs_quota_us") ||
        !read_first_line(text, sizeof(text), path)) {
        return 0;
    }
    char *rest;
    quota = strtoll(text, &rest, 10); /* "max" and -1 come out as no quota */
    if (!v2) {
        if (!join(path, directory, "/cpu.cfs_period_us") ||
            !read_first_line(text, sizeof(text), path)) {
            return 0;
        }
        rest = text;
    }
    period = strtoll(rest, NULL, 10);
    if (quota <= 0 || period <= 0 || quota > 1LL << 40) {
        return 0;
    }
    const long long millicpus = quota * 1000 / period;
    return millicpus > 0 ? (size_t)millicpus : 1;
}

/* Where the hierarchy is mounted; with a container the mount shows only a part of the tree. */
static bool find_mount(char *mount, char *mount_root, const char *root, bool v2) {
    char path[PATH_BYTES], line[2048];
    bool found = false;
    FILE *file = join(path, root, "/proc/self/mountinfo") ? fopen(path, "re") : NULL;
    if (!file) {
        return false;
    }
    while (!found && fgets(line, sizeof(line), file)) {
        /* id parent major:minor ROOT MOUNT options ... - TYPE source SUPER-OPTIONS */
        char type[32], options[256];
        const char *tail = strstr(line, " - ");
        if (!tail || sscanf(tail, " - %31s %*s %255s", type, options) != 2 ||
            sscanf(line, "%*s %*s %*s %511s %511s", mount_root, mount) != 2) {
            continue;
        }
        if (v2) {
            found = strcmp(type, "cgroup2") == 0;
        } else if (strcmp(type, "cgroup") == 0) {
            char *save = NULL;
            for (char *o = strtok_r(options, ",", &save); o; o = strtok_r(NULL, ",", &save)) {
                found = found || strcmp(o, "cpu") == 0;
            }
        }
    }
    fclose(file);
    return found;
}

/* The path of the process within the hierarchy, from /proc/self/cgroup. */
static bool find_group(char *group, const char *root, bool v2) {
    char path[PATH_BYTES], line[1024];
    bool found = false;
    FILE *file = join(path, root, "/proc/self/cgroup") ? fopen(path, "re") : NULL;
    if (!file) {
        return false;
    }
    while (!found && fgets(line, sizeof(line), file)) {
        /* id:controller,controller:/path, and 0::/path for v2 */
        char *controllers = strchr(line, ':');
        char *place = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!place) {
            continue;
        }
        *controllers++ = '\0';
        *place++ = '\0';
        place[strcspn(place, "\n")] = '\0';
        if (v2) {
            found = *controllers == '\0';
        } else {
            char *save = NULL;
            for (char *c = strtok_r(controllers, ",", &save); c; c = strtok_r(NULL, ",", &save)) {
                found = found || strcmp(c, "cpu") == 0;
            }
        }
        if (found) {
            found = join(group, place, "");
        }
    }
    fclose(file);
    return found;
}

/* The tightest quota from the process's own directory up to the mount. */
static size_t hierarchy_quota(const char *root, bool v2) {
    char mount[PATH_BYTES], mount_root[PATH_BYTES], group[PATH_BYTES];
    if (!find_group(group, root, v2) || !find_mount(mount, mount_root, root, v2)) {
        return 0;
    }
    /* The mount shows the tree from mount_root down: that part of the path is not in it. */
    const char *below = group;
    const size_t skip = strcmp(mount_root, "/") == 0 ? 0 : strlen(mount_root);
    if (skip > 0 && strncmp(group, mount_root, skip) == 0) {
        below = group + skip;
    }
    char path[PATH_BYTES];
    if (!join(path, root, mount)) {
        return 0;
    }
    const size_t top = strlen(path);
    if (!join(path, path, below)) {
        return 0;
    }
    size_t least = 0;
    for (;;) {
        const size_t quota = quota_of(path, v2);
        least = quota && (!least || quota < least) ? quota : least;
        char *slash = strrchr(path + top, '/');
        if (!slash) {
            return least;
        }
        *slash = '\0';
    }
}

size_t iso_cgroup_millicpus(const char *root) {
    const size_t v2 = hierarchy_quota(root, true), v1 = hierarchy_quota(root, false);
    return v2 && (!v1 || v2 < v1) ? v2 : v1;
}

size_t iso_usable_threads(void) {
    const size_t affinity = iso_affinity_threads(), millicpus = iso_cgroup_millicpus("");
    /* Rounded down: with 1.5 CPUs a second thread would be stopped half of the time. */
    const size_t paid = millicpus >= 1000 ? millicpus / 1000 : 1;
    return millicpus && paid < affinity ? paid : affinity;
}
