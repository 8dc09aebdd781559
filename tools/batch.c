/* SPDX-License-Identifier: MIT
 *
 * Lines become sequences of token ids, many lines at a time. Everything that can be wrong with a
 * line is found here, so that messages can name it, and the lines before it still get their answer.
 */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SEQUENCES = 32, BATCH_SEQUENCES = 1024, BATCH_IDS = 1 << 15 };

static const double short_batch = 0.25, long_batch = 1; /* seconds */

/* The sum of both, doubled until it fits; 0 when that is impossible. */
static size_t room_for(size_t capacity, size_t count, size_t extra, size_t element) {
    if (extra > SIZE_MAX / element / 2 - count)
        return 0;
    size_t wanted = capacity < 64 ? 64 : capacity;
    while (wanted < count + extra)
        wanted *= 2;
    return wanted;
}

bool ids_grow(struct ids *ids, size_t extra) {
    if (ids->data != NULL && ids->capacity - ids->count >= extra)
        return true;
    size_t capacity = room_for(ids->capacity, ids->count, extra, sizeof *ids->data);
    uint32_t *data = capacity > 0 ? realloc(ids->data, capacity * sizeof *data) : NULL;
    if (data == NULL)
        return false;
    ids->data = data;
    ids->capacity = capacity;
    return true;
}

bool sizes_grow(struct sizes *sizes, size_t extra) {
    if (sizes->data != NULL && sizes->capacity - sizes->count >= extra)
        return true;
    size_t capacity = room_for(sizes->capacity, sizes->count, extra, sizeof *sizes->data);
    size_t *data = capacity > 0 ? realloc(sizes->data, capacity * sizeof *data) : NULL;
    if (data == NULL)
        return false;
    sizes->data = data;
    sizes->capacity = capacity;
    return true;
}

static bool push_size(struct sizes *sizes, size_t value) {
    if (!sizes_grow(sizes, 1))
        return false;
    sizes->data[sizes->count++] = value;
    return true;
}

#define REFUSE(batch, ...) (snprintf((batch)->error, sizeof(batch)->error, __VA_ARGS__), false)

static bool refuse_memory(struct batch *batch) { return REFUSE(batch, "out of memory"); }

static bool check_length(struct batch *batch, const struct session *session, const char *what,
                         size_t length, size_t reserved) {
    size_t most = session->info->max_positions;
    if (length + reserved > most)
        return REFUSE(batch, "%zu %s tokens, but the model takes at most %zu", length, what,
                      most - reserved);
    return true;
}

/* ------------------------------------------------------------------------------------- text */

enum { NAMED_LINES = 10 }; /* that a warning names */

/* What becomes of a line with so many characters that are unknown, or in no token. */
static bool judge_lacking(struct batch *batch, const struct line *line, size_t unknown,
                          size_t dropped) {
    if (batch->lacking == LACKING_STRICT && unknown + dropped > 0)
        return REFUSE(batch, "the vocabulary lacks %zu character%s (--strict)", unknown + dropped,
                      unknown + dropped == 1 ? "" : "s");
    if (dropped == 0)
        return true;
    batch->lacking_lines++;
    batch->lacking_characters += dropped;
    if (batch->lacking_lines <= NAMED_LINES)
        warn("line %llu: without %zu character%s that the vocabulary lacks", line->number, dropped,
             dropped == 1 ? "" : "s");
    return true;
}

void batch_warn_rest(const struct batch *batch) {
    if (batch->lacking_lines > NAMED_LINES)
        warn("in all, %llu lines without %llu characters that the vocabulary lacks",
             batch->lacking_lines, batch->lacking_characters);
    if (batch->cut_lines > 0)
        warn("%llu line%s cut to %zu tokens, line %llu first", batch->cut_lines,
             batch->cut_lines == 1 ? " was" : "s were", batch->cut_to, batch->first_cut);
}

/* Adds what the vocabulary lacks of a text as a source, or as a target. */
static bool add_lacking(struct batch *batch, const struct session *session, bool target,
                        const char *text, size_t bytes, size_t *unknown, size_t *dropped) {
    size_t more[2] = {0};
    iso_error error = {0};
    const iso_status status =
        target ? iso_tokenizer_target_lacks(session->tokenizer, text, bytes, &more[0], &more[1],
                                            &error)
               : iso_tokenizer_lacks(session->tokenizer, text, bytes, &more[0], &more[1], &error);
    if (status != ISOBIT_OK)
        return REFUSE(batch, "%s", error.message[0] != '\0' ? error.message : iso_strerror(status));
    *unknown += more[0];
    *dropped += more[1];
    return true;
}

