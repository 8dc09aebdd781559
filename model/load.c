/* SPDX-License-Identifier: MIT
 *
 * A model from its directory. The configuration comes first, then the headers of the weights; all
 * names, element types and shapes are checked against the configuration before the first weight is
 * read, and only then is memory of the size of the model allocated.
 */
#include "run.h"
#include "blocks.h"
#include "gguf.h"
#include "groups.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_HEADER_BYTES ((size_t)100000000)

/* "Q4_K 65536, F32 768", most first. */
static void say_types(char *text, size_t bytes, const size_t *of_type) {
    size_t at = 0;
    for (size_t below = SIZE_MAX, most; below > 0; below = most) {
        most = 0;
        for (size_t i = 0; i < MODEL_UNKNOWN; i++)
            if (of_type[i] < below && of_type[i] > most)
                most = of_type[i];
        for (size_t i = 0; most && i < MODEL_UNKNOWN && at < bytes; i++)
            if (of_type[i] == most)
                at += (size_t)snprintf(text + at, bytes - at, "%s%s %zu", at ? ", " : "",
                                       model_dtype_name((model_dtype)i), most);
    }
}

static void fill_info(iso_model *model, const model_source *source) {
    const model_config *c = &model->config;
    say_types(model->weight_types, sizeof model->weight_types, source->of_type);
    model->info = (iso_model_info){
        .family = c->family,
        .d = c->d,
        .encoder_layers = c->encoder_layers,
        .decoder_layers = c->decoder_layers,
        .encoder_heads = c->encoder_heads,
        .decoder_heads = c->decoder_heads,
        .encoder_ffn = c->encoder_ffn,
        .decoder_ffn = c->decoder_ffn,
        .source_vocabulary = c->source_vocabulary,
        .target_vocabulary = c->target_vocabulary,
        .max_positions = c->max_positions,
        .pad_id = c->pad,
        .bos_id = c->bos,
        .decoder_start_id = c->start,
        .unk_id = c->unk,
        .eos_ids = c->eos.ids,
        .eos_count = c->eos.count,
        .default_beams = c->search.beams,
        .default_max_length = c->search.max_length,
        .parameters = source->parameters,
        .parameters_16 = source->parameters16,
        .parameters_8 = source->parameters8,
        .parameters_4 = source->parameters4,
        .parameters_int8 = source->parameters_s8,
        .parameters_int4 = source->compute == ISOBIT_COMPUTE_INT4 ? source->parameters_q : 0,
        .weight_bytes = model->arena.bytes,
        .has_logits = model->logits.w.n != 0,
        .has_pooler = model->pooler.w.n != 0,
        .sentence_max_length =
            c->sentence.max_length < c->max_positions ? c->sentence.max_length : c->max_positions,
        .default_sampling = c->search.sample,
        .default_temperature = c->search.warp.temperature,
        .default_top_k = c->search.warp.top_k,
        .default_top_p = c->search.warp.top_p,
        .default_min_p = c->search.warp.min_p,
        .default_max_new_tokens = c->search.max_new_tokens,
        .weight_types = model->weight_types,
        .sentence_d = model->dense ? c->sentence.dense[c->sentence.dense_count - 1].out : c->d,
    };
}

