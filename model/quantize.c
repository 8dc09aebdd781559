/* SPDX-License-Identifier: MIT
 *
 * A model is written with fewer bits. Its folder is checked as if it were loaded, which says what
 * each tensor is for; then the header is written, and tensor by tensor the threads of the executor
 * read pieces, convert them and write them where they belong. Pieces do not depend on the number of
 * threads, so neither do errors, bytes, nor the sums of the table.
 */
#include "quantize.h"

#include "elements.h"
#include "folder.h"
#include "run.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define PIECE_FLOATS ((size_t)1 << 16)  /* rows of so many floats, one at least */
#define TURNED_FLOATS ((size_t)1 << 20) /* of columns, which lie apart: a few more */
#define PIECES_TOGETHER 16              /* of a thread, between two words about progress */

static const char weights_name[] = "model.safetensors", config_name[] = "config.json";

/* A thread that converts, with memory and an error of its own. */
typedef struct worker {
    model_source source;
    iso_context context;
    iso_error error;
    iso_status status;
    size_t failed;          /* the piece, where status says so */
    float *floats;          /* of a piece */
    unsigned char *numbers; /* what they become; 4 bytes for each float */
    float *scales;          /* [floats] */
} worker;

typedef struct conversion {
    const iso_quantize_options *options;
    model_source *source;
    worker *workers;
    size_t threads;
    int fd;
    uint64_t data_start, read, total;
    /* The tensor that is being written. */
    const model_new_tensor *item;
    size_t step;        /* rows of a piece */
    model_errors *sums; /* [pieces] */
    size_t end;         /* of the pieces that are to be done now */
    atomic_size_t next, stop;
} conversion;

/* ---------------------------------------------------------------------------------- pieces */

static iso_status write_part(const conversion *all, const model_new_part *part, const void *data,
                             size_t bytes, uint64_t offset, iso_error *error) {
    return model_folder_write(all->fd, weights_name, data, bytes,
                              all->data_start + part->at + offset, error);
}

/* The place in the file of element i of rows [first, ...) of the matrix. */
static size_t element_of(const model_new_tensor *item, size_t first, size_t i) {
    const size_t row = first + i / item->width, column = i % item->width;
    return item->turned ? column * item->rows + row : row * item->width + column;
}

/* The first one that is an infinity or NaN, or `count`. */
static size_t find_nonfinite(const float *x, size_t count) {
    size_t i = 0;
    while (i < count && x[i] - x[i] == 0)
        i++;
    return i;
}

static iso_status refuse_nonfinite(const worker *own, const model_tensor *t, size_t element) {
    model_quoted name;
    return model_fail(own->source.error, ISOBIT_E_RANGE, "tensor %s: element %zu is not finite",
                      model_quote(&name, t->name, t->name_bytes), element);
}

/* Rows of a matrix; of one that is stored [in][out] columns, a view. */
static iso_status read_matrix(const conversion *all, worker *own, size_t first, size_t rows) {
    const model_new_tensor *item = all->item;
    const model_tensor *t = item->tensor;
    const size_t width = item->width;
    model_turned view;
    if (item->turned)
        model_tensor_turn(&view, t);
    const iso_status status =
        model_read_elements(&own->source, item->turned ? &view.t : t, FORM_F32, (char *)own->floats,
                            first * width, rows * width);
    const size_t bad = status ? 0 : find_nonfinite(own->floats, rows * width);
    return status || bad == rows * width ? status
                                         : refuse_nonfinite(own, t, element_of(item, first, bad));
}

static iso_status make_16(const conversion *all, worker *own, size_t first, size_t rows,
                          model_errors *sums) {
    const model_new_tensor *item = all->item;
    const size_t width = item->width;
    model_quoted name;
    size_t bad = 0;
    const iso_status status = model_make_16(own->numbers, own->floats, rows * width, item->made,
                                            sums, &bad, &own->context);
    if (status == ISOBIT_E_RANGE)
        return model_fail(own->source.error, status, "tensor %s: element %zu is too large for %s",
                          model_quote(&name, item->tensor->name, item->tensor->name_bytes),
                          element_of(item, first, bad), item->parts[0].dtype);
    if (status)
        return model_fail(own->source.error, status, "rounding: %s", iso_strerror(status));
    return write_part(all, &item->parts[0], own->numbers, rows * width * 2,
                      (uint64_t)first * width * 2, own->source.error);
}

