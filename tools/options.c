/* SPDX-License-Identifier: MIT
 *
 * One table describes all options; a command takes a subset of it. --help is printed from the
 * same table, so that it cannot go out of date.
 */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_FLAG, KIND_NUMBER, KIND_SECONDS, KIND_STRING };

static const struct {
    const char *name, *value, *help;
    unsigned bit;
    int kind;
    size_t member;
} table[] = {
    {"model", "DIR", "the directory of the model (required)", OPT_MODEL, KIND_STRING,
     offsetof(struct options, model)},
    {"beam", "N", "search with N beams; 1 is greedy (default: what the model says)", OPT_BEAM,
     KIND_NUMBER, offsetof(struct options, beam)},
    {"max-length", "N", "at most N target tokens, the start token included", OPT_MAX_LENGTH,
     KIND_NUMBER, offsetof(struct options, max_length)},
    {"threads", "N", "use N threads (default: all that this process may use)", OPT_THREADS,
     KIND_NUMBER, offsetof(struct options, threads)},
    {"isa", "NAME", "the instruction set (default: the best; see isobit info)", OPT_ISA,
     KIND_STRING, offsetof(struct options, isa)},
    {"input", "FILE", "read the lines of FILE instead of standard input", OPT_INPUT, KIND_STRING,
     offsetof(struct options, input)},
    {"strict", NULL, "fail at a line with characters that the vocabulary lacks", OPT_STRICT,
     KIND_FLAG, offsetof(struct options, strict)},
    {"scores", NULL, "after each line a TAB and the score of each of its sequences", OPT_SCORES,
     KIND_FLAG, offsetof(struct options, scores)},
    {"hex", NULL, "exact hexadecimal floats, as C's %a writes them", OPT_HEX, KIND_FLAG,
     offsetof(struct options, hex)},
    {"json", NULL, "JSON instead of text (one object for each line of input)", OPT_JSON, KIND_FLAG,
     offsetof(struct options, json)},
    {"digest", NULL, "print only a hash (XXH3) of all outputs and the bits of all scores",
     OPT_DIGEST, KIND_FLAG, offsetof(struct options, digest)},
    {"text", "FILE", "the text (default: a paragraph of Lewis Carroll)", OPT_TEXT, KIND_STRING,
     offsetof(struct options, text)},
    {"attention", "FILE.svg", "draw what the first line attends to, as a picture", OPT_ATTENTION,
     KIND_STRING, offsetof(struct options, attention)},
    {"layer", "N", "the decoder layer of the picture, from 1 (default: the last)", OPT_LAYER,
     KIND_NUMBER, offsetof(struct options, layer)},
    {"also", "COMMAND", "add the rows of another isobit, for example under an emulator", OPT_ALSO,
     KIND_STRING, offsetof(struct options, also)},
    {"row", NULL, "print one row for --also only: name, words per second, hash", OPT_ROW, KIND_FLAG,
     offsetof(struct options, row)},
    {"base", NULL, "instead of --model: the base model of the paper, random weights", OPT_BASE,
     KIND_FLAG, offsetof(struct options, base)},
    {"seconds", "S", "measure each case for so long (default: 2)", OPT_SECONDS, KIND_SECONDS,
     offsetof(struct options, seconds)},
    {"env", NULL, "the environment variables instead: value, source, effect", OPT_ENV, KIND_FLAG,
     offsetof(struct options, env)},
};
enum { OPTION_COUNT = sizeof table / sizeof table[0], FIRST_CODE = 256, HELP_CODE = 'h' };

static void print_help(const struct command *command) {
    printf("usage: isobit %s%s%s%s\n\n%s\n", command->name,
           command->options != 0 ? " [OPTION...]" : "", command->arguments[0] != '\0' ? " " : "",
           command->arguments, command->summary);
    if (command->details != NULL)
        printf("\n%s\n", command->details);
    puts("\noptions:");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if ((command->options & table[i].bit) == 0)
            continue;
        char left[40];
        snprintf(left, sizeof left, "--%s%s%s", table[i].name, table[i].value != NULL ? " " : "",
                 table[i].value != NULL ? table[i].value : "");
        printf("  %-22s %s\n", left, table[i].help);
    }
    puts("  --help                 this text");
}

