/* SPDX-License-Identifier: MIT
 *
 * What the files of the command line share. One file is one concern:
 *   messages.c what stderr is told
 *   options.c  the option table: parsing and --help      session.c  model, tokenizer, threads
 *   input.c    lines from arguments, a file or a pipe    batch.c    lines to sequences of ids
 *   output.c   stdout with its errors, text widths       digest.c   the hash of results
 *   progress.c the line on stderr                        svg.c      the attention picture
 *   random_model.c  a model to measure                   stream.c   text that is shown as it comes
 *   target.c   files that appear at once             lines.c    the loop of most commands
 * Functions that return int return an exit code: 0, 1 (failed) or 2 (wrong usage); whoever finds
 * an error prints its one line, through fail() or usage().
 */
#ifndef ISOBIT_TOOLS_CLI_H
#define ISOBIT_TOOLS_CLI_H

#include <isobit/model.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <xxhash.h>

#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

/* "isobit: " and the text on stderr, in one line. They return the exit code, 1 and 2. */
int fail(const char *format, ...) PRINTF_LIKE(1, 2);
int usage(const char *format, ...) PRINTF_LIKE(1, 2);
/* The same of what is no error; it wipes the line of progress. */
void warn(const char *format, ...) PRINTF_LIKE(1, 2);

/* Prints the message of a failed call, or what the status means when there is none. */
int fail_error(const iso_error *error, iso_status status);

/* ---------------------------------------------------------------------------------- options */

enum {
    OPT_MODEL = 1 << 0,
    OPT_BEAM = 1 << 1,
    OPT_MAX_LENGTH = 1 << 2,
    OPT_THREADS = 1 << 3,
    OPT_ISA = 1 << 4,
    OPT_SCORES = 1 << 5,
    OPT_JSON = 1 << 6,
    OPT_HEX = 1 << 7,
    OPT_DIGEST = 1 << 8,
    OPT_ATTENTION = 1 << 9,
    OPT_LAYER = 1 << 10,
    OPT_TEXT = 1 << 11,
    OPT_ALSO = 1 << 12, /* and --row, for what it calls */
    OPT_COMPUTE = 1 << 13,
    OPT_BASE = 1 << 14,
    OPT_SECONDS = 1 << 15,
    OPT_QUANTIZE = 1 << 16, /* --to and all that goes with it */
    OPT_INPUT = 1 << 17,
    OPT_STRICT = 1 << 18,
    OPT_SAMPLING = 1 << 19, /* --sample and all that goes with it */
    OPT_STREAM = 1 << 20,
    OPT_ABOUT = 1 << 21, /* --model, which may be left out, and --env */
    OPT_POOLING = 1 << 22,
    OPT_NPY = 1 << 23,
    OPT_TOP = 1 << 24,
    OPT_STOP = 1 << 25,
    OPT_AS_TEXT = 1 << 26,
    OPT_LANGUAGES = 1 << 27,
    OPT_MAP = 1 << 28,
    OPT_EXPLAIN = 1 << 29,
    OPT_POSITIONS = 1 << 30 /* --positions and --cache: what decoders alone ask of a model */
};

/* Where 0 is a value like any other. */
struct given_number {
    bool given;
    uint64_t value;
};
struct given_real {
    bool given;
    float value;
};

struct given_texts {
    const char *text[64];
    size_t count;
};

struct options {
    const char *from, *to; /* languages */
    const char *of;        /* whose attention is drawn */
    const char *cache;     /* the type of keys and values */
    const char *compute;   /* what linear layers multiply */
    const char *model, *isa, *attention, *text, *also, *input;
    size_t beam, max_length, threads, layer; /* 0: not given */
    size_t samples, top, positions, group;   /* 0: not given */
    struct given_number top_k, seed;
    struct given_real temperature, top_p, min_p;
    double seconds; /* 0: not given */
    bool scores, json, hex, digest, row, base, env, strict, sample, stream, as_text, map, widen;
    bool transposed, causal; /* of what is explained */
    const char *pooling, *normalize, *npy;
    const char *type, *out; /* what is written, and where */
    struct given_texts stop, keep;
    int count; /* what is left: lines given as arguments */
    char **arguments;
};