/* Bytes of some rows to where they are columns. */
static iso_status write_columns(const conversion *all, worker *own, size_t first, size_t rows) {
    const model_new_tensor *item = all->item;
    unsigned char *column = (unsigned char *)own->floats; /* they are of no more use */
    iso_status status = ISOBIT_OK;
    for (size_t j = 0; j < item->width && !status; j++) {
        for (size_t i = 0; i < rows; i++)
            column[i] = own->numbers[i * item->width + j];
        status = write_part(all, &item->parts[0], column, rows, (uint64_t)j * item->rows + first,
                            own->source.error);
    }
    return status;
}

static iso_status make_int8(const conversion *all, worker *own, size_t first, size_t rows,
                            model_errors *sums) {
    const model_new_tensor *item = all->item;
    const size_t width = item->width;
    iso_status status = model_make_int8((int8_t *)own->numbers, own->scales, own->floats, rows,
                                        width, sums, &own->context);
    if (status)
        return model_fail(own->source.error, status, "int8: %s", iso_strerror(status));
    status = item->turned ? write_columns(all, own, first, rows)
                          : write_part(all, &item->parts[0], own->numbers, rows * width,
                                       (uint64_t)first * width, own->source.error);
    return status ? status
                  : write_part(all, &item->parts[1], own->scales, rows * sizeof *own->scales,
                               (uint64_t)first * sizeof *own->scales, own->source.error);
}

static iso_status make_groups(const conversion *all, worker *own, size_t first, size_t rows,
                              model_errors *sums) {
    const model_new_tensor *item = all->item;
    const size_t width = item->width, row = width / 8 * item->bits;
    const size_t scale_row = width / all->options->group * 2;
    model_quoted name;
    size_t bad = 0;
    iso_status status = model_make_groups(own->numbers, (unsigned char *)own->scales, own->floats,
                                          rows, width, item->bits, all->options->group, sums, &bad);
    if (status)
        return model_fail(own->source.error, status,
                          "tensor %s: the group of element %zu is too large for F16 scales",
                          model_quote(&name, item->tensor->name, item->tensor->name_bytes),
                          element_of(item, first, bad));
    status = write_part(all, &item->parts[0], own->numbers, rows * row, (uint64_t)first * row,
                        own->source.error);
    return status ? status
                  : write_part(all, &item->parts[1], own->scales, rows * scale_row,
                               (uint64_t)first * scale_row, own->source.error);
}

/* The third part of what has groups. */
static iso_status write_shape(const conversion *all) {
    const model_new_tensor *item = all->item;
    unsigned char numbers[16];
    for (size_t i = 0; i < sizeof numbers; i++)
        numbers[i] = (unsigned char)((uint64_t)(i < 8 ? item->rows : item->width) >> i % 8 * 8);
    return write_part(all, &item->parts[2], numbers, sizeof numbers, 0, all->source->error);
}

/* Rows of a matrix, read, converted and written. */
static iso_status convert_piece(conversion *all, worker *own, size_t piece) {
    const model_new_tensor *item = all->item;
    const size_t first = piece * all->step, left = item->rows - first;
    const size_t rows = left < all->step ? left : all->step;
    const iso_status status = read_matrix(all, own, first, rows);
    if (status)
        return status;
    return (item->made == MADE_INT8     ? make_int8
            : item->made == MADE_GROUPS ? make_groups
                                        : make_16)(all, own, first, rows, &all->sums[piece]);
}

/* Pieces in their order: all before the first that fails are done by somebody, so that the first
 * error is always the same. */
