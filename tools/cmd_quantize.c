/* SPDX-License-Identifier: MIT
 *
 * isobit quantize: a model once more, with fewer bits, and a table of what that changes.
 */
#include "cli.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------- signals */

/* What is not complete is removed by the call, which is told to stop. */
static volatile sig_atomic_t stopped;

static void stop(int number) { stopped = number; }

static void watch_signals(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction action = {.sa_handler = stop};
    struct sigaction old;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL) /* nohup stays */
            sigaction(numbers[i], &action, NULL);
}

/* ----------------------------------------------------------------------------------- the table */

struct table {
    const struct options *options;
    struct progress progress;
    size_t tensors;
    double before, after; /* bytes */
    double largest, errors, squares;
    char worst[200]; /* the tensor with the largest error */
};

static double elements(const iso_quantized_tensor *t) {
    double count = 1;
    for (size_t i = 0; i < t->rank; i++)
        count *= (double)t->shape[i];
    return count;
}

enum { NAME_WIDTH = 56 };

static double relative(double rms, double all) { return all > 0 ? rms / all : 0; }

static void print_json(const iso_quantized_tensor *t) {
    json_t *shape = json_array();
    for (size_t i = 0; i < t->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)t->shape[i]));
    json_t *line =
        json_pack("{s:s, s:o, s:s, s:s, s:I, s:I, s:f, s:f, s:s?}", "tensor", t->name, "shape",
                  shape, "from", t->from, "to", t->type, "from_bytes", (json_int_t)t->from_bytes,
                  "bytes", (json_int_t)t->bytes, "largest_error", t->largest, "relative_rms_error",
                  relative(t->rms, t->tensor_rms), "note", t->note);
    json_dumpf(line, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(line);
}

/* What comes from a file must not move the cursor of a terminal. */
static int print_name(const char *name) {
    int width = 0;
    for (; *name != '\0'; name++, width++)
        putchar((unsigned char)*name < ' ' || *name == 0x7f ? '?' : *name);
    return width;
}

static void print_row(const iso_quantized_tensor *t) {
    char shape[200] = "";
    for (size_t i = 0; i < t->rank; i++) {
        const size_t used = strlen(shape);
        snprintf(shape + used, sizeof shape - used, "%s%llu", i > 0 ? "x" : "",
                 (unsigned long long)t->shape[i]);
    }
    const int width = print_name(t->name);
    printf("%*s %-12s %-5s", width < NAME_WIDTH ? NAME_WIDTH - width : 0, "", shape, t->from);
    if (t->tensor_rms > 0)
        printf(" %-5s %9.2e %8.1e", t->type, t->largest, relative(t->rms, t->tensor_rms));
    else
        printf(" %-5s %9s %8s", t->type, "-", "-");
    printf("%s%s\n", t->note != NULL ? "  " : "", t->note != NULL ? t->note : "");
}

static void report(void *user, const iso_quantized_tensor *t) {
    struct table *table = user;
    const double count = elements(t);
    if (table->options->json) {
        print_json(t);
    } else {
        if (table->tensors == 0)
            printf("%-*s %-12s %-5s %-5s %9s %8s\n", NAME_WIDTH, "tensor", "shape", "from", "to",
                   "largest", "rms");
        print_row(t);
    }
    table->tensors++;
    table->before += (double)t->from_bytes;
    table->after += (double)t->bytes;
    table->errors += t->rms * t->rms * count;
    table->squares += t->tensor_rms * t->tensor_rms * count;
    if (t->largest > table->largest) {
        table->largest = t->largest;
        snprintf(table->worst, sizeof table->worst, "%s", t->name);
    }
}

static int watch(void *user, uint64_t done, uint64_t total) {
    struct table *table = user;
    progress_bytes(&table->progress, done, total);
    return stopped != 0;
}

static void print_total(const struct table *table) {
    const double rms = relative(sqrt(table->errors), sqrt(table->squares));
    if (table->options->json) {
        json_t *line = json_pack("{s:I, s:f, s:f, s:f, s:f}", "tensors", (json_int_t)table->tensors,
                                 "from_bytes", table->before, "bytes", table->after,
                                 "largest_error", table->largest, "relative_rms_error", rms);
        json_dumpf(line, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(line);
        return;
    }
    printf("%zu tensors, %.1f MB instead of %.1f (%.1f %%)", table->tensors, table->after / 1e6,
           table->before / 1e6, table->before > 0 ? 100 * table->after / table->before : 100);
    if (table->squares > 0)
        printf("; errors: rms %.1e of the numbers that changed", rms);
    if (table->largest > 0) {
        printf(", largest %.2e in ", table->largest);
        print_name(table->worst);
    }
    putchar('\n');
}

/* ---------------------------------------------------------------------------------- the command */

/* The iso_quantize_type that --to names; a number that none has for another name. */
static size_t type_of(const char *name) {
    static const char *const names[] = {"bf16", "f16", "int8", "int4"}; /* as they are numbered */
    size_t i = 0;
    while (i < sizeof names / sizeof *names && strcmp(names[i], name) != 0)
        i++;
    return i;
}

int cmd_quantize(const struct options *options) {
    if (options->type == NULL)
        return usage("quantize: --to TYPE is missing: give int8, int4, bf16 or f16");
    if (type_of(options->type) > ISOBIT_QUANTIZE_INT4)
        return usage("quantize: --to %s: give int8, int4, bf16 or f16", options->type);
    if (options->out == NULL)
        return usage("quantize: --out DIR is missing, the folder to write");
    if (options->group != 0 && strcmp(options->type, "int4") != 0)
        return usage("quantize: --group is for --to int4");
    if (options->group != 0 && options->group != 32 && options->group != 64 &&
        options->group != 128)
        return usage("quantize: --group %zu: give 32, 64 or 128", options->group);
    struct table table = {.options = options};
    struct session session;
    const iso_quantize_options how = {.size = sizeof how,
                                      .type = type_of(options->type),
                                      .group = options->group,
                                      .keep = options->keep.text,
                                      .keep_count = options->keep.count,
                                      .report = report,
                                      .progress = watch,
                                      .user = &table};
    int code = session_prepare(&session, options);
    if (code == 0) {
        iso_error error = {0};
        watch_signals();
        progress_start(&table.progress);
        const iso_status status =
            iso_model_quantize(options->model, options->out, &how, &session.context, &error);
        progress_end(&table.progress);
        if (stopped != 0 && status == ISOBIT_E_CANCELLED) {
            session_close(&session);
            signal(stopped, SIG_DFL);
            raise(stopped);
        }
        if (status != ISOBIT_OK)
            code = fail_error(&error, status);
        else
            print_total(&table);
    }
    session_close(&session);
    return code;
}
