/* SPDX-License-Identifier: MIT
 *
 * Weights as torch.save writes them (pytorch_model.bin), in both of its forms:
 *
 *   ZIP, since torch 1.6   NAME/data.pkl is the pickle of the state dict, NAME/data/KEY the bytes
 * of the storage KEY, NAME/byteorder the order of bytes; NAME may be anything older pickles one
 * after the other: a magic number, the version 1001, facts of the system, the state dict, a list of
 * keys; then for each key of the list the number of elements (64 bits) and the bytes of the storage
 *
 * A tensor is a shape and strides over a storage, which several tensors may share. Each must lie
 * within its storage and have no more elements than it, so that a small file cannot ask for much
 * memory.
 */
#include "bin.h"

#include <stdlib.h>

#define MAX_TENSORS ((size_t)1 << 18)
#define MAX_NAME_BYTES 4096
#define FIRST_BYTES ((size_t)1 << 18) /* of an older file, read at first */

static const char legacy_start[] = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
#define LEGACY_BYTES (sizeof legacy_start - 1)

typedef struct bin {
    model_checkpoint *checkpoint;
    const model_file *file;
    const char *name;
    size_t max_bytes;
    model_arena scratch; /* what is over when the file is open */
    model_pickle pickle;
    iso_error *error;
} bin;

static iso_status bad(const bin *b, iso_status status, const char *what) {
    return model_fail(b->error, status, "%s: %s", b->name, what);
}

static iso_status bad_storage(const bin *b, iso_status status, const pickle_storage *s,
                              const char *what) {
    model_quoted quoted;
    return model_fail(b->error, status, "%s: storage %s %s", b->name,
                      model_quote(&quoted, s->key, s->key_bytes), what);
}

/* ---------------------------------------------------------------------------------- storages */

