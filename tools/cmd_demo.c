/* SPDX-License-Identifier: MIT
 *
 * isobit demo: one text, every instruction set. First what the model makes of it, word above
 * word; then a table with the speed of each instruction set and the hash of all its outputs and
 * scores, which must be one and the same.
 */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Lewis Carroll, Alice's Adventures in Wonderland, 1865. */
static const char default_text[] =
    "Alice was beginning to get very tired of sitting by her sister on the bank, and of having "
    "nothing to do: once or twice she had peeped into the book her sister was reading, but it had "
    "no pictures or conversations in it, \"and what is the use of a book,\" thought Alice, "
    "\"without pictures or conversations?\"";
static const char picture_text[] = "attention";

static const double measure_seconds = 1.0, patience_seconds = 4.0;
enum { HASH_DIGITS = 16, MAX_ROWS = 16, NAME_BYTES = 48 };

/* The text cut at white space; each word has line_sequences[i] sequences in the batch. */
struct words {
    struct batch batch;
    char **text;
    size_t count;
};

struct row {
    char name[NAME_BYTES];
    double words_per_second;
    char hash[HASH_DIGITS + 1];
};

struct table {
    struct row rows[MAX_ROWS];
    size_t count;
};

/* -------------------------------------------------------------------------------------- words */

static void words_free(struct words *words) {
    for (size_t i = 0; i < words->count; i++)
        free(words->text[i]);
    free((void *)words->text);
    batch_free(&words->batch);
    *words = (struct words){0};
}

static int add_words(struct words *words, const struct session *session, const struct line *line) {
    static const char blanks[] = " \t\r\v\f";
    for (size_t i = 0; i < line->bytes;) {
        size_t begin = i;
        while (i < line->bytes && strchr(blanks, line->text[i]) == NULL)
            i++;
        if (i == begin) {
            i++;
            continue;
        }
        struct line word = {line->text + begin, i - begin, line->number};
        if (!batch_parse_text(&words->batch, session, &word))
            return fail("line %llu: %s", line->number, words->batch.error);
        if ((words->count & (words->count - 1)) == 0) { /* full at each power of two */
            size_t capacity = words->count == 0 ? 1 : 2 * words->count;
            char **text = realloc((void *)words->text, capacity * sizeof *text);
            if (text == NULL)
                return fail("out of memory for the text");
            words->text = text;
        }
        words->text[words->count] = strndup(word.text, word.bytes);
        if (words->text[words->count] == NULL)
            return fail("out of memory for the text");
        words->count++;
    }
    return 0;
}

static int words_read(struct words *words, const struct session *session,
                      const struct options *options) {
    if (options->text == NULL) {
        struct line line = {default_text, sizeof default_text - 1, 1};
        return add_words(words, session, &line);
    }
    struct input input;
    int code = input_open_file(&input, options->text), found = 0;
    struct line line;
    while (code == 0 && (found = input_next(&input, &line)) > 0)
        code = add_words(words, session, &line);
    input_close(&input);
    if (code == 0 && found == 0 && words->batch.source_lengths.count == 0)
        code = fail("%s: has no words", options->text);
    return found < 0 ? 1 : code;
}

/* ------------------------------------------------------------------------------ the two lines */

static size_t terminal_width(void) {
    struct winsize size;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
        return size.ws_col < 100 ? size.ws_col : 100;
    return 80;
}

/* The outputs of one word, joined; "" when it has none. */
static char *word_output(const struct session *session, const iso_hypothesis *best, size_t count) {
    char *all = strdup("");
    for (size_t i = 0; i < count && all != NULL; i++) {
        char *one = decode_text(session, best[i].ids, best[i].length), *longer = NULL;
        if (one == NULL || asprintf(&longer, "%s%s%s", all, i > 0 ? " " : "", one) < 0)
            longer = NULL;
        free(one);
        free(all);
        all = longer;
    }
    return all;
}

