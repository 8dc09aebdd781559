/* SPDX-License-Identifier: MIT
 *
 * What the pool costs; affinity and cgroups.
 */
#include "test_threads.h"

static double cpu_seconds(void) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

void test_idle_costs_nothing(void **state) {
    (void)state;
    /* Five workers that spin their million pauses take 100 ms and more; sleepers nearly none. */
    const double most_seconds = 0.03;
    iso_pool *pool = NULL;
    assert_int_equal(iso_pool_create(&pool, 6), ISOBIT_OK);
    for (int round = 0; round < 2; ++round) {
        usleep(20000);
        const double before = cpu_seconds();
        usleep(300000);
        const double used = cpu_seconds() - before;
        print_message("          (%.1f ms of CPU time in 300 ms)\n", 1e3 * used);
        assert_true(used < most_seconds);
        assert_true(each_once(executor_of(pool), 1000));
    }
    iso_pool_destroy(pool);
}

/* Jobs 2 ms apart: who waited in vain for one looks out for the next for a short time only. */
void test_rare_jobs_cost_little(void **state) {
    (void)state;
    if (TSAN || getenv("ISOBIT_EMULATED")) { /* each job takes too much CPU time of its own */
        skip();
    }
    enum { JOBS = 200, WORKERS = 5 };
    /* Looking out for 100 microseconds takes 100 ms of CPU time, and for 20 a fifth of it. */
    const double most_seconds = 0.075;
    iso_pool *pool = NULL;
    assert_int_equal(iso_pool_create(&pool, WORKERS + 1), ISOBIT_OK);
    double least = 1;
    for (int round = 0; round < 5 && least >= most_seconds; ++round) { /* others are at work, too */
        const double before = cpu_seconds();
        for (int i = 0; i < JOBS; ++i) {
            assert_true(each_once(executor_of(pool), WORKERS + 1));
            usleep(2000);
        }
        const double used = cpu_seconds() - before;
        print_message("          (%.1f ms of CPU time for %d jobs)\n", 1e3 * used, JOBS);
        least = used < least ? used : least;
    }
    assert_true(least < most_seconds);
    iso_pool_destroy(pool);
}

static void see_affinity(void *arg, size_t i) { ((size_t *)arg)[i] = iso_affinity_threads(); }

static int one_cpu_child(void *arg) {
    (void)arg;
    cpu_set_t set, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof(set), &set) != 0) {
        return SKIPPED;
    }
    size_t cpu = 0;
    while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, &set)) {
        ++cpu;
    }
    CPU_SET(cpu, &one);
    if (iso_affinity_threads() != (size_t)CPU_COUNT(&set)) {
        return 1;
    }
    if (sched_setaffinity(0, sizeof(one), &one) != 0) {
        return SKIPPED;
    }
    if (iso_affinity_threads() != 1 || iso_usable_threads() != 1) {
        return 2;
    }
    iso_pool *pool = NULL;
    if (iso_pool_create(&pool, 0) != ISOBIT_OK || iso_pool_executor(pool)->max_threads != 1) {
        return 3;
    }
    iso_pool_destroy(pool);
    /* Asked for more: they work, within the mask. */
    size_t cpus[64] = {0};
    if (iso_pool_create(&pool, 4) != ISOBIT_OK || iso_pool_executor(pool)->max_threads != 4) {
        return 4;
    }
    run(iso_pool_executor(pool), 64, see_affinity, cpus);
    for (int i = 0; i < 64; ++i) {
        if (cpus[i] != 1) {
            return 5;
        }
    }
    iso_pool_destroy(pool);
    return 0;
}

void test_affinity(void **state) {
    (void)state;
    const int result = in_child(one_cpu_child, NULL);
    if (result == SKIPPED) {
        skip();
    }
    assert_int_equal(result, 0);
}

/* ----------------------------------------------------------------------------------- cgroups */

static char top[64];

