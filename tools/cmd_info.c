/* SPDX-License-Identifier: MIT
 *
 * isobit info: what the library sees of this machine and what it made of it, for people. --json
 * gives the library's own words; the table is only another way to print them. --env does the same
 * for the environment variables, and --model for a model.
 */
#include "cli.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char *string_at(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "-";
}

static void print_words(const char *label, const json_t *array) {
    printf("  %-14s", label);
    size_t column = 16, i;
    json_t *word;
    json_array_foreach(array, i, word) {
        const char *text = json_string_value(word);
        if (text == NULL)
            continue;
        if (column + strlen(text) + 1 > 88) {
            printf("\n  %-14s", "");
            column = 16;
        }
        printf(" %s", text);
        column += strlen(text) + 1;
    }
    puts(json_array_size(array) == 0 ? " -" : "");
}

static void print_cache(const char *name, const json_t *caches, const char *key) {
    json_int_t bytes = json_integer_value(json_object_get(caches, key));
    if (bytes >= 1 << 20 && bytes % (1 << 20) == 0)
        printf("  %s %lld MiB", name, (long long)bytes >> 20);
    else if (bytes > 0)
        printf("  %s %lld KiB", name, (long long)bytes >> 10);
    else
        printf("  %s unknown", name);
}

static void print_cpu(const json_t *cpu) {
    const json_t *caches = json_object_get(cpu, "caches");
    printf("CPU              %s (%s)\n", string_at(cpu, "name"), string_at(cpu, "architecture"));
    print_words("features", json_object_get(cpu, "features"));
    if (json_array_size(json_object_get(cpu, "masked")) > 0)
        print_words("without OS", json_object_get(cpu, "masked"));
    printf("  %-14s %s\n", "XCR0", string_at(cpu, "xcr0"));
    printf("  %-13s", "caches");
    print_cache("L1d", caches, "l1d");
    print_cache("L2", caches, "l2");
    print_cache("L3", caches, "l3");
    puts("");
}

static void print_isas(const json_t *root) {
    size_t i;
    json_t *isa;
    puts("instruction sets");
    json_array_foreach(json_object_get(root, "isas"), i, isa) {
        const char *missing = json_string_value(json_object_get(isa, "missing"));
        bool chosen = json_is_true(json_object_get(isa, "chosen"));
        printf("  %-14s %s%s\n", string_at(isa, "name"),
               missing != NULL ? "no: " : (chosen ? "chosen" : "available"),
               missing != NULL ? missing : "");
    }
    const char *wanted = getenv("ISOBIT_ISA");
    if (wanted != NULL && wanted[0] != '\0')
        printf("  ISOBIT_ISA=%s %s\n", wanted,
               json_is_string(json_object_get(root, "isa")) ? "made the choice"
                                                            : "names none of those that can run");
}

/* Where they are not those that the version tells. */
static void print_numerics(const json_t *root) {
    const char *numerics = json_string_value(json_object_get(root, "numerics"));
    const char *wanted = getenv("ISOBIT_NUMERICS");
    if (numerics == NULL)
        printf("numerics         ISOBIT_NUMERICS=%s: there are fixed and native\n",
               wanted != NULL ? wanted : "");
    else if (strncmp(numerics, "native", 6) == 0)
        printf("numerics         %s: bits of products with BF16 weights depend on the CPU\n",
               numerics);
}

static void print_threads(const json_t *threads) {
    const json_t *quota = json_object_get(threads, "cgroup_cpus");
    printf("threads          %lld usable: affinity %lld, cgroup quota ",
           (long long)json_integer_value(json_object_get(threads, "usable")),
           (long long)json_integer_value(json_object_get(threads, "affinity")));
    if (json_is_number(quota))
        printf("%g\n", json_number_value(quota));
    else
        puts("none");
}

static void print_versions(const json_t *versions) {
    const char *key;
    const json_t *value;
    fputs("versions         ", stdout);
    json_object_foreach((json_t *)versions, key, value) {
        if (json_is_integer(value))
            printf("%s %lld, ", key, (long long)json_integer_value(value));
        else if (json_is_string(value))
            printf("%s %s, ", key, json_string_value(value));
    }
    printf("jansson %s, xxhash %d.%d.%d\n", jansson_version_str(), XXH_VERSION_MAJOR,
           XXH_VERSION_MINOR, XXH_VERSION_RELEASE);
}

/* Two lines for each variable: where its value comes from and what it is; what it does. */
static void print_env(const json_t *variables) {
    size_t i;
    json_t *variable;
    json_array_foreach(variables, i, variable) {
        const char *name = string_at(variable, "name"), *source = string_at(variable, "source");
        const char *problem = json_string_value(json_object_get(variable, "problem"));
        const char *value = getenv(name); /* JSON has another spelling */
        printf("%-20s %-12s %s", name, source,
               strcmp(source, "default") != 0 && value != NULL ? value
                                                               : string_at(variable, "default"));
        if (problem != NULL)
            printf(" (%s)", problem);
        printf("\n%-20s %s: %s\n", "", string_at(variable, "reader"),
               string_at(variable, "effect"));
    }
}