static bool find_lacking(struct batch *batch, const struct session *session,
                         const struct line *line) {
    size_t unknown = 0, dropped = 0;
    return add_lacking(batch, session, false, line->text, line->bytes, &unknown, &dropped) &&
           judge_lacking(batch, line, unknown, dropped);
}

/* Of a source and, behind a TAB, its target. */
static bool find_pair_lacking(struct batch *batch, const struct session *session,
                              const struct line *line, size_t left, const char *tab) {
    size_t unknown = 0, dropped = 0;
    return add_lacking(batch, session, false, line->text, left, &unknown, &dropped) &&
           (tab == NULL || add_lacking(batch, session, true, tab + 1, line->bytes - left - 1,
                                       &unknown, &dropped)) &&
           judge_lacking(batch, line, unknown, dropped);
}

/* The sequences of a text, as a source or, where `given` is not NULL, as a target, behind those
 * that the batch has; they do not count yet. */
static bool encode_side(struct batch *batch, const struct session *session, const char *text,
                        size_t bytes, size_t *id_count, size_t *sequences, size_t *given) {
    const bool target = given != NULL;
    struct ids *ids = target ? &batch->targets : &batch->sources;
    struct sizes *lengths = target ? &batch->target_lengths : &batch->source_lengths;
    iso_error error = {0};
    iso_status status;
    *id_count = *sequences = 0;
    if (memchr(text, '\0', bytes) != NULL)
        return REFUSE(batch, "holds a NUL byte; the input must be text in UTF-8");
    do {
        if (!ids_grow(ids, *id_count) || !sizes_grow(lengths, *sequences))
            return refuse_memory(batch);
        size_t id_room = ids->capacity - ids->count;
        size_t sequence_room = lengths->capacity - lengths->count;
        status = target
                     ? iso_tokenizer_encode_target(session->tokenizer, text, bytes,
                                                   ids->data + ids->count, id_room, id_count,
                                                   lengths->data + lengths->count, sequence_room,
                                                   sequences, given, &error)
                     : iso_tokenizer_encode(session->tokenizer, text, bytes, ids->data + ids->count,
                                            id_room, id_count, lengths->data + lengths->count,
                                            sequence_room, sequences, &error);
        /* "Too small" without a larger need would be a defect; it must not loop for ever. */
        if (status == ISOBIT_E_WORKSPACE && *id_count <= id_room && *sequences <= sequence_room)
            break;
    } while (status == ISOBIT_E_WORKSPACE);
    if (status != ISOBIT_OK)
        return REFUSE(batch, "%s", error.message[0] != '\0' ? error.message : iso_strerror(status));
    return true;
}

static bool encode(struct batch *batch, const struct session *session, const char *text,
                   size_t bytes, size_t *id_count, size_t *sequences) {
    return encode_side(batch, session, text, bytes, id_count, sequences, NULL);
}

bool batch_parse_text(struct batch *batch, const struct session *session, const struct line *line) {
    size_t id_count, sequences;
    if (!encode(batch, session, line->text, line->bytes, &id_count, &sequences))
        return false;
    const size_t *lengths = batch->source_lengths.data + batch->source_lengths.count;
    for (size_t i = 0; i < sequences; i++)
        if (!check_length(batch, session, "source", lengths[i], 0))
            return false;
    if (batch->lacking != LACKING_SILENT && !find_lacking(batch, session, line))
        return false;
    if (!push_size(&batch->line_sequences, sequences))
        return refuse_memory(batch);
    batch->sources.count += id_count;
    batch->source_lengths.count += sequences;
    return true;
}

/* ------------------------------------------------------------------------- text for vectors */