static void convert_pieces(void *arg, size_t task) {
    conversion *all = arg;
    worker *own = &all->workers[task];
    while (!own->status && !atomic_load_explicit(&all->stop, memory_order_relaxed)) {
        const size_t piece = atomic_fetch_add_explicit(&all->next, 1, memory_order_relaxed);
        if (piece >= all->end)
            return;
        own->failed = piece;
        own->status = convert_piece(all, own, piece);
        if (own->status)
            atomic_store_explicit(&all->stop, 1, memory_order_relaxed);
    }
}

static iso_status first_error(const conversion *all) {
    iso_status status = ISOBIT_OK;
    for (size_t i = 0, first = SIZE_MAX; i < all->threads; i++) {
        const worker *own = &all->workers[i];
        if (!own->status || own->failed >= first)
            continue;
        first = own->failed;
        status = own->status;
        if (all->source->error)
            *all->source->error = own->error;
    }
    return status;
}

static iso_status say_progress(const conversion *all) {
    const iso_quantize_options *options = all->options;
    return options->progress && options->progress(options->user, all->read, all->total)
               ? model_fail(all->source->error, ISOBIT_E_CANCELLED, "stopped by the caller")
               : ISOBIT_OK;
}

/* All pieces of the tensor. */
static iso_status convert_all(conversion *all, uint64_t bytes) {
    const iso_executor *executor = all->source->context->executor;
    const size_t pieces = (all->item->rows + all->step - 1) / all->step;
    const uint64_t before = all->read;
    iso_status status = ISOBIT_OK;
    for (size_t done = 0; done < pieces && !status; done = all->end) {
        const size_t some = PIECES_TOGETHER * all->threads;
        all->end = pieces - done < some ? pieces : done + some;
        atomic_init(&all->next, done);
        atomic_init(&all->stop, 0);
        if (all->threads > 1)
            executor->parallel_for(executor->user, all->threads, convert_pieces, all);
        else
            convert_pieces(all, 0);
        all->read = before + (uint64_t)((double)bytes * (double)all->end / (double)pieces);
        status = first_error(all);
        if (!status)
            status = say_progress(all);
    }
    all->read = before + bytes;
    return status;
}

/* ----------------------------------------------------------------------------------- copies */

/* Elements of a view with strides, all of which lie in `raw`, in order. */
static void gather(unsigned char *to, const unsigned char *raw, const model_tensor *t,
                   size_t element, uint64_t count) {
    uint64_t index[MODEL_MAX_RANK] = {0}, at = 0;
    for (uint64_t i = 0; i < count; i++, to += element) {
        memcpy(to, raw + at * element, element);
        for (size_t k = t->rank; k-- > 0;) {
            at += t->strides[k];
            if (++index[k] < t->shape[k])
                break;
            at -= t->strides[k] * t->shape[k];
            index[k] = 0;
        }
    }
}

/* A view is read as a whole. */
static iso_status copy_view(conversion *all, const model_new_part *part) {
    const model_tensor *t = all->item->tensor;
    const uint64_t extent = t->end - t->begin;
    model_arena arena = {0};
    iso_error *error = all->source->error;
    unsigned char *raw = extent <= SIZE_MAX ? model_alloc(&arena, (size_t)extent, 1) : NULL;
    unsigned char *to =
        part->bytes <= SIZE_MAX ? model_alloc(&arena, (size_t)part->bytes, 1) : NULL;
    iso_status status =
        raw && to ? model_checkpoint_read(all->source->checkpoint, t, raw, 0, (size_t)extent, error)
                  : model_fail(error, ISOBIT_E_NOMEM, "out of memory for \"%s\"", t->name);
    if (!status) {
        gather(to, raw, t, part->element, part->bytes / part->element);
        status = write_part(all, part, to, (size_t)part->bytes, 0, error);
    }
    model_arena_free(&arena);
    all->read += extent;
    return status ? status : say_progress(all);
}

