/* SPDX-License-Identifier: MIT
 *
 * A session is a loaded model with what it runs on: instruction set and threads, and for text its
 * tokenizer.
 */
#include "cli.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

int wrong_numerics(void) {
    const char *wanted = getenv("ISOBIT_NUMERICS");
    return usage("ISOBIT_NUMERICS=%s: there are fixed and native", wanted != NULL ? wanted : "");
}

int choose_isa(iso_context *context, const struct options *options) {
    if (options->isa != NULL) {
        if (iso_isa_find(&context->isa, options->isa) != ISOBIT_OK)
            return usage("--isa %s: this machine has no such instruction set; it has: %s",
                         options->isa, iso_isa_names());
    } else {
        context->isa = iso_isa_active();
        if (context->isa == NULL) {
            const char *wanted = getenv("ISOBIT_ISA");
            return usage("ISOBIT_ISA=%s: this machine has no such instruction set; it has: %s",
                         wanted != NULL ? wanted : "", iso_isa_names());
        }
    }
    return iso_numerics(context->isa) != NULL ? 0 : wrong_numerics();
}

/* What is said beside a hash, or nothing in fixed numerics. */
const char *native_numerics(const iso_context *context) {
    const char *numerics = iso_numerics(context->isa);
    return numerics != NULL && strncmp(numerics, "native", 6) == 0 ? numerics : NULL;
}

/* Before anything is computed: whether the model has what the command needs. */
static int check_needs(const iso_model_info *info, unsigned needs) {
    if ((needs & NEEDS_DECODER) != 0 && info->decoder_layers == 0)
        return fail("the model (%s) has no decoder, which this command needs; see isobit embed and "
                    "isobit fill",
                    info->family);
    if ((needs & NEEDS_ENCODER) != 0 && info->encoder_layers == 0)
        return fail("the model (%s) has no encoder, which this command needs", info->family);
    if ((needs & NEEDS_MASKED_HEAD) != 0 && (info->decoder_layers != 0 || !info->has_logits))
        return fail("the model (%s) came without the head of a masked language model, which this "
                    "command needs",
                    info->family);
    return 0;
}

/* ------------------------------------------------------------------------------------ opening */

static int open_model(struct session *session, const struct options *options, unsigned needs) {
    iso_error error = {0};
    const iso_load_options how = {.size = sizeof how,
                                  .map = options->map,
                                  .widen = options->widen,
                                  .positions = options->positions,
                                  .cache = cache_type(options),
                                  .compute = compute_type(options)};
    iso_status status =
        iso_model_load(&session->model, options->model, &how, &session->context, &error);
    if (status != ISOBIT_OK)
        return fail_error(&error, status);
    session->info = iso_model_get_info(session->model);
    int code = check_needs(session->info, needs);
    iso_attention_kind kind;
    size_t layers;
    if (code == 0 && options->attention != NULL)
        code = attention_kind(session->info, options, &kind, &layers);
    return code;
}

/* A tokenizer that is read while the model is. */
struct reading {
    const struct options *options;
    pthread_t thread;
    bool has_thread;
    iso_tokenizer *tokenizer;
    iso_status status;
    iso_error error;
};

static void *read_tokenizer(void *argument) {
    struct reading *r = argument;
    const iso_tokenizer_options languages = {.size = sizeof languages,
                                             .source_language = r->options->from,
                                             .target_language = r->options->to};
    r->status = iso_tokenizer_load_with(&r->tokenizer, r->options->model, &languages, &r->error);
    return NULL;
}

/* What is wrong with the model comes first, whoever was faster. */
static int open_both(struct session *session, const struct options *options, unsigned needs) {
    struct reading r = {.options = options};
    r.has_thread =
        session->pool != NULL && pthread_create(&r.thread, NULL, read_tokenizer, &r) == 0;
    int code = open_model(session, options, needs);
    if (r.has_thread)
        pthread_join(r.thread, NULL);
    else if (code == 0)
        read_tokenizer(&r);
    session->tokenizer = r.tokenizer;
    if (code != 0)
        return code;
    if (r.status == ISOBIT_OK)
        r.status = iso_tokenizer_fits(session->tokenizer, session->model, &r.error);
    if (r.status == ISOBIT_OK && options->stop.count > 0)
        r.status = iso_stop_create(&session->stop, session->tokenizer, options->stop.text,
                                   options->stop.count, &r.error);
    return r.status == ISOBIT_OK ? 0 : fail_error(&r.error, r.status);
}

int session_prepare(struct session *session, const struct options *options) {
    *session = (struct session){.context = {.size = sizeof(iso_context)}};
    const int code = choose_isa(&session->context, options);
    if (code != 0)
        return code;

    size_t threads = options->threads != 0 ? options->threads : iso_usable_threads();
    if (threads > 1) {
        iso_status status = iso_pool_create(&session->pool, threads);
        if (status != ISOBIT_OK)
            return fail("cannot start %zu threads: %s", threads, iso_strerror(status));
        session->context.executor = iso_pool_executor(session->pool);
    }
    return 0;
}

int session_open(struct session *session, const struct options *options, unsigned needs) {
    const int code = session_prepare(session, options);
    if (code != 0)
        return code;
    return (needs & NEEDS_TEXT) != 0 ? open_both(session, options, needs)
                                     : open_model(session, options, needs);
}

void session_begin(const struct session *session, iso_generate_options *how) {
    uint32_t first = UINT32_MAX;
    if (session->stop != NULL) {
        how->is_last = iso_stop_is_last;
        how->is_last_user = session->stop;
    }
    if (session->tokenizer != NULL)
        (void)iso_tokenizer_forced_bos(session->tokenizer, &first);
    /* Some models of mBART have the language as their start token: once is enough. */
    if (first == UINT32_MAX || first == session->info->decoder_start_id)
        return;
    how->has_forced_bos = 1;
    how->forced_bos = first;
}

/* BERT and its kind write [MASK], RoBERTa and its kind <mask>. */
uint32_t find_mask(const iso_tokenizer *tokenizer) {
    const char *token;
    for (uint32_t id = 0; (token = iso_tokenizer_token(tokenizer, id)) != NULL; id++)
        if (strcmp(token, "[MASK]") == 0 || strcmp(token, "<mask>") == 0)
            return id;
    return UINT32_MAX;
}

void session_close(struct session *session) {
    iso_stop_free(session->stop);
    iso_tokenizer_free(session->tokenizer);
    iso_model_free(session->model);
    iso_pool_destroy(session->pool);
    *session = (struct session){0};
}