static void put_file(const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof(full), "%s%s", top, path);
    for (char *slash = full + strlen(top) + 1; (slash = strchr(slash, '/')) != NULL; ++slash) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    FILE *file = fopen(full, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

#define MOUNT_V2 "30 20 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_V1                                                                                   \
    "29 20 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"                            \
    "31 20 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"                            \
    "30 20 0:26 / /sys/fs/cgroup/cpu,cpuacct rw shared:4 - cgroup cgroup rw,cpu,cpuacct\n"

void test_cgroup_quota(void **state) {
    (void)state;
    snprintf(top, sizeof(top), "/tmp/isobit-cgroup-XXXXXX");
    assert_non_null(mkdtemp(top));
    assert_int_equal(iso_cgroup_millicpus(top), 0); /* no /proc at all */

    put_file("/proc/self/mountinfo", "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n" MOUNT_V2);
    put_file("/proc/self/cgroup", "0::/user.slice/app\n");
    assert_int_equal(iso_cgroup_millicpus(top), 0); /* no file: the root group has none */
    put_file("/sys/fs/cgroup/user.slice/app/cpu.max", "max 100000\n");
    assert_int_equal(iso_cgroup_millicpus(top), 0);
    put_file("/sys/fs/cgroup/user.slice/app/cpu.max", "250000 100000\n");
    assert_int_equal(iso_cgroup_millicpus(top), 2500);
    put_file("/sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n"); /* the parent is tighter */
    assert_int_equal(iso_cgroup_millicpus(top), 1500);
    put_file("/sys/fs/cgroup/user.slice/app/cpu.max", "5000 50000\n");
    assert_int_equal(iso_cgroup_millicpus(top), 100);
    put_file("/sys/fs/cgroup/user.slice/app/cpu.max", "1 1000000\n"); /* never 0: that is none */
    assert_int_equal(iso_cgroup_millicpus(top), 1);
    static const char *const odd[] = {"",
                                      "\n",
                                      "max",
                                      "100000",
                                      "100000 0",
                                      "-5 100000",
                                      "x y",
                                      "1099511627777 1099511627777", /* beyond what is believed */
                                      "99999999999999999999 100000"};
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); ++i) {
        put_file("/sys/fs/cgroup/user.slice/app/cpu.max", odd[i]);
        assert_int_equal(iso_cgroup_millicpus(top), 1500);
    }
    /* A container: its own group is the root of the mount. */
    put_file("/proc/self/cgroup", "0::/\n");
    put_file("/sys/fs/cgroup/cpu.max", "300000 100000\n");
    assert_int_equal(iso_cgroup_millicpus(top), 3000);
    put_file("/proc/self/cgroup", "0::/docker/abc\n");
    put_file("/proc/self/mountinfo",
             "30 20 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    assert_int_equal(iso_cgroup_millicpus(top), 3000);
    /* Lines that are cut or odd do no harm. */
    put_file("/proc/self/mountinfo", "30 20\n - cgroup2\n - cgroup2 x y\n\n" MOUNT_V2);
    put_file("/proc/self/cgroup", "junk\n:\n0:\n0::/\n");
    assert_int_equal(iso_cgroup_millicpus(top), 3000);

    /* Version 1. */
    put_file("/proc/self/mountinfo", MOUNT_V1);
    put_file("/proc/self/cgroup", "5:memory:/other\n4:cpuset:/\n3:cpu,cpuacct:/app\n0::/\n");
    put_file("/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "400000\n");
    assert_int_equal(iso_cgroup_millicpus(top), 0); /* without a period */
    put_file("/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "-1\n");
    put_file("/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us", "100000\n");
    assert_int_equal(iso_cgroup_millicpus(top), 0);
    put_file("/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "400000\n");
    assert_int_equal(iso_cgroup_millicpus(top), 4000);
    /* Both: the tighter one. */
    put_file("/proc/self/mountinfo", MOUNT_V2 MOUNT_V1);
    assert_int_equal(iso_cgroup_millicpus(top), 3000);

    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", top);
    assert_int_equal(system(command), 0);
}

void test_usable_threads(void **state) {
    (void)state;
    const size_t usable = iso_usable_threads();
    assert_true(usable >= 1 && usable <= iso_affinity_threads());
    /* Asking starts no thread. */
    const size_t before = settled_threads();
    char text[4096];
    assert_int_equal(iso_info_json(text, sizeof(text), NULL), ISOBIT_OK);
    assert_int_equal(live_threads(), before);
}
