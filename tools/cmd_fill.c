/* SPDX-License-Identifier: MIT
 *
 * isobit fill: which tokens a masked language model expects where a text has a mask.
 */
#include "cli.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOP = 5 };

/* A token for a mask. */
struct candidate {
    uint32_t id;
    float probability;
};

/* What is known of one line: for each mask its position and its best tokens, best first. */
struct filling {
    size_t masks, top;
    size_t *positions;            /* [masks] */
    struct candidate *candidates; /* [masks][top] */
    uint32_t *ids;                /* of the text with the best tokens */
    size_t length;
};

/* --------------------------------------------------------------------------------- the tokens */

static bool parse(struct batch *batch, const struct session *session, const struct line *line) {
    const size_t ids = batch->sources.count, sequences = batch->source_lengths.count;
    if (!batch_parse_text(batch, session, line))
        return false;
    bool found = batch->sources.count == ids; /* an empty line stays empty */
    for (size_t i = ids; i < batch->sources.count; i++)
        found = found || batch->sources.data[i] == session->mask_id;
    if (found)
        return true;
    batch->source_lengths.count = sequences;
    batch->line_sequences.count--;
    snprintf(batch->error, sizeof batch->error, "has no mask; write %s where a token is missing",
             iso_tokenizer_token(session->tokenizer, session->mask_id));
    return false;
}

/* The `top` largest, of equal ones the first. */
static void choose(struct candidate *best, size_t top, const float *probabilities, size_t count) {
    size_t have = 0;
    for (size_t i = 0; i < count; i++) {
        if (have == top && !(probabilities[i] > best[top - 1].probability))
            continue;
        size_t at = have < top ? have++ : top - 1;
        for (; at > 0 && probabilities[i] > best[at - 1].probability; at--)
            best[at] = best[at - 1];
        best[at] = (struct candidate){(uint32_t)i, probabilities[i]};
    }
}

static void filling_free(struct filling *f) {
    free(f->positions);
    free(f->candidates);
    free(f->ids);
    *f = (struct filling){0};
}

static int out_of_memory(void) { return fail("out of memory for the tokens"); }

/* The logits of each mask become candidates. */
static int take_candidates(struct filling *f, const struct session *session, float *logits) {
    const size_t V = session->info->target_vocabulary;
    const iso_softmax_options softmax = {.size = sizeof softmax};
    for (size_t m = 0; m < f->masks; m++) {
        float *row = logits + m * V;
        struct candidate *best = f->candidates + m * f->top;
        iso_status status = iso_softmax_f32(row, V, row, V, 1, V, &softmax, &session->context);
        if (status != ISOBIT_OK)
            return fail("softmax: %s", iso_strerror(status));
        choose(best, f->top, row, V);
        f->ids[f->positions[m]] = best[0].id;
    }
    return 0;
}

static int fill(struct filling *f, const struct session *session, const struct options *options,
                const uint32_t *ids, size_t length) {
    const size_t V = session->info->target_vocabulary;
    size_t top = options->top != 0 ? options->top : DEFAULT_TOP;
    *f = (struct filling){.top = top < V ? top : V, .length = length};
    f->positions = calloc(length, sizeof *f->positions);
    f->ids = calloc(length, sizeof *f->ids);
    if (f->positions == NULL || f->ids == NULL)
        return out_of_memory();
    memcpy(f->ids, ids, length * sizeof *ids);
    for (size_t i = 0; i < length; i++)
        if (ids[i] == session->mask_id)
            f->positions[f->masks++] = i;
    f->candidates = calloc(f->masks * f->top + 1, sizeof *f->candidates);
    float *logits = calloc(f->masks + 1, V * sizeof *logits);
    int code = f->candidates == NULL || logits == NULL ? out_of_memory() : 0;
    if (code == 0) {
        iso_error error = {0};
        iso_status status = iso_token_logits_at_f32(
            logits, session->model, ids, length, f->positions, f->masks, &session->context, &error);
        code =
            status == ISOBIT_OK ? take_candidates(f, session, logits) : fail_error(&error, status);
    }
    free(logits);
    return code;
}

/* ------------------------------------------------------------------------------------- output */

/* A token as text; what is none when read alone, like [SEP], as the vocabulary writes it. */
static char *token_text(const struct session *session, uint32_t id) {
    char *text = decode_text(session, &id, 1);
    if (text == NULL || text[0] != '\0')
        return text;
    free(text);
    const char *token = iso_tokenizer_token(session->tokenizer, id);
    return strdup(token != NULL ? token : "");
}

