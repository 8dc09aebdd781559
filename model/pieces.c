/* SPDX-License-Identifier: MIT
 *
 * What was taken is read: the threads of the executor read pieces of some rows, convert them (F16
 * and BF16 exactly, subnormals included, F64 rounded) and pack them at once, so that loading needs
 * the model's own memory and a piece for each thread, never the file or a second copy of a matrix.
 * The layout of iso_packed lets a multiple of 16 rows be packed for itself, 32 of iso_packed_w16
 * and iso_packed_q, and any rows of a matrix that is stored the other way round.
 */
#include "pieces.h"

#include "blocks.h"
#include "int8.h"

#include <stdatomic.h>
#include <string.h>

#define CHUNK_FLOATS ((size_t)1 << 16) /* a piece, in L2 */
#define PIECES_TOGETHER 8              /* that a thread takes: as much as a huge page */
#define PANEL 16                       /* of iso_packed */
#define WIDE_PANEL 32                  /* of iso_packed_w16 */

iso_status model_packed_bytes(size_t *bytes, model_form f, size_t rows, size_t k) {
    return model_form_is_blocks(f) ? iso_pack_q_bytes(bytes, rows, k, &model_q_formats[f])
           : f == FORM_S8          ? iso_pack_s8_bytes(bytes, rows, k)
           : f == FORM_16          ? iso_pack_w16_bytes(bytes, rows, k)
                                   : iso_pack_f32_bytes(bytes, rows, k);
}

iso_status model_take_plan(model_source *source, size_t k) {
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

iso_w16 model_take_type(const model_tensor *t) {
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
                turn_halves((void *)to, (const void *)from, present,
                            model_take_type(take->tensors[0]));
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
    iso_status status = model_packed_bytes(&before, take->form, first, k);
    char *to = (char *)take->to + before;
    if (!status)
        status = model_packed_bytes(&bytes, take->form, count, k);
    if (!status && model_form_is_blocks(take->form))
        status =
            iso_pack_q(&packed_q, to, bytes, rows, k / model_q_block(&model_q_formats[take->form]),
                       count, k, &model_q_formats[take->form], context);
    else if (!status && take->form == FORM_16)
        status = iso_pack_w16(&packed16, to, bytes, rows, k, count, k, 0,
                              model_take_type(take->tensors[0]), context);
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
    if (!status && stored)
        status = model_int8_check_rows(source, t, take->scales + from, to, from - begin, count,
                                       model_form_bytes(form, width));
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

iso_status model_take_note(model_source *source, model_take take) {
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
    for (size_t part = 0; part < MODEL_MAX_PARTS && take.tensors[part]; part++)
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