bool batch_parse_sentence(struct batch *batch, const struct session *session,
                          const struct line *line) {
    const size_t most = session->info->sentence_max_length;
    iso_sentence_tokens tokens = {0};
    iso_error error = {0};
    iso_status status;
    if (memchr(line->text, '\0', line->bytes) != NULL)
        return REFUSE(batch, "holds a NUL byte; the input must be text in UTF-8");
    do {
        if (!ids_grow(&batch->sources, tokens.count))
            return refuse_memory(batch);
        status = iso_sentence_ids(session->model, session->tokenizer, line->text, line->bytes,
                                  batch->sources.data + batch->sources.count,
                                  batch->sources.capacity - batch->sources.count, &tokens, &error);
    } while (status == ISOBIT_E_WORKSPACE &&
             tokens.count > batch->sources.capacity - batch->sources.count);
    if (status != ISOBIT_OK)
        return REFUSE(batch, "%s", error.message[0] != '\0' ? error.message : iso_strerror(status));
    if (batch->lacking == LACKING_STRICT && tokens.whole > tokens.count)
        return REFUSE(batch, "%zu tokens, but vectors are made of at most %zu (--strict)",
                      tokens.whole, most);
    if (tokens.whole > tokens.count && batch->cut_lines++ == 0)
        batch->first_cut = line->number;
    batch->cut_to = most;
    if (!judge_lacking(batch, line, tokens.unknown, tokens.dropped))
        return false;
    if (!push_size(&batch->source_lengths, tokens.count) || !push_size(&batch->line_sequences, 1))
        return refuse_memory(batch);
    batch->sources.count += tokens.count;
    return true;
}

/* -------------------------------------------------------------------------------------- ids */

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* Appends the ids of a piece of a line; *count says how many. */
static bool parse_ids(struct batch *batch, struct ids *ids, size_t *count, const char *text,
                      size_t bytes, size_t vocabulary, const char *what) {
    size_t first = ids->count;
    for (size_t i = 0; i < bytes;) {
        if (is_blank(text[i])) {
            i++;
            continue;
        }
        size_t begin = i;
        unsigned long long value = 0;
        bool valid = true;
        for (; i < bytes && !is_blank(text[i]); i++) {
            valid = valid && text[i] >= '0' && text[i] <= '9';
            if (valid && value <= UINT32_MAX)
                value = 10 * value + (unsigned)(text[i] - '0');
        }
        int shown = (int)(i - begin < 20 ? i - begin : 20);
        if (!valid) {
            for (int j = 0; j < shown; j++)
                if (text[begin + (size_t)j] < ' ' || text[begin + (size_t)j] > '~')
                    return REFUSE(batch, "holds bytes that are no token ids; ids are whole "
                                         "numbers separated by spaces");
            return REFUSE(batch, "'%.*s' is no token id; ids are whole numbers separated by spaces",
                          shown, text + begin);
        }
        if (value >= vocabulary)
            return REFUSE(batch, "token %.*s is out of range: the %s vocabulary ends at %zu", shown,
                          text + begin, what, vocabulary - 1);
        if (!ids_grow(ids, 1))
            return refuse_memory(batch);
        ids->data[ids->count++] = (uint32_t)value;
    }
    *count = ids->count - first;
    return true;
}

bool batch_parse_ids(struct batch *batch, const struct session *session, const struct line *line) {
    size_t count = 0;
    if (!parse_ids(batch, &batch->sources, &count, line->text, line->bytes,
                   session->info->source_vocabulary, "source") ||
        !check_length(batch, session, "source", count, 0))
        return false;
    if ((count > 0 && !push_size(&batch->source_lengths, count)) ||
        !push_size(&batch->line_sequences, count > 0))
        return refuse_memory(batch);
    return true;
}

static bool is_blank_line(const struct line *line) {
    for (size_t i = 0; i < line->bytes; i++)
        if (!is_blank(line->text[i]))
            return false;
    return true;
}

