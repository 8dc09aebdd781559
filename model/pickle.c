/* SPDX-License-Identifier: MIT
 *
 * The pickles of torch.save. A pickle is a program: in Python it may call anything, so that a file
 * from somewhere else is a file that runs. Here it can only say what a state dict says. The
 * operations below make values (numbers, texts, tuples, lists, dictionaries), and of all that a
 * pickle can call there are these few, each of which makes a value too:
 *
 *   collections.OrderedDict()            a dictionary
 *   torch._utils._rebuild_tensor_v2(...) a tensor: storage, offset, shape, strides
 *   torch._utils._rebuild_parameter(...) the tensor that it is given
 *   torch.FloatStorage and others        element types, within the name of a storage
 *
 * Everything else is refused by its name. Memory is bounded by the text and by MAX_MEMORY, nothing
 * recurses, and each operation looks at a bounded number of values beside those that it takes.
 */
#include "bin.h"

#include <stdio.h>

#define MAX_MEMORY ((size_t)128 << 20)
#define MAX_STACK ((size_t)1 << 16) /* a writer puts 1000 items into a dictionary at a time */
#define MAX_MARKS 32   /* tuples, and pieces of lists and dictionaries, begun inside others */
#define MAX_GLOBAL 200 /* bytes of a module's name, or of a name in it */
#define MAX_KEY 200    /* of a storage */
#define POOL_BYTES ((size_t)4096)

/* The operations, by the names that Python has for them. */
enum {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_BINFLOAT = 'G',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_NONE = 'N',
    OP_BINPERSID = 'Q',
    OP_REDUCE = 'R',
    OP_SHORT_BINSTRING = 'U',
    OP_BINUNICODE = 'X',
    OP_EMPTY_LIST = ']',
    OP_APPEND = 'a',
    OP_BUILD = 'b',
    OP_GLOBAL = 'c',
    OP_APPENDS = 'e',
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_BINPUT = 'q',
    OP_LONG_BINPUT = 'r',
    OP_SETITEM = 's',
    OP_TUPLE = 't',
    OP_SETITEMS = 'u',
    OP_EMPTY_DICT = '}',
    OP_EMPTY_TUPLE = ')',
    OP_PROTO = 0x80,
    OP_TUPLE1 = 0x85,
    OP_TUPLE2 = 0x86,
    OP_TUPLE3 = 0x87,
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_LONG1 = 0x8a
};

/* Those that are refused, for the message. */
static const struct {
    unsigned char op;
    const char *name;
} others[] = {
    {'0', "POP"},
    {'1', "POP_MARK"},
    {'2', "DUP"},
    {'B', "BINBYTES"},
    {'C', "SHORT_BINBYTES"},
    {'F', "FLOAT"},
    {'I', "INT"},
    {'L', "LONG"},
    {'P', "PERSID"},
    {'S', "STRING"},
    {'T', "BINSTRING"},
    {'V', "UNICODE"},
    {'d', "DICT"},
    {'g', "GET"},
    {'i', "INST"},
    {'l', "LIST"},
    {'o', "OBJ"},
    {'p', "PUT"},
    {0x80, "PROTO"},
    {0x81, "NEWOBJ"},
    {0x82, "EXT1"},
    {0x83, "EXT2"},
    {0x84, "EXT4"},
    {0x8b, "LONG4"},
    {0x8c, "SHORT_BINUNICODE"},
    {0x8d, "BINUNICODE8"},
    {0x8e, "BINBYTES8"},
    {0x8f, "EMPTY_SET"},
    {0x90, "ADDITEMS"},
    {0x91, "FROZENSET"},
    {0x92, "NEWOBJ_EX"},
    {0x93, "STACK_GLOBAL"},
    {0x94, "MEMOIZE"},
    {0x95, "FRAME"},
    {0x96, "BYTEARRAY8"},
    {0x97, "NEXT_BUFFER"},
    {0x98, "READONLY_BUFFER"},
};

