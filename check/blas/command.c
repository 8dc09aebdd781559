/* SPDX-License-Identifier: MIT
 *
 * isobit check --blas LIB: the options. Exit codes: 0 everything holds, 1 something does not (the
 * library crashes, hangs or ends the process among them), 2 wrong usage, or a file that is no BLAS.
 */
#include "blas.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int complain(const char *what, const char *value) {
    fprintf(stderr, "isobit: check --blas: %s%s%s; see isobit check --blas --help\n", what,
            value ? " " : "", value ? value : "");
    return 2;
}

static int help(void) {
    puts(
        "usage: isobit check --blas LIB [OPTION...]\n\n"
        "the routines sgemm sgemv sger ssyrk sdot saxpy sscal snrm2 sasum isamax of any BLAS, by\n"
        "Fortran and C names (and dnnl_sgemm), against their definition; see docs/check-blas.md\n\n"
        "options:\n"
        "  --op NAME        one routine only\n"
        "  --quick          fewer cases\n"
        "  --no-bits        only whether results are right, not whether their bits stay the same\n"
        "  --threads N      bits with 1 to N threads (default: 16)\n"
        "  --seconds N      a call that takes longer hangs (default: 60)\n"
        "  --replay 'LINE'  the case that a finding has printed\n"
        "  --json, --junit, --markdown   instead of the table\n"
        "  --help           this text\n\n"
        "exit code: 0 everything holds, 1 something does not, 2 wrong usage or no BLAS");
    return 0;
}

static bool number(const char *text, unsigned most, unsigned *to) {
    char *end = NULL;
    unsigned long n = text ? strtoul(text, &end, 10) : 0;
    if (!text || text[0] < '0' || text[0] > '9' || *end || n < 1 || n > most)
        return false;
    *to = (unsigned)n;
    return true;
}

static enum blas_routine routine(const char *name) {
    unsigned r = 0;
    while (r < BLAS_ROUTINES && strcmp(name, blas_name(r)) != 0)
        r++;
    return r;
}

struct options {
    const char *file, *op, *replay, *junit, *markdown;
    bool quick, no_bits, json;
    unsigned threads, seconds;
    FILE *junit_file, *markdown_file;
};

/* 0, or the exit code. */
static int read_options(struct options *o, int argc, char **argv) {
    *o = (struct options){.threads = 16, .seconds = 60};
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(option, "--quick"))
            o->quick = true;
        else if (!strcmp(option, "--no-bits"))
            o->no_bits = true;
        else if (!strcmp(option, "--json"))
            o->json = true;
        else if (!strcmp(option, "--junit") && value)
            o->junit = argv[++i];
        else if (!strcmp(option, "--markdown") && value)
            o->markdown = argv[++i];
        else if (!strcmp(option, "--blas") && value)
            o->file = argv[++i];
        else if ((!strcmp(option, "--op") || !strcmp(option, "--kernel")) && value)
            o->op = argv[++i];
        else if (!strcmp(option, "--replay") && value)
            o->replay = argv[++i];
        else if (!strcmp(option, "--threads") && number(value, 16, &o->threads))
            i++;
        else if (!strcmp(option, "--seconds") && number(value, 3600, &o->seconds))
            i++;
        else
            return complain("unknown option, or without its value:", option);
    }
    if (!o->file)
        return complain("which library?", NULL);
    if (o->op && routine(o->op) == BLAS_ROUTINES)
        return complain("there is no routine", o->op);
    return 0;
}

/* Before anything runs, so that a name that cannot be written costs no time. */
static bool open_file(FILE **f, const char *name) {
    *f = name ? fopen(name, "we") : NULL;
    if (name && !*f)
        fprintf(stderr, "isobit: check --blas: %s: %s\n", name, strerror(errno));
    return *f || !name;
}

static bool close_file(FILE *f, const char *name) {
    if (!f || (ferror(f) | fclose(f)) == 0)
        return true;
    fprintf(stderr, "isobit: check --blas: %s: could not be written\n", name);
    return false;
}

/* Everything that was asked for; returns the exit code. */
static int print(const struct options *o, const struct blas_run *run) {
    int code = blas_print(stdout, run, o->json ? BLAS_JSON : BLAS_TABLE) ? 1 : 0;
    if (o->junit_file)
        blas_print(o->junit_file, run, BLAS_JUNIT);
    if (o->markdown_file)
        blas_print(o->markdown_file, run, BLAS_MARKDOWN);
    bool written = close_file(o->junit_file, o->junit);
    written = close_file(o->markdown_file, o->markdown) && written;
    return written && fflush(stdout) == 0 && !ferror(stdout) ? code : 2;
}

int isobit_check_blas(int argc, char **argv) {
    struct options o;
    struct blas_case one;
    char text[BLAS_TEXT] = "";
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return help();
    int code = read_options(&o, argc, argv);
    if (code)
        return code;
    const char *wrong = o.replay ? blas_case_parse(&one, o.replay) : NULL;
    if (wrong)
        return complain("cannot replay", wrong);
    struct blas_run run = {.file = o.file, .seconds = o.seconds};
    if (!blas_probe(&run, text, sizeof text)) {
        fprintf(stderr, "isobit: check --blas: %s, while loaded: %s\n", o.file, text);
        return 1;
    }
    if (run.library->wrong[0]) {
        fprintf(stderr, "isobit: check --blas: %s\n", run.library->wrong);
        return 2;
    }
    enum blas_routine only = o.op ? routine(o.op) : BLAS_ROUTINES;
    if (o.replay && !blas_has(run.library, one.routine, one.api))
        return complain("the library does not have what is to be replayed:",
                        blas_name(one.routine));
    if (o.replay)
        run.plan = (struct blas_plan){&one, 1, 1};
    else
        blas_plan(&run.plan, run.library, only, o.quick, !o.no_bits);
    if (!run.plan.count)
        return complain("the library does not have", o.op);
    if (!open_file(&o.junit_file, o.junit) || !open_file(&o.markdown_file, o.markdown))
        return 2;
    blas_run_all(&run, (int)o.threads);
    code = print(&o, &run);
    if (!o.replay)
        free(run.plan.v);
    return code;
}
