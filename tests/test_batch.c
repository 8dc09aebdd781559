/* SPDX-License-Identifier: MIT
 *
 * Continuous batches against iso_generate of each sequence alone: random schedules of sequences
 * that join, leave and are cancelled, with options of their own, in every family, on every
 * instruction set, with 1 to 4 threads. After each step all that lies in the caches beyond the
 * sequences that run is NaN. Then what a batch refuses, and memory that is not there.
 */
#include "batch.c"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static size_t allocations, failing; /* counts from 1; 0: none fails */
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    return ++allocations == failing ? NULL : __real_aligned_alloc(alignment, bytes);
}

static const char *const families[] = {
    "paper",      "bart",      "marian-swish", "mbart-f16",      "pegasus-bf16", "m2m-100",
    "t5",         "mt5-f16",   "umt5",         "gpt2",           "llama",        "llama3-bf16",
    "qwen2-f16",  "mistral",   "flan-t5-bf16", "mistral-window", "qwen2-window", "qwen3-bf16",
    "llama-yarn", "phi3-bf16", "gemma-bf16",   "opt-f16",        "gemma2-bf16",  "gemma3-bf16",
};
enum { FAMILIES = sizeof families / sizeof *families };

static uint64_t random_state = 1;
static uint32_t below(size_t n) {
    uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(((z ^ (z >> 31)) >> 32) % n);
}

static void ok(iso_status status, const iso_error *error) {
    if (status)
        fail_msg("status %d: %s", (int)status, error->message);
}

static iso_model *load_cached(const char *name, size_t cache) {
    char path[600];
    iso_model *model = NULL;
    iso_error error = {0};
    (void)snprintf(path, sizeof path, "%s/models/%s", ISOBIT_TEST_DATA, name);
    const iso_load_options options = {.size = sizeof options, .cache = cache};
    ok(iso_model_load(&model, path, &options, NULL, &error), &error);
    return model;
}
static iso_model *load(const char *name) { return load_cached(name, ISOBIT_CACHE_F32); }

/* Elements from `from` to `to` become NaN, of 32 bits and of either 16. */
static void spoil(const model_cache *c, unsigned char *at, size_t from, size_t to) {
    memset(at + from * c->element, 0xff, (to - from) * c->element);
}

static size_t keys(const model_cache *c, size_t n, size_t dh) {
    return n == 0 ? 0 : c->w16 ? iso_keys_w16_elements(n, dh) : iso_key_panels_floats(n, dh);
}

static size_t parts; /* that were seen */

/* Whatever no running sequence has written. */
static void spoil_unused(iso_batch *b) {
    const model_cache *c = &b->group.cache;
    const model_stack *s = &b->model.decoder;
    const size_t dh = s->dh, rows = c->sentences * c->beams;
    for (size_t i = 0; i < s->layers * rows * s->Hk; i++) {
        const size_t row = i / s->Hk % rows, place = row / c->beams, active = b->group.active_count;
        /* of a prompt that was read in part there is the first beam */
        const int part = b->group.part && row == active * c->beams;
        const size_t n = place < active || part ? c->lengths[place] : 0;
        parts += (size_t)part;
        spoil(c, c->self_k + i * c->panels_t * c->element, keys(c, n, dh), c->panels_t);
        spoil(c, c->self_v + i * c->T * c->row * c->element, n * c->row, c->T * c->row);
    }
    for (size_t i = 0; i < s->layers * c->sentences * s->H && c->S; i++) {
        const size_t place = i / s->H % c->sentences;
        const size_t n = place < b->group.active_count ? c->source_lengths[place] : 0;
        spoil(c, c->cross_k + i * c->panels_s * c->element, keys(c, n, dh), c->panels_s);
        spoil(c, c->cross_v + i * c->S * c->row * c->element, n * c->row, c->S * c->row);
    }
}

/* A sequence as it was asked for. */
enum { MOST = 64, SOURCE = 14 };
typedef struct wish {
    uint32_t ids[SOURCE], stop[3];
    size_t length;
    iso_generate_options options;
    size_t tokens, ends_at; /* heard by on_token, which ends it there; 0: it does not */
    int expected;           /* a result is to come */
} wish;

static int hear(void *user, const iso_token *token) {
    wish *w = user;
    (void)token;
    if (++w->tokens != w->ends_at)
        return 0;
    w->expected = 0;
    return 1;
}

