/* SPDX-License-Identifier: MIT
 *
 * What sentence-transformers wrote beside config.json: modules.json, whose modules make a vector of
 * what the encoder gives, their own files, and what is done to texts. Modules that isobit lacks are
 * noted, and refused where a vector is asked for: the rest of the model is of use without them.
 */
#include "config_reader.h"

#include <stdio.h>
#include <string.h>

#define MAX_BYTES ((size_t)1 << 20)
#define MAX_DENSE 8
#define MAX_FOLDER 64

/* An object of a file that may be missing: *root is NULL then. */
static iso_status optional(json_t **root, const char *directory, const char *name,
                           iso_error *error) {
    *root = NULL;
    const iso_status status = model_json_load(root, directory, name, MAX_BYTES, error);
    return status == ISOBIT_E_MISSING ? ISOBIT_OK : status;
}

/* ------------------------------------------------------------------------------------ modules */

/* One module of the list. */
typedef struct module {
    size_t number;
    const char *name;   /* the last part of a type like "sentence_transformers.models.Pooling" */
    const char *folder; /* in that of the model, or "" */
} module;

/* A number, "_" and a name, as sentence-transformers calls its folders: this leads nowhere else. */
static int is_folder(const char *path) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    const size_t digits = strspn(path, "0123456789"), bytes = strlen(path);
    return digits && path[digits] == '_' && bytes <= MAX_FOLDER && strspn(path, letters) == bytes;
}

/* Of code that comes with the folder the whole type is its name. */
static module describe(const json_t *value, size_t number) {
    static const char own[] = "sentence_transformers.";
    const char *type = json_string_value(json_object_get(value, "type"));
    const char *path = json_string_value(json_object_get(value, "path"));
    const char *dot = type && strncmp(type, own, sizeof own - 1) == 0 ? strrchr(type, '.') : NULL;
    return (module){number, dot ? dot + 1 : type ? type : "", path ? path : ""};
}

static int is_named(const module *m, const char *name) { return strcmp(m->name, name) == 0; }

/* What isobit lacks: the module, and if `key` is not NULL what its file says there. */
static void refuse(model_sentence *s, const module *m, const char *key, const json_t *found) {
    char value[104];
    model_quoted name;
    model_quote(&name, m->name, strlen(m->name));
    if (s->refused[0])
        return;
    if (key)
        (void)snprintf(s->refused, sizeof s->refused, "module %zu, %.40s, with %s %s", m->number,
                       name.text, key, model_json_describe(found, value, sizeof value));
    else
        (void)snprintf(s->refused, sizeof s->refused, "module %zu, %.80s", m->number, name.text);
}

/* A module in a folder of another name. */
static void refuse_folder(model_sentence *s, const module *m) {
    json_t *path = json_string(m->folder);
    refuse(s, m, "the path", path);
    json_decref(path);
}

/* "2_Dense/config.json" */
typedef struct file_name {
    char text[MAX_FOLDER + sizeof "/config.json"];
} file_name;

static const char *config_of(file_name *file, const module *m) {
    (void)snprintf(file->text, sizeof file->text, "%s/config.json", m->folder);
    return file->text;
}

/* ------------------------------------------------------------------------------------ pooling */

static const struct {
    const char *mode, *key; /* as newer files and older ones have it */
    iso_pooling pooling;    /* DEFAULT: isobit lacks it */
} ways[] = {
    {"mean", "pooling_mode_mean_tokens", ISOBIT_POOLING_MEAN},
    {"cls", "pooling_mode_cls_token", ISOBIT_POOLING_CLS},
    {"max", "pooling_mode_max_tokens", ISOBIT_POOLING_MAX},
    {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", ISOBIT_POOLING_DEFAULT},
    {"weightedmean", "pooling_mode_weightedmean_tokens", ISOBIT_POOLING_DEFAULT},
    {"lasttoken", "pooling_mode_lasttoken", ISOBIT_POOLING_DEFAULT},
};
enum { WAYS = sizeof ways / sizeof *ways };

/* "pooling_mode": one way, or a list of ways whose vectors are put side by side. */
static size_t read_mode(model_sentence *s, const module *m, const json_t *mode) {
    const size_t count = json_is_array(mode) ? json_array_size(mode) : 1;
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_is_array(mode) ? json_array_get(mode, i) : mode;
        const char *name = json_string_value(one);
        size_t way = 0;
        while (way < WAYS && (!name || strcmp(name, ways[way].mode) != 0))
            way++;
        s->pooling = way < WAYS ? ways[way].pooling : ISOBIT_POOLING_DEFAULT;
        if (i || !s->pooling)
            refuse(s, m, "pooling_mode", one);
    }
    return count;
}

/* Or a flag for each way. */
static size_t read_flags(model_sentence *s, const module *m, const json_t *root) {
    size_t count = 0;
    for (size_t i = 0; i < WAYS; i++) {
        const json_t *flag = json_object_get(root, ways[i].key);
        if (!json_is_true(flag))
            continue;
        s->pooling = ways[i].pooling;
        if (count++ || !s->pooling)
            refuse(s, m, ways[i].key, flag);
    }
    return count;
}