static iso_status make_stack(iso_model *model, model_stack *stack, size_t layers, size_t H,
                             size_t f, size_t V, iso_error *error) {
    if (!layers)
        return ISOBIT_OK;
    stack->layers = layers;
    stack->H = H;
    stack->dh = model->config.head_width ? model->config.head_width : model->config.d / H;
    const double scalar =
        model->config.query_scalar > 0 ? model->config.query_scalar : (double)stack->dh;
    stack->softcap = (float)model->config.attention_cap;
    stack->scale = model->config.unscaled_attention ? 1 : (float)(1.0 / sqrt(scalar));
    stack->Hk = model->config.key_heads ? model->config.key_heads : H;
    stack->qkv = (H + 2 * stack->Hk) * stack->dh;
    if (model->columns < H * stack->dh)
        model->columns = H * stack->dh;
    const size_t hidden = model->config.gated ? 2 * f : f;
    model->hidden = model->hidden > hidden ? model->hidden : hidden;
    if (model->config.norms_after && model->hidden < model->config.d)
        model->hidden = model->config.d; /* it holds what attention gives, too */
    stack->f = f;
    stack->V = V;
    stack->layer = model_alloc(&model->arena, layers, sizeof *stack->layer);
    if (!stack->layer)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    memset(stack->layer, 0, layers * sizeof *stack->layer);
    return ISOBIT_OK;
}

/* A default that no table of positions can serve is lowered; explicit wishes are errors later. */
static void limit_defaults(model_config *c) {
    model_search *s = &c->search;
    if (!s->max_length && !s->max_new_tokens)
        s->max_new_tokens = 20; /* as transformers does */
    if (!c->encoder_layers)     /* each prompt leaves other room */
        return;
    if (s->max_new_tokens)
        s->max_length = s->max_new_tokens + 1;
    s->max_new_tokens = 0;
    if (c->position != MODEL_POS_NONE && s->max_length > c->max_positions + 1)
        s->max_length = c->max_positions + 1;
}

/* The names that the file has, where there are several for a family. */
static void choose_names(model_config *c, const model_checkpoint *checkpoint) {
    char norm[MODEL_MAX_NAME];
    for (size_t i = 0; i < sizeof c->other_names / sizeof *c->other_names; i++) {
        const model_names *names = c->other_names[i];
        if (!names)
            continue;
        (void)snprintf(norm, sizeof norm, "%s.weight", names->decoder.final_norm);
        if (model_checkpoint_find(checkpoint, names->shared) ||
            model_checkpoint_find(checkpoint, norm)) {
            c->names = names;
            return;
        }
    }
}

/* What is there before the first weight: the stacks, and how names begin. */
static iso_status make_stacks(iso_model *model, model_source *source) {
    const model_config *c = &model->config;
    limit_defaults(&model->config);
    choose_names(&model->config, source->checkpoint);
    source->prefix = c->names->prefix;
    model->columns = c->d;
    const iso_status status =
        make_stack(model, &model->encoder, c->encoder_layers, c->encoder_heads, c->encoder_ffn,
                   c->source_vocabulary, source->error);
    return status ? status
                  : make_stack(model, &model->decoder, c->decoder_layers, c->decoder_heads,
                               c->decoder_ffn, c->target_vocabulary, source->error);
}

/*
 * The weights in the first form that the directory has. Safetensors come first, as a directory that
 * has both forms was converted from the other one.
 */
iso_status model_weights_open(model_checkpoint *checkpoint, const char *directory, size_t limit,
                              iso_error *error) {
    static const struct {
        const char *name;
        model_checkpoint_opener *open;
        int index;
    } forms[] = {
        {"model.safetensors", model_checkpoint_open, 0},
        {"model.safetensors.index.json", model_checkpoint_open, 1},
        {"pytorch_model.bin", model_checkpoint_open_bin, 0},
        {"pytorch_model.bin.index.json", model_checkpoint_open_bin, 1},
    };
    model_quoted quoted;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        model_file file;
        iso_error why;
        iso_status status = model_file_open(&file, directory, forms[i].name, &why);
        if (status == ISOBIT_E_MISSING)
            continue;
        if (status)
            return model_fail(error, status, "%s", why.message);
        model_file_close(&file);
        return forms[i].index ? model_checkpoint_open_shards(checkpoint, directory, forms[i].name,
                                                             limit, forms[i].open, error)
                              : forms[i].open(checkpoint, directory, forms[i].name, limit, error);
    }
    return model_fail(error, ISOBIT_E_MISSING,
                      "there are no weights in %s: no model.safetensors, no pytorch_model.bin, and "
                      "no .index.json of either",
                      model_quote(&quoted, directory, strlen(directory)));
}

