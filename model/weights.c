/* SPDX-License-Identifier: MIT
 *
 * Weights from a checkpoint into the memory of a model: f32, or for matrices the 16 bits that the
 * file has, or its blocks of 8 or 4 bits, and these packed. First it is only noted what goes where.
 * Then the threads of the executor read pieces of some rows, convert them (F16 and BF16 exactly,
 * subnormals included, F64 rounded) and pack them at once, so that loading needs the model's own
 * memory and a piece for each thread, never the file or a second copy of a matrix. The layout of
 * iso_packed lets a multiple of 16 rows be packed for itself, 32 of iso_packed_w16 and
 * iso_packed_q, and any rows of a matrix that is stored the other way round.
 */
#include "weights.h"

#include "blocks.h"
#include "int8.h"

#include <stdatomic.h>
#include <string.h>

#define CHUNK_FLOATS ((size_t)1 << 16) /* a piece, in L2 */
#define PIECES_TOGETHER 8              /* that a thread takes: as much as a huge page */
#define MAX_PARTS 3
#define PANEL 16      /* of iso_packed */
#define WIDE_PANEL 32 /* of iso_packed_w16 */

static iso_status packed_bytes(size_t *bytes, model_form f, size_t rows, size_t k) {
    return model_form_is_blocks(f) ? iso_pack_q_bytes(bytes, rows, k, &model_q_formats[f])
           : f == FORM_S8          ? iso_pack_s8_bytes(bytes, rows, k)
           : f == FORM_16          ? iso_pack_w16_bytes(bytes, rows, k)
                                   : iso_pack_f32_bytes(bytes, rows, k);
}

const model_tensor *model_source_find(const model_source *source, const char *const *names,
                                      size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!names[i])
            continue;
        const model_tensor *t = model_checkpoint_find(source->checkpoint, names[i]);
        if (!t && strncmp(names[i], source->prefix, strlen(source->prefix)) == 0)
            t = model_checkpoint_find(source->checkpoint, names[i] + strlen(source->prefix));
        if (t)
            return t;
    }
    return NULL;
}

/* The tensor of that name, if its shape is [n] or [n][k] (k not 0), else an error. `integers`: it
 * may have such, and scales. */
static iso_status find_checked(const model_source *source, const model_tensor **tensor,
                               const char *name, size_t n, size_t k, int integers) {
    const model_tensor *t = model_source_find(source, &name, 1);
    iso_error *error = source->error;
    model_quoted quoted, dtype;
    if (!t)
        return model_fail(error, ISOBIT_E_MISSING, "%s has no tensor \"%s\"",
                          source->checkpoint->file.name, name);
    model_quote(&quoted, t->name, t->name_bytes);
    if (t->dtype == MODEL_UNKNOWN)
        return model_fail(
            error, ISOBIT_E_UNSUPPORTED,
            "tensor %s has the unknown element type %s; F32, F16, BF16 or F64 is expected",
            quoted.text, model_quote_dtype(&dtype, t));
    if (t->dtype == MODEL_OTHER ||
        ((t->dtype == MODEL_I8 || t->dtype == MODEL_GROUPS) && !integers))
        return model_fail(error, ISOBIT_E_DTYPE,
                          "tensor %s has the element type %s; F32, F16, BF16 or F64 is expected",
                          quoted.text, t->dtype_name);
    if (t->rank != (k ? 2 : 1) || t->shape[0] != n || (k && t->shape[1] != k)) {
        unsigned long long s0 = t->rank > 0 ? t->shape[0] : 0, s1 = t->rank > 1 ? t->shape[1] : 0;
        if (k)
            return model_fail(error, ISOBIT_E_SHAPE,
                              "tensor %s has rank %zu and shape [%llu, %llu%s]; [%zu, %zu] is "
                              "expected from the configuration",
                              quoted.text, t->rank, s0, s1, t->rank > 2 ? ", ..." : "", n, k);
        return model_fail(error, ISOBIT_E_SHAPE,
                          "tensor %s has rank %zu and shape [%llu%s]; [%zu] is expected from "
                          "the configuration",
                          quoted.text, t->rank, s0, t->rank > 1 ? ", ..." : "", n);
    }
    *tensor = t;
    return ISOBIT_OK;
}