bool batch_parse_pair(struct batch *batch, const struct session *session, const struct line *line) {
    if (is_blank_line(line))
        return push_size(&batch->line_sequences, 0) || refuse_memory(batch);
    const char *tab = memchr(line->text, '\t', line->bytes);
    if (tab == NULL)
        return REFUSE(batch, "has no TAB; give source ids, a TAB, target ids");
    size_t left = (size_t)(tab - line->text);
    size_t sources = 0, targets = 0;
    if (!parse_ids(batch, &batch->sources, &sources, line->text, left,
                   session->info->source_vocabulary, "source") ||
        !parse_ids(batch, &batch->targets, &targets, tab + 1, line->bytes - left - 1,
                   session->info->target_vocabulary, "target"))
        return false;
    if (sources == 0)
        return REFUSE(batch, "has no source ids before the TAB");
    if (targets == 0)
        return REFUSE(batch, "has no target ids after the TAB");
    /* The last target token is predicted, but never read. */
    if (!check_length(batch, session, "source", sources, 0) ||
        !check_length(batch, session, "target", targets, 0))
        return false;
    if (!push_size(&batch->source_lengths, sources) ||
        !push_size(&batch->target_lengths, targets) || !push_size(&batch->line_sequences, 1))
        return refuse_memory(batch);
    return true;
}

/* ----------------------------------------------------------------------------- pairs of texts */

/* Every sequence of a line and its target must fit, which of a decoder alone lie in a row. */
static bool check_pair(struct batch *batch, const struct session *session, size_t source,
                       size_t target) {
    if (session->info->encoder_layers != 0)
        return check_length(batch, session, "source", source, 0) &&
               check_length(batch, session, "target", target, 0);
    return check_length(batch, session, "source and target", source + target - 1, 0);
}

/* With the ids of `count` sequences behind those that count already. */
static bool take_pairs(struct batch *batch, const struct session *session, size_t count) {
    const size_t *sources = batch->source_lengths.data + batch->source_lengths.count;
    const size_t *targets = batch->target_lengths.data + batch->target_lengths.count;
    size_t source_ids = 0, target_ids = 0;
    for (size_t i = 0; i < count; i++) {
        if (!check_pair(batch, session, sources[i], targets[i]))
            return false;
        source_ids += sources[i];
        target_ids += targets[i];
    }
    if (!push_size(&batch->line_sequences, count))
        return refuse_memory(batch);
    batch->sources.count += source_ids;
    batch->targets.count += target_ids;
    batch->source_lengths.count += count;
    batch->target_lengths.count += count;
    return true;
}

/* Some models of mBART have the language as their start token, which a target does not repeat. */
static void drop_start(struct batch *batch, const struct session *session, size_t count,
                       size_t *given) {
    uint32_t *ids = batch->targets.data + batch->targets.count, *to = ids;
    size_t *lengths = batch->target_lengths.data + batch->target_lengths.count;
    if (*given == 0 || *ids != session->info->decoder_start_id)
        return;
    for (size_t i = 0; i < count; i++) {
        memmove(to, ids + 1, (lengths[i] - 1) * sizeof *ids);
        ids += lengths[i]--;
        to += lengths[i];
    }
    *given = 0;
}

static bool parse_translation(struct batch *batch, const struct session *session,
                              const struct line *line, const char *tab) {
    size_t ids, sources, targets, given = 0;
    if (tab == NULL)
        return REFUSE(batch, "has no TAB; give a source, a TAB, its target");
    const size_t left = (size_t)(tab - line->text);
    if (!encode(batch, session, line->text, left, &ids, &sources) ||
        !encode_side(batch, session, tab + 1, line->bytes - left - 1, &ids, &targets, &given))
        return false;
    if (sources == 0 || targets == 0)
        return REFUSE(batch, "has no %s the TAB", sources == 0 ? "source before" : "target after");
    if (sources != targets)
        return REFUSE(batch, "%zu sequences before the TAB, but %zu after it", sources, targets);
    drop_start(batch, session, targets, &given);
    batch->given = given; /* the same for all lines */
    return take_pairs(batch, session, targets);
}

/* The tokens of both texts together, of which those of the first one alone are the source: where a
 * token has the end of one and the beginning of the other, it belongs to the target. */