static void make_wish(wish *w, const iso_model *model, size_t rows) {
    const int both = model->encoder.layers != 0;
    const size_t V = both ? model->encoder.V : model->decoder.V;
    *w = (wish){.length = 1 + below(SOURCE)};
    for (size_t i = 0; i < w->length; i++)
        w->ids[i] = below(V);
    const int sampled = rows == 1 ? (int)below(2) : (int)below(3) == 0;
    w->options =
        (iso_generate_options){.size = sizeof w->options,
                               .beams = sampled ? 1 : rows,
                               .hypotheses = sampled ? rows : 1 + below(rows),
                               .max_new_tokens = 1 + below(12),
                               .sampling = sampled ? ISOBIT_SAMPLING_ON : ISOBIT_SAMPLING_OFF,
                               .seed = {below(3), below(1000)},
                               .first_source = below(50),
                               .temperature = 0.5f + (float)below(4),
                               .top_k = 1 + below(40),
                               .repetition_penalty = below(2) ? 1.5f : 1,
                               .no_repeat_ngram = below(3) ? 0 : 2,
                               .min_length = below(6),
                               .attention = both && below(2),
                               .has_forced_bos = below(4) == 0,
                               .forced_bos = below(20),
                               .early_stopping = below(2) ? ISOBIT_EARLY_TRUE : ISOBIT_EARLY_FALSE};
    if (below(3) == 0) {
        w->stop[0] = 1;
        w->stop[1] = below(20);
        w->options.stop_ids = w->stop;
        w->options.stop_count = 2;
    }
    if (below(2)) {
        w->options.on_token = hear;
        w->options.user = w;
        w->ends_at = below(4) ? 0 : 1 + below(6);
    }
}

static void same(const iso_generation *got, wish *w, const iso_model *model) {
    iso_generation *alone;
    iso_error e = {0};
    iso_generate_options o = w->options;
    o.on_token = NULL;
    ok(iso_generate(&alone, model, w->ids, &w->length, 1, &o, NULL, &e), &e);
    assert_int_equal(got->count, alone->count);
    size_t tokens = 0;
    for (size_t i = 0; i < got->count; i++) {
        const iso_hypothesis *a = &got->best[i], *b = &alone->best[i];
        assert_int_equal(a->length, b->length);
        assert_memory_equal(&a->score, &b->score, sizeof a->score);
        assert_memory_equal(a->ids, b->ids, a->length * sizeof *a->ids);
        assert_memory_equal(a->log_probs, b->log_probs, a->length * sizeof *a->log_probs);
        assert_int_equal(!a->attention, !b->attention);
        const size_t n = model->decoder.layers * model->decoder.H * a->length * w->length;
        if (a->attention)
            assert_memory_equal(a->attention, b->attention, n * sizeof(float));
        tokens += a->length;
    }
    if (w->options.on_token)
        assert_int_equal(w->tokens, tokens);
    iso_generation_free(alone);
}

static size_t taken, cancelled;

static void take_all(iso_batch *b, wish *wishes, const iso_model *model) {
    iso_error e = {0};
    iso_generation *g;
    for (size_t number; ok(iso_batch_take(b, &g, &number, &e), &e), g; taken++) {
        assert_true(wishes[number].expected);
        wishes[number].expected = 0;
        same(g, &wishes[number], model);
        iso_generation_free(g);
    }
}

static void one_schedule(const iso_model *model, const iso_context *context) {
    static wish wishes[MOST];
    const int both = model->encoder.layers != 0;
    const size_t rows = below(2) ? 1 : 1 + below(3);
    const iso_batch_options options = {.size = sizeof options,
                                       .max_sequences = 1 + below(6),
                                       .rows = rows,
                                       .max_source = SOURCE,
                                       .max_length = 14 + (both ? 0 : SOURCE),
                                       .step_tokens = below(2) ? 0 : 1 + below(20),
                                       .attention = (size_t)both};
    iso_batch *b;
    iso_error e = {0};
    ok(iso_batch_create(&b, model, &options, context, &e), &e);
    size_t count = 0, unfinished = 1, number;
    const size_t all = 12 + below(MOST - 12);
    while (count < all || unfinished) {
        spoil_unused(b);
        const uint32_t what = below(10);
        if (what < 4 && count < all) {
            wish *w = &wishes[count];
            make_wish(w, model, rows);
            w->expected = 1;
            ok(iso_batch_add(b, &number, w->ids, w->length, &w->options, &e), &e);
            assert_int_equal(number, count++);
            unfinished = 1;
        } else if (what == 4 && count && (number = below(count), wishes[number].expected)) {
            ok(iso_batch_cancel(b, number, &e), &e);
            wishes[number].expected = 0;
            cancelled++;
        } else if (what < 6) {
            take_all(b, wishes, model);
        } else {
            ok(iso_batch_step(b, &unfinished, &e), &e);
        }
    }
    take_all(b, wishes, model);
    for (size_t i = 0; i < count; i++)
        assert_false(wishes[i].expected);
    iso_batch_free(b);
}