/* In quotes, so that spaces are seen and no token breaks a line. */
static int print_candidate(const struct session *session, const struct candidate *c) {
    char *text = token_text(session, c->id);
    json_t *string = text != NULL ? json_string(text) : NULL;
    char *quoted = json_dumps(string, JSON_ENCODE_ANY);
    if (quoted != NULL)
        printf("  %.6f  %s\n", (double)c->probability, quoted);
    free(quoted);
    json_decref(string);
    free(text);
    return quoted != NULL ? 0 : out_of_memory();
}

static int print_text(const struct session *session, const struct filling *f) {
    int code = 0;
    for (size_t m = 0; m < f->masks; m++) {
        if (f->masks > 1)
            printf("mask %zu\n", m + 1);
        for (size_t i = 0; i < f->top && code == 0; i++)
            code = print_candidate(session, &f->candidates[m * f->top + i]);
    }
    char *text = decode_text(session, f->ids, f->length);
    if (text == NULL)
        return out_of_memory();
    puts(text);
    free(text);
    return code;
}

static json_t *json_text(char *text) {
    json_t *string = text != NULL ? json_string(text) : NULL;
    free(text);
    return string;
}

static json_t *json_candidate(const struct session *session, const struct candidate *c) {
    return json_pack("{s:I, s:s?, s:o, s:o}", "id", (json_int_t)c->id, "token",
                     iso_tokenizer_token(session->tokenizer, c->id), "text",
                     json_text(token_text(session, c->id)), "probability",
                     isfinite(c->probability) ? json_real((double)c->probability) : json_null());
}

static json_t *json_mask(const struct session *session, const struct filling *f, size_t mask) {
    json_t *tokens = json_array();
    bool good = true;
    for (size_t i = 0; i < f->top && good; i++)
        good = json_array_append_new(
                   tokens, json_candidate(session, &f->candidates[mask * f->top + i])) == 0;
    if (good)
        return json_pack("{s:I, s:o}", "position", (json_int_t)f->positions[mask], "tokens",
                         tokens);
    json_decref(tokens);
    return NULL;
}

static int print_json(const struct session *session, unsigned long long number,
                      const struct filling *f) {
    json_t *masks = json_array();
    for (size_t m = 0; m < f->masks; m++)
        json_array_append_new(masks, json_mask(session, f, m));
    json_t *object = json_pack(
        "{s:I, s:o, s:o}", "line", (json_int_t)number, "masks", masks, "text",
        f->length > 0 ? json_text(decode_text(session, f->ids, f->length)) : json_string(""));
    char *text = object != NULL ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(object);
    if (text == NULL)
        return out_of_memory();
    puts(text);
    free(text);
    return 0;
}

static void add_to_digest(struct digest *digest, const struct filling *f) {
    digest_size(digest, f->masks);
    for (size_t i = 0; i < f->masks * f->top; i++) {
        digest_ids(digest, &f->candidates[i].id, 1);
        digest_floats(digest, &f->candidates[i].probability, 1);
    }
}

/* ---------------------------------------------------------------------------------- the loop */

static int put_line(struct lines *l, unsigned long long number, const uint32_t *ids,
                    size_t length) {
    const struct options *options = l->options;
    const struct session *session = &l->session;
    struct filling filling = {0};
    int code = length > 0 ? fill(&filling, session, options, ids, length) : 0;
    if (code == 0 && options->digest)
        add_to_digest(&l->digest, &filling);
    else if (code == 0 && options->json)
        code = print_json(session, number, &filling);
    else if (code == 0 && length > 0)
        code = print_text(session, &filling);
    else if (code == 0)
        puts("");
    filling_free(&filling);
    if (code == 0 && !options->digest)
        code = output_flush();
    return code;
}

static int put_batch(struct lines *l) {
    const struct batch *batch = &l->batch;
    const uint32_t *ids = batch->sources.data;
    const size_t *length = batch->source_lengths.data;
    int code = 0;
    for (size_t line = 0; line < batch->line_sequences.count && code == 0; line++) {
        const bool empty = batch->line_sequences.data[line] == 0;
        code = put_line(l, batch->first_line + line, ids, empty ? 0 : *length);
        if (!empty)
            ids += *length++;
    }
    return code;
}

static int begin(struct lines *l) {
    l->session.mask_id = find_mask(l->session.tokenizer);
    if (l->session.mask_id == UINT32_MAX)
        return fail("the tokenizer of the model has no mask token, neither [MASK] nor <mask>");
    return 0;
}

int cmd_fill(const struct options *options) {
    static const struct lines_command command = {
        .needs = NEEDS_TEXT | NEEDS_MASKED_HEAD, .parse = parse, .begin = begin, .put = put_batch};
    return lines_run(options, &command, NULL);
}