/* What a pickle may name: first what it may call, then the classes of storages. */
enum { ORDERED_DICT, REBUILD_TENSOR, REBUILD_PARAMETER, FIRST_STORAGE };
static const struct {
    const char *module, *name, *dtype_name;
    model_dtype dtype;
    unsigned bytes;
} globals[] = {
    {"collections", "OrderedDict", NULL, MODEL_UNKNOWN, 0},
    {"torch._utils", "_rebuild_tensor_v2", NULL, MODEL_UNKNOWN, 0},
    {"torch._utils", "_rebuild_parameter", NULL, MODEL_UNKNOWN, 0},
    {"torch", "FloatStorage", "F32", MODEL_F32, 4},
    {"torch", "HalfStorage", "F16", MODEL_F16, 2},
    {"torch", "BFloat16Storage", "BF16", MODEL_BF16, 2},
    {"torch", "DoubleStorage", "F64", MODEL_F64, 8},
    {"torch", "LongStorage", "I64", MODEL_OTHER, 8},
    {"torch", "IntStorage", "I32", MODEL_OTHER, 4},
    {"torch", "ShortStorage", "I16", MODEL_OTHER, 2},
    {"torch", "CharStorage", "I8", MODEL_OTHER, 1},
    {"torch", "ByteStorage", "U8", MODEL_OTHER, 1},
    {"torch", "BoolStorage", "BOOL", MODEL_OTHER, 1},
};

typedef struct reader {
    model_pickle *out;
    model_arena *arena;
    const char *name;
    char *start, *op, *at, *end; /* op: the operation that is being done */
    iso_error *error;
    iso_status status; /* why there was no memory */
    pickle_value *stack, *memo;
    size_t depth, stack_room, memo_count, memo_room, storage_room;
    size_t marks[MAX_MARKS], mark_count; /* depths of the stack */
    char *pool;
    size_t pool_bytes, memory;
} reader;

static iso_status bad(const reader *r, iso_status status, const char *what) {
    return model_fail(r->error, status, "%s: the pickle, byte %zu: %s", r->name,
                      (size_t)(r->op - r->start), what);
}

static iso_status too_short(const reader *r) {
    return bad(r, ISOBIT_E_TRUNCATED, "it ends in the middle");
}

/* ------------------------------------------------------------------------------------ memory */

/* NULL: r->status says why. */
static void *get_memory(reader *r, size_t count, size_t size) {
    size_t bytes;
    void *made = NULL;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > MAX_MEMORY - r->memory) {
        r->status = bad(r, ISOBIT_E_LIMIT, "it makes more values than a state dict has");
    } else {
        r->memory += bytes;
        if (!(made = model_alloc(r->arena, count, size)))
            r->status = bad(r, ISOBIT_E_NOMEM, "out of memory");
    }
    return made;
}

/* Small pieces of larger ones; of at least one byte. */
static void *from_pool(reader *r, size_t bytes) {
    bytes = (bytes + 7) & ~(size_t)7;
    if (bytes > POOL_BYTES / 4)
        return get_memory(r, bytes, 1);
    if (bytes > r->pool_bytes) {
        if (!(r->pool = get_memory(r, POOL_BYTES, 1)))
            return NULL;
        r->pool_bytes = POOL_BYTES;
    }
    void *piece = r->pool;
    r->pool += bytes;
    r->pool_bytes -= bytes;
    return piece;
}

/* The array, with room for item number `count`. */
static void *grow(reader *r, void *array, size_t *room, size_t count, size_t size) {
    if (count < *room)
        return array;
    const size_t more = count < 32 ? 64 : 2 * count;
    void *made = get_memory(r, more, size);
    if (!made)
        return NULL;
    if (*room)
        memcpy(made, array, *room * size);
    *room = more;
    return made;
}

/* ------------------------------------------------------------------------------------- stack */

static iso_status push(reader *r, pickle_value value) {
    if (r->depth == MAX_STACK)
        return bad(r, ISOBIT_E_LIMIT, "it puts too many values on its stack");
    void *stack = grow(r, r->stack, &r->stack_room, r->depth, sizeof *r->stack);
    if (!stack)
        return r->status;
    r->stack = stack;
    r->stack[r->depth++] = value;
    return ISOBIT_OK;
}

static iso_status push_number(reader *r, pickle_kind kind, int64_t number) {
    return push(r, (pickle_value){.kind = kind, .as.number = number});
}

/* How many values there are behind the last mark. */
static size_t behind_mark(const reader *r) {
    return r->depth - (r->mark_count ? r->marks[r->mark_count - 1] : 0);
}