struct command {
    const char *name, *arguments, *summary, *details;
    unsigned options; /* OPT_... that it takes */
    bool takes_arguments;
    int (*run)(const struct options *options);
    int (*run_raw)(int argc, char **argv); /* instead: options are its own affair */
};

/* Parses argv[1...]; true: go on. false: leave with *code (help was printed, or an error). */
bool options_parse(struct options *options, const struct command *command, int argc, char **argv,
                   int *code);
/* The iso_cache that --cache names; a number that none has for another name. */
size_t cache_type(const struct options *options);
/* The iso_compute of --compute, likewise. */
size_t compute_type(const struct options *options);

int cmd_info(const struct options *options);
int cmd_run(const struct options *options);
int cmd_generate(const struct options *options);
int cmd_score(const struct options *options);
int cmd_demo(const struct options *options);
int cmd_bench(const struct options *options);
int cmd_check(int argc, char **argv);
int cmd_embed(const struct options *options);
int cmd_fill(const struct options *options);
int cmd_explain(const struct options *options);
int cmd_quantize(const struct options *options);

/* ---------------------------------------------------------------------------------- session */

/* A model that is ready to compute. Close it also when opening failed. */
struct session {
    iso_model *model;
    const iso_model_info *info;
    iso_tokenizer *tokenizer; /* NULL unless asked for */
    iso_stop *stop;           /* NULL unless there is a --stop */
    iso_pool *pool;
    iso_context context;
    uint32_t mask_id; /* of fill; set by it */
};

/* What a command cannot do without, beside the model. */
enum { NEEDS_TEXT = 1, NEEDS_ENCODER = 2, NEEDS_DECODER = 4, NEEDS_MASKED_HEAD = 8 };
int session_open(struct session *session, const struct options *options, unsigned needs);
/* Only what it would run on: instruction set and threads. */
int session_prepare(struct session *session, const struct options *options);
void session_close(struct session *session);
/* Lets targets begin with their language, if the tokenizer has one, and end as --stop says. */
void session_begin(const struct session *session, iso_generate_options *how);

/* The token that stands for a missing one; UINT32_MAX: the tokenizer has none. */
uint32_t find_mask(const iso_tokenizer *tokenizer);

/* "native (avx512_bf16)", to be told beside each hash; NULL in fixed numerics. */
const char *native_numerics(const iso_context *context);
/* Exit code 2, after a line about ISOBIT_NUMERICS. */
int wrong_numerics(void);
/* Sets the instruction set of the context from --isa and ISOBIT_ISA. */
int choose_isa(iso_context *context, const struct options *options);

/*
 * The base model of the paper with random weights, in a new temporary directory; remove it also
 * when making failed.
 */
enum { RANDOM_MODEL_PATH = 512 };
int random_model_make(char directory[RANDOM_MODEL_PATH]);
void random_model_remove(const char *directory);

/* ------------------------------------------------------------------------------------ input */

struct line {
    const char *text; /* not terminated; valid until the next call */
    size_t bytes;
    unsigned long long number; /* from 1 */
};

struct input {
    char *buffer;
    size_t begin, end, capacity; /* what of the buffer is not read yet */
    int fd;                      /* -1: all is in the buffer */
    bool at_end;
    unsigned long long lines;
    double done, total; /* bytes; total 0: not known */
};

/* Lines of the arguments if there are any, of --input, or of standard input. */
int input_open(struct input *input, const struct options *options);
int input_open_file(struct input *input, const char *path);
void input_close(struct input *input);

/* The next line, waiting for it: 1, or 0 at the end, or -1 after printing an error. */
int input_next(struct input *input, struct line *line);

