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

#include <stdatomic.h>
#include <string.h>

#define CHUNK_FLOATS ((size_t)1 << 16) /* a piece, in L2 */
#define PIECES_TOGETHER 8              /* that a thread takes: as much as a huge page */
#define MAX_PARTS 3
#define PANEL 16      /* of iso_packed */
#define WIDE_PANEL 32 /* of iso_packed_w16 */
#define Q8_BYTES 34   /* of a block */
#define Q4_BYTES 18

/* What elements become: floats, or what the file has, numbers of 16 bits or blocks. */
typedef enum form { FORM_F32, FORM_16, FORM_Q8, FORM_Q4 } form;
static int is_blocks(form f) { return f == FORM_Q8 || f == FORM_Q4; }
static const iso_q_format q_formats[] = {
    [FORM_Q8] = {8, MODEL_BLOCK, ISOBIT_SCALE_F16}, [FORM_Q4] = {4, MODEL_BLOCK, ISOBIT_SCALE_F16}};

/* Bytes of so many elements; blocks are whole. */
static size_t form_bytes(form f, size_t elements) {
    switch (f) {
    case FORM_Q8: return elements / MODEL_BLOCK * Q8_BYTES;
    case FORM_Q4: return elements / MODEL_BLOCK * Q4_BYTES;
    case FORM_16: return elements * sizeof(uint16_t);
    case FORM_F32: break;
    }
    return elements * sizeof(float);
}

static iso_status packed_bytes(size_t *bytes, form f, size_t rows, size_t k) {
    return is_blocks(f)   ? iso_pack_q_bytes(bytes, rows, k, &q_formats[f])
           : f == FORM_16 ? iso_pack_w16_bytes(bytes, rows, k)
                          : iso_pack_f32_bytes(bytes, rows, k);
}

