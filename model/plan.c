/* SPDX-License-Identifier: MIT
 *
 * The options of a call and the configuration of a model become a plan, or a reason why not.
 */
#include "decode.h"
#include "sample.h"

#include <math.h>

#define MAX_BEAMS 1024
#define GROUP_TOKENS 2048 /* of sources, unless the options say otherwise */

static iso_status check_stop(const model_ids *stop, size_t V, iso_error *error) {
    if (stop->count && !stop->ids)
        return model_fail(error, ISOBIT_E_NULL, "stop_ids is NULL, stop_count is %zu", stop->count);
    for (size_t at = 0, n; at < stop->count; at += n + 1) {
        n = stop->ids[at];
        if (n == 0 || n > stop->count - at - 1)
            return model_fail(error, ISOBIT_E_DIM,
                              "stop_ids[%zu] is the length %zu, and %zu numbers follow", at, n,
                              stop->count - at - 1);
        for (size_t i = at + 1; i <= at + n; i++)
            if (stop->ids[i] >= V)
                return model_fail(error, ISOBIT_E_RANGE,
                                  "stop_ids[%zu] is %u; the vocabulary has %zu tokens", i,
                                  stop->ids[i], V);
    }
    return ISOBIT_OK;
}

/* Whether to sample, and how. */
static iso_status plan_sampling(model_plan *p, const iso_generate_options *o, iso_error *error) {
    model_search *s = &p->search;
    model_warp *w = &s->warp;
    if (o->sampling != ISOBIT_SAMPLING_DEFAULT)
        s->sample = o->sampling == ISOBIT_SAMPLING_ON;
    if (o->beams || o->sampling == ISOBIT_SAMPLING_ON)
        s->beams = o->beams ? o->beams : 1;
    if ((unsigned)o->sampling > ISOBIT_SAMPLING_ON)
        return model_fail(error, ISOBIT_E_OPTION, "sampling is %d, which has no meaning",
                          (int)o->sampling);
    if (!s->sample)
        return ISOBIT_OK;
    if (s->beams > 1)
        return model_fail(error, o->beams ? ISOBIT_E_OPTION : ISOBIT_E_UNSUPPORTED,
                          "sampling with %zu beams%s; use one of them: 1 beam, or no sampling",
                          s->beams, o->beams ? "" : ", as the model's files ask for");
    w->temperature = o->temperature != 0 ? o->temperature : w->temperature;
    w->top_k = o->top_k ? o->top_k : w->top_k;
    w->top_p = o->top_p != 0 ? o->top_p : w->top_p;
    w->min_p = o->has_min_p ? o->min_p : w->min_p;
    s->beams = p->hypotheses;
    memcpy(p->seed, o->seed, sizeof p->seed);
    p->first_source = o->first_source;
    return model_warp_check(w, error);
}

/* What the caller says in place of the model's files. */
static iso_status plan_options(model_plan *p, const iso_generate_options *o, iso_error *error) {
    model_search *s = &p->search;
    const size_t V = p->model->config.target_vocabulary;
    p->hypotheses = o->hypotheses ? o->hypotheses : 1;
    if (o->max_length || o->max_new_tokens) {
        s->max_length = o->max_length;
        s->max_new_tokens = o->max_new_tokens;
    } else {
        p->lowers = 1;
    }
    s->length_penalty = o->has_length_penalty ? o->length_penalty : s->length_penalty;
    s->early_stopping = o->early_stopping ? o->early_stopping : s->early_stopping;
    s->repetition_penalty =
        o->repetition_penalty != 0 ? o->repetition_penalty : s->repetition_penalty;
    s->no_repeat_ngram = o->no_repeat_ngram ? o->no_repeat_ngram : s->no_repeat_ngram;
    s->min_length = o->min_length ? o->min_length : s->min_length;
    p->tokens = o->batch_tokens ? o->batch_tokens : GROUP_TOKENS;
    p->attention = o->attention != 0;
    p->stop = (model_ids){o->stop_ids, o->stop_count};
    p->on_token = o->on_token;
    p->user = o->user;
    p->is_last = o->is_last;
    p->is_last_user = o->is_last_user;
    if (o->has_forced_bos && o->forced_bos >= V)
        return model_fail(error, ISOBIT_E_RANGE, "forced_bos is %u; the vocabulary has %zu tokens",
                          o->forced_bos, V);
    s->forced_bos = o->has_forced_bos ? o->forced_bos : s->forced_bos;
    const iso_status status = check_stop(&p->stop, V, error);
    return status ? status : plan_sampling(p, o, error);
}