static iso_status need(const reader *r, size_t count) {
    return behind_mark(r) < count ? bad(r, ISOBIT_E_CONFIG, "too few values on its stack")
                                  : ISOBIT_OK;
}

/* Takes the last mark away; *count values lie behind it. */
static iso_status take_mark(reader *r, size_t *count) {
    if (!r->mark_count)
        return bad(r, ISOBIT_E_CONFIG, "no mark on its stack");
    *count = behind_mark(r);
    r->mark_count--;
    return ISOBIT_OK;
}

/* The last `count` values become a tuple. */
static iso_status make_tuple(reader *r, size_t count) {
    pickle_value *items = NULL;
    iso_status status = need(r, count);
    if (status)
        return status;
    r->depth -= count;
    if (count) {
        if (!(items = from_pool(r, count * sizeof *items)))
            return r->status;
        memcpy(items, r->stack + r->depth, count * sizeof *items);
    }
    return push(r, (pickle_value){PICKLE_TUPLE, (uint32_t)count, {.items = items}});
}

static iso_status push_list(reader *r, pickle_kind kind) {
    pickle_list *list = from_pool(r, sizeof *list);
    if (!list)
        return r->status;
    *list = (pickle_list){0};
    return push(r, (pickle_value){.kind = kind, .as.list = list});
}

/* The last `count` values go into the list or dictionary before them. */
static iso_status put_items(reader *r, pickle_kind kind, size_t count) {
    iso_status status = need(r, count + 1);
    if (status)
        return status;
    const pickle_value *to = &r->stack[r->depth - count - 1];
    if (to->kind != kind)
        return bad(r, ISOBIT_E_CONFIG,
                   kind == PICKLE_LIST ? "items for what is no list"
                                       : "items for what is no dictionary");
    if (kind == PICKLE_DICT && count % 2)
        return bad(r, ISOBIT_E_CONFIG, "a key without a value");
    r->depth -= count;
    if (count == 0)
        return ISOBIT_OK;
    pickle_piece *piece = from_pool(r, sizeof *piece);
    pickle_value *items = piece ? from_pool(r, count * sizeof *items) : NULL;
    if (!items)
        return r->status;
    memcpy(items, r->stack + r->depth, count * sizeof *items);
    *piece = (pickle_piece){.items = items, .count = count};
    pickle_list *list = to->as.list;
    if (list->last)
        list->last->next = piece;
    else
        list->first = piece;
    list->last = piece;
    return ISOBIT_OK;
}

/* -------------------------------------------------------------------------------------- memo */

static iso_status memo_put(reader *r, size_t index) {
    iso_status status = need(r, 1);
    if (status)
        return status;
    /* Writers count on; the C one of Python 2 began with 1. */
    if (index > r->memo_count + 1)
        return bad(r, ISOBIT_E_CONFIG, "it numbers its values with gaps");
    void *memo = grow(r, r->memo, &r->memo_room, index, sizeof *r->memo);
    if (!memo)
        return r->status;
    r->memo = memo;
    while (r->memo_count <= index)
        r->memo[r->memo_count++] = (pickle_value){.kind = PICKLE_NOTHING};
    r->memo[index] = r->stack[r->depth - 1];
    return ISOBIT_OK;
}

static iso_status memo_get(reader *r, size_t index) {
    if (index >= r->memo_count || r->memo[index].kind == PICKLE_NOTHING)
        return bad(r, ISOBIT_E_CONFIG, "it asks for a value that it has not numbered");
    return push(r, r->memo[index]);
}

/* ---------------------------------------------------------------------------- what it may call */

/* A line of at most MAX_GLOBAL bytes. */
static iso_status read_line(reader *r, const char **line, size_t *bytes) {
    const size_t rest = (size_t)(r->end - r->at);
    const char *end = memchr(r->at, '\n', rest < MAX_GLOBAL + 1 ? rest : MAX_GLOBAL + 1);
    if (!end)
        return rest > MAX_GLOBAL ? bad(r, ISOBIT_E_LIMIT, "a name of more than 200 bytes")
                                 : too_short(r);
    *line = r->at;
    *bytes = (size_t)(end - r->at);
    r->at += *bytes + 1;
    return ISOBIT_OK;
}

static int is_text(const char *text, size_t bytes, const char *word) {
    return strlen(word) == bytes && memcmp(text, word, bytes) == 0;
}