static iso_status read_pooling(model_sentence *s, const module *m, const char *directory,
                               iso_error *error) {
    json_t *root;
    file_name file;
    iso_status status = model_json_load(&root, directory, config_of(&file, m), MAX_BYTES, error);
    if (status)
        return status;
    const json_t *mode = json_object_get(root, "pooling_mode");
    const size_t count = mode ? read_mode(s, m, mode) : read_flags(s, m, root);
    s->drops_prompt = json_is_false(json_object_get(root, "include_prompt"));
    json_decref(root);
    if (!count)
        return model_fail(error, ISOBIT_E_CONFIG, "%s: no way of pooling is true", file.text);
    return ISOBIT_OK;
}

/* --------------------------------------------------------------------------- dense, normalize */

/* A module that reads or writes something else than the vector of the sentence is refused. */
static void check_subject(model_sentence *s, const module *m, const json_t *root) {
    static const char *const keys[] = {"module_input_name", "module_output_name"};
    for (size_t i = 0; i < 2; i++) {
        const json_t *value = json_object_get(root, keys[i]);
        const char *name = json_string_value(value);
        if (value && !json_is_null(value) && (!name || strcmp(name, "sentence_embedding") != 0))
            refuse(s, m, keys[i], value);
    }
}

/* The class of PyTorch by which the activation is known, "torch.nn.modules.linear.Identity". */
static void read_activation(model_sentence *s, const module *m, const json_t *root,
                            iso_activation *act) {
    static const struct {
        const char *name;
        iso_activation act;
    } known[] = {
        {"Identity", ISOBIT_ACT_NONE}, {"Tanh", ISOBIT_ACT_TANH}, {"ReLU", ISOBIT_ACT_RELU},
        {"GELU", ISOBIT_ACT_GELU_ERF}, {"SiLU", ISOBIT_ACT_SILU},
    };
    static const char key[] = "activation_function", first[] = "torch.nn.";
    const json_t *value = json_object_get(root, key);
    const char *name = json_string_value(value);
    const char *last =
        name && strncmp(name, first, sizeof first - 1) == 0 ? strrchr(name, '.') + 1 : "";
    *act = ISOBIT_ACT_TANH;
    if (!value)
        return;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(last, known[i].name) == 0) {
            *act = known[i].act;
            return;
        }
    refuse(s, m, key, value);
}

/* y = act(x W^T + b), x of `width` numbers. */
static iso_status read_dense(model_sentence *s, const module *m, model_dense_config *dense,
                             size_t width, model_arena *arena, const char *directory,
                             iso_error *error) {
    file_name file;
    json_t *root;
    iso_status status = model_json_load(&root, directory, config_of(&file, m), MAX_BYTES, error);
    if (status)
        return status;
    const model_reader r = {file.text, root, arena, error};
    const json_t *residual = json_object_get(root, "use_residual");
    char *folder = model_alloc(arena, strlen(m->folder) + 1, 1);
    *dense = (model_dense_config){.folder = folder, .bias = 1};
    if (!folder)
        status = model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    else if (!(status = model_read_size(&r, "in_features", &dense->in, 1, MAX_SIZE)) &&
             !(status = model_read_size(&r, "out_features", &dense->out, 1, (size_t)1 << 20)))
        status = model_read_flag(&r, "bias", &dense->bias);
    if (!status && (!dense->in || !dense->out))
        status = model_fail(error, ISOBIT_E_MISSING, "%s has no key \"%s\"", file.text,
                            dense->in ? "out_features" : "in_features");
    if (!status && dense->in != width)
        status = model_fail(error, ISOBIT_E_CONFIG,
                            "%s: \"in_features\" is %zu; the vectors that it gets have %zu numbers",
                            file.text, dense->in, width);
    if (!status) {
        memcpy(folder, m->folder, strlen(m->folder) + 1);
        read_activation(s, m, root, &dense->act);
        check_subject(s, m, root);
        if (residual && !json_is_false(residual))
            refuse(s, m, "use_residual", residual);
    }
    json_decref(root);
    return status;
}

/* One more of them. */
static iso_status add_dense(model_sentence *s, const module *m, size_t width, model_arena *arena,
                            const char *directory, iso_error *error) {
    if (!s->dense)
        s->dense = model_alloc(arena, MAX_DENSE, sizeof *s->dense);
    if (!s->dense)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    if (s->dense_count)
        width = s->dense[s->dense_count - 1].out;
    return read_dense(s, m, &s->dense[s->dense_count++], width, arena, directory, error);
}

/* Newer folders have a file of it. */
static iso_status read_normalize(model_sentence *s, const module *m, const char *directory,
                                 iso_error *error) {
    json_t *root;
    file_name file;
    iso_status status = optional(&root, directory, config_of(&file, m), error);
    if (!status)
        check_subject(s, m, root);
    json_decref(root);
    s->normalize = 1;
    return status;
}

