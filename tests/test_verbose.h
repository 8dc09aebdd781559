/* SPDX-License-Identifier: MIT
 *
 * What the files of test_verbose share.
 */
#ifndef ISOBIT_TESTS_TEST_VERBOSE_H
#define ISOBIT_TESTS_TEST_VERBOSE_H

#include "every_op.h"
#include "kernels.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROOM = 4096 };

/* test_verbose.c */
extern char directory[];
extern char path[64];
char *read_path(const char *from);
char *run(const char *verbose, const char *file, int (*fn)(void));
char *next_line(char **text);
bool begins(const char *text, const char *with);
void is_header(const char *line);
void is_call(const char *line, const char *call, const char *way);

/* calls.c */
iso_context scalar(void);
extern _Alignas(64) float out[ROOM], other[ROOM], in[ROOM];
void each_call_has_its_line(void **state);
void no_operation_is_left_out(void **state);
void off_is_silent(void **state);
void wrong_values_are_told(void **state);
void the_time_is_that_of_the_call(void **state);
void ways_are_told(void **state);

/* small.c */
void small_products_are_told(void **state);

/* files.c */
void refused_calls_are_told(void **state);
void wrong_isa_is_told(void **state);
int one_call(void);
void lines_are_appended_to_a_file(void **state);
void the_file_is_closed_on_exec(void **state);
void a_file_that_cannot_be_opened(void **state);
void other_files_get_no_lines(void **state);
void lines_do_not_mix(void **state);
void the_first_call_of_many(void **state);

#endif