static iso_status push_global(reader *r) {
    const char *module = "", *name = "";
    size_t module_bytes = 0, name_bytes = 0;
    char both[2 * MAX_GLOBAL + 2];
    model_quoted quoted;
    iso_status status = read_line(r, &module, &module_bytes);
    if (status || (status = read_line(r, &name, &name_bytes)))
        return status;
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
        if (is_text(module, module_bytes, globals[i].module) &&
            is_text(name, name_bytes, globals[i].name))
            return push_number(r, PICKLE_GLOBAL, (int64_t)i);
    memcpy(both, module, module_bytes);
    both[module_bytes] = '.';
    memcpy(both + module_bytes + 1, name, name_bytes);
    return model_fail(r->error, ISOBIT_E_UNSUPPORTED,
                      "%s: the pickle asks for %s; only what a state dict of tensors needs is "
                      "known here, and nothing is run",
                      r->name, model_quote(&quoted, both, module_bytes + 1 + name_bytes));
}

static int are_sizes(const pickle_value *tuple) {
    for (uint32_t i = 0; i < tuple->count; i++)
        if (tuple->as.items[i].kind != PICKLE_NUMBER || tuple->as.items[i].as.number < 0)
            return 0;
    return 1;
}

static iso_status rebuild_tensor(reader *r, const pickle_value *args) {
    const pickle_value *a = args->as.items;
    if (args->count < 6 || args->count > 7 || a[0].kind != PICKLE_STORAGE ||
        a[1].kind != PICKLE_NUMBER || a[1].as.number < 0 || a[2].kind != PICKLE_TUPLE ||
        a[3].kind != PICKLE_TUPLE || a[2].count != a[3].count)
        return bad(r, ISOBIT_E_CONFIG,
                   "a tensor needs a storage, an offset, a shape and as many strides");
    if (a[2].count > MODEL_MAX_RANK)
        return bad(r, ISOBIT_E_LIMIT, "a tensor of more than 8 dimensions");
    if (!are_sizes(&a[2]) || !are_sizes(&a[3]))
        return bad(r, ISOBIT_E_CONFIG, "a shape and strides are numbers of at least 0");
    pickle_tensor *tensor = from_pool(r, sizeof *tensor);
    if (!tensor)
        return r->status;
    *tensor = (pickle_tensor){.storage = a[0].as.storage,
                              .offset = (uint64_t)a[1].as.number,
                              .rank = a[2].count,
                              .shape = a[2].as.items,
                              .strides = a[3].as.items};
    return push(r, (pickle_value){.kind = PICKLE_TENSOR, .as.tensor = tensor});
}

/* "Calls" the value before the last one with the last one. */
static iso_status reduce(reader *r) {
    iso_status status = need(r, 2);
    if (status)
        return status;
    r->depth -= 2;
    const pickle_value function = r->stack[r->depth], args = r->stack[r->depth + 1];
    if (function.kind != PICKLE_GLOBAL || args.kind != PICKLE_TUPLE)
        return bad(r, ISOBIT_E_CONFIG, "it calls what cannot be called");
    if (function.as.number == REBUILD_TENSOR)
        return rebuild_tensor(r, &args);
    if (function.as.number == REBUILD_PARAMETER) {
        if (args.count != 3 || args.as.items[0].kind != PICKLE_TENSOR)
            return bad(r, ISOBIT_E_CONFIG, "a parameter needs a tensor");
        return push(r, args.as.items[0]);
    }
    if (function.as.number != ORDERED_DICT)
        return bad(r, ISOBIT_E_UNSUPPORTED, "it makes a storage out of nothing");
    if (args.count)
        return bad(r, ISOBIT_E_UNSUPPORTED, "an OrderedDict that is made of something");
    return push_list(r, PICKLE_DICT);
}