/* Infinities and NaN are refused in what the model uses, also where it stays as it is. */
static iso_status check_copy(conversion *all, const model_tensor *t) {
    const size_t width = t->rank ? (size_t)t->shape[t->rank - 1] : 1;
    const size_t count = t->rank == 2 ? (size_t)t->shape[0] * width : width;
    const size_t rows = width < PIECE_FLOATS ? PIECE_FLOATS / width : 1;
    worker *own = &all->workers[0];
    iso_status status = ISOBIT_OK;
    for (size_t done = 0, some; done < count && !status; done += some) {
        some = count - done < rows * width ? count - done : rows * width;
        status = model_read_elements(&own->source, t, FORM_F32, (char *)own->floats, done, some);
        const size_t bad = status ? 0 : find_nonfinite(own->floats, some);
        if (!status && bad < some)
            status = refuse_nonfinite(own, t, done + bad);
    }
    if (status && all->source->error)
        *all->source->error = own->error;
    return status;
}

static iso_status copy_tensor(conversion *all, int used) {
    const model_new_tensor *item = all->item;
    const model_tensor *t = item->tensor;
    const model_new_part *part = &item->parts[0];
    const size_t room = PIECE_FLOATS * sizeof(float);
    unsigned char *to = all->workers[0].numbers;
    iso_status status = used ? check_copy(all, t) : ISOBIT_OK;
    if (!status && t->strides && part->bytes)
        return copy_view(all, part);
    for (uint64_t done = 0, some; done < part->bytes && !status; done += some) {
        some = part->bytes - done < room ? part->bytes - done : room;
        status = model_checkpoint_read(all->source->checkpoint, t, to, done, (size_t)some,
                                       all->source->error);
        if (!status)
            status = write_part(all, part, to, (size_t)some, done, all->source->error);
        all->read += some;
        if (!status)
            status = say_progress(all);
    }
    return status;
}

/* ---------------------------------------------------------------------------------- tensors */

static void report(const conversion *all, const model_errors *sums, size_t pieces) {
    const iso_quantize_options *options = all->options;
    const model_new_tensor *item = all->item;
    const model_tensor *t = item->tensor;
    iso_quantized_tensor done = {.name = t->name,
                                 .shape = t->shape,
                                 .rank = t->rank,
                                 .from = t->dtype_name,
                                 .type = item->part_count ? item->parts[0].dtype : "",
                                 .note = item->note,
                                 .from_bytes = t->end - t->begin};
    double squares = 0, errors = 0;
    for (size_t i = 0; i < pieces; i++) {
        errors += sums[i].errors;
        squares += sums[i].squares;
        done.largest = sums[i].largest > done.largest ? sums[i].largest : done.largest;
    }
    const double count = (double)item->rows * (double)item->width;
    done.rms = pieces ? sqrt(errors / count) : 0;
    done.tensor_rms = pieces ? sqrt(squares / count) : 0;
    for (size_t i = 0; i < item->part_count; i++)
        done.bytes += item->parts[i].bytes;
    if (options->report)
        options->report(options->user, &done);
}

static iso_status write_tensor(conversion *all, const model_new_tensor *item, int used) {
    const model_tensor *t = item->tensor;
    model_arena arena = {0};
    size_t pieces = 0;
    iso_status status = ISOBIT_OK;
    all->item = item;
    if (item->part_count && item->made == MADE_COPY) {
        status = copy_tensor(all, used);
    } else if (item->part_count) { /* a matrix, of which the loader knows that it has elements */
        const size_t room = item->turned ? TURNED_FLOATS : PIECE_FLOATS;
        all->step = item->width < room ? room / item->width : 1;
        pieces = (item->rows + all->step - 1) / all->step;
        all->sums = model_alloc(&arena, pieces, sizeof *all->sums);
        if (all->sums) {
            memset(all->sums, 0, pieces * sizeof *all->sums);
            status = convert_all(all, t->end - t->begin);
            if (!status && item->made == MADE_GROUPS)
                status = write_shape(all);
        } else {
            status = model_fail(all->source->error, ISOBIT_E_NOMEM, "out of memory");
        }
    }
    if (!status)
        report(all, all->sums, pieces);
    model_arena_free(&arena);
    return status;
}