static bool parse_continuation(struct batch *batch, const struct session *session,
                               const char *whole, size_t bytes, size_t left) {
    const uint32_t bos = session->info->bos_id;
    size_t all, source = 0, sequences, same = 0;
    if (!encode(batch, session, whole, bytes, &all, &sequences))
        return false;
    if (!ids_grow(&batch->targets, all) || !sizes_grow(&batch->target_lengths, 1))
        return refuse_memory(batch);
    uint32_t *target = batch->targets.data + batch->targets.count;
    if (all > 0)
        memcpy(target, batch->sources.data + batch->sources.count, all * sizeof *target);
    if (!encode(batch, session, whole, left, &source, &sequences))
        return false;
    if (!ids_grow(&batch->sources, 1) || !sizes_grow(&batch->source_lengths, 1))
        return refuse_memory(batch);
    uint32_t *ids = batch->sources.data + batch->sources.count;
    while (same < source && same < all && ids[same] == target[same])
        same++;
    source = same;
    if (source == 0) { /* what a text begins with */
        if (bos == UINT32_MAX)
            return REFUSE(batch,
                          "has no text before the TAB, and the model no token to begin with");
        ids[0] = bos;
        same = all > 0 && target[0] == bos;
        source = 1;
    }
    if (same == all)
        return REFUSE(batch, "has no target after the TAB");
    memmove(target, target + same, (all - same) * sizeof *target);
    batch->source_lengths.data[batch->source_lengths.count] = source;
    batch->target_lengths.data[batch->target_lengths.count] = all - same;
    return take_pairs(batch, session, 1);
}

bool batch_parse_text_pair(struct batch *batch, const struct session *session,
                           const struct line *line) {
    if (is_blank_line(line))
        return push_size(&batch->line_sequences, 0) || refuse_memory(batch);
    const char *tab = memchr(line->text, '\t', line->bytes);
    const size_t left = tab != NULL ? (size_t)(tab - line->text) : 0;
    if (session->info->encoder_layers != 0)
        return find_pair_lacking(batch, session, line, left, tab) &&
               parse_translation(batch, session, line, tab);
    const size_t right = tab != NULL ? left + 1 : 0;
    char *joined = malloc(line->bytes + 1);
    if (joined == NULL)
        return refuse_memory(batch);
    memcpy(joined, line->text, left);
    memcpy(joined + left, line->text + right, line->bytes - right);
    const struct line whole = {joined, left + line->bytes - right, line->number};
    const bool good = find_lacking(batch, session, &whole) &&
                      parse_continuation(batch, session, joined, whole.bytes, left);
    free(joined);
    return good;
}

/* ----------------------------------------------------------------------------------- filling */

/* Large batches are faster, small ones show progress. No result depends on their size. */
static void adapt_limit(struct batch *batch) {
    double spent = seconds_now() - batch->returned;
    if (batch->limit == 0)
        batch->limit = FIRST_SEQUENCES;
    else if (spent < short_batch && batch->limit < BATCH_SEQUENCES)
        batch->limit *= 2;
    else if (spent > long_batch && batch->limit > 1)
        batch->limit /= 2;
}

static bool has_room(const struct batch *batch) {
    return batch->line_sequences.count < BATCH_SEQUENCES &&
           batch->source_lengths.count < batch->limit &&
           batch->sources.count + batch->targets.count < BATCH_IDS;
}

bool batch_read(struct batch *batch, struct input *input, const struct session *session,
                batch_parser parse, int *code) {
    batch->sources.count = batch->targets.count = 0;
    batch->source_lengths.count = batch->target_lengths.count = batch->line_sequences.count = 0;
    batch->first_line = input->lines + 1;
    if (batch->error[0] != '\0')
        return false; /* the rest of the input is not looked at */
    adapt_limit(batch);
    do {
        struct line line;
        int found = input_next(input, &line);
        if (found < 0) { /* only the first line of a batch can wait, so nothing gets lost */
            *code = 1;
            return false;
        }
        if (found == 0)
            break;
        size_t ids = batch->sources.count, targets = batch->targets.count;
        if (!parse(batch, session, &line)) {
            char message[sizeof batch->error];
            memcpy(message, batch->error, sizeof message);
            snprintf(batch->error, sizeof batch->error, "line %llu: %.640s", line.number, message);
            batch->sources.count = ids;
            batch->targets.count = targets;
            break;
        }
    } while (has_room(batch) && input_ready(input));
    batch->returned = seconds_now();
    return batch->line_sequences.count > 0 || batch->error[0] != '\0';
}

void batch_free(struct batch *batch) {
    free(batch->sources.data);
    free(batch->targets.data);
    free(batch->source_lengths.data);
    free(batch->target_lengths.data);
    free(batch->line_sequences.data);
    *batch = (struct batch){0};
}