static void use(const model_source *source, const model_tensor *t, unsigned as) {
    if (source->uses)
        source->uses[t - source->checkpoint->header.tensors] |= (unsigned char)as;
}

/* Buffers of a thread will have room for 16 rows of k elements; one more take is to come. */
static iso_status plan_take(model_source *source, size_t k) {
    size_t need;
    if (__builtin_mul_overflow(k, (size_t)16, &need))
        return model_fail(source->error, ISOBIT_E_OVERFLOW, "a matrix row of %zu elements", k);
    if (need < CHUNK_FLOATS)
        need = CHUNK_FLOATS;
    if (need > source->chunk_floats)
        source->chunk_floats = need;
    source->take_limit++;
    return ISOBIT_OK;
}

iso_status model_source_plan(model_source *source, size_t n, size_t k, size_t element) {
    size_t bytes;
    if (__builtin_mul_overflow(n, k, &bytes) || __builtin_mul_overflow(bytes, element, &bytes) ||
        __builtin_add_overflow(bytes, (size_t)63, &bytes) ||
        __builtin_add_overflow(source->bytes, bytes & ~(size_t)63, &source->bytes))
        return model_fail(source->error, ISOBIT_E_OVERFLOW, "the weights are too large");
    return ISOBIT_OK;
}

/* ---------------------------------------------------------------------------------- pieces */

/* What is to be read. In the file it is `rows` of `width` elements, from one tensor or several. */
typedef struct model_take {
    enum { TAKE_WHOLE, TAKE_ROWS, TAKE_PACKED, TAKE_TURNED, TAKE_MAPPED } kind;
    const model_tensor *tensors[MAX_PARTS];
    size_t first_rows, other_rows; /* of tensors[0], of each of the others */
    size_t rows, width;
    void *to;    /* TAKE_MAPPED: nothing is written there */
    size_t step; /* rows of a piece */
    size_t end;  /* the pieces of this take and all before it */
    model_form form;
    float *scales; /* [rows] of those that the file has in int8, or NULL */
} model_take;

static iso_w16 type_of(const model_tensor *t) {
    return t->dtype == MODEL_BF16 ? ISOBIT_BF16 : ISOBIT_F16;
}

/* A row of a panel: `present` elements and zeros. All of them, as nearly always, are a few moves of
 * a size that the compiler knows; of another one it makes an instruction that takes longer to begin
 * than that. */
static void turn_floats(float *to, const float *from, size_t present) {
    if (present == PANEL) {
        memcpy(to, from, PANEL * sizeof *to);
        return;
    }
    memset(to, 0, PANEL * sizeof *to);
    memcpy(to, from, present * sizeof *to);
}
static void turn_halves(uint16_t *restrict to, const uint16_t *restrict from, size_t present,
                        iso_w16 type) {
    uint16_t padded[WIDE_PANEL];
    if (present < WIDE_PANEL) {
        memset(padded, 0, sizeof padded);
        memcpy(padded, from, present * sizeof *padded);
        from = padded;
    }
    if (type != ISOBIT_BF16) {
        memcpy(to, from, WIDE_PANEL * sizeof *to);
        return;
    }
    for (size_t i = 0; i < WIDE_PANEL / 2; i++) {
        to[2 * i] = from[i];
        to[2 * i + 1] = from[WIDE_PANEL / 2 + i];
    }
}

/* Rows [first, first + count) of a matrix that is stored [k][n], k rows, to where they belong. */
static void turn_rows(const model_take *take, const char *rows, size_t first, size_t count) {
    const size_t panel = take->form == FORM_16 ? WIDE_PANEL : PANEL,
                 size = model_form_bytes(take->form, 1);
    const size_t n = take->width, k = take->rows, panels = (n + panel - 1) / panel;
    /* Threads that turn pieces of one matrix begin far from each other: pages that are used for
     * the first time are cleared, and two threads at the same one would both do it. */
    size_t j = panels * first / k;
    for (size_t i = 0; i < panels; i++, j = j + 1 < panels ? j + 1 : 0) {
        const size_t left = n - j * panel, present = left < panel ? left : panel;
        const char *from = rows + j * panel * size;
        char *to = (char *)take->to + (j * k + first) * panel * size;
        for (size_t r = 0; r < count; r++, from += n * size, to += panel * size)
            if (take->form == FORM_16)
                turn_halves((void *)to, (const void *)from, present, type_of(take->tensors[0]));
            else
                turn_floats((void *)to, (const void *)from, present);
    }
}

