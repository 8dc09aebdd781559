/* SPDX-License-Identifier: MIT
 *
 * ZIP archives as torch.save writes them: the members stored, not compressed, one directory behind
 * them, nothing before or after, sizes of 64 bits where the writer wants them. The directory says
 * all that is needed; of a member's own header only its length is, and that it agrees. What other
 * archives may have (comments, several disks, encryption) is refused.
 */
#include "bin.h"

#include <stdlib.h>

enum {
    LOCAL_BYTES = 30,
    ENTRY_BYTES = 46,
    END_BYTES = 22,
    LOCATOR_BYTES = 20,
    END64_BYTES = 56,
    STORED = 0,
    ENCRYPTED = 1,
};

#define LOCAL 0x04034b50u
#define ENTRY 0x02014b50u
#define END 0x06054b50u
#define LOCATOR 0x07064b50u
#define END64 0x06064b50u

static uint64_t get(const unsigned char *from, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | from[i];
    return value;
}

static iso_status bad(const zip_archive *zip, iso_status status, const char *what,
                      iso_error *error) {
    return model_fail(error, status, "%s: the ZIP archive: %s", zip->file->name, what);
}

static int compare(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    const int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
    return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

static int by_name(const void *a, const void *b) {
    const zip_member *x = a, *y = b;
    return compare(x->name, x->name_bytes, y->name, y->name_bytes);
}

/* Where the directory is and what it has, from the end of the file. */
typedef struct place {
    uint64_t at, bytes, count;
} place;

static iso_status read_end(const zip_archive *zip, place *p, iso_error *error) {
    const model_file *file = zip->file;
    unsigned char end[LOCATOR_BYTES + END_BYTES] = {0}, end64[END64_BYTES];
    const size_t have =
        file->bytes < sizeof end ? (size_t)file->bytes : sizeof end; /* a locator may be there */
    unsigned char *e = end + LOCATOR_BYTES;
    if (have < END_BYTES)
        return bad(zip, ISOBIT_E_TRUNCATED, "the file is too short for one", error);
    iso_status status =
        model_file_read(file, end + (sizeof end - have), file->bytes - have, have, error);
    if (status)
        return status;
    if (get(e, 4) != END || get(e + 20, 2) != 0)
        return bad(zip, ISOBIT_E_TRUNCATED,
                   "the file does not end with its directory; it was cut, or has something behind",
                   error);
    if (get(e + 4, 2) != 0 || get(e + 6, 2) != 0 || get(e + 8, 2) != get(e + 10, 2))
        return bad(zip, ISOBIT_E_UNSUPPORTED, "it is one of several parts", error);
    *p = (place){.at = get(e + 16, 4), .bytes = get(e + 12, 4), .count = get(e + 10, 2)};
    uint64_t until = file->bytes - END_BYTES;
    if (get(end, 4) == LOCATOR) { /* numbers of 64 bits, those above are too small for some */
        const uint64_t at = get(end + 8, 8);
        if (get(end + 4, 4) != 0 || get(end + 16, 4) > 1)
            return bad(zip, ISOBIT_E_UNSUPPORTED, "it is one of several parts", error);
        until -= LOCATOR_BYTES;
        if (until < END64_BYTES || at != until - END64_BYTES)
            return bad(zip, ISOBIT_E_OFFSET, "the end of its directory is not where it should be",
                       error);
        if ((status = model_file_read(file, end64, at, END64_BYTES, error)))
            return status;
        if (get(end64, 4) != END64 || get(end64 + 4, 8) != END64_BYTES - 12)
            return bad(zip, ISOBIT_E_OFFSET, "the end of its directory is not where it should be",
                       error);
        const place large = {
            .at = get(end64 + 48, 8), .bytes = get(end64 + 40, 8), .count = get(end64 + 32, 8)};
        if (get(end64 + 16, 4) != 0 || get(end64 + 20, 4) != 0 || get(end64 + 24, 8) != large.count)
            return bad(zip, ISOBIT_E_UNSUPPORTED, "it is one of several parts", error);
        if ((p->at != UINT32_MAX && p->at != large.at) ||
            (p->bytes != UINT32_MAX && p->bytes != large.bytes) ||
            (p->count != UINT16_MAX && p->count != large.count))
            return bad(zip, ISOBIT_E_CONFIG, "its two ends disagree", error);
        *p = large;
        until = at;
    }
    if (p->at > until || p->bytes != until - p->at)
        return bad(zip, ISOBIT_E_OFFSET, "its directory is not right before its end", error);
    return ISOBIT_OK;
}

/* The numbers of 64 bits of an entry, in the order of the short ones that say so. */
static int read_extra(const unsigned char *extra, size_t bytes, uint64_t *const numbers[3]) {
    int wanted = 0;
    for (int i = 0; i < 3; i++)
        wanted += *numbers[i] == UINT32_MAX;
    for (size_t at = 0, size; wanted && bytes - at >= 4; at += 4 + size) {
        size = (size_t)get(extra + at + 2, 2);
        if (size > bytes - at - 4)
            return 0;
        if (get(extra + at, 2) != 1)
            continue;
        size_t used = 0;
        for (int i = 0; i < 3; i++)
            if (*numbers[i] == UINT32_MAX) {
                if (size - used < 8)
                    return 0;
                *numbers[i] = get(extra + at + 4 + used, 8);
                used += 8;
            }
        return 1;
    }
    return !wanted;
}

/* The entry at `at` of a directory; the bytes that it takes, or 0 if it cannot be one. */
static size_t read_entry(zip_member *m, const unsigned char *at, size_t bytes) {
    if (bytes < ENTRY_BYTES || get(at, 4) != ENTRY)
        return 0;
    const size_t name = (size_t)get(at + 28, 2), extra = (size_t)get(at + 30, 2),
                 comment = (size_t)get(at + 32, 2), all = ENTRY_BYTES + name + extra + comment;
    uint64_t packed = get(at + 20, 4);
    if (all > bytes)
        return 0;
    *m = (zip_member){.name = (const char *)at + ENTRY_BYTES,
                      .name_bytes = name,
                      .header = get(at + 42, 4),
                      .bytes = get(at + 24, 4),
                      .flags = (unsigned)get(at + 8, 2),
                      .method = (unsigned)get(at + 10, 2)};
    if (!read_extra(at + ENTRY_BYTES + name, extra,
                    (uint64_t *const[]){&m->bytes, &packed, &m->header}))
        return 0;
    return m->method != STORED || packed == m->bytes ? all : 0;
}

iso_status model_zip_open(zip_archive *zip, model_arena *arena, const model_file *file,
                          size_t max_bytes, iso_error *error) {
    place p = {0};
    model_quoted quoted;
    *zip = (zip_archive){.file = file};
    iso_status status = read_end(zip, &p, error);
    if (status)
        return status;
    zip->end = p.at;
    if (p.bytes > max_bytes)
        return bad(zip, ISOBIT_E_LIMIT, "its directory is longer than max_header_bytes", error);
    if (p.count > p.bytes / ENTRY_BYTES)
        return bad(zip, ISOBIT_E_CONFIG, "its directory is too short for its members", error);
    unsigned char *text = model_alloc(arena, (size_t)p.bytes, 1);
    zip->members = model_alloc(arena, (size_t)p.count, sizeof *zip->members);
    if (!text || !zip->members)
        return bad(zip, ISOBIT_E_NOMEM, "out of memory for its directory", error);
    if ((status = model_file_read(file, text, p.at, (size_t)p.bytes, error)))
        return status;
    size_t at = 0;
    for (; zip->count < p.count; zip->count++) {
        const size_t used = read_entry(&zip->members[zip->count], text + at, (size_t)p.bytes - at);
        if (!used)
            return bad(zip, ISOBIT_E_CONFIG, "an entry of its directory cannot be read", error);
        at += used;
    }
    if (at != p.bytes)
        return bad(zip, ISOBIT_E_CONFIG, "its directory has more than its members", error);
    qsort(zip->members, zip->count, sizeof *zip->members, by_name);
    for (size_t i = 1; i < zip->count; i++)
        if (by_name(&zip->members[i - 1], &zip->members[i]) == 0)
            return model_fail(
                error, ISOBIT_E_DUPLICATE, "%s: the ZIP archive has two members %s", file->name,
                model_quote(&quoted, zip->members[i].name, zip->members[i].name_bytes));
    return ISOBIT_OK;
}

/* A name in pieces. */
typedef struct pieces {
    const char *text[3];
    size_t bytes[3];
} pieces;

static int against_member(const void *key, const void *member) {
    const pieces *p = key;
    const zip_member *m = member;
    size_t at = 0;
    for (int i = 0; i < 3; i++) {
        const size_t rest = m->name_bytes - at, n = p->bytes[i] < rest ? p->bytes[i] : rest;
        const int order = n ? memcmp(p->text[i], m->name + at, n) : 0;
        if (order || p->bytes[i] > rest)
            return order ? order : 1;
        at += n;
    }
    return at < m->name_bytes ? -1 : 0;
}

const zip_member *model_zip_find(const zip_archive *zip, const char *path, const char *key,
                                 size_t key_bytes) {
    const pieces name = {{zip->folder, path, key}, {zip->folder_bytes, strlen(path), key_bytes}};
    return zip->count
               ? bsearch(&name, zip->members, zip->count, sizeof *zip->members, against_member)
               : NULL;
}

iso_status model_zip_locate(const zip_archive *zip, const zip_member *member, uint64_t *at,
                            iso_error *error) {
    unsigned char local[LOCAL_BYTES];
    model_quoted quoted;
    const char *what = NULL;
    iso_status status = ISOBIT_E_UNSUPPORTED;
    uint64_t begin = member->header;
    model_quote(&quoted, member->name, member->name_bytes);
    if (member->flags & ENCRYPTED)
        what = "encrypted";
    else if (member->method != STORED)
        what = "compressed, which torch.save never does; store it";
    if (!what && (zip->end < LOCAL_BYTES || begin > zip->end - LOCAL_BYTES))
        status = ISOBIT_E_OFFSET, what = "not inside the file";
    if (!what) {
        iso_status read = model_file_read(zip->file, local, begin, LOCAL_BYTES, error);
        if (read)
            return read;
        begin += LOCAL_BYTES + get(local + 26, 2) + get(local + 28, 2);
        if (get(local, 4) != LOCAL || get(local + 8, 2) != member->method ||
            get(local + 26, 2) != member->name_bytes)
            status = ISOBIT_E_CONFIG, what = "another one than its directory says";
        else if (begin > zip->end || member->bytes > zip->end - begin)
            status = ISOBIT_E_OFFSET, what = "not inside the file";
    }
    *at = begin;
    return what ? model_fail(error, status, "%s: the ZIP archive: member %s is %s", zip->file->name,
                             quoted.text, what)
                : ISOBIT_OK;
}