/* How many tokens are generated: max_new_tokens if it is set, else what max_length leaves. */
static iso_status plan_length(model_plan *p, iso_error *error) {
    const model_config *c = &p->model->config;
    model_search *s = &p->search;
    if (!p->model->encoder.layers) { /* the prompt counts, and each sentence has its own */
        p->max_total = s->max_new_tokens ? 0 : s->max_length;
        p->max_new = s->max_new_tokens ? s->max_new_tokens : s->max_length;
        return ISOBIT_OK;
    }
    if (s->max_new_tokens && __builtin_add_overflow(s->max_new_tokens, (size_t)1, &s->max_length))
        s->max_length = SIZE_MAX;
    if (s->max_length < 2)
        return model_fail(error, ISOBIT_E_OPTION,
                          "max_length is %zu, and counts the start token: nothing can be generated",
                          s->max_length);
    if (s->max_length - 1 > c->max_positions)
        return model_fail(error, ISOBIT_E_LIMIT,
                          "a target of up to %zu tokens with its start token; the model has %zu "
                          "positions",
                          s->max_length, c->max_positions);
    p->max_new = s->max_length - 1;
    return ISOBIT_OK;
}

size_t model_plan_most(const model_plan *p, size_t S) {
    size_t most = p->max_new;
    if (p->model->encoder.layers)
        return most;
    if (p->max_total)
        most = p->max_total > S ? p->max_total - S : 0;
    const size_t positions = p->model->config.max_positions;
    return p->lowers && most > positions + 1 - S ? positions + 1 - S : most;
}

iso_status model_plan_prompts(model_plan *p, const model_item *items, size_t count,
                              iso_error *error) {
    const size_t positions = p->model->config.max_positions;
    size_t most = 0;
    if (p->model->encoder.layers)
        return ISOBIT_OK;
    for (size_t i = 0; i < count; i++) {
        const size_t S = items[i].S, new = model_plan_most(p, S);
        if (!new)
            return model_fail(
                error, ISOBIT_E_LIMIT,
                "prompt %zu has %zu tokens, and max_length, which counts them, is %zu",
                items[i].index, S, p->max_total);
        if (new - 1 > positions - S)
            return model_fail(error, ISOBIT_E_LIMIT,
                              "prompt %zu has %zu tokens, and up to %zu may follow; the model has "
                              "%zu positions",
                              items[i].index, S, new, positions);
        most = new > most ? new : most;
    }
    p->max_new = most;
    return ISOBIT_OK;
}

iso_status model_plan_make(model_plan *p, const iso_model *model,
                           const iso_generate_options *options, iso_error *error) {
    const model_config *c = &model->config;
    static const iso_generate_options none = {.size = sizeof none};
    iso_generate_options own;
    *p = (model_plan){.model = model, .search = c->search};
    model_search *s = &p->search;
    const iso_generate_options *o = options ? options : &none;
    if (!(o = MODEL_OPTIONS(o, own, batch_tokens)))
        return model_fail(error, ISOBIT_E_SIZE, "the options have an unknown size");
    const iso_status status = plan_options(p, o, error);
    if (status)
        return status;
    if (s->beams > MAX_BEAMS)
        return model_fail(error, ISOBIT_E_LIMIT, "%zu %s; at most %d are possible", s->beams,
                          s->sample ? "samples" : "beams", MAX_BEAMS);
    if (p->hypotheses > s->beams)
        return model_fail(error, ISOBIT_E_OPTION, "%zu hypotheses of %zu beams", p->hypotheses,
                          s->beams);
    if (p->attention && !model->encoder.layers)
        return model_fail(error, ISOBIT_E_UNSUPPORTED,
                          "the model has no encoder, hence no attention over one");
    const iso_status too_long = plan_length(p, error);
    if (too_long)
        return too_long;
    if (!isfinite(s->length_penalty) || !(s->repetition_penalty > 0) ||
        !isfinite(s->repetition_penalty) || s->early_stopping > ISOBIT_EARLY_NEVER)
        return model_fail(error, ISOBIT_E_OPTION,
                          "length_penalty, repetition_penalty or early_stopping is out of range");
    return ISOBIT_OK;
}