/* Rows `first` ... of a matrix, `count` of them, into panels. */
static iso_status pack_rows(const model_source *source, const model_take *take, const void *rows,
                            size_t first, size_t count) {
    const size_t k = take->width;
    const iso_context *context = source->context;
    iso_packed_w16 packed16;
    iso_packed_q packed_q;
    iso_packed packed;
    size_t bytes, before = 0; /* whole panels */
    iso_status status = packed_bytes(&before, take->form, first, k);
    char *to = (char *)take->to + before;
    if (!status)
        status = packed_bytes(&bytes, take->form, count, k);
    if (!status && model_form_is_blocks(take->form))
        status =
            iso_pack_q(&packed_q, to, bytes, rows, k / model_q_block(&model_q_formats[take->form]),
                       count, k, &model_q_formats[take->form], context);
    else if (!status && take->form == FORM_16)
        status = iso_pack_w16(&packed16, to, bytes, rows, k, count, k, 0, type_of(take->tensors[0]),
                              context);
    else if (!status)
        status = iso_pack_f32(&packed, to, bytes, rows, k, count, k, 0, context);
    return status ? model_fail(source->error, status, "packing \"%s\": %s", take->tensors[0]->name,
                               iso_strerror(status))
                  : ISOBIT_OK;
}

/* Of part t, which begins at row `begin`, rows [from, until) to `to`, or as int8 where they belong.
 */
static iso_status read_part(const model_source *source, const model_take *take,
                            const model_tensor *t, char *to, size_t begin, size_t from,
                            size_t until) {
    const size_t width = take->width, count = until - from;
    const int stored = t->dtype == MODEL_I8, as_int8 = take->form == FORM_S8;
    const model_form form = as_int8 && !stored ? FORM_F32 : take->form;
    iso_status status =
        model_read_elements(source, t, form, to, (from - begin) * width, count * width);
    if (status || (!stored && !as_int8))
        return status;
    if (!as_int8) {
        model_int8_scale_rows((float *)(void *)to, take->scales + from, count, width);
        return status;
    }
    const model_int8 packed = model_int8_in(take->to, take->rows, width);
    int8_t *q = (int8_t *)to;
    if (!stored) {
        q = (int8_t *)source->raw;
        status = iso_quantize_s8(q, width, packed.scales + from, (const float *)(void *)to, width,
                                 count, width, source->context);
    }
    if (status)
        return model_fail(source->error, status, "\"%s\" as int8: %s", t->name,
                          iso_strerror(status));
    model_int8_put(&packed, q, from, count);
    return ISOBIT_OK;
}

static iso_status read_piece(const model_source *source, const model_take *take, size_t piece) {
    const size_t first = piece * take->step, width = take->width;
    const size_t count = take->rows - first < take->step ? take->rows - first : take->step;
    const int direct = take->kind == TAKE_WHOLE || take->kind == TAKE_ROWS;
    char *to = direct ? (char *)take->to + model_form_bytes(take->form, first * width)
                      : (char *)source->chunk;
    iso_status status = ISOBIT_OK;
    const int as_int8 = take->form == FORM_S8;
    if (as_int8) {
        const model_int8 packed = model_int8_in(take->to, take->rows, width);
        model_int8_clear(&packed, first, count);
    }
    if (take->kind == TAKE_MAPPED)
        return model_check_finite(source, take->tensors[0], FORM_F32,
                                  (const float *)take->to + first * width, first * width,
                                  count * width);
    for (size_t part = 0, begin = 0; begin < first + count && !status; part++) {
        const size_t end = begin + (part ? take->other_rows : take->first_rows);
        const size_t from = begin < first ? first : begin;
        const size_t until = end < first + count ? end : first + count;
        if (from < until)
            status =
                read_part(source, take, take->tensors[part],
                          as_int8 ? to : to + model_form_bytes(take->form, (from - first) * width),
                          begin, from, until);
        begin = end;
    }
    if (!status && take->kind == TAKE_TURNED)
        turn_rows(take, to, first, count);
    if (!status && take->kind == TAKE_PACKED && !as_int8)
        status = pack_rows(source, take, to, first, count);
    return status;
}