/* True when input_next would not have to wait. */
bool input_ready(const struct input *input);

/* ------------------------------------------------------------------------------------ batch */

/* Growing arrays; `grow` makes room for `extra` more elements. */
struct ids {
    uint32_t *data;
    size_t count, capacity;
};
struct sizes {
    size_t *data;
    size_t count, capacity;
};
bool ids_grow(struct ids *ids, size_t extra);
bool sizes_grow(struct sizes *sizes, size_t extra);

/* What becomes of a line with characters that the vocabulary lacks. */
enum lacking {
    LACKING_SILENT = 0, /* it is used without them */
    LACKING_WARN,       /* the same; what became no token is told on stderr */
    LACKING_STRICT      /* it is refused */
};

/* Some lines that are computed together. Sequences lie one after the other. */
struct batch {
    struct ids sources, targets;
    struct sizes source_lengths, target_lengths;
    struct sizes line_sequences; /* for each line, how many sequences it has */
    unsigned long long first_line;
    size_t limit;    /* of sequences; 0 at first */
    double returned; /* when batch_read last gave something */
    enum lacking lacking;
    unsigned long long lacking_lines, lacking_characters; /* of which characters were left out */
    unsigned long long cut_lines, first_cut; /* lines that were too long, and the first of them */
    size_t cut_to;                           /* so many tokens */
    size_t given;    /* tokens at the beginning of each target that no text asks for */
    char error[700]; /* why the line after the last one cannot be used; "" when it can */
};

typedef bool (*batch_parser)(struct batch *batch, const struct session *session,
                             const struct line *line);
bool batch_parse_text(struct batch *batch, const struct session *session, const struct line *line);
/* One sequence for each line, cut as sentence-transformers cuts. */
bool batch_parse_sentence(struct batch *batch, const struct session *session,
                          const struct line *line);
bool batch_parse_ids(struct batch *batch, const struct session *session, const struct line *line);
bool batch_parse_pair(struct batch *batch, const struct session *session, const struct line *line);
/* The same of text. Of a decoder alone what precedes the TAB may be missing. */
bool batch_parse_text_pair(struct batch *batch, const struct session *session,
                           const struct line *line);

/*
 * Fills the batch with lines that are there, at least one, waiting for the first only: a pipe
 * gets its answers as soon as possible, a file is taken in pieces that take about a second. False
 * at the end.
 */
bool batch_read(struct batch *batch, struct input *input, const struct session *session,
                batch_parser parse, int *code);
/* Says what batch_read has left out beyond the first lines, which it named. */
void batch_warn_rest(const struct batch *batch);
void batch_free(struct batch *batch);

/* ----------------------------------------------------------------------------------- output */

/* Flushes stdout; 1 with a message if anything written so far was lost. */
int output_flush(void);

/* True when colours and moving the cursor are welcome on this stream. */
bool is_fancy_terminal(FILE *stream);

/* The next code point of valid UTF-8, moving *text on; 0 at the end. */
uint32_t next_code_point(const char **text);
bool is_combining(uint32_t code_point);
size_t display_width(const char *text);

/* The text of a sequence as malloced string; NULL when memory ran out. */
char *decode_text(const struct session *session, const uint32_t *ids, size_t count);
/* That of one that still grows: what it has will stay. */
char *decode_partial(const struct session *session, const uint32_t *ids, size_t count);
/*
 * What a model has made of a source, up to a text of --stop. Of a decoder alone it begins with the
 * source, which takes *begins bytes; 0 also where it cannot be told from the rest.
 */
char *decode_answer(const struct session *session, const uint32_t *source, size_t length,
                    const iso_hypothesis *best, size_t *begins);
/* The bytes of a text to show: from `begins` on up to a text of --stop. `partial`: it still grows.
 */
size_t shown_bytes(const struct session *session, const char *text, size_t begins, bool partial);
char *decode_source(const struct session *session, const uint32_t *ids, size_t count);