static void put_padded(const char *text, size_t width) {
    fputs(text, stdout);
    for (size_t used = display_width(text); used < width; used++)
        putchar(' ');
}

static void print_block(char *const *above, char *const *below, const size_t *widths,
                        size_t count) {
    for (int line = 0; line < 2; line++) {
        fputs("  ", stdout);
        for (size_t i = 0; i < count; i++) {
            const char *text = line == 0 ? above[i] : below[i];
            put_padded(text, i + 1 < count ? widths[i] + 2 : 0);
        }
        putchar('\n');
    }
    putchar('\n');
}

static int print_aligned(const struct words *words, char *const *outputs) {
    size_t *widths = malloc((words->count + 1) * sizeof *widths);
    if (widths == NULL)
        return fail("out of memory for the output");
    size_t limit = terminal_width(), begin = 0, used = 2;
    for (size_t i = 0; i < words->count; i++) {
        size_t above = display_width(words->text[i]), below = display_width(outputs[i]);
        widths[i] = above > below ? above : below;
        if (i > begin && used + widths[i] > limit) {
            print_block(words->text + begin, outputs + begin, widths + begin, i - begin);
            begin = i;
            used = 2;
        }
        used += widths[i] + 2;
    }
    print_block(words->text + begin, outputs + begin, widths + begin, words->count - begin);
    free(widths);
    return output_flush();
}

static int show(const struct words *words, const struct session *session,
                const iso_generation *generation) {
    char **outputs = calloc(words->count + 1, sizeof *outputs);
    if (outputs == NULL)
        return fail("out of memory for the output");
    const iso_hypothesis *best = generation->best;
    bool complete = true;
    for (size_t i = 0; i < words->count && complete; i++) {
        size_t sequences = words->batch.line_sequences.data[i];
        outputs[i] = word_output(session, best, sequences);
        complete = outputs[i] != NULL;
        best += sequences;
    }
    int code = complete ? print_aligned(words, outputs) : fail("out of memory for the output");
    for (size_t i = 0; i < words->count; i++)
        free(outputs[i]);
    free((void *)outputs);
    return code;
}

/* -------------------------------------------------------------------------------- measurement */

static int compute(iso_generation **generation, const struct words *words,
                   const struct session *session, const iso_context *context) {
    const iso_generate_options how = {.size = sizeof how};
    iso_error error = {0};
    iso_status status = iso_generate(generation, session->model, words->batch.sources.data,
                                     words->batch.source_lengths.data,
                                     words->batch.source_lengths.count, &how, context, &error);
    return status == ISOBIT_OK ? 0 : fail_error(&error, status);
}

/* The hash of all outputs; `alone`: every sequence in a call of its own. */
static int hash_text(char *hash, const struct words *words, const struct session *session,
                     const iso_context *context, bool alone) {
    struct digest digest = {0};
    if (!digest_open(&digest))
        return fail("out of memory for the hash");
    const struct batch *all = &words->batch;
    size_t total = all->source_lengths.count, step = alone ? 1 : total;
    const uint32_t *ids = all->sources.data;
    int code = 0;
    for (size_t i = 0; i < total && code == 0; i += step) {
        struct words part = {
            .batch = {.sources = {.data = (uint32_t *)ids},
                      .source_lengths = {.data = all->source_lengths.data + i, .count = step}}};
        iso_generation *generation = NULL;
        code = compute(&generation, &part, session, context);
        for (size_t j = 0; code == 0 && j < step; j++) {
            iso_generation one = {.count = 1, .hypotheses = 1, .best = &generation->best[j]};
            digest_generation(&digest, &one);
            ids += all->source_lengths.data[i + j];
        }
        iso_generation_free(generation);
    }
    snprintf(hash, HASH_DIGITS + 1, "%016llx", (unsigned long long)digest_value(&digest));
    digest_close(&digest);
    return code;
}

/*
 * Once for the hash and to warm up; where that was quick, again for a while. The best pass counts:
 * what else the machine did meanwhile is not of interest.
 */