/* Weights that have nothing of a decoder are those of an encoder alone, whatever config.json says.
 */
static void look_for_decoder(model_config *c, const model_checkpoint *checkpoint) {
    const char *const layers = c->names->decoder.layers;
    size_t i = 0;
    if (!c->encoder_class)
        return;
    while (i < checkpoint->header.count &&
           strncmp(checkpoint->header.tensors[i].name, layers, strlen(layers)) != 0)
        i++;
    if (i == checkpoint->header.count)
        model_config_encoder_alone(c);
}

static iso_status open_folder(iso_model *model, model_checkpoint *checkpoint, const char *path,
                              size_t limit, iso_error *error) {
    iso_status status = model_config_read(&model->config, &model->arena, path, error);
    if (!status)
        status = model_weights_open(checkpoint, path, limit, error);
    if (!status)
        look_for_decoder(&model->config, checkpoint);
    if (!status)
        status = model_sentence_read(&model->config, &model->arena, path, error);
    return status ? status : model_groups_find(checkpoint, error);
}

/* The configuration, and the weights opened: of a GGUF file, or of a directory of others. */
static iso_status open_model(iso_model *model, model_checkpoint *checkpoint, gguf_place *place,
                             const char *path, size_t limit, iso_error *error) {
    model_gguf gguf;
    iso_status status = model_gguf_locate(place, path, error);
    if (!status && place->name) {
        status = model_gguf_open(&gguf, checkpoint, place->directory, place->name, limit, error);
        if (!status)
            status = model_gguf_config(&gguf, checkpoint, &model->config, &model->arena);
    } else if (!status) {
        status = open_folder(model, checkpoint, path, limit, error);
    }
    return status;
}

/* Maps the files of the weights. */
static iso_status map_files(iso_model *model, model_source *source, const iso_context *context,
                            iso_error *error) {
    const model_checkpoint *all = source->checkpoint;
    const size_t count = all->shards ? all->shard_count : 1;
    model->maps = model_alloc(&model->arena, count, sizeof *model->maps);
    if (!model->maps)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    for (; model->map_count < count; model->map_count++)
        model_file_map(&model->maps[model->map_count],
                       all->shards ? &all->shards[model->map_count].file : &all->file,
                       context ? context->executor : NULL);
    source->maps = model->maps;
    return ISOBIT_OK;
}

iso_status model_check(iso_model *model, model_checkpoint *checkpoint, model_source *source,
                       const char *directory, iso_error *error) {
    gguf_place place;
    iso_status status = model_gguf_locate(&place, directory, error);
    if (!status && place.name)
        status = model_fail(error, ISOBIT_E_UNSUPPORTED,
                            "%s is a GGUF file; the folder that it was made from is expected",
                            place.name);
    model_arena_free(&place.arena);
    if (!status)
        status = open_folder(model, checkpoint, directory, MAX_HEADER_BYTES, error);
    if (!status)
        status = make_stacks(model, source);
    source->logits = &model->logits;
    if (!status) {
        source->uses = model_alloc(&source->scratch, checkpoint->header.count, 1);
        if (!source->uses)
            return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
        memset(source->uses, 0, checkpoint->header.count);
        status = model_take_all(model, source);
    }
    if (!status)
        status = model_dense_take(model, source, directory, MAX_HEADER_BYTES);
    return status;
}