static form own_form(model_dtype dtype) {
    switch (dtype) {
    case MODEL_F16:
    case MODEL_BF16: return FORM_16;
    case MODEL_Q8_0: return FORM_Q8;
    case MODEL_Q4_0: return FORM_Q4;
    default: return FORM_F32;
    }
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

/* The tensor of that name, if its shape is [n] or [n][k] (k not 0), else an error. */
static iso_status find_checked(const model_source *source, const model_tensor **tensor,
                               const char *name, size_t n, size_t k) {
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
            quoted.text, model_quote(&dtype, t->dtype_name, strlen(t->dtype_name)));
    if (t->dtype == MODEL_OTHER)
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

static float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float model_from_f16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31,
             fraction = half & 0x3ff;
    if (exponent == 31) /* Inf and NaN */
        return from_bits(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) { /* zero and subnormals: fraction x 2^-24, exact in f32 */
        float value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    return from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

/* Bytes of an element, or of a block. */
static size_t element_bytes(const model_tensor *t) {
    switch (t->dtype) {
    case MODEL_F64: return 8;
    case MODEL_Q8_0: return Q8_BYTES;
    case MODEL_Q4_0: return Q4_BYTES;
    default: return t->dtype == MODEL_F32 ? 4 : 2;
    }
}

static inline uint64_t little_endian(const unsigned char *from, size_t bytes) {
    uint64_t bits = 0;
    for (size_t k = 0; k < bytes; k++)
        bits |= (uint64_t)from[k] << 8 * k;
    return bits;
}

static float from_f64(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return (float)value;
}

/* Elements that lie in `raw`, `step` elements apart, to `to`, `to_step` apart. */
static void convert(const model_tensor *t, form f, void *at, size_t to_step,
                    const unsigned char *raw, size_t step, size_t count) {
    const size_t apart = step * element_bytes(t);
    uint16_t *halves = at;
    float *to = at;
    if (f == FORM_16) {
        for (size_t i = 0; i < count; i++)
            halves[i * to_step] = (uint16_t)little_endian(raw + i * apart, 2);
        return;
    }
    switch (t->dtype) {
    case MODEL_F16:
        for (size_t i = 0; i < count; i++)
            to[i * to_step] = model_from_f16((uint16_t)little_endian(raw + i * apart, 2));
        break;
    case MODEL_BF16:
        for (size_t i = 0; i < count; i++)
            to[i * to_step] = from_bits((uint32_t)little_endian(raw + i * apart, 2) << 16);
        break;
    case MODEL_F64:
        for (size_t i = 0; i < count; i++)
            to[i * to_step] = from_f64(little_endian(raw + i * apart, 8));
        break;
    default:
        for (size_t i = 0; i < count; i++)
            to[i * to_step] = from_bits((uint32_t)little_endian(raw + i * apart, 4));
    }
}

/* Blocks as they are, or as floats. A scale that is not finite is refused, wherever it is. */
static iso_status convert_blocks(const model_source *source, const model_tensor *t, form f,
                                 char *to, const unsigned char *raw, size_t first, size_t count) {
    const size_t size = element_bytes(t);
    for (size_t i = 0; i < count; i++, raw += size) {
        const uint16_t half = (uint16_t)little_endian(raw, 2);
        const unsigned char *numbers = raw + 2;
        model_quoted name;
        if ((half & 0x7c00) == 0x7c00)
            return model_fail(source->error, ISOBIT_E_RANGE,
                              "tensor %s: the scale of block %zu is not finite",
                              model_quote(&name, t->name, t->name_bytes), first + i);
        if (f != FORM_F32) {
            memcpy(to + i * size, &half, 2);
            memcpy(to + i * size + 2, numbers, size - 2);
            continue;
        }
        float *weights = (float *)(void *)to + i * MODEL_BLOCK;
        for (size_t k = 0; k < MODEL_BLOCK; k++) {
            const size_t half_block = MODEL_BLOCK / 2;
            const int number = t->dtype == MODEL_Q8_0 ? (int8_t)numbers[k]
                               : k < half_block       ? (numbers[k] & 15) - 8
                                                      : (numbers[k - half_block] >> 4) - 8;
            weights[k] = (float)number * model_from_f16(half);
        }
    }
    return ISOBIT_OK;
}

/* Elements of whole blocks, which lie one after the other in the file. */
static iso_status read_blocks(const model_source *source, const model_tensor *t, form f, char *to,
                              size_t first, size_t count) {
    const size_t size = element_bytes(t), room = 2 * source->chunk_floats / size;
    const size_t from = first / MODEL_BLOCK, blocks = count / MODEL_BLOCK;
    iso_status status = ISOBIT_OK;
    for (size_t done = 0, piece; done < blocks && !status; done += piece) {
        piece = blocks - done < room ? blocks - done : room;
        status = model_checkpoint_read(source->checkpoint, t, source->raw,
                                       (uint64_t)(from + done) * size, piece * size, source->error);
        if (!status)
            status = convert_blocks(source, t, f, to + form_bytes(f, done * MODEL_BLOCK),
                                    source->raw, from + done, piece);
    }
    return status;
}

/* Elements [first, first + count), which lie one after the other in the file. */
static iso_status read_rows(const model_source *source, const model_tensor *t, form f, char *to,
                            size_t first, size_t count) {
    const size_t size = element_bytes(t), room = 2 * source->chunk_floats / size;
    for (size_t done = 0, piece; done < count; done += piece) {
        piece = count - done;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        if (t->dtype == MODEL_F32 || f == FORM_16) /* as it is */
            return model_checkpoint_read(source->checkpoint, t, to, (uint64_t)first * size,
                                         count * size, source->error);
#endif
        piece = piece < room ? piece : room;
        iso_status status =
            model_checkpoint_read(source->checkpoint, t, source->raw,
                                  (uint64_t)(first + done) * size, piece * size, source->error);
        if (status)
            return status;
        convert(t, f, to + form_bytes(f, done), 1, source->raw, 1, piece);
    }
    return ISOBIT_OK;
}

/*
 * The same with strides, as a view of another tensor has (a transposed one above all): whole rows.
 * The inner loop follows the smaller stride, so that a read brings many elements at a time.
 */
static iso_status read_strided(const model_source *source, const model_tensor *t, form f, char *to,
                               size_t first, size_t count) {
    const size_t size = element_bytes(t), room = 2 * source->chunk_floats / size;
    const int matrix = t->rank == 2;
    const size_t k = (size_t)t->shape[t->rank - 1];
    const uint64_t columns = t->strides[t->rank - 1], rows = matrix ? t->strides[0] : 0;
    const uint64_t start = matrix ? first / k * rows : first * columns;
    const int by_rows = !matrix || columns <= rows;
    const size_t row_count = matrix ? count / k : 1, column_count = matrix ? k : count;
    const size_t outer = by_rows ? row_count : column_count,
                 inner = by_rows ? column_count : row_count;
    const uint64_t outer_stride = by_rows ? rows : columns, stride = by_rows ? columns : rows;
    const size_t to_outer = by_rows ? k : 1, to_inner = by_rows ? 1 : k;
    const size_t fit = stride < room ? (room - 1) / (stride ? (size_t)stride : 1) + 1 : 1;
    for (size_t o = 0; o < outer; o++)
        for (size_t done = 0, piece; done < inner; done += piece) {
            piece = inner - done < fit ? inner - done : fit;
            const uint64_t at = start + o * outer_stride + done * stride;
            const size_t span = (piece - 1) * (size_t)stride + 1;
            iso_status status = model_checkpoint_read(source->checkpoint, t, source->raw, at * size,
                                                      span * size, source->error);
            if (status)
                return status;
            convert(t, f, to + form_bytes(f, o * to_outer + done * to_inner), to_inner, source->raw,
                    (size_t)stride, piece);
        }
    return ISOBIT_OK;
}

/* Whether element i is an infinity or NaN. */
static int is_nonfinite(const model_tensor *t, form f, const void *at, size_t i) {
    const uint32_t mask = f == FORM_F32 ? 0x7f800000 : t->dtype == MODEL_BF16 ? 0x7f80 : 0x7c00;
    uint32_t bits;
    if (f == FORM_16)
        bits = ((const uint16_t *)at)[i];
    else
        memcpy(&bits, (const float *)at + i, sizeof bits);
    return (bits & mask) == mask;
}

static iso_status check_finite(const model_source *source, const model_tensor *t, form f,
                               const void *at, size_t first, size_t count) {
    for (size_t i = 0; source->reject_nonfinite && i < count; i++) {
        if (is_nonfinite(t, f, at, i)) {
            model_quoted name;
            return model_fail(source->error, ISOBIT_E_RANGE,
                              "tensor %s: element %zu is not finite, and such weights are "
                              "rejected",
                              model_quote(&name, t->name, t->name_bytes), first + i);
        }
    }
    return ISOBIT_OK;
}

/* Elements [first, first + count) of a tensor in that form; of a matrix whole rows. */
static iso_status read_elements(const model_source *source, const model_tensor *t, form f, char *to,
                                size_t first, size_t count) {
    if (t->dtype == MODEL_Q8_0 || t->dtype == MODEL_Q4_0)
        return read_blocks(source, t, f, to, first, count);
    iso_status status = t->strides ? read_strided(source, t, f, to, first, count)
                                   : read_rows(source, t, f, to, first, count);
    return status ? status : check_finite(source, t, f, to, first, count);
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
    form form;
} model_take;

static iso_w16 type_of(const model_tensor *t) {
    return t->dtype == MODEL_BF16 ? ISOBIT_BF16 : ISOBIT_F16;
}

/* A row of a panel: `present` elements and zeros. */
static void turn_floats(float *to, const float *from, size_t present) {
    memset(to, 0, PANEL * sizeof *to);
    memcpy(to, from, present * sizeof *to);
}
static void turn_halves(uint16_t *to, const uint16_t *from, size_t present, iso_w16 type) {
    memset(to, 0, WIDE_PANEL * sizeof *to);
    for (size_t i = 0; i < present; i++)
        to[type == ISOBIT_BF16 ? i % 16 * 2 + i / 16 : i] = from[i];
}

/* Rows [first, first + count) of a matrix that is stored [k][n], k rows, to where they belong. */
static void turn_rows(const model_take *take, const char *rows, size_t first, size_t count) {
    const size_t panel = take->form == FORM_16 ? WIDE_PANEL : PANEL,
                 size = form_bytes(take->form, 1);
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
    if (!status && is_blocks(take->form))
        status = iso_pack_q(&packed_q, to, bytes, rows, k / MODEL_BLOCK, count, k,
                            &q_formats[take->form], context);
    else if (!status && take->form == FORM_16)
        status = iso_pack_w16(&packed16, to, bytes, rows, k, count, k, 0, type_of(take->tensors[0]),
                              context);
    else if (!status)
        status = iso_pack_f32(&packed, to, bytes, rows, k, count, k, 0, context);
    return status ? model_fail(source->error, status, "packing \"%s\": %s", take->tensors[0]->name,
                               iso_strerror(status))
                  : ISOBIT_OK;
}

static iso_status read_piece(const model_source *source, const model_take *take, size_t piece) {
    const size_t first = piece * take->step, width = take->width;
    const size_t count = take->rows - first < take->step ? take->rows - first : take->step;
    const int direct = take->kind == TAKE_WHOLE || take->kind == TAKE_ROWS;
    char *to =
        direct ? (char *)take->to + form_bytes(take->form, first * width) : (char *)source->chunk;
    iso_status status = ISOBIT_OK;
    if (take->kind == TAKE_MAPPED)
        return check_finite(source, take->tensors[0], FORM_F32,
                            (const float *)take->to + first * width, first * width, count * width);
    for (size_t part = 0, begin = 0; begin < first + count && !status; part++) {
        const size_t end = begin + (part ? take->other_rows : take->first_rows);
        const size_t from = begin < first ? first : begin;
        const size_t until = end < first + count ? end : first + count;
        if (from < until)
            status = read_elements(source, take->tensors[part], take->form,
                                   to + form_bytes(take->form, (from - first) * width),
                                   (from - begin) * width, (until - from) * width);
        begin = end;
    }
    if (!status && take->kind == TAKE_TURNED)
        turn_rows(take, to, first, count);
    if (!status && take->kind == TAKE_PACKED)
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
    const size_t panel = take.form == FORM_F32 ? PANEL : WIDE_PANEL;
    if (take.kind != TAKE_WHOLE)
        take.step = source->chunk_floats * sizeof(float) / form_bytes(take.form, take.width) /
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

/* Matrices, one below the other, stay as the file has them where all have one type. */
static form form_of(const model_source *source, const model_tensor *const *tensors, size_t parts) {
    const model_dtype dtype = tensors[0]->dtype;
    if (source->widen)
        return FORM_F32;
    for (size_t part = 1; part < parts; part++)
        if (tensors[part]->dtype != dtype)
            return FORM_F32;
    return own_form(dtype);
}

static void count_parameters(model_source *source, form f, size_t elements) {
    source->parameters += elements;
    source->parameters16 += f == FORM_16 ? elements : 0;
    source->parameters8 += f == FORM_Q8 ? elements : 0;
    source->parameters4 += f == FORM_Q4 ? elements : 0;
}

/* Matrices of n rows, the first one, and other_n, the others, one below the other. */
static iso_status take_stacked(model_source *source, model_linear *out, const char *const *names,
                               size_t parts, size_t n, size_t other_n, size_t k, int in_out) {
    size_t bytes, rows = n;
    iso_status status = ISOBIT_OK;
    iso_error *error = source->error;
    model_take take = {TAKE_PACKED, {NULL}, n, other_n, n, k, NULL, 0, 0, FORM_F32};
    size_t elements = 0;
    int overflow = 0;
    for (size_t part = 0; part < parts; part++) {
        const size_t own = part ? other_n : n;
        if ((status = find_checked(source, &take.tensors[part], names[part], in_out ? k : own,
                                   in_out ? own : k)))
            return status;
        elements += own * k;
        overflow |= part && __builtin_add_overflow(rows, other_n, &rows);
    }
    take.form = form_of(source, take.tensors, parts);
    if (in_out && is_blocks(take.form)) /* groups would go along n */
        take.form = FORM_F32;
    if (!source->load)
        count_parameters(source, take.form, elements);
    if (overflow || packed_bytes(&bytes, take.form, rows, k))
        return model_fail(error, ISOBIT_E_OVERFLOW, "tensor \"%s\" is too large", names[0]);
    float *mapped = parts == 1 ? find_mapped(source, take.tensors[0]) : NULL;
    if (!source->load) {
        if (!mapped)
            status = model_source_plan(source, bytes, 1, 1);
        return status ? status : plan_take(source, in_out ? n : k);
    }
    take.to = mapped ? mapped : model_alloc(source->arena, bytes, 1);
    if (!take.to)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for tensor \"%s\"", names[0]);
    out->w = (iso_packed){mapped || take.form != FORM_F32 ? NULL : take.to, rows, k};
    if (is_blocks(take.form))
        out->q = (iso_packed_q){take.to, rows, k, q_formats[take.form]};
    if (take.form == FORM_16)
        out->w16 = (iso_packed_w16){take.to, rows, k, type_of(take.tensors[0])};
    out->plain = mapped;
    out->turned = in_out;
    take.rows = rows;
    if (in_out) {
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
    model_take take = {TAKE_WHOLE, {NULL}, n, other_n, n, 1, NULL, 0, 0, FORM_F32};
    for (size_t part = 1; part < parts; part++)
        if (__builtin_add_overflow(take.rows, other_n, &take.rows))
            return model_fail(source->error, ISOBIT_E_OVERFLOW, "\"%s\" is too large", names[0]);
    if (source->load && !(take.to = model_alloc(source->arena, take.rows, sizeof(float))))
        return model_fail(source->error, ISOBIT_E_NOMEM, "out of memory for \"%s\"", names[0]);
    for (size_t part = 0; part < parts && !status; part++) {
        const size_t own = part ? other_n : n;
        status = find_checked(source, &take.tensors[part], names[part], leading_one ? 1 : own,
                              leading_one ? own : 0);
        if (!status && !source->load)
            source->parameters += own;
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
    model_take take = {TAKE_ROWS, {NULL}, n, 0, n, k, NULL, 0, 0, FORM_F32};
    iso_status status = find_checked(source, &take.tensors[0], name, n, k);
    if (status)
        return status;
    float *mapped = table ? find_mapped(source, take.tensors[0]) : NULL;
    if (table)
        take.form = form_of(source, take.tensors, 1);
    const size_t row = form_bytes(take.form, k);
    if (!source->load) {
        count_parameters(source, take.form, n * k);
        if (!mapped)
            status = model_source_plan(source, n, row, 1);
        return status ? status : plan_take(source, k);
    }
    if (mapped)
        take.kind = TAKE_MAPPED;
    take.to = mapped ? mapped : model_alloc3(source->arena, n, row, 1, 1);
    if (!take.to)
        return model_fail(source->error, ISOBIT_E_NOMEM, "out of memory for \"%s\"", name);
    if (is_blocks(take.form))
        *out = (model_table){.blocks = take.to, .format = q_formats[take.form]};
    else
        *out = take.form == FORM_16
                   ? (model_table){.rows16 = take.to, .type = type_of(take.tensors[0])}
                   : (model_table){.rows = take.to};
    return note(source, take);
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
