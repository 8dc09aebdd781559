/* SPDX-License-Identifier: MIT
 *
 * See spm_text.h.
 */
#include "files.h"
#include "spm_text.h"

/* Files of two different models: hardly a piece has an id. A few without one are normal. */
static iso_status check_pieces(const text_pieces *pieces, const text_vocabulary *v,
                               const char *spm_name, const char *vocabulary_name,
                               iso_error *error) {
    size_t normal = 0, known = 0;
    for (size_t i = 0; i < pieces->count; i++) {
        const text_piece *piece = &pieces->pieces[i];
        if (piece->type != TEXT_PIECE_NORMAL)
            continue;
        normal++;
        known += text_vocabulary_find(v, piece->text, piece->bytes) != MODEL_NO_ID;
    }
    if (known >= normal - normal / 2)
        return ISOBIT_OK;
    return model_fail(error, ISOBIT_E_CONFIG,
                      "%s and %s contradict each other: %zu of %zu pieces are in the vocabulary",
                      spm_name, vocabulary_name, known, normal);
}

iso_status text_spm_open(text_spm **spm, const char *directory, const char *name,
                         const text_vocabulary *v, const char *vocabulary_name, iso_error *error) {
    model_arena arena = {0};
    model_quoted quoted;
    text_pieces pieces;
    char *proto, why[200] = "";
    size_t bytes;
    iso_status status =
        model_file_text(&proto, &bytes, &arena, directory, name, TEXT_MAX_VOCABULARY_BYTES, error);
    if (!status)
        status = text_spm_check(&pieces, &arena, name, proto, bytes, error);
    if (!status)
        status = check_pieces(&pieces, v, name, vocabulary_name, error);
    if (!status) {
        status = text_spm_load(spm, proto, bytes, why, sizeof why);
        if (status)
            (void)model_fail(error, status, "%s: %s", name, model_quote(&quoted, why, strlen(why)));
    }
    model_arena_free(&arena);
    return status;
}

size_t text_count_characters(const char *text, size_t bytes) {
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80 && !text_is_bar(text + i, bytes - i);
    return count;
}

typedef struct stripped {
    text_chars *out;
    int bars;
} stripped;

static void put_stripped(void *to, const char *text, size_t bytes) {
    static const char broken[] = "\xef\xbf\xbd"; /* U+FFFD: a character that lacks bytes */
    const stripped *how = to;
    if (how->out->partial)
        while (bytes >= 3 && memcmp(text + bytes - 3, broken, 3) == 0)
            bytes -= 3;
    size_t begin = bytes, end = 0;
    uint32_t code;
    for (size_t at = 0, n; at < bytes; at += n) {
        n = model_utf8(text + at, bytes - at, &code);
        if (n && how->bars && text_is_bar(text + at, bytes - at))
            code = ' ';
        if (n && (text_is_space(code) || (code >= 0x1c && code <= 0x1f)))
            continue;
        n = n ? n : 1;
        begin = at < begin ? at : begin;
        end = at + n;
    }
    for (size_t at = begin, next; at < end; at = next) {
        for (next = at; next < end && !(how->bars && text_is_bar(text + next, end - next));)
            next++;
        text_put_chars(how->out, text + at, next - at);
        if (next < end) {
            text_put_chars(how->out, " ", 1);
            next += TEXT_BAR_BYTES;
        }
    }
}

iso_status text_spm_decode_ids(const text_spm *spm, const text_vocabulary *v, text_chars *out,
                               const uint32_t *ids, size_t count, int bars) {
    model_arena scratch = {0};
    const char **pieces = model_alloc(&scratch, count, sizeof *pieces);
    stripped to = {out, bars};
    size_t used = 0;
    if (!pieces)
        return ISOBIT_E_NOMEM;
    for (size_t i = 0; i < count; i++)
        if (!v->special[ids[i]])
            pieces[used++] = v->by_id[ids[i]].token;
    iso_status status = text_spm_decode(spm, pieces, used, put_stripped, &to);
    model_arena_free(&scratch);
    return status;
}