/* Where it is slow one schedule for each set. Levels, avx512_vnni and the like, run what their set
 * runs, but for integers. */
static void test_schedules(void **state) {
    const int slow = getenv("ISOBIT_EMULATED") != NULL;
    const size_t least = slow ? 100 : 1000;
    size_t turn = 0;
    for (size_t f = 0; f < 2 * FAMILIES; f++) { /* caches of 32 bits, then of 16 */
        iso_model *model =
            load_cached(families[f % FAMILIES], f < FAMILIES ? ISOBIT_CACHE_F32 : 1 + f % 2);
        for (size_t i = 0; i < iso_isa_count(); i++) {
            iso_context context = {.size = sizeof context, .isa = iso_isa_get(i)};
            iso_pool *pool;
            if (iso_isa_missing(context.isa) ||
                (slow && strchr(iso_isa_name(context.isa), '_') && context.isa != iso_isa_active()))
                continue;
            assert_int_equal(iso_pool_create(&pool, 1 + turn++ % 4), ISOBIT_OK);
            context.executor = iso_pool_executor(pool);
            for (int round = 0; round < (slow ? 1 : 3); round++)
                one_schedule(model, &context);
            iso_pool_destroy(pool);
        }
        iso_model_free(model);
    }
    assert_true(taken > least && cancelled > least / 10 && parts > least);
    (void)state;
}

static void expect(iso_status expected, const char *part, iso_status status, iso_error *e) {
    if (status != expected || e->status != expected || !strstr(e->message, part))
        fail_msg("status %d, and '%s' is not all of: %s", (int)status, part, e->message);
    *e = (iso_error){0};
}

/* Nothing that is refused harms those that run. */
static void test_refusals(void **state) {
    iso_model *model = load("t5"), *decoder = load("gpt2"), *encoder = load("bert");
    iso_batch *b = NULL;
    iso_error e = {0};
    iso_batch_options o = {.size = sizeof o, .max_source = 6, .max_length = 9};
    uint32_t ids[] = {3, 4, 5, 6, 7, 8, 9, 10};
    size_t number, unfinished;
    expect(ISOBIT_E_NULL, "NULL", iso_batch_create(NULL, model, &o, NULL, &e), &e);
    expect(ISOBIT_E_UNSUPPORTED, "no decoder", iso_batch_create(&b, encoder, &o, NULL, &e), &e);
    o.size = 3;
    expect(ISOBIT_E_SIZE, "size", iso_batch_create(&b, model, &o, NULL, &e), &e);
    o = (iso_batch_options){.size = sizeof o, .rows = 2000};
    expect(ISOBIT_E_LIMIT, "2000 rows", iso_batch_create(&b, model, &o, NULL, &e), &e);
    o = (iso_batch_options){.size = sizeof o, .max_length = 1};
    expect(ISOBIT_E_OPTION, "max_length is 1", iso_batch_create(&b, model, &o, NULL, &e), &e);
    o = (iso_batch_options){.size = sizeof o, .max_cache_bytes = 100};
    expect(ISOBIT_E_LIMIT, "max_cache_bytes is 100", iso_batch_create(&b, model, &o, NULL, &e), &e);
    o = (iso_batch_options){.size = sizeof o, .max_sequences = SIZE_MAX / 2};
    assert_int_not_equal(iso_batch_create(&b, model, &o, NULL, &e), ISOBIT_OK);
    o = (iso_batch_options){.size = sizeof o, .attention = 1};
    expect(ISOBIT_E_UNSUPPORTED, "attention", iso_batch_create(&b, decoder, &o, NULL, &e), &e);
    assert_null(b);

    o = (iso_batch_options){.size = sizeof o, .max_source = 6, .max_length = 9};
    ok(iso_batch_create(&b, model, &o, NULL, &e), &e);
    wish w = {.ids = {3, 4, 5}, .length = 3, .expected = 1};
    w.options = (iso_generate_options){
        .size = sizeof w.options, .beams = 1, .max_length = 9, .min_length = 9};
    ok(iso_batch_add(b, &number, w.ids, w.length, &w.options, &e), &e);
    ok(iso_batch_step(b, &unfinished, &e), &e);
    assert_int_equal(unfinished, 1);
    iso_generate_options g = w.options;
    expect(ISOBIT_E_DIM, "no tokens", iso_batch_add(b, NULL, ids, 0, &g, &e), &e);
    expect(ISOBIT_E_NULL, "NULL", iso_batch_add(b, NULL, NULL, 1, &g, &e), &e);
    expect(ISOBIT_E_LIMIT, "max_source", iso_batch_add(b, NULL, ids, 7, &g, &e), &e);
    g.max_length = 10;
    expect(ISOBIT_E_LIMIT, "up to 10 tokens", iso_batch_add(b, NULL, ids, 2, &g, &e), &e);
    g = w.options;
    g.beams = 2;
    expect(ISOBIT_E_OPTION, "2 beams", iso_batch_add(b, NULL, ids, 2, &g, &e), &e);
    g = w.options;
    g.attention = 1;
    expect(ISOBIT_E_OPTION, "attention", iso_batch_add(b, NULL, ids, 2, &g, &e), &e);
    g = w.options;
    g.sampling = ISOBIT_SAMPLING_ON;
    g.top_p = 7;
    expect(ISOBIT_E_OPTION, "top_p", iso_batch_add(b, NULL, ids, 2, &g, &e), &e);
    ids[1] = 1000000;
    expect(ISOBIT_E_RANGE, "1000000", iso_batch_add(b, NULL, ids, 2, &w.options, &e), &e);
    expect(ISOBIT_E_RANGE, "no sequence 1", iso_batch_cancel(b, 1, &e), &e);
    while (unfinished)
        ok(iso_batch_step(b, &unfinished, &e), &e);
    expect(ISOBIT_E_RANGE, "no sequence 1", iso_batch_cancel(b, 1, &e), &e);
    take_all(b, &w, model);
    assert_false(w.expected);
    expect(ISOBIT_E_RANGE, "no sequence 0", iso_batch_cancel(b, 0, &e), &e);
    iso_batch_free(b);
    iso_batch_free(NULL);

    ids[1] = 4;
    o = (iso_batch_options){.size = sizeof o, .max_length = 20};
    ok(iso_batch_create(&b, decoder, &o, NULL, &e), &e);
    g = (iso_generate_options){.size = sizeof g, .beams = 1, .max_new_tokens = 13};
    expect(ISOBIT_E_LIMIT, "with the prompt", iso_batch_add(b, NULL, ids, 8, &g, &e), &e);
    iso_batch_free(b);
    iso_model_free(model);
    iso_model_free(decoder);
    iso_model_free(encoder);
    (void)state;
}