static void print_machine(const json_t *root) {
    print_cpu(json_object_get(root, "cpu"));
    print_isas(root);
    print_numerics(root);
    print_threads(json_object_get(root, "threads"));
    print_versions(json_object_get(root, "versions"));
}

/* -------------------------------------------------------------------------------- a model */

static json_t *json_id(uint32_t id) { return id == UINT32_MAX ? json_null() : json_integer(id); }

/* A float in the fewest digits that are its own. */
static double shortest(float x) {
    char text[32];
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)x);
        if (strtof(text, NULL) == x)
            break;
    }
    return strtod(text, NULL);
}

/* A model as the command line can use it. */
struct about {
    iso_model *model;
    const iso_model_info *info;
    iso_tokenizer *tokenizer; /* NULL: text_error says why not */
    iso_error text_error;
    json_t *commands; /* the names of those that work with it */
};

static json_t *working_commands(const struct about *about) {
    const iso_model_info *info = about->info;
    const bool text = about->tokenizer != NULL, encoder = info->encoder_layers != 0,
               decoder = info->decoder_layers != 0;
    const struct {
        const char *name;
        bool works;
    } all[] = {
        {"run", text && decoder},
        {"generate", decoder},
        {"score", decoder},
        {"embed", text && encoder},
        {"fill", text && !decoder && info->has_logits && find_mask(about->tokenizer) != UINT32_MAX},
        {"demo", text && encoder && decoder},
        {"bench", true},
    };
    json_t *names = json_array();
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].works)
            json_array_append_new(names, json_string(all[i].name));
    return names;
}

/* What linear layers multiply. */
static const char *compute_name(const iso_model_info *info) {
    return info->parameters_int4 != 0 ? "int4" : info->parameters_int8 != 0 ? "int8" : "f32";
}

static json_t *model_json(const struct about *about) {
    const iso_model_info *info = about->info;
    json_t *eos = json_array(), *object = json_object();
    const struct {
        const char *name;
        size_t value;
    } sizes[] = {
        {"d", info->d},
        {"encoder_layers", info->encoder_layers},
        {"decoder_layers", info->decoder_layers},
        {"encoder_heads", info->encoder_heads},
        {"decoder_heads", info->decoder_heads},
        {"encoder_ffn", info->encoder_ffn},
        {"decoder_ffn", info->decoder_ffn},
        {"source_vocabulary", info->source_vocabulary},
        {"target_vocabulary", info->target_vocabulary},
        {"max_positions", info->max_positions},
        {"sentence_d", info->sentence_d},
        {"sentence_max_length", info->sentence_max_length},
        {"parameters", info->parameters},
        {"parameters_16", info->parameters_16},
        {"parameters_8", info->parameters_8},
        {"parameters_4", info->parameters_4},
        {"parameters_int8", info->parameters_int8},
        {"parameters_int4", info->parameters_int4},
        {"weight_bytes", info->weight_bytes},
        {"default_beams", info->default_beams},
        {"default_max_length", info->default_max_length},
        {"default_max_new_tokens", info->default_max_new_tokens},
        {"default_top_k", info->default_top_k},
    };
    for (size_t i = 0; i < info->eos_count; i++)
        json_array_append_new(eos, json_integer(info->eos_ids[i]));
    json_object_set_new(object, "family", json_string(info->family));
    json_object_set_new(object, "compute", json_string(compute_name(info)));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        json_object_set_new(object, sizes[i].name, json_integer((json_int_t)sizes[i].value));
    json_object_set_new(object, "weight_types", json_string(info->weight_types));
    json_object_set_new(object, "default_sampling", json_boolean(info->default_sampling));
    json_object_set_new(object, "default_temperature",
                        json_real(shortest(info->default_temperature)));
    json_object_set_new(object, "default_top_p", json_real(shortest(info->default_top_p)));
    json_object_set_new(object, "default_min_p", json_real(shortest(info->default_min_p)));
    json_object_set_new(object, "pad_id", json_id(info->pad_id));
    json_object_set_new(object, "bos_id", json_id(info->bos_id));
    json_object_set_new(object, "unk_id", json_id(info->unk_id));
    json_object_set_new(object, "decoder_start_id", json_id(info->decoder_start_id));
    json_object_set_new(object, "eos_ids", eos);
    json_object_set_new(object, "has_logits", json_boolean(info->has_logits));
    json_object_set_new(object, "has_pooler", json_boolean(info->has_pooler));
    json_object_set_new(object, "text_error",
                        about->tokenizer != NULL ? json_null()
                                                 : json_string(about->text_error.message));
    json_object_set(object, "commands", about->commands);
    return object;
}

static void print_stack(const char *name, size_t layers, size_t heads, size_t ffn) {
    if (layers == 0)
        printf("  %-14s none\n", name);
    else
        printf("  %-14s %zu layers, %zu heads, feed-forward %zu\n", name, layers, heads, ffn);
}