/* ----------------------------------------------------------------------------------- stream */

/* Generates one sequence and prints its text, or its ids, as they come. */
int stream_sequence(const struct session *session, const iso_generate_options *how,
                    const uint32_t *source, size_t length);

/* ----------------------------------------------------------------------------------- target */

/* A file that appears when it is complete. */
struct target {
    FILE *file;
    char *path, *temporary; /* of the file itself, links followed; NULL: written as it is */
};
/* False, and errno, if it cannot be written; then nothing needs to be closed. */
bool target_open(struct target *target, const char *path);
/* False, and errno, if anything was lost on the way; then nothing has changed. */
bool target_close(struct target *target);
void target_discard(struct target *target); /* instead: nothing has changed */

/* ----------------------------------------------------------------------------------- digest */

/* XXH3-64 over lengths, ids and the bits of floats. */
struct digest {
    XXH3_state_t *state;
};
bool digest_open(struct digest *digest);
void digest_close(struct digest *digest);
void digest_size(struct digest *digest, size_t value);
void digest_ids(struct digest *digest, const uint32_t *ids, size_t count);
void digest_floats(struct digest *digest, const float *floats, size_t count);
void digest_generation(struct digest *digest, const iso_generation *generation);
uint64_t digest_value(const struct digest *digest);

/* ------------------------------------------------------------------------------------ lines */

/* A command that reads batches of lines and writes what becomes of them. */
struct lines {
    const struct options *options;
    struct session session;
    struct input input;
    struct batch batch;
    struct digest digest;
    void *user; /* of the command */
};
struct lines_command {
    unsigned needs; /* NEEDS_... */
    batch_parser parse;
    int (*begin)(struct lines *lines); /* before the first batch; or NULL */
    int (*put)(struct lines *lines);   /* a batch */
    int (*end)(struct lines *lines);   /* after the last one, if nothing has failed; or NULL */
};
int lines_run(const struct options *options, const struct lines_command *command, void *user);

/* --------------------------------------------------------------------------------- progress */

struct progress {
    bool on;
    double start, shown;
};
double seconds_now(void);
void progress_start(struct progress *progress);
void progress_show(struct progress *progress, const struct input *input);
void progress_bytes(struct progress *progress, uint64_t done, uint64_t total);
void progress_end(struct progress *progress);

/* -------------------------------------------------------------------------------------- svg */

/* One word, or sentence: weights [heads][targets][sources] of one layer, labels of both axes. */
struct heat_map {
    const char *title;
    const float *weights;
    size_t heads, sources, targets;
    const char *const *source_labels;
    const char *const *target_labels;
};
struct caption {
    const char *heading, *axes; /* the latter says what is across, and what down */
    char subtitle[160];
};
int svg_write(const char *path, const struct heat_map *maps, size_t count,
              const struct caption *caption);

/* The kind of attention that --of asks for, else the one that the model has (cross-attention where
 * it has several), and how many layers there are of it. */
int attention_kind(const iso_model_info *info, const struct options *options,
                   iso_attention_kind *kind, size_t *layers);

/* Computes the given sequences again with their attention, and writes the picture. `how` is not
 * needed, and may be NULL, for that of the encoder. */
int attention_picture(const struct session *session, const struct options *options,
                      const iso_generate_options *how, const uint32_t *ids, const size_t *lengths,
                      size_t count);

/* The sequences of the first line that has something to draw. */
struct picture {
    struct ids ids;
    struct sizes lengths;
};
/* Keeps them, if there is an --attention and none are kept yet. */
int picture_keep(struct picture *picture, const struct options *options, const struct batch *batch);
/* Draws what has been kept, if there is an --attention. */
int picture_draw(const struct picture *picture, const struct session *session,
                 const struct options *options, const iso_generate_options *how);
void picture_free(struct picture *picture);

#endif