static int measure(struct table *table, const char *name, const struct words *words,
                   const struct session *session, const iso_context *context, bool alone) {
    if (table->count == MAX_ROWS)
        return 0;
    struct row *row = &table->rows[table->count++];
    snprintf(row->name, sizeof row->name, "%s", name);
    const double start = seconds_now();
    int code = hash_text(row->hash, words, session, context, alone);
    double best = seconds_now() - start;
    for (int runs = 1; code == 0; runs++) {
        char again[HASH_DIGITS + 1];
        const double begin = seconds_now();
        if (begin - start > (runs < 5 ? patience_seconds : measure_seconds))
            break;
        code = hash_text(again, words, session, context, alone);
        best = fmin(best, seconds_now() - begin);
        if (code == 0 && strcmp(again, row->hash) != 0)
            code = fail("%s: two runs gave different hashes: please report this", name);
    }
    row->words_per_second = (double)words->batch.source_lengths.count / best;
    return code;
}

/* ------------------------------------------------------------------------- another program */

static void quote(char *to, size_t bytes, const char *text) {
    size_t used = 0;
    to[used++] = '\'';
    for (; *text != '\0' && used + 6 < bytes; text++) {
        if (*text == '\'') {
            memcpy(to + used, "'\\''", 4);
            used += 4;
        } else {
            to[used++] = *text;
        }
    }
    to[used++] = '\'';
    to[used] = '\0';
}

