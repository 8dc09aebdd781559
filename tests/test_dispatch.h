/* SPDX-License-Identifier: MIT
 *
 * What the files of test_dispatch share.
 */
#ifndef ISOBIT_TESTS_TEST_DISPATCH_H
#define ISOBIT_TESTS_TEST_DISPATCH_H

#include "select.h"

#include <isobit/isobit.h>
#include <isobit/ops.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* cpus.c */
void test_x86_cpus(void **state);
void test_arm_cpus(void **state);
void test_x86_feature_bits(void **state);
void test_names_and_caches(void **state);

/* info.c */
void test_info(void **state);

#endif