/* Memory for the threads: of a piece, which is one row at least. */
static iso_status make_workers(conversion *all, const model_new_file *plan, model_arena *arena) {
    const model_source *source = all->source;
    size_t floats = PIECE_FLOATS;
    for (size_t i = 0; i < plan->count; i++) {
        const model_new_tensor *item = &plan->items[i];
        const size_t room = item->turned && item->made != MADE_COPY ? TURNED_FLOATS : 0;
        floats = floats < room ? room : floats;
        for (size_t k = 0; source->uses[i] && k < item->tensor->rank; k++)
            if (item->tensor->shape[k] > floats)
                floats = (size_t)item->tensor->shape[k];
    }
    all->threads = source->context->executor ? source->context->executor->max_threads : 1;
    all->workers = model_alloc(arena, all->threads, sizeof *all->workers);
    float *room = model_alloc3(arena, all->threads, floats, 3, sizeof *room);
    unsigned char *raw = model_alloc3(arena, all->threads, floats, 2, 1);
    if (!all->workers || !room || !raw)
        return model_fail(source->error, ISOBIT_E_NOMEM, "out of memory");
    for (size_t i = 0; i < all->threads; i++) {
        worker *own = &all->workers[i];
        *own = (worker){.source = *source, .floats = room + 3 * i * floats};
        own->numbers = (unsigned char *)(own->floats + floats);
        own->scales = own->floats + 2 * floats;
        own->source.chunk_floats = floats;
        own->source.raw = raw + 2 * i * floats;
        own->source.error = &own->error;
        own->source.context = &own->context;
        own->context = (iso_context){.size = sizeof own->context, .isa = source->context->isa};
    }
    return ISOBIT_OK;
}

static iso_status write_weights(conversion *all, const model_new_file *plan, model_arena *arena,
                                const model_folder *folder) {
    iso_error *error = all->source->error;
    iso_status status = make_workers(all, plan, arena);
    if (!status)
        status = model_folder_create(folder, weights_name, &all->fd, error);
    if (status)
        return status;
    all->data_start = plan->header_bytes;
    for (size_t i = 0; i < plan->count; i++)
        all->total += plan->items[i].part_count
                          ? plan->items[i].tensor->end - plan->items[i].tensor->begin
                          : 0;
    status = model_folder_write(all->fd, weights_name, plan->header, plan->header_bytes, 0, error);
    for (size_t i = 0; i < plan->count && !status; i++)
        status = write_tensor(all, &plan->items[i], all->source->uses[i]);
    const int fd = all->fd;
    if (!status)
        return model_folder_close(fd, weights_name, error);
    (void)close(fd);
    return status;
}

/* ------------------------------------------------------------------------------------ files */

static int ends_with(const char *name, const char *end) {
    const size_t bytes = strlen(name), n = strlen(end);
    return bytes >= n && strcmp(name + bytes - n, end) == 0;
}

/* All but weights, whatever form they have, hidden files, and config.json, which is written. Of the
 * folders those of sentence-transformers: a number, "_" and a name. */
static int is_wanted(const char *name, model_entry entry) {
    static const char *const others[] = {".safetensors", ".safetensors.index.json",
                                         ".bin",         ".bin.index.json",
                                         ".gguf",        ".h5",
                                         ".onnx",        ".onnx_data",
                                         ".msgpack",     ".pt",
                                         ".pth",         ".ckpt",
                                         ".ot",          ".tflite",
                                         ".npz"};
    const size_t digits = strspn(name, "0123456789");
    if (entry == ENTRY_INNER_FILE)
        return 1;
    if (entry == ENTRY_FOLDER)
        return digits > 0 && name[digits] == '_';
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (ends_with(name, others[i]))
            return 0;
    return name[0] != '.' && strcmp(name, config_name) != 0;
}