/* Runs COMMAND demo --row and adds what it prints, named after the program it begins with. */
static int add_other(struct table *table, const struct options *options) {
    if (table->count == MAX_ROWS)
        return 0;
    char model[1024], text[1024] = "", *command = NULL;
    quote(model, sizeof model, options->model);
    if (options->text != NULL)
        quote(text, sizeof text, options->text);
    if (asprintf(&command, "%s demo --row --model %s %s %s", options->also, model,
                 options->text != NULL ? "--text" : "", text) < 0)
        return fail("out of memory");
    FILE *pipe = popen(command, "r");
    free(command);
    if (pipe == NULL)
        return fail("cannot run %s: %s", options->also, strerror(errno));
    char line[200] = "";
    bool printed = fgets(line, sizeof line, pipe) != NULL;
    int status = pclose(pipe);
    char *rest = NULL, *isa = strtok_r(line, " ", &rest), *speed = strtok_r(NULL, " ", &rest),
         *hash = strtok_r(NULL, "\n", &rest);
    if (!printed || hash == NULL || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return fail("--also: this gave no result: %s demo --row", options->also);
    struct row *row = &table->rows[table->count];
    row->words_per_second = strtod(speed, NULL);
    snprintf(row->hash, sizeof row->hash, "%s", hash);
    size_t first = strcspn(options->also, " ");
    const char *program = options->also;
    for (size_t i = 0; i < first; i++)
        if (options->also[i] == '/')
            program = options->also + i + 1;
    snprintf(row->name, sizeof row->name, "%s, %.*s", isa,
             (int)(first - (size_t)(program - options->also)), program);
    table->count++;
    return 0;
}

/* ------------------------------------------------------------------------------------ the table */

static int print_table(const struct table *table) {
    const char *no_color = getenv("NO_COLOR"); /* as its convention has it, unless it is empty */
    bool fancy = is_fancy_terminal(stdout) && (no_color == NULL || no_color[0] == '\0');
    const char *bold = fancy ? "\033[1m" : "", *plain = fancy ? "\033[0m" : "";
    printf("  %s%-32s %9s  hash (XXH3) of all outputs and scores%s\n", bold, "instruction set",
           "words/s", plain);
    bool equal = true;
    for (size_t i = 0; i < table->count; i++) {
        const struct row *row = &table->rows[i];
        printf("  %-32s %9.*f  %s\n", row->name, row->words_per_second < 100 ? 1 : 0,
               row->words_per_second, row->hash);
        equal = equal && strcmp(row->hash, table->rows[0].hash) == 0;
    }
    for (size_t i = 0; i < iso_isa_count(); i++) {
        const iso_isa *isa = iso_isa_get(i);
        if (iso_isa_missing(isa) != NULL)
            printf("  %-32s %9s  not run: %s\n", iso_isa_name(isa), "-", iso_isa_missing(isa));
    }
    putchar('\n');
    if (!equal) {
        output_flush();
        return fail("the hashes differ: please report this with the output of isobit info");
    }
    printf("  %sAll %zu hashes are equal%s: every result has the same bits.\n", bold, table->count,
           plain);
    return output_flush();
}

static int measure_all(struct table *table, const struct words *words,
                       const struct session *session, const struct options *options) {
    int code = 0;
    for (size_t i = 0; i < iso_isa_count() && code == 0; i++) {
        iso_context context = session->context;
        context.isa = iso_isa_get(i);
        bool wanted = options->isa == NULL || context.isa == session->context.isa;
        if (wanted && iso_isa_missing(context.isa) == NULL)
            code = measure(table, iso_isa_name(context.isa), words, session, &context, false);
    }
    iso_context alone = session->context;
    alone.executor = NULL;
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%s, 1 thread, word by word", iso_isa_name(alone.isa));
    if (code == 0)
        code = measure(table, name, words, session, &alone, true);
    if (code == 0 && options->also != NULL)
        code = add_other(table, options);
    return code;
}

static int print_row(const struct words *words, const struct session *session) {
    struct table table = {.count = 0};
    int code = measure(&table, iso_isa_name(session->context.isa), words, session,
                       &session->context, false);
    if (code == 0)
        printf("%s %.3f %s\n", table.rows[0].name, table.rows[0].words_per_second,
               table.rows[0].hash);
    return code;
}

static int draw(const struct session *session, const struct options *options) {
    struct words words = {0};
    const iso_generate_options how = {.size = sizeof how};
    struct line line = {picture_text, sizeof picture_text - 1, 1};
    int code = add_words(&words, session, &line);
    if (code == 0)
        code = attention_picture(session, options, &how, words.batch.sources.data,
                                 words.batch.source_lengths.data, words.batch.source_lengths.count);
    if (code == 0)
        printf("\n  %s shows what the model looks at while it reads \"%s\".\n", options->attention,
               picture_text);
    words_free(&words);
    return code;
}

static int demonstrate(const struct words *words, const struct session *session,
                       const struct options *options) {
    size_t threads = session->context.executor != NULL ? session->context.executor->max_threads : 1;
    printf("  %zu words, %s, %zu parameters, %zu thread%s\n\n", words->batch.source_lengths.count,
           options->model, session->info->parameters, threads, threads == 1 ? "" : "s");
    iso_generation *generation = NULL;
    int code = compute(&generation, words, session, &session->context);
    if (code == 0)
        code = show(words, session, generation);
    iso_generation_free(generation);
    struct table table = {.count = 0};
    if (code == 0)
        code = measure_all(&table, words, session, options);
    if (code == 0)
        code = print_table(&table);
    if (code == 0 && options->attention != NULL)
        code = draw(session, options);
    return code;
}

int cmd_demo(const struct options *options) {
    struct session session;
    struct words words = {0};
    const char *numerics = iso_numerics(NULL);
    if (numerics == NULL)
        return wrong_numerics();
    if (strncmp(numerics, "native", 6) == 0)
        fputs(
            "isobit: demo: ISOBIT_NUMERICS=native does not count: what is compared here is fixed\n",
            stderr);
    (void)iso_set_numerics("fixed");
    int code = session_open(&session, options, NEEDS_TEXT | NEEDS_ENCODER | NEEDS_DECODER);
    if (code == 0)
        code = words_read(&words, &session, options);
    if (code == 0)
        code = options->row ? print_row(&words, &session) : demonstrate(&words, &session, options);
    words_free(&words);
    session_close(&session);
    return code;
}