/* Whatever allocation fails, the call can be made again, and all comes out as it should. */
static void one_without_memory(const iso_model *model) {
    iso_error e = {0};
    const iso_batch_options o = {.size = sizeof o, .max_sequences = 2, .max_length = 30};
    for (size_t k = 1, failed = 1; failed; k++) {
        wish wishes[3] = {{.length = 0}};
        iso_batch *b = NULL;
        iso_status status;
        failed = 0;
        allocations = 0;
        failing = k;
        while ((status = iso_batch_create(&b, model, &o, NULL, &e)) == ISOBIT_E_NOMEM)
            failed++;
        ok(status, &e);
        for (size_t i = 0; i < 3; i++) {
            wishes[i] = (wish){.ids = {5, 6, 7, (uint32_t)i}, .length = 4, .expected = 1};
            wishes[i].options = (iso_generate_options){
                .size = sizeof wishes[i].options, .beams = 1, .max_new_tokens = 4 + i};
            while ((status = iso_batch_add(b, NULL, wishes[i].ids, 4, &wishes[i].options, &e)) ==
                   ISOBIT_E_NOMEM)
                failed++;
            ok(status, &e);
        }
        for (size_t unfinished = 1; unfinished;) {
            status = iso_batch_step(b, &unfinished, &e);
            failed += status == ISOBIT_E_NOMEM;
            assert_true(!status || status == ISOBIT_E_NOMEM);
        }
        iso_generation *g;
        for (size_t number, got = 0; got < 3; got++) {
            while ((status = iso_batch_take(b, &g, &number, &e)) == ISOBIT_E_NOMEM)
                failed++;
            ok(status, &e);
            failing = 0;
            same(g, &wishes[number], model);
            iso_generation_free(g);
        }
        assert_true(failed <= 1);
        iso_batch_free(b);
    }
}

static void test_no_memory(void **state) {
    static const char *const names[] = {"t5", "gpt2"};
    for (size_t i = 0; i < 2; i++) {
        iso_model *model = load(names[i]);
        one_without_memory(model);
        iso_model_free(model);
    }
    failing = 0;
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_schedules),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests_name("batch", tests, NULL, NULL);
}