/* Notes what model_source_finish will read, or look at. There is room for all that was planned. */
static iso_status note(model_source *source, model_take take) {
    if (source->take_count == source->take_limit)
        return model_fail(source->error, ISOBIT_E_LIMIT, "more weights than were planned");
    if (take.kind == TAKE_MAPPED && !source->reject_nonfinite)
        return ISOBIT_OK;
    if (!source->takes) {
        source->takes = model_alloc(&source->scratch, source->take_limit, sizeof take);
        if (!source->takes)
            return model_fail(source->error, ISOBIT_E_NOMEM, "out of memory");
    }
    take.step = take.rows;
    int stored = 1; /* int8 that becomes int8 never is floats */
    for (size_t part = 0; part < MAX_PARTS && take.tensors[part]; part++)
        stored &= take.tensors[part]->dtype == MODEL_I8;
    const model_form read = take.form == FORM_S8 && !stored ? FORM_F32 : take.form;
    const size_t panel = read == FORM_F32 ? PANEL : WIDE_PANEL;
    if (take.kind != TAKE_WHOLE)
        take.step = source->chunk_floats * sizeof(float) / model_form_bytes(read, take.width) /
                    panel * panel;
    take.end = (take.rows + take.step - 1) / take.step;
    if (source->take_count)
        take.end += source->takes[source->take_count - 1].end;
    source->takes[source->take_count++] = take;
    return ISOBIT_OK;
}

/* A thread that reads: the source with buffers, an error and ops of its own. */
typedef struct reader {
    model_source source;
    iso_error error;
    iso_context context;
    iso_status status;
    size_t failed; /* the piece, where status says so */
} reader;

typedef struct reading {
    reader *readers;
    size_t pieces;
    atomic_size_t next, stop;
} reading;

/*
 * Pieces in their order, some at a time. All before the first one that fails are then read, by
 * whomever, whatever the number of threads: so the first error is always the same.
 */
static void read_pieces(void *arg, size_t task) {
    reading *all = arg;
    reader *own = &all->readers[task];
    const model_take *take = own->source.takes;
    while (!own->status && !atomic_load_explicit(&all->stop, memory_order_relaxed)) {
        size_t piece = atomic_fetch_add_explicit(&all->next, PIECES_TOGETHER, memory_order_relaxed);
        for (size_t i = 0; i < PIECES_TOGETHER && piece < all->pieces && !own->status; i++) {
            while (piece >= take->end)
                take++;
            own->failed = piece;
            own->status = read_piece(&own->source, take,
                                     piece - (take == own->source.takes ? 0 : take[-1].end));
            piece++;
        }
        if (own->status || piece >= all->pieces)
            atomic_store_explicit(&all->stop, 1, memory_order_relaxed);
    }
}

iso_status model_source_finish(model_source *source) {
    if (!source->take_count)
        return ISOBIT_OK;
    const iso_context *context = source->context;
    const iso_executor *executor = context ? context->executor : NULL;
    reading all = {.pieces = source->takes[source->take_count - 1].end};
    const size_t rounds = (all.pieces + PIECES_TOGETHER - 1) / PIECES_TOGETHER;
    size_t threads = executor ? executor->max_threads : 1;
    threads = threads < rounds ? threads : rounds;
    model_arena arena = {0};
    all.readers = model_alloc(&arena, threads, sizeof *all.readers);
    float *chunks = model_alloc3(&arena, threads, source->chunk_floats, 1, sizeof *chunks);
    unsigned char *raw = model_alloc3(&arena, threads, source->chunk_floats, 2, 1);
    iso_status status = ISOBIT_OK;
    if (!all.readers || !chunks || !raw) {
        status = model_fail(source->error, ISOBIT_E_NOMEM, "out of memory");
        threads = 0;
    }
    for (size_t i = 0; i < threads; i++) {
        reader *own = &all.readers[i];
        own->source = *source;
        own->source.chunk = chunks + i * source->chunk_floats;
        own->source.raw = raw + i * source->chunk_floats * 2;
        own->source.error = &own->error;
        own->source.context = &own->context;
        own->context =
            (iso_context){.size = sizeof own->context, .isa = context ? context->isa : NULL};
        own->status = ISOBIT_OK;
    }
    atomic_init(&all.next, 0);
    atomic_init(&all.stop, 0);
    if (threads > 1)
        executor->parallel_for(executor->user, threads, read_pieces, &all);
    else if (threads)
        read_pieces(&all, 0);
    size_t first = SIZE_MAX;
    for (size_t i = 0; i < threads; i++) {
        const reader *own = &all.readers[i];
        if (!own->status || own->failed >= first)
            continue;
        first = own->failed;
        status = own->status;
        if (source->error)
            *source->error = own->error;
    }
    model_arena_free(&arena);
    source->take_count = 0;
    return status;
}