/* Modules in their order: a Transformer, a Pooling, perhaps Dense ones, perhaps a Normalize. */
static iso_status read_modules(model_sentence *s, const json_t *modules, size_t width,
                               model_arena *arena, const char *directory, iso_error *error) {
    iso_status status = ISOBIT_OK;
    s->normalize = -1;
    for (size_t i = 0; i < json_array_size(modules) && !status; i++) {
        const module m = describe(json_array_get(modules, i), i);
        const int behind = i >= 2 && s->normalize != 1;
        if (i == 0 && is_named(&m, "Transformer") && !m.folder[0])
            continue;
        const int pools = i == 1 && is_named(&m, "Pooling"),
                  dense = behind && is_named(&m, "Dense") && s->dense_count < MAX_DENSE,
                  normalizes = behind && is_named(&m, "Normalize");
        if (!pools && !dense && !normalizes)
            refuse(s, &m, NULL, NULL);
        else if (!is_folder(m.folder))
            refuse_folder(s, &m);
        else if (pools)
            status = read_pooling(s, &m, directory, error);
        else if (dense)
            status = add_dense(s, &m, width, arena, directory, error);
        else
            status = read_normalize(s, &m, directory, error);
        if (s->refused[0])
            break;
    }
    if (s->refused[0])
        s->dense_count = 0; /* what is chosen instead takes the place of all of them */
    return status;
}

/* -------------------------------------------------------------------------------------- texts */

static iso_status read_max_length(model_sentence *s, const json_t *root, const char *file,
                                  const char *key, iso_error *error) {
    const json_t *length = json_object_get(root, key);
    const size_t most = (size_t)1 << 31;
    /* Tokenizers without a limit write 1e30. */
    if (!length || json_is_null(length) || json_number_value(length) > (double)most)
        return ISOBIT_OK;
    if (!model_json_size(length, 1, most, &s->max_length))
        return model_fail(error, ISOBIT_E_CONFIG, "%s: \"%s\" must be a whole number of at least 1",
                          file, key);
    return ISOBIT_OK;
}

/* "sentence_bert_config.json"; what it does not limit, the tokenizer may. */
static iso_status read_texts(model_sentence *s, const char *directory, iso_error *error) {
    static const char *const file = "sentence_bert_config.json", *const other =
                                                                     "tokenizer_config.json";
    json_t *root;
    iso_status status = optional(&root, directory, file, error);
    const json_t *lower = json_object_get(root, "do_lower_case");
    if (!status)
        status = read_max_length(s, root, file, "max_seq_length", error);
    if (!status && lower && !json_is_boolean(lower) && !json_is_null(lower))
        status =
            model_fail(error, ISOBIT_E_CONFIG, "%s: \"do_lower_case\" must be true or false", file);
    s->lower = json_is_true(lower);
    json_decref(root);
    if (status || s->max_length != SIZE_MAX)
        return status;
    status = optional(&root, directory, other, error);
    if (!status)
        status = read_max_length(s, root, other, "model_max_length", error);
    json_decref(root);
    return status;
}

/* "config_sentence_transformers.json": the prompt that texts get if none is asked for. */
static iso_status read_prompt(model_sentence *s, model_arena *arena, const char *directory,
                              iso_error *error) {
    static const char *const file = "config_sentence_transformers.json";
    json_t *root;
    iso_status status = optional(&root, directory, file, error);
    const json_t *name = json_object_get(root, "default_prompt_name");
    if (!status && name && !json_is_null(name)) {
        const char *key = json_string_value(name);
        const json_t *prompt = json_object_get(json_object_get(root, "prompts"), key ? key : "");
        char found[80], *copy = NULL;
        if (!key || !json_is_string(prompt))
            status = model_fail(error, ISOBIT_E_CONFIG,
                                "%s: \"default_prompt_name\" is %s, which is none of the prompts",
                                file, model_json_describe(name, found, sizeof found));
        else if (!(copy = model_alloc(arena, json_string_length(prompt) + 1, 1)))
            status = model_fail(error, ISOBIT_E_NOMEM, "out of memory for the prompt");
        else
            s->prompt = strcpy(copy, json_string_value(prompt));
    }
    json_decref(root);
    return status;
}

iso_status model_sentence_read(model_config *config, model_arena *arena, const char *directory,
                               iso_error *error) {
    model_sentence *s = &config->sentence;
    json_t *root = NULL;
    iso_error own = {0};
    *s = (model_sentence){.pooling = ISOBIT_POOLING_MEAN, .normalize = 1, .max_length = SIZE_MAX};
    if (config->decoder_layers && !config->encoder_class)
        return ISOBIT_OK;
    iso_status status = model_json_load_list(&root, directory, "modules.json", MAX_BYTES, &own);
    if (status == ISOBIT_E_MISSING) {
        if (config->decoder_layers)
            return ISOBIT_OK;
        status = ISOBIT_OK;
    } else if (!status) {
        model_config_encoder_alone(config); /* of both sentence-transformers takes no more */
        status = read_modules(s, root, config->d, arena, directory, &own);
        json_decref(root);
    }
    if (!status)
        status = read_texts(s, directory, &own);
    if (!status)
        status = read_prompt(s, arena, directory, &own);
    if (status && error)
        *error = own;
    return status;
}