static iso_status load(iso_model *model, const char *directory, const iso_load_options *options,
                       const iso_context *context, iso_error *error) {
    model_checkpoint checkpoint = {.file.fd = -1};
    size_t limit =
        options && options->max_header_bytes ? options->max_header_bytes : MAX_HEADER_BYTES;
    model_source source = {.checkpoint = &checkpoint,
                           .arena = &model->arena,
                           .context = context,
                           .error = error,
                           .reject_nonfinite = options && options->reject_nonfinite,
                           .widen = options && options->widen,
                           .compute =
                               options ? (iso_compute)options->compute : ISOBIT_COMPUTE_AUTO};
    gguf_place place; /* its name is that of the checkpoint */
    iso_status status = open_model(model, &checkpoint, &place, directory, limit, error);
    if (!status && options)
        status = model_config_lengthen(&model->config, options->positions, error);
    if (!status)
        status = make_stacks(model, &source);
    if (!status && options && options->map)
        status = map_files(model, &source, context, error);
    if (!status)
        status = model_take_all(model, &source);
    if (!status && source.compute == ISOBIT_COMPUTE_INT4 && !source.parameters_q)
        status = model_fail(error, ISOBIT_E_UNSUPPORTED,
                            "compute int4: \"%.300s\" has no matrix of 4 or 8 bits in groups",
                            directory);
    if (!status) /* which is little */
        status = model_dense_take(model, &source, directory, limit);
    if (!status && !model_arena_reserve(&model->arena, source.bytes))
        status = model_fail(error, ISOBIT_E_NOMEM, "out of memory for the weights");
    source.load = 1;
    if (!status)
        status = model_take_all(model, &source);
    if (!status)
        status = model_source_finish(&source);
    if (!status)
        status = model_checkpoint_unchanged(&checkpoint, error);
    model_arena_free(&source.scratch);
    model_checkpoint_close(&checkpoint);
    model_arena_free(&place.arena);
    if (!status)
        fill_info(model, &source);
    return status;
}

iso_status iso_model_load(iso_model **model, const char *directory, const iso_load_options *options,
                          const iso_context *context, iso_error *error) {
    if (!model || !directory)
        return model_fail(error, ISOBIT_E_NULL, "model and directory must not be NULL");
    iso_load_options own;
    if (options && !(options = MODEL_OPTIONS(options, own, max_header_bytes)))
        return model_fail(error, ISOBIT_E_SIZE, "the options have an unknown size");
    if (options && options->cache > ISOBIT_CACHE_BF16)
        return model_fail(error, ISOBIT_E_OPTION, "cache %zu: there are 0 to 2 (iso_cache)",
                          options->cache);
    if (options && options->compute > ISOBIT_COMPUTE_INT4)
        return model_fail(error, ISOBIT_E_OPTION, "compute %zu: there are 0 to 3 (iso_compute)",
                          options->compute);
    if (options && options->widen && options->compute >= ISOBIT_COMPUTE_INT8)
        return model_fail(error, ISOBIT_E_OPTION,
                          "widen holds weights in f32, compute asks for %s: one of them",
                          options->compute == ISOBIT_COMPUTE_INT8 ? "int8" : "int4");
    iso_status status = model_check_context(context, error);
    if (status)
        return status;
    model_arena arena = {0};
    iso_model *made = model_alloc(&arena, 1, sizeof *made);
    if (!made)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    memset(made, 0, sizeof *made);
    made->arena = arena;
    made->cache = options ? (iso_cache)options->cache : ISOBIT_CACHE_F32;
    /* A workspace of the caller is for ops; packing takes none that it could be too small for. */
    iso_context plain = {.size = sizeof plain};
    if (context) {
        plain.isa = context->isa;
        plain.executor = context->executor;
    }
    status = load(made, directory, options, &plain, error);
    if (status)
        iso_model_free(made);
    else
        *model = made;
    return status;
}

void iso_model_free(iso_model *model) {
    if (!model)
        return;
    for (size_t i = 0; i < model->map_count; i++)
        model_file_unmap(&model->maps[i]);
    model_arena arena = model->arena; /* which holds the model itself */
    model_arena_free(&arena);
}

const iso_model_info *iso_model_get_info(const iso_model *model) {
    return model ? &model->info : NULL;
}