/* A whole number of at least 1. */
static bool parse_number(size_t *value, const char *text) {
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number == 0 ||
        number > INT_MAX)
        return false;
    *value = (size_t)number;
    return true;
}

/* A decimal number above 0, at most an hour. */
static bool parse_seconds(double *value, const char *text) {
    char *end = NULL;
    double number = strtod(text, &end);
    if (strspn(text, "0123456789.") != strlen(text) || end == text || *end != '\0' ||
        !(number > 0) || number > 3600)
        return false;
    *value = number;
    return true;
}

static bool store(struct options *options, size_t index, const char *value) {
    char *member = (char *)options + table[index].member;
    if (table[index].kind == KIND_FLAG)
        *(bool *)(void *)member = true;
    else if (table[index].kind == KIND_STRING)
        *(const char **)(void *)member = value;
    else if (table[index].kind == KIND_SECONDS)
        return parse_seconds((double *)(void *)member, value);
    else
        return parse_number((size_t *)(void *)member, value);
    return true;
}

static int check(const struct options *options, const struct command *command) {
    if (options->base && options->model != NULL)
        return usage("%s: --base and --model exclude each other", command->name);
    if ((command->options & OPT_MODEL) != 0 && options->model == NULL && !options->base)
        return usage("%s: --model DIR is missing, as in --model models/g2p-en", command->name);
    if (options->json && options->digest)
        return usage("%s: --json and --digest exclude each other", command->name);
    if (options->input != NULL && options->count > 0)
        return usage("%s: --input and lines as arguments exclude each other", command->name);
    if (options->layer != 0 && options->attention == NULL)
        return usage("%s: --layer needs --attention FILE.svg", command->name);
    if (options->count > 0 && !command->takes_arguments)
        return usage("%s: takes no argument, but found '%s'; see isobit %s --help", command->name,
                     options->arguments[0], command->name);
    return 0;
}

bool options_parse(struct options *options, const struct command *command, int argc, char **argv,
                   int *code) {
    struct option known[OPTION_COUNT + 2];
    size_t count = 0;
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if ((command->options & table[i].bit) != 0)
            known[count++] = (struct option){
                table[i].name, table[i].kind == KIND_FLAG ? no_argument : required_argument, NULL,
                FIRST_CODE + (int)i};
    known[count++] = (struct option){"help", no_argument, NULL, HELP_CODE};
    known[count] = (struct option){NULL, 0, NULL, 0};

    *options = (struct options){0};
    *code = 0;
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, ":h", known, NULL)) != -1;) {
        if (found == HELP_CODE) {
            print_help(command);
            return false;
        }
        if (found == ':') {
            *code = usage("%s: option '%s' needs a value; see isobit %s --help", command->name,
                          argv[optind - 1], command->name);
            return false;
        }
        if (found < FIRST_CODE) {
            char letter[3] = {'-', (char)optopt, '\0'};
            *code =
                usage("%s: unknown option '%s'; see isobit %s --help", command->name,
                      optopt > 0 && optopt < FIRST_CODE ? letter : argv[optind - 1], command->name);
            return false;
        }
        size_t index = (size_t)(found - FIRST_CODE);
        if (!store(options, index, optarg)) {
            *code = usage("%s: --%s %s: give a %s", command->name, table[index].name, optarg,
                          table[index].kind == KIND_SECONDS ? "number of seconds above 0"
                                                            : "whole number from 1 on");
            return false;
        }
    }
    options->count = argc - optind;
    options->arguments = argv + optind;
    *code = check(options, command);
    return *code == 0;
}
