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

enum {
    KIND_FLAG,
    KIND_STRING,
    KIND_TEXTS, /* struct given_texts; may be given again */
    KIND_NUMBER,
    KIND_SECONDS,
    KIND_WHOLE,    /* struct given_number */
    KIND_POSITIVE, /* struct given_real, above 0 */
    KIND_PART,     /* the same, at most 1 */
    KIND_PART_OR_0 /* the same, or 0 */
};

/* What to give instead of what was given. */
static const char *const wanted[] = {
    [KIND_TEXTS] = "text that is not empty, 64 times at most",
    [KIND_NUMBER] = "whole number from 1 on",
    [KIND_SECONDS] = "number of seconds above 0",
    [KIND_WHOLE] = "whole number from 0 to 18446744073709551615",
    [KIND_POSITIVE] = "number above 0",
    [KIND_PART] = "number above 0 and at most 1",
    [KIND_PART_OR_0] = "number from 0 to 1",
};

static const struct {
    const char *name, *value, *help;
    unsigned bit;
    int kind;
    size_t member;
} table[] = {
    {"model", "DIR", "the directory of the model, or a .gguf file (required)", OPT_MODEL,
     KIND_STRING, offsetof(struct options, model)},
    {"map", NULL, "use the weights where they lie in the file: starts at once, runs slower",
     OPT_MAP, KIND_FLAG, offsetof(struct options, map)},
    {"widen", NULL,
     "hold weights in 32 bits where the file has fewer: two to seven times the memory", OPT_MAP,
     KIND_FLAG, offsetof(struct options, widen)},
    {"compute", "TYPE",
     "multiply in f32, int8, or int4: rows of int8 times 4 or 8 bits (default: as the file is)",
     OPT_COMPUTE, KIND_STRING, offsetof(struct options, compute)},
    {"positions", "N", "texts of up to N tokens, by the longer scaling of longrope or dynamic",
     OPT_POSITIONS, KIND_NUMBER, offsetof(struct options, positions)},
    {"cache", "TYPE", "keep keys and values in f16 or bf16: half the memory (default: f32)",
     OPT_POSITIONS, KIND_STRING, offsetof(struct options, cache)},
    {"beam", "N", "search with N beams; 1 is greedy (default: what the model says)", OPT_BEAM,
     KIND_NUMBER, offsetof(struct options, beam)},
    {"max-length", "N", "at most N target tokens, the start token included", OPT_MAX_LENGTH,
     KIND_NUMBER, offsetof(struct options, max_length)},
    {"sample", NULL, "draw tokens at random, each as often as it is probable", OPT_SAMPLING,
     KIND_FLAG, offsetof(struct options, sample)},
    {"temperature", "T", "divide the logits by T: below 1 sharper, above 1 flatter", OPT_SAMPLING,
     KIND_POSITIVE, offsetof(struct options, temperature)},
    {"top-k", "K", "draw from the K most probable tokens; 0: from all", OPT_SAMPLING, KIND_WHOLE,
     offsetof(struct options, top_k)},
    {"top-p", "P", "draw from the fewest tokens whose probabilities reach P; 1: from all",
     OPT_SAMPLING, KIND_PART, offsetof(struct options, top_p)},
    {"min-p", "P", "leave out what is less probable than P times the best; 0: nothing",
     OPT_SAMPLING, KIND_PART_OR_0, offsetof(struct options, min_p)},
    {"seed", "N", "the number that fixes what is drawn (default: 0)", OPT_SAMPLING, KIND_WHOLE,
     offsetof(struct options, seed)},
    {"samples", "N", "draw N answers to each line, each a line of output", OPT_SAMPLING,
     KIND_NUMBER, offsetof(struct options, samples)},
    {"stream", NULL, "print tokens as they come, one line of input at a time", OPT_STREAM,
     KIND_FLAG, offsetof(struct options, stream)},
    {"stop", "TEXT", "end where TEXT would come, and show what is before it; may be repeated",
     OPT_STOP, KIND_TEXTS, offsetof(struct options, stop)},
    {"threads", "N", "use N threads (default: all that this process may use)", OPT_THREADS,
     KIND_NUMBER, offsetof(struct options, threads)},
    {"isa", "NAME", "the instruction set (default: the best; see isobit info)", OPT_ISA,
     KIND_STRING, offsetof(struct options, isa)},
    {"from", "LANG", "the language of the input, where the model has several (eng_Latn)",
     OPT_LANGUAGES, KIND_STRING, offsetof(struct options, from)},
    {"to", "LANG", "the language of the output, the same", OPT_LANGUAGES, KIND_STRING,
     offsetof(struct options, to)},
    {"input", "FILE", "read the lines of FILE instead of standard input", OPT_INPUT, KIND_STRING,
     offsetof(struct options, input)},
    {"strict", NULL, "fail at a line with characters that the vocabulary lacks, or too long",
     OPT_STRICT, KIND_FLAG, offsetof(struct options, strict)},
    {"scores", NULL, "after each line a TAB and the score of each of its sequences", OPT_SCORES,
     KIND_FLAG, offsetof(struct options, scores)},
    {"hex", NULL, "exact hexadecimal floats, as C's %a writes them", OPT_HEX, KIND_FLAG,
     offsetof(struct options, hex)},
    {"json", NULL, "JSON instead of text (one object for each line of output)", OPT_JSON, KIND_FLAG,
     offsetof(struct options, json)},
    {"digest", NULL, "print only a hash (XXH3) of all outputs and the bits of all scores",
     OPT_DIGEST, KIND_FLAG, offsetof(struct options, digest)},
    {"text", "FILE", "the text (default: a paragraph of Lewis Carroll)", OPT_TEXT, KIND_STRING,
     offsetof(struct options, text)},
    {"text", NULL, "lines of text instead of ids", OPT_AS_TEXT, KIND_FLAG,
     offsetof(struct options, as_text)},
    {"attention", "FILE.svg", "draw what the first line attends to, as a picture", OPT_ATTENTION,
     KIND_STRING, offsetof(struct options, attention)},
    {"of", "WHICH", "attention of the encoder, the decoder or cross (default: cross, if there is)",
     OPT_LAYER, KIND_STRING, offsetof(struct options, of)},
    {"layer", "N", "the layer of the picture, from 1 (default: the last)", OPT_LAYER, KIND_NUMBER,
     offsetof(struct options, layer)},
    {"also", "COMMAND", "add the rows of another isobit, for example under an emulator", OPT_ALSO,
     KIND_STRING, offsetof(struct options, also)},
    {"row", NULL, "print one row for --also only: name, words per second, hash", OPT_ALSO,
     KIND_FLAG, offsetof(struct options, row)},
    {"base", NULL, "instead of --model: the base model of the paper, random weights", OPT_BASE,
     KIND_FLAG, offsetof(struct options, base)},
    {"seconds", "S", "measure for so long (default: 2 for each case of bench, 0.3 for explain)",
     OPT_SECONDS, KIND_SECONDS, offsetof(struct options, seconds)},
    {"bt", NULL, "B is transposed, [N][K], as the weights of most models are stored", OPT_EXPLAIN,
     KIND_FLAG, offsetof(struct options, transposed)},
    {"causal", NULL, "queries see the keys before them, and they are the last ones", OPT_EXPLAIN,
     KIND_FLAG, offsetof(struct options, causal)},
    {"model", "DIR", "a model instead: its sizes and defaults, and the commands that take it",
     OPT_ABOUT, KIND_STRING, offsetof(struct options, model)},
    {"env", NULL, "the environment variables instead: value, source, effect", OPT_ABOUT, KIND_FLAG,
     offsetof(struct options, env)},
    {"pooling", "HOW", "mean, cls, max or pooler (default: what the folder says, or mean)",
     OPT_POOLING, KIND_STRING, offsetof(struct options, pooling)},
    {"normalize", "yes|no", "vectors of length 1 (default: what the folder says, or yes)",
     OPT_POOLING, KIND_STRING, offsetof(struct options, normalize)},
    {"npy", "FILE", "write the vectors as the rows of a NumPy array of float32", OPT_NPY,
     KIND_STRING, offsetof(struct options, npy)},
    {"top", "N", "the N most probable tokens for each mask (default: 5)", OPT_TOP, KIND_NUMBER,
     offsetof(struct options, top)},
    {"to", "TYPE", "what matrices become: int8, int4, bf16 or f16 (required)", OPT_QUANTIZE,
     KIND_STRING, offsetof(struct options, type)},
    {"out", "DIR", "the folder to write, which does not exist yet (required)", OPT_QUANTIZE,
     KIND_STRING, offsetof(struct options, out)},
    {"group", "N", "of int4: N numbers of a row share a scale: 32 (default), 64 or 128",
     OPT_QUANTIZE, KIND_NUMBER, offsetof(struct options, group)},
    {"keep", "TEXT", "leave tensors as they are whose names contain TEXT; may be repeated",
     OPT_QUANTIZE, KIND_TEXTS, offsetof(struct options, keep)},
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

static bool parse_whole(struct given_number *number, const char *text) {
    char *end = NULL;
    errno = 0;
    *number = (struct given_number){true, strtoull(text, &end, 10)};
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

/* A decimal number that is finite, and that a float can tell from 0. */
static bool parse_real(struct given_real *real, const char *text, int kind) {
    char *end = NULL;
    const double number = strtod(text, &end);
    if (strspn(text, "0123456789.eE+-") != strlen(text) || end == text || *end != '\0' ||
        !(number >= 0) || number > (kind == KIND_POSITIVE ? 1e30 : 1))
        return false;
    *real = (struct given_real){true, (float)number};
    return real->value > 0 || kind == KIND_PART_OR_0;
}

static bool add_text(struct given_texts *texts, const char *text) {
    if (text[0] == '\0' || texts->count == sizeof texts->text / sizeof *texts->text)
        return false;
    texts->text[texts->count++] = text;
    return true;
}

static bool store(struct options *options, size_t index, const char *value) {
    void *member = (char *)options + table[index].member;
    switch (table[index].kind) {
    case KIND_FLAG: *(bool *)member = true; return true;
    case KIND_STRING: *(const char **)member = value; return true;
    case KIND_TEXTS: return add_text(member, value);
    case KIND_SECONDS: return parse_seconds(member, value);
    case KIND_NUMBER: return parse_number(member, value);
    case KIND_WHOLE: return parse_whole(member, value);
    default: return parse_real(member, value, table[index].kind);
    }
}

/* What only sampling uses, first come first named; NULL: nothing. */
static const char *sampling_option(const struct options *options) {
    return options->temperature.given ? "temperature"
           : options->top_k.given     ? "top-k"
           : options->top_p.given     ? "top-p"
           : options->min_p.given     ? "min-p"
           : options->seed.given      ? "seed"
           : options->samples != 0    ? "samples"
                                      : NULL;
}

static int check_generation(const struct options *options, const struct command *command) {
    if (!options->sample && sampling_option(options) != NULL)
        return usage("%s: --%s needs --sample", command->name, sampling_option(options));
    if (options->sample && options->beam > 1)
        return usage("%s: --sample and --beam %zu exclude each other", command->name,
                     options->beam);
    if (options->stream && options->samples > 1)
        return usage("%s: --stream and --samples %zu exclude each other", command->name,
                     options->samples);
    if (options->stream && (options->json || options->digest || options->scores))
        return usage("%s: --stream and --%s exclude each other", command->name,
                     options->json     ? "json"
                     : options->digest ? "digest"
                                       : "scores");
    return 0;
}

/* Which of the names, the first one if none is given; `count`: none. */
static size_t find_name(const char *given, const char *const *names, size_t count) {
    size_t i = 0;
    while (given != NULL && i < count && strcmp(names[i], given) != 0)
        i++;
    return i;
}

size_t cache_type(const struct options *options) {
    static const char *const names[] = {"f32", "f16", "bf16"}; /* as iso_cache numbers them */
    return find_name(options->cache, names, sizeof names / sizeof *names);
}

size_t compute_type(const struct options *options) {
    static const char *const names[] = {"f32", "int8", "int4"}; /* as iso_compute from 1 on */
    return options->compute == NULL ? ISOBIT_COMPUTE_AUTO
                                    : 1 + find_name(options->compute, names, 3);
}

static int check(const struct options *options, const struct command *command) {
    if (options->base && options->model != NULL)
        return usage("%s: --base and --model exclude each other", command->name);
    if ((command->options & OPT_MODEL) != 0 && options->model == NULL && !options->base)
        return usage("%s: --model DIR is missing, as in --model models/g2p-en", command->name);
    if (options->json && options->digest)
        return usage("%s: --json and --digest exclude each other", command->name);
    if (options->npy != NULL && (options->digest || options->hex))
        return usage("%s: --npy and --%s exclude each other", command->name,
                     options->digest ? "digest" : "hex");
    if (options->input != NULL && options->count > 0)
        return usage("%s: --input and lines as arguments exclude each other", command->name);
    if ((options->layer != 0 || options->of != NULL) && options->attention == NULL)
        return usage("%s: --%s needs --attention FILE.svg", command->name,
                     options->layer != 0 ? "layer" : "of");
    if ((command->options & OPT_AS_TEXT) != 0 && !options->as_text &&
        (options->from != NULL || options->to != NULL || options->strict))
        return usage("%s: --%s needs --text", command->name,
                     options->strict         ? "strict"
                     : options->from != NULL ? "from"
                                             : "to");
    if (options->cache != NULL && cache_type(options) > ISOBIT_CACHE_BF16)
        return usage("%s: --cache %s: give f32, f16 or bf16", command->name, options->cache);
    if (compute_type(options) > ISOBIT_COMPUTE_INT4)
        return usage("%s: --compute %s: give f32, int8 or int4", command->name, options->compute);
    if (options->widen && compute_type(options) >= ISOBIT_COMPUTE_INT8)
        return usage("%s: --widen and --compute %s exclude each other", command->name,
                     options->compute);
    if ((command->options & OPT_ABOUT) != 0 && options->compute != NULL && options->model == NULL)
        return usage("%s: --compute needs --model", command->name);
    if (options->env && options->model != NULL)
        return usage("%s: --env and --model exclude each other", command->name);
    if (options->count > 0 && !command->takes_arguments)
        return usage("%s: takes no argument, but found '%s'; see isobit %s --help", command->name,
                     options->arguments[0], command->name);
    return check_generation(options, command);
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
                          wanted[table[index].kind]);
            return false;
        }
    }
    options->count = argc - optind;
    options->arguments = argv + optind;
    *code = check(options, command);
    return *code == 0;
}