/* A text that a pickle uses again is the same one: not looked at. */
static int compare(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    const int order = a == b ? 0 : memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
    return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

static int by_key(const void *a, const void *b) {
    const pickle_storage *x = *(pickle_storage *const *)a, *y = *(pickle_storage *const *)b;
    return compare(x->key, x->key_bytes, y->key, y->key_bytes);
}

/* Sorts the storages. Where tensors share one, the pickle says of each what it is: the same. */
static iso_status sort_storages(bin *b) {
    pickle_storage **s = b->pickle.storages;
    if (b->pickle.storage_count)
        qsort(s, b->pickle.storage_count, sizeof(pickle_storage *), by_key);
    for (size_t i = 1; i < b->pickle.storage_count; i++)
        if (by_key(&s[i - 1], &s[i]) == 0 &&
            (s[i - 1]->dtype_name != s[i]->dtype_name || s[i - 1]->elements != s[i]->elements))
            return bad_storage(b, ISOBIT_E_CONFIG, s[i], "is described in two ways");
    return ISOBIT_OK;
}

static iso_status storage_bytes(const bin *b, const pickle_storage *s, uint64_t *bytes) {
    return __builtin_mul_overflow(s->elements, (uint64_t)s->element_bytes, bytes)
               ? bad_storage(b, ISOBIT_E_OVERFLOW, s, "is too large: its size overflows")
               : ISOBIT_OK;
}

/* The others of the same key follow the first one. */
static size_t same_key(bin *b, size_t first, uint64_t at) {
    pickle_storage **s = b->pickle.storages;
    size_t end = first;
    while (end < b->pickle.storage_count && by_key(&s[first], &s[end]) == 0)
        s[end++]->at = at;
    return end;
}

/* --------------------------------------------------------------------------------------- ZIP */

/* The folder of the only data.pkl that lies in one. */
static iso_status find_folder(const bin *b, zip_archive *zip) {
    static const char name[] = "data.pkl";
    for (size_t i = 0; i < zip->count; i++) {
        const zip_member *m = &zip->members[i];
        const char *slash = memchr(m->name, '/', m->name_bytes);
        const size_t before = slash ? (size_t)(slash - m->name) + 1 : 0;
        if (!slash || compare(m->name + before, m->name_bytes - before, name, sizeof name - 1))
            continue;
        if (zip->folder)
            return bad(b, ISOBIT_E_DUPLICATE, "the ZIP archive has two members data.pkl");
        zip->folder = m->name;
        zip->folder_bytes = before;
    }
    return zip->folder
               ? ISOBIT_OK
               : bad(b, ISOBIT_E_MISSING,
                     "the ZIP archive has no member data.pkl in a folder, so torch.save has "
                     "not written it");
}

static iso_status check_byte_order(const bin *b, const zip_archive *zip) {
    char text[8] = {0};
    uint64_t at = 0;
    const zip_member *m = model_zip_find(zip, "byteorder", NULL, 0);
    if (!m) /* torch before 2.0, which wrote numbers as the machine has them */
        return ISOBIT_OK;
    iso_status status = model_zip_locate(zip, m, &at, b->error);
    if (status)
        return status;
    if (m->bytes < sizeof text &&
        (status = model_file_read(b->file, text, at, (size_t)m->bytes, b->error)))
        return status;
    if (strcmp(text, "little") == 0)
        return ISOBIT_OK;
    return bad(b, ISOBIT_E_UNSUPPORTED,
               strcmp(text, "big") == 0
                   ? "its byteorder is big; only files of little-endian machines are read"
                   : "its byteorder is neither little nor big");
}

static iso_status open_zip(bin *b) {
    zip_archive zip;
    uint64_t at = 0, bytes;
    iso_status status = model_zip_open(&zip, &b->scratch, b->file, b->max_bytes, b->error);
    if (status || (status = find_folder(b, &zip)) || (status = check_byte_order(b, &zip)))
        return status;
    const zip_member *m = model_zip_find(&zip, "data.pkl", NULL, 0);
    if ((status = model_zip_locate(&zip, m, &at, b->error)))
        return status;
    if (m->bytes > b->max_bytes)
        return bad(b, ISOBIT_E_LIMIT, "data.pkl is longer than max_header_bytes");
    char *text = model_alloc(&b->checkpoint->arena, (size_t)m->bytes, 1);
    if (!text)
        return bad(b, ISOBIT_E_NOMEM, "out of memory for data.pkl");
    if ((status = model_file_read(b->file, text, at, (size_t)m->bytes, b->error)) ||
        (status = model_pickle_read(&b->pickle, &b->scratch, b->name, text, (size_t)m->bytes,
                                    b->error)) ||
        (status = sort_storages(b)))
        return status;
    if (b->pickle.bytes != m->bytes)
        return bad(b, ISOBIT_E_CONFIG, "data.pkl goes on behind the end of its pickle");
    for (size_t i = 0; i < b->pickle.storage_count; i = same_key(b, i, at)) {
        const pickle_storage *s = b->pickle.storages[i];
        if (!(m = model_zip_find(&zip, "data/", s->key, s->key_bytes)))
            return bad_storage(b, ISOBIT_E_MISSING, s, "is not in the ZIP archive");
        if ((status = storage_bytes(b, s, &bytes)) ||
            (status = model_zip_locate(&zip, m, &at, b->error)))
            return status;
        if (bytes != m->bytes)
            return bad_storage(b, ISOBIT_E_OFFSET, s,
                               "has another size in the ZIP archive than in the pickle");
    }
    return ISOBIT_OK;
}

/* -------------------------------------------------------------------------------- older form */

/* The pickle at *at of `bytes` bytes; *at goes on behind it. */
static iso_status next_pickle(bin *b, model_pickle *p, char *text, size_t bytes, size_t *at) {
    iso_status status =
        model_pickle_read(p, &b->scratch, b->name, text + *at, bytes - *at, b->error);
    *at += p->bytes;
    return status;
}

static iso_status check_system(const bin *b, const model_pickle *p) {
    const pickle_value *little = model_pickle_find(&p->top, "little_endian");
    if (!little || little->kind != PICKLE_BOOL)
        return bad(b, ISOBIT_E_CONFIG, "it does not say in which order its bytes are");
    return little->as.number
               ? ISOBIT_OK
               : bad(b, ISOBIT_E_UNSUPPORTED,
                     "its little_endian is False; only files of little-endian machines are read");
}

/* All pickles of the file, of which `bytes` bytes are in `text`; *data: where storages begin. */
static iso_status read_pickles(bin *b, model_pickle *keys, char *text, size_t bytes, size_t *data) {
    model_pickle p;
    size_t at = LEGACY_BYTES;
    iso_status status = next_pickle(b, &p, text, bytes, &at);
    if (status)
        return status;
    if (p.top.kind != PICKLE_NUMBER || p.top.as.number != 1001)
        return bad(b, ISOBIT_E_UNSUPPORTED, "its protocol is not 1001");
    if ((status = next_pickle(b, &p, text, bytes, &at)) || (status = check_system(b, &p)) ||
        (status = next_pickle(b, &b->pickle, text, bytes, &at)) ||
        (status = next_pickle(b, keys, text, bytes, &at)))
        return status;
    if (keys->top.kind != PICKLE_LIST || keys->storage_count)
        return bad(b, ISOBIT_E_CONFIG, "a list of the keys of its storages is expected");
    *data = at;
    return ISOBIT_OK;
}

/* The place of each storage, in the order of the keys. */
static iso_status place_storages(bin *b, const model_pickle *keys, uint64_t at) {
    size_t placed = 0, distinct = 0;
    iso_status status = sort_storages(b);
    if (status)
        return status;
    pickle_storage **s = b->pickle.storages;
    for (size_t i = 0; i < b->pickle.storage_count; i++) {
        s[i]->at = 0; /* not placed: the pickles come first */
        distinct += i == 0 || by_key(&s[i - 1], &s[i]) != 0;
    }
    for (const pickle_piece *piece = keys->top.as.list->first; piece; piece = piece->next)
        for (size_t i = 0; i < piece->count; i++) {
            unsigned char count[8];
            uint64_t bytes, elements = 0;
            const pickle_value *key = &piece->items[i];
            if (key->kind != PICKLE_STRING)
                return bad(b, ISOBIT_E_CONFIG, "a key of a storage is no string");
            const pickle_storage wanted = {.key = key->as.text, .key_bytes = key->count};
            const pickle_storage *const pointer = &wanted;
            pickle_storage **found = b->pickle.storage_count
                                         ? bsearch(&pointer, s, b->pickle.storage_count,
                                                   sizeof(pickle_storage *), by_key)
                                         : NULL;
            if (!found)
                return bad_storage(b, ISOBIT_E_CONFIG, &wanted, "belongs to no tensor");
            if ((*found)->at)
                return bad_storage(b, ISOBIT_E_DUPLICATE, &wanted, "occurs twice");
            if ((status = storage_bytes(b, *found, &bytes)))
                return status;
            if (b->file->bytes - at < 8 || b->file->bytes - at - 8 < bytes)
                return bad_storage(b, ISOBIT_E_TRUNCATED, &wanted,
                                   "goes beyond the end of the file");
            if ((status = model_file_read(b->file, count, at, 8, b->error)))
                return status;
            for (int k = 7; k >= 0; k--)
                elements = elements << 8 | count[k];
            if (elements != (*found)->elements)
                return bad_storage(b, ISOBIT_E_OFFSET, &wanted,
                                   "has another size than in the pickle");
            size_t first = (size_t)(found - s);
            while (first && by_key(&s[first - 1], found) == 0)
                first--;
            (void)same_key(b, first, at + 8);
            at += 8 + bytes;
            placed++;
        }
    if (placed < distinct) {
        for (size_t i = 0; i < b->pickle.storage_count; i++)
            if (!s[i]->at)
                return bad_storage(b, ISOBIT_E_MISSING, s[i], "is not in the list of keys");
    }
    return at == b->file->bytes ? ISOBIT_OK
                                : bad(b, ISOBIT_E_HOLE, "the file goes on behind the last storage");
}

/* How long the pickles are is known once they are read: more of the file each time, while needed.
 */
static iso_status open_legacy(bin *b) {
    const size_t limit = b->file->bytes < b->max_bytes ? (size_t)b->file->bytes : b->max_bytes;
    for (size_t bytes = FIRST_BYTES < limit ? FIRST_BYTES : limit;;) {
        size_t data = 0;
        model_pickle keys;
        char *text = model_alloc(&b->checkpoint->arena, bytes, 1);
        if (!text)
            return bad(b, ISOBIT_E_NOMEM, "out of memory for its pickles");
        iso_status status = model_file_read(b->file, text, 0, bytes, b->error);
        if (status)
            return status;
        iso_error why, *const error = b->error;
        b->error = &why; /* not the caller's: more of the file may help */
        status = read_pickles(b, &keys, text, bytes, &data);
        b->error = error;
        if (!status)
            return place_storages(b, &keys, data);
        if (status != ISOBIT_E_TRUNCATED || bytes == b->file->bytes)
            return model_fail(error, status, "%s", why.message);
        if (bytes == limit)
            return bad(b, ISOBIT_E_LIMIT, "its pickles are longer than max_header_bytes");
        model_arena_free(&b->scratch);
        model_arena_free(&b->checkpoint->arena);
        bytes = bytes > limit / 4 ? limit : 4 * bytes;
    }
}

/* ----------------------------------------------------------------------------------- tensors */

/* A tensor of the state dict. */
typedef struct named {
    char *name;
    size_t bytes;
    const pickle_tensor *tensor;
} named;

static int by_name(const void *a, const void *b) {
    const named *x = a, *y = b;
    return compare(x->name, x->bytes, y->name, y->bytes);
}

static int is_name(const char *text, size_t bytes) {
    uint32_t code;
    size_t n = 1;
    for (size_t at = 0; at < bytes && n; at += n)
        n = text[at] ? model_utf8(text + at, bytes - at, &code) : 0;
    return n && bytes && bytes <= MAX_NAME_BYTES;
}

/* What the state dict has, sorted; other values than tensors are left out. */
static iso_status list_tensors(bin *b, named **list, size_t *count) {
    const pickle_value *top = &b->pickle.top;
    model_quoted quoted;
    size_t room = 0;
    *count = 0;
    if (top->kind != PICKLE_DICT)
        return bad(b, ISOBIT_E_CONFIG, "it is not about a state dict, a dictionary of tensors");
    for (const pickle_piece *piece = top->as.list->first; piece; piece = piece->next)
        room += piece->count / 2;
    if (room > MAX_TENSORS)
        return bad(b, ISOBIT_E_LIMIT, "its state dict has more than 262144 entries");
    if (!(*list = model_alloc(&b->scratch, room, sizeof **list)))
        return bad(b, ISOBIT_E_NOMEM, "out of memory");
    for (const pickle_piece *piece = top->as.list->first; piece; piece = piece->next)
        for (size_t i = 0; i < piece->count; i += 2) {
            const pickle_value *key = &piece->items[i], *value = &piece->items[i + 1];
            if (key->kind != PICKLE_STRING)
                return bad(b, ISOBIT_E_CONFIG, "a name in its state dict is no string");
            if (value->kind == PICKLE_TENSOR)
                (*list)[(*count)++] = (named){key->as.text, key->count, value->as.tensor};
        }
    if (*count)
        qsort(*list, *count, sizeof **list, by_name);
    for (size_t i = 0; i < *count; i++) {
        const named *n = *list + i;
        model_quote(&quoted, n->name, n->bytes);
        if (i && by_name(n - 1, n) == 0)
            return model_fail(b->error, ISOBIT_E_DUPLICATE, "%s: tensor %s occurs twice", b->name,
                              quoted.text);
        if (!is_name(n->name, n->bytes))
            return model_fail(b->error, ISOBIT_E_UTF8,
                              "%s: the name %s of a tensor is not 1 to 4096 bytes of UTF-8",
                              b->name, quoted.text);
    }
    return ISOBIT_OK;
}

/* The tensor within its storage; strides is for those that are not row-major. */
static iso_status make_tensor(const bin *b, model_tensor *t, const pickle_tensor *from,
                              uint64_t *strides) {
    const pickle_storage *s = from->storage;
    uint64_t bits, last = from->offset, row_major = 1;
    int wrapped = 0, plain = 1;
    model_quoted name;
    t->dtype = s->dtype;
    t->rank = from->rank;
    memcpy(t->dtype_name, s->dtype_name, strlen(s->dtype_name) + 1);
    for (size_t i = 0; i < t->rank; i++)
        t->shape[i] = (uint64_t)from->shape[i].as.number;
    model_quote(&name, t->name, t->name_bytes);
    const char *wrong = model_tensor_extent(t, 8 * s->element_bytes, &bits);
    if (wrong)
        return model_fail(b->error, ISOBIT_E_OVERFLOW, "%s: tensor %s: %s", b->name, name.text,
                          wrong);
    t->begin = t->end = s->at;
    if (!bits)
        return ISOBIT_OK;
    for (size_t i = t->rank; i-- > 0;) {
        uint64_t far;
        strides[i] = (uint64_t)from->strides[i].as.number;
        wrapped |= __builtin_mul_overflow(t->shape[i] - 1, strides[i], &far) ||
                   __builtin_add_overflow(last, far, &last);
        plain &= t->shape[i] == 1 || strides[i] == row_major;
        row_major *= t->shape[i];
    }
    if (wrapped || last >= s->elements || row_major > s->elements)
        return model_fail(b->error, ISOBIT_E_OFFSET,
                          "%s: tensor %s does not lie within its storage, which has %llu elements",
                          b->name, name.text, (unsigned long long)s->elements);
    t->begin = s->at + from->offset * s->element_bytes;
    t->end = s->at + (last + 1) * s->element_bytes;
    t->strides = plain ? NULL : strides;
    return ISOBIT_OK;
}

static iso_status take_tensors(bin *b) {
    named *list;
    size_t count;
    model_header *h = &b->checkpoint->header;
    iso_status status = list_tensors(b, &list, &count);
    if (status)
        return status;
    h->tensors = model_alloc(&b->checkpoint->arena, count, sizeof *h->tensors);
    uint64_t *strides =
        model_alloc3(&b->checkpoint->arena, count, MODEL_MAX_RANK, 1, sizeof *strides);
    if (!h->tensors || !strides)
        return bad(b, ISOBIT_E_NOMEM, "out of memory for its tensors");
    for (size_t i = 0; i < count && !status; i++) {
        model_tensor *t = &h->tensors[h->count++];
        *t = (model_tensor){.name = list[i].name, .name_bytes = list[i].bytes};
        /* The pickle is read: what follows a name in it, an operation, is of no more use. */
        list[i].name[list[i].bytes] = 0;
        status = make_tensor(b, t, list[i].tensor, strides + i * MODEL_MAX_RANK);
    }
    return status;
}

iso_status model_checkpoint_open_bin(model_checkpoint *checkpoint, const char *directory,
                                     const char *name, size_t max_header_bytes, iso_error *error) {
    char start[LEGACY_BYTES];
    bin b = {.checkpoint = checkpoint,
             .file = &checkpoint->file,
             .name = name,
             .max_bytes = max_header_bytes,
             .error = error};
    *checkpoint = (model_checkpoint){.file.fd = -1};
    iso_status status = model_file_open(&checkpoint->file, directory, name, error);
    if (status)
        return status;
    if (checkpoint->file.bytes < sizeof start)
        return bad(&b, ISOBIT_E_TRUNCATED, "the file is too short for one of torch.save");
    if ((status = model_file_read(&checkpoint->file, start, 0, sizeof start, error)))
        return status;
    status = memcmp(start, "PK\3\4", 4) == 0 ? open_zip(&b)
             : memcmp(start, legacy_start, LEGACY_BYTES) == 0
                 ? open_legacy(&b)
                 : bad(&b, ISOBIT_E_UNSUPPORTED,
                       "torch.save has not written it: neither a "
                       "ZIP archive nor the older form");
    if (!status)
        status = take_tensors(&b);
    model_arena_free(&b.scratch);
    return status;
}