/* ----------------------------------------------------------------------------------- takes */

/* Where the tensor lies in a mapped file, if it can be used there; else NULL. */
static float *find_mapped(const model_source *source, const model_tensor *t) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const model_checkpoint *all = source->checkpoint;
    const model_map *map = source->maps ? &source->maps[all->shards ? t->shard : 0] : NULL;
    const uint64_t start = (all->shards ? all->shards[t->shard].data_start : all->data_start);
    if (map && map->at && t->dtype == MODEL_F32 && !t->strides && !t->paired &&
        (start + t->begin) % 4 == 0)
        return (float *)(void *)((char *)map->at + start + t->begin);
#endif
    (void)source, (void)t;
    return NULL;
}

/* Matrices, one below the other, stay as the file has them, or in blocks that hold all of them,
 * unless they are to become int8. A table, of which rows are only copied, is none of these. */
static model_form form_of(const model_source *source, const model_tensor *const *tensors,
                          size_t parts, int table) {
    const model_dtype dtype = tensors[0]->dtype;
    if (source->compute == ISOBIT_COMPUTE_INT8 && !table)
        return FORM_S8;
    if (source->widen || (dtype == MODEL_I8 && (table || source->compute == ISOBIT_COMPUTE_F32)))
        return FORM_F32;
    return model_common_form(tensors, parts);
}

static void count_parameters(model_source *source, model_form f, size_t elements) {
    source->parameters += elements;
    source->parameters16 += f == FORM_16 ? elements : 0;
    source->parameters8 += f == FORM_S8 ? elements : 0;
    source->parameters_s8 += f == FORM_S8 ? elements : 0;
    if (model_form_is_blocks(f))
        *(model_q_formats[f].bits == 8 ? &source->parameters8 : &source->parameters4) += elements;
}

/* Reads the scales of those parts that the file has in int8. */
static iso_status take_scales(model_source *source, model_take *take,
                              const model_tensor *const *scales, size_t parts, size_t rows) {
    iso_status status = ISOBIT_OK;
    if (take->form == FORM_S8)
        take->scales = model_int8_in(take->to, rows, take->width).scales;
    for (size_t part = 0, row = 0; part < parts && !status; part++) {
        const size_t own = part ? take->other_rows : take->first_rows;
        if (scales[part] && !take->scales &&
            !(take->scales = model_alloc(&source->scratch, rows, sizeof *take->scales)))
            return model_fail(source->error, ISOBIT_E_NOMEM, "out of memory for scales");
        if (scales[part])
            status = model_int8_read_scales(source, scales[part], take->scales + row, own);
        row += own;
    }
    return status;
}

