/* SPDX-License-Identifier: MIT
 *
 * How many threads the process may use: the CPU affinity mask and the cgroup's CPU quota. Reads
 * files, so it is for iso_usable_threads, pool creation and iso_info_json, never for a kernel.
 */
#ifndef ISOBIT_THREADS_H
#define ISOBIT_THREADS_H

#include <stddef.h>

/* CPUs in the affinity mask of the calling thread, at least 1. */
size_t iso_affinity_threads(void);

/*
 * The tightest CPU quota of the process's cgroup and those around it, in thousandths of a CPU; 0:
 * none. cgroup v2 (cpu.max) and v1 (cpu.cfs_quota_us). `root` stands before each path that is
 * read ("" but in the tests).
 */
size_t iso_cgroup_millicpus(const char *root);

#endif