/* ('storage', class, key, device, elements), in the older form with a view, which must be None. */
static iso_status push_storage(reader *r) {
    iso_status status = need(r, 1);
    if (status)
        return status;
    const pickle_value id = r->stack[--r->depth], *a = id.as.items;
    if (id.kind != PICKLE_TUPLE || id.count < 5 || id.count > 6 || a[0].kind != PICKLE_STRING ||
        !is_text(a[0].as.text, a[0].count, "storage") || a[1].kind != PICKLE_GLOBAL ||
        a[1].as.number < FIRST_STORAGE || a[2].kind != PICKLE_STRING ||
        a[3].kind != PICKLE_STRING || a[4].kind != PICKLE_NUMBER || a[4].as.number < 0)
        return bad(r, ISOBIT_E_CONFIG,
                   "a storage needs a class, a key, a device and a number of elements");
    if (a[2].count > MAX_KEY)
        return bad(r, ISOBIT_E_LIMIT, "a storage with a key of more than 200 bytes");
    if (id.count == 6 && a[5].kind != PICKLE_NONE)
        return bad(r, ISOBIT_E_UNSUPPORTED, "a storage that is a part of another one");
    pickle_storage *s = from_pool(r, sizeof *s);
    void *all =
        s ? grow(r, r->out->storages, &r->storage_room, r->out->storage_count, sizeof s) : NULL;
    if (!all)
        return r->status;
    r->out->storages = all;
    *s = (pickle_storage){.key = a[2].as.text,
                          .key_bytes = a[2].count,
                          .dtype_name = globals[a[1].as.number].dtype_name,
                          .dtype = globals[a[1].as.number].dtype,
                          .element_bytes = globals[a[1].as.number].bytes,
                          .elements = (uint64_t)a[4].as.number};
    r->out->storages[r->out->storage_count++] = s;
    return push(r, (pickle_value){.kind = PICKLE_STORAGE, .as.storage = s});
}

/* Attributes of a dictionary, such as _metadata: of no use here. */
static iso_status build(reader *r) {
    iso_status status = need(r, 2);
    if (status)
        return status;
    if (r->stack[r->depth - 1].kind != PICKLE_DICT || r->stack[r->depth - 2].kind != PICKLE_DICT)
        return bad(r, ISOBIT_E_UNSUPPORTED, "attributes of what is no dictionary");
    r->depth--;
    return ISOBIT_OK;
}

/* -------------------------------------------------------------------------------- operations */

static iso_status refuse(const reader *r, unsigned op) {
    const char *name = "of an unknown kind";
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].op == op)
            name = others[i].name;
    return model_fail(r->error, ISOBIT_E_UNSUPPORTED,
                      "%s: the pickle, byte %zu: the operation 0x%02x (%s) is refused; no state "
                      "dict needs it",
                      r->name, (size_t)(r->op - r->start), op, name);
}

/* An operand of so many bytes, as a number; texts of that length follow where `text` is not NULL.
 */
static iso_status operand(reader *r, size_t bytes, uint64_t *value, char **text) {
    if ((size_t)(r->end - r->at) < bytes)
        return too_short(r);
    *value = 0;
    for (size_t i = bytes; i-- > 0;)
        *value = *value << 8 | (unsigned char)r->at[i];
    r->at += bytes;
    if (!text)
        return ISOBIT_OK;
    if ((uint64_t)(r->end - r->at) < *value)
        return too_short(r);
    *text = r->at;
    r->at += *value;
    return ISOBIT_OK;
}

static iso_status push_string(reader *r, size_t length_bytes) {
    uint64_t bytes = 0;
    char *text = NULL;
    iso_status status = operand(r, length_bytes, &bytes, &text);
    return status ? status
                  : push(r, (pickle_value){PICKLE_STRING, (uint32_t)bytes, {.text = text}});
}

/* LONG1: a length, then so many bytes of a number in two's complement. */
static iso_status push_long(reader *r) {
    uint64_t bytes = 0, value = 0;
    iso_status status = operand(r, 1, &bytes, NULL);
    if (status)
        return status;
    if (bytes > 8)
        return bad(r, ISOBIT_E_LIMIT, "a number of more than 64 bits");
    if ((status = operand(r, (size_t)bytes, &value, NULL)))
        return status;
    if (bytes && bytes < 8 && value >> (8 * bytes - 1))
        value |= UINT64_MAX << 8 * bytes;
    return push_number(r, PICKLE_NUMBER, (int64_t)value);
}