/* Matrices of n rows, the first one, and other_n, the others, one below the other. */
static iso_status take_stacked(model_source *source, model_linear *out, const char *const *names,
                               size_t parts, size_t n, size_t other_n, size_t k, int in_out) {
    size_t bytes, rows = n;
    iso_status status = ISOBIT_OK;
    iso_error *error = source->error;
    model_take take = {TAKE_PACKED, {NULL}, n, other_n, n, k, NULL, 0, 0, FORM_F32, NULL};
    const model_tensor *scales[MAX_PARTS] = {NULL};
    size_t elements = 0;
    int overflow = 0;
    const model_tensor *stored = model_source_find(source, names, 1);
    if (stored && stored->dtype == MODEL_GROUPS)
        in_out = 0; /* such are [out][in], whatever the family has */
    for (size_t part = 0; part < parts; part++) {
        const size_t own = part ? other_n : n;
        if ((status = find_checked(source, &take.tensors[part], names[part], in_out ? k : own,
                                   in_out ? own : k, 1)))
            return status;
        if (take.tensors[part]->dtype == MODEL_I8 &&
            (status = model_int8_find_scales(source, take.tensors[part], own, &scales[part])))
            return status;
        use(source, take.tensors[part],
            MODEL_USE_MATRIX | (in_out ? MODEL_USE_TURNED : 0U) |
                (out == source->logits ? MODEL_USE_LOGITS : 0U));
        elements += own * k;
        if (!source->load)
            source->of_type[take.tensors[part]->dtype] += own * k;
        overflow |= part && __builtin_add_overflow(rows, other_n, &rows);
    }
    take.form = form_of(source, take.tensors, parts, 0);
    if (in_out && model_form_is_blocks(model_own_form(take.tensors[0])))
        take.form = FORM_F32; /* groups would go along n */
    /* A scale is that of an output, so int8 wants whole columns. */
    const int turns = in_out && take.form != FORM_S8 && !scales[0];
    if (!source->load) {
        count_parameters(source, take.form, elements);
        source->parameters_q += model_form_is_blocks(take.form) ? elements : 0;
    }
    if (take.form == FORM_S8 && iso_pack_s8_bytes(&bytes, 1, k) == ISOBIT_E_LIMIT)
        return model_fail(error, ISOBIT_E_LIMIT,
                          "tensor \"%s\": products of int8 of %zu elements are too long", names[0],
                          k);
    if (overflow || packed_bytes(&bytes, take.form, rows, k))
        return model_fail(error, ISOBIT_E_OVERFLOW, "tensor \"%s\" is too large", names[0]);
    float *mapped =
        parts == 1 && take.form == FORM_F32 ? find_mapped(source, take.tensors[0]) : NULL;
    if (!source->load) {
        if (!mapped)
            status = model_source_plan(source, bytes, 1, 1);
        if (in_out && take.form == FORM_S8) /* a piece of a row of the file is not too short */
            return status ? status : plan_take(source, 4 * k);
        return status ? status : plan_take(source, turns ? n : k);
    }
    take.to = mapped ? mapped : model_alloc(source->arena, bytes, 1);
    if (!take.to)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for tensor \"%s\"", names[0]);
    out->w = (iso_packed){mapped || take.form != FORM_F32 ? NULL : take.to, rows, k};
    if (model_form_is_blocks(take.form))
        out->q = (iso_packed_q){take.to, rows, k, model_q_formats[take.form]};
    if (take.form == FORM_16)
        out->w16 = (iso_packed_w16){take.to, rows, k, type_of(take.tensors[0])};
    if (take.form == FORM_S8) {
        const model_int8 p = model_int8_in(take.to, rows, k);
        out->s8 = (iso_packed_s8){p.data, p.scales, p.start, rows, k};
    }
    out->plain = mapped;
    out->turned = in_out;
    take.rows = rows;
    if (in_out && !turns) {
        model_turned *view = model_alloc(&source->scratch, 1, sizeof *view);
        if (!view)
            return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
        model_tensor_turn(view, take.tensors[0]);
        take.tensors[0] = &view->t;
    }
    if ((status = take_scales(source, &take, scales, parts, rows)))
        return status;
    if (turns) {
        take.kind = TAKE_TURNED;
        take.first_rows = take.rows = k;
        take.width = n;
    }
    if (mapped)
        take.kind = TAKE_MAPPED;
    return note(source, take);
}

iso_status model_take_packed(model_source *source, model_linear *out, const char *const *names,
                             size_t parts, size_t n, size_t k, int in_out) {
    return take_stacked(source, out, names, parts, n, n, k, in_out);
}

iso_status model_take_grouped(model_source *source, model_linear *out, const char *const *names,
                              size_t n, size_t other_n, size_t k) {
    return take_stacked(source, out, names, 3, n, other_n, k, 0);
}