static iso_status write_config(const model_folder *folder, const char *text, size_t bytes,
                               iso_error *error) {
    int fd = -1;
    iso_status status = model_folder_create(folder, config_name, &fd, error);
    if (status)
        return status;
    status = model_folder_write(fd, config_name, text, bytes, 0, error);
    if (!status)
        return model_folder_close(fd, config_name, error);
    (void)close(fd);
    return status;
}

/* ---------------------------------------------------------------------------------- the call */

static iso_status quantize(iso_model *model, model_source *source, const char *directory,
                           const char *to, const iso_quantize_options *options) {
    iso_error *error = source->error;
    model_checkpoint checkpoint = {.file.fd = -1};
    model_folder folder;
    model_new_file plan;
    model_arena arena = {0};
    char *config;
    size_t config_bytes;
    conversion all = {.options = options, .source = source, .fd = -1};
    source->checkpoint = &checkpoint;
    iso_status status = model_check(model, &checkpoint, source, directory, error);
    if (!status)
        status = model_new_file_plan(&plan, &arena, source, options);
    if (!status)
        status = model_new_config(&config, &config_bytes, &arena, directory, &plan, options,
                                  model->config.names->head, error);
    if (!status) {
        status = model_folder_open(&folder, to, error);
        if (!status)
            status = write_weights(&all, &plan, &arena, &folder);
        if (!status)
            status = model_folder_copy(&folder, directory, is_wanted, error);
        if (!status)
            status = write_config(&folder, config, config_bytes, error);
        if (!status)
            status = model_checkpoint_unchanged(&checkpoint, error);
        if (!status)
            status = say_progress(&all);
        if (!status)
            status = model_folder_finish(&folder, error);
        model_folder_discard(&folder);
    }
    model_arena_free(&arena);
    model_checkpoint_close(&checkpoint);
    return status;
}

static iso_status check_options(const iso_quantize_options *options, iso_error *error) {
    if (options->type > ISOBIT_QUANTIZE_INT4)
        return model_fail(error, ISOBIT_E_OPTION, "type %zu: there are 0 to 3 (iso_quantize_type)",
                          options->type);
    if (options->group != 32 && options->group != 64 && options->group != 128)
        return model_fail(error, ISOBIT_E_OPTION, "groups of %zu; 32, 64 and 128 are possible",
                          options->group);
    for (size_t i = 0; i < options->keep_count; i++)
        if (!options->keep || !options->keep[i])
            return model_fail(error, ISOBIT_E_NULL, "a text of keep is NULL");
    return ISOBIT_OK;
}

iso_status iso_model_quantize(const char *directory, const char *to,
                              const iso_quantize_options *options, const iso_context *context,
                              iso_error *error) {
    if (!directory || !to)
        return model_fail(error, ISOBIT_E_NULL, "directory and to must not be NULL");
    iso_quantize_options own = {.size = sizeof own};
    if (!options)
        options = &own;
    if (!MODEL_SIZE_IS_KNOWN(options, user))
        return model_fail(error, ISOBIT_E_SIZE, "the options have an unknown size");
    if (options != &own)
        memcpy(&own, options, options->size);
    options = &own;
    own.group = own.group ? own.group : 32;
    iso_status status = check_options(options, error);
    if (!status)
        status = model_check_context(context, error);
    if (status)
        return status;
    iso_context plain = {.size = sizeof plain};
    if (context) {
        plain.isa = context->isa;
        plain.executor = context->executor;
    }
    model_arena arena = {0};
    iso_model *model = model_alloc(&arena, 1, sizeof *model);
    if (!model)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    memset(model, 0, sizeof *model);
    model_source source = {.arena = &model->arena, .context = &plain, .error = error};
    status = quantize(model, &source, directory, to, options);
    model_arena_free(&source.scratch);
    model_arena_free(&model->arena);
    model_arena_free(&arena);
    return status;
}