static iso_status step(reader *r, unsigned op) {
    iso_status status = ISOBIT_OK;
    uint64_t value = 0;
    size_t count = 0;
    switch (op) {
    case OP_MARK:
        if (r->mark_count == MAX_MARKS)
            return bad(r, ISOBIT_E_LIMIT, "it nests too deeply");
        r->marks[r->mark_count++] = r->depth;
        return ISOBIT_OK;
    case OP_NONE: return push_number(r, PICKLE_NONE, 0);
    case OP_NEWTRUE:
    case OP_NEWFALSE: return push_number(r, PICKLE_BOOL, op == OP_NEWTRUE);
    case OP_BININT1:
    case OP_BININT2:
        status = operand(r, op == OP_BININT1 ? 1 : 2, &value, NULL);
        return status ? status : push_number(r, PICKLE_NUMBER, (int64_t)value);
    case OP_BININT:
        status = operand(r, 4, &value, NULL);
        return status ? status : push_number(r, PICKLE_NUMBER, (int32_t)(uint32_t)value);
    case OP_LONG1: return push_long(r);
    case OP_BINFLOAT:
        status = operand(r, 8, &value, NULL);
        return status ? status : push_number(r, PICKLE_FLOAT, 0);
    case OP_BINUNICODE: return push_string(r, 4);
    case OP_SHORT_BINSTRING: return push_string(r, 1);
    case OP_EMPTY_TUPLE:
    case OP_TUPLE1:
    case OP_TUPLE2:
    case OP_TUPLE3: return make_tuple(r, op == OP_EMPTY_TUPLE ? 0 : op - OP_TUPLE1 + 1);
    case OP_TUPLE: status = take_mark(r, &count); return status ? status : make_tuple(r, count);
    case OP_EMPTY_LIST: return push_list(r, PICKLE_LIST);
    case OP_EMPTY_DICT: return push_list(r, PICKLE_DICT);
    case OP_APPEND: return put_items(r, PICKLE_LIST, 1);
    case OP_SETITEM: return put_items(r, PICKLE_DICT, 2);
    case OP_APPENDS:
    case OP_SETITEMS:
        status = take_mark(r, &count);
        return status ? status : put_items(r, op == OP_APPENDS ? PICKLE_LIST : PICKLE_DICT, count);
    case OP_BINPUT:
    case OP_LONG_BINPUT:
        status = operand(r, op == OP_BINPUT ? 1 : 4, &value, NULL);
        return status ? status : memo_put(r, (size_t)value);
    case OP_BINGET:
    case OP_LONG_BINGET:
        status = operand(r, op == OP_BINGET ? 1 : 4, &value, NULL);
        return status ? status : memo_get(r, (size_t)value);
    case OP_GLOBAL: return push_global(r);
    case OP_REDUCE: return reduce(r);
    case OP_BUILD: return build(r);
    case OP_BINPERSID: return push_storage(r);
    default: return refuse(r, op);
    }
}

iso_status model_pickle_read(model_pickle *p, model_arena *arena, const char *name, char *text,
                             size_t bytes, iso_error *error) {
    reader r = {.out = p,
                .arena = arena,
                .name = name,
                .start = text,
                .op = text,
                .at = text,
                .end = text + bytes,
                .error = error};
    *p = (model_pickle){0};
    if (bytes < 2)
        return too_short(&r);
    if ((unsigned char)text[0] != OP_PROTO || text[1] != 2)
        return bad(&r, ISOBIT_E_UNSUPPORTED, "it does not begin as one of protocol 2");
    r.at += 2;
    for (;;) {
        r.op = r.at;
        if (r.at == r.end)
            return too_short(&r);
        const unsigned op = (unsigned char)*r.at++;
        if (op == OP_STOP)
            break;
        iso_status status = step(&r, op);
        if (status)
            return status;
    }
    if (r.depth != 1 || r.mark_count)
        return bad(&r, ISOBIT_E_CONFIG, "it does not end with one value");
    p->top = r.stack[0];
    p->bytes = (size_t)(r.at - text);
    return ISOBIT_OK;
}

const pickle_value *model_pickle_find(const pickle_value *dict, const char *key) {
    if (dict->kind != PICKLE_DICT)
        return NULL;
    for (const pickle_piece *piece = dict->as.list->first; piece; piece = piece->next)
        for (size_t i = 0; i < piece->count; i += 2)
            if (piece->items[i].kind == PICKLE_STRING &&
                is_text(piece->items[i].as.text, piece->items[i].count, key))
                return &piece->items[i + 1];
    return NULL;
}