static void print_defaults(const iso_model_info *info) {
    const bool prompts = info->encoder_layers == 0, news = info->default_max_new_tokens != 0;
    printf("defaults         %zu beam%s, at most %zu %s\n", info->default_beams,
           info->default_beams == 1 ? "" : "s",
           prompts && news ? info->default_max_new_tokens : info->default_max_length,
           !prompts ? "target tokens with the start token"
           : news   ? "tokens after the prompt"
                    : "tokens with the prompt");
    printf("  sampling       %s: temperature %g, top-k %zu, top-p %g, min-p %g\n",
           info->default_sampling ? "on" : "off, with --sample",
           shortest(info->default_temperature), info->default_top_k, shortest(info->default_top_p),
           shortest(info->default_min_p));
}

static void print_model(const struct about *about) {
    const iso_model_info *info = about->info;
    printf("model            %s, %zu parameters, %.1f MB in memory\n", info->family,
           info->parameters, (double)info->weight_bytes * 1e-6);
    if (info->parameters_16)
        printf("  in 16 bits     %zu parameters\n", info->parameters_16);
    if (info->parameters_8 > info->parameters_int8)
        printf("  in 8 bits      %zu parameters, in groups\n",
               info->parameters_8 - info->parameters_int8);
    if (info->parameters_int8)
        printf("  in int8        %zu parameters, each row with a scale\n", info->parameters_int8);
    if (info->parameters_4)
        printf("  in 4 bits      %zu parameters, in groups\n", info->parameters_4);
    printf("  compute        %s\n", compute_name(info));
    printf("  in the files   %s\n", info->weight_types);
    print_stack("encoder", info->encoder_layers, info->encoder_heads, info->encoder_ffn);
    print_stack("decoder", info->decoder_layers, info->decoder_heads, info->decoder_ffn);
    if (strcmp(info->family, "gemma3") == 0)
        puts("  images         the part for them is not read");
    printf("  width          %zu\n", info->d);
    printf("  vocabulary     %zu source, %zu target tokens\n", info->source_vocabulary,
           info->target_vocabulary);
    printf("  positions      %zu\n", info->max_positions);
    if (info->decoder_layers != 0) {
        print_defaults(info);
    } else {
        printf("  vectors        %zu numbers, of at most %zu tokens, %s pooler\n", info->sentence_d,
               info->sentence_max_length, info->has_pooler ? "with a" : "without a");
        printf("  masks          %s\n", info->has_logits ? "yes" : "no head for them");
    }
    size_t i;
    json_t *name;
    fputs("commands        ", stdout);
    json_array_foreach(about->commands, i, name) printf(" %s", json_string_value(name));
    puts("");
    if (about->tokenizer == NULL)
        printf("  no text        %s\n", about->text_error.message);
}

static int about_model(const struct options *options) {
    struct about about = {0};
    iso_error error = {0};
    int code = 0;
    const iso_load_options how = {.size = sizeof how, .compute = compute_type(options)};
    iso_status status = iso_model_load(&about.model, options->model, &how, NULL, &error);
    if (status != ISOBIT_OK)
        return fail_error(&error, status);
    about.info = iso_model_get_info(about.model);
    status = iso_tokenizer_load(&about.tokenizer, options->model, &about.text_error);
    if (status == ISOBIT_OK)
        status = iso_tokenizer_fits(about.tokenizer, about.model, &about.text_error);
    if (status != ISOBIT_OK) {
        iso_tokenizer_free(about.tokenizer);
        about.tokenizer = NULL;
    }
    about.commands = working_commands(&about);
    if (options->json) {
        json_t *object = model_json(&about);
        char *text = json_dumps(object, JSON_COMPACT);
        json_decref(object);
        if (text != NULL)
            puts(text);
        else
            code = fail("out of memory for the output");
        free(text);
    } else {
        print_model(&about);
    }
    json_decref(about.commands);
    iso_tokenizer_free(about.tokenizer);
    iso_model_free(about.model);
    return code;
}

/* ------------------------------------------------------------------------------------------ */

int cmd_info(const struct options *options) {
    if (options->model != NULL)
        return about_model(options);
    iso_status (*describe)(char *, size_t, size_t *) = options->env ? iso_env_json : iso_info_json;
    size_t needed = 0;
    json_error_t error;
    describe(NULL, 0, &needed);
    char *text = malloc(needed);
    if (text == NULL)
        return fail("out of memory");
    const iso_status status = describe(text, needed, NULL);
    int code = 0;
    if (status != ISOBIT_OK) {
        code = fail("%s", iso_strerror(status));
    } else if (options->json) {
        puts(text);
    } else {
        json_t *root = json_loads(text, 0, &error);
        if (root == NULL)
            code = fail("the library gave invalid JSON (please report this): %s", error.text);
        else
            (options->env ? print_env : print_machine)(root);
        json_decref(root);
    }
    free(text);
    return code;
}