static iso_status take_vectors(model_source *source, const float **out, const char *const *names,
                               size_t parts, size_t n, size_t other_n, int leading_one) {
    iso_status status = ISOBIT_OK;
    model_take take = {TAKE_WHOLE, {NULL}, n, other_n, n, 1, NULL, 0, 0, FORM_F32, NULL};
    for (size_t part = 1; part < parts; part++)
        if (__builtin_add_overflow(take.rows, other_n, &take.rows))
            return model_fail(source->error, ISOBIT_E_OVERFLOW, "\"%s\" is too large", names[0]);
    if (source->load && !(take.to = model_alloc(source->arena, take.rows, sizeof(float))))
        return model_fail(source->error, ISOBIT_E_NOMEM, "out of memory for \"%s\"", names[0]);
    for (size_t part = 0; part < parts && !status; part++) {
        const size_t own = part ? other_n : n;
        status = find_checked(source, &take.tensors[part], names[part], leading_one ? 1 : own,
                              leading_one ? own : 0, 0);
        if (!status)
            use(source, take.tensors[part], MODEL_USE_VECTOR);
        if (!status && !source->load) {
            source->parameters += own;
            source->of_type[take.tensors[part]->dtype] += own;
        }
    }
    *out = take.to;
    if (status || source->load)
        return status ? status : note(source, take);
    status = model_source_plan(source, take.rows, 1, sizeof(float));
    return status ? status : plan_take(source, 1);
}

iso_status model_take_vector(model_source *source, const float **out, const char *const *names,
                             size_t parts, size_t n, int leading_one) {
    return take_vectors(source, out, names, parts, n, n, leading_one);
}

iso_status model_take_grouped_vector(model_source *source, const float **out,
                                     const char *const *names, size_t n, size_t other_n) {
    return take_vectors(source, out, names, 3, n, other_n, 0);
}

/* `table`: it will not be changed, so it may be used where it lies, or in 16 bits. */
static iso_status take_rows(model_source *source, model_table *out, const char *name, size_t n,
                            size_t k, int table) {
    model_take take = {TAKE_ROWS, {NULL}, n, 0, n, k, NULL, 0, 0, FORM_F32, NULL};
    const model_tensor *scales = NULL;
    iso_status status = find_checked(source, &take.tensors[0], name, n, k, table);
    if (!status && take.tensors[0]->dtype == MODEL_I8)
        status = model_int8_find_scales(source, take.tensors[0], n, &scales);
    if (status)
        return status;
    use(source, take.tensors[0], table ? MODEL_USE_TABLE : MODEL_USE_VECTOR);
    float *mapped = table ? find_mapped(source, take.tensors[0]) : NULL;
    if (table)
        take.form = form_of(source, take.tensors, 1, 1);
    const size_t row = model_form_bytes(take.form, k);
    if (!source->load) {
        count_parameters(source, take.form, n * k);
        source->of_type[take.tensors[0]->dtype] += n * k;
        if (!mapped)
            status = model_source_plan(source, n, row, 1);
        return status ? status : plan_take(source, k);
    }
    if (mapped)
        take.kind = TAKE_MAPPED;
    take.to = mapped ? mapped : model_alloc3(source->arena, n, row, 1, 1);
    if (!take.to)
        return model_fail(source->error, ISOBIT_E_NOMEM, "out of memory for \"%s\"", name);
    if (model_form_is_blocks(take.form))
        *out = (model_table){.blocks = take.to, .format = model_q_formats[take.form]};
    else
        *out = take.form == FORM_16
                   ? (model_table){.rows16 = take.to, .type = type_of(take.tensors[0])}
                   : (model_table){.rows = take.to};
    status = take_scales(source, &take, &scales, 1, n);
    return status ? status : note(source, take);
}

iso_status model_take_rows(model_source *source, const float **out, const char *name, size_t n,
                           size_t k) {
    model_table table = {.rows = NULL};
    const iso_status status = take_rows(source, &table, name, n, k, 0);
    if (table.rows)
        *out = table.rows;
    return status;
}

iso_status model_take_table(model_source *source, model_table *out, const char *name, size_t n,
                            size_t k) {
    return take_rows(source, out, name, n, k, 1);
}
