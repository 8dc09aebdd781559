/* SPDX-License-Identifier: MIT
 *
 * usage: prompt MODEL TOKENS THREADS RUNS [LOGITS]
 *
 * Processes a prompt of so many tokens in one batch, through llama.h. Prints one line of JSON: the
 * best time of the runs in seconds, and a hash of the logits of all tokens; LOGITS is a file that
 * these are written to as they are. The first run, which is not timed, computes all logits; the
 * others compute those of the last token, as a program does that goes on to generate. */
#include <llama.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void quiet(enum ggml_log_level level, const char *text, void *user) {
    (void)user;
    if (level == GGML_LOG_LEVEL_ERROR)
        fputs(text, stderr);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint64_t hash_of(const unsigned char *bytes, size_t size) { /* FNV-1a */
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

static int fail(const char *what) {
    fprintf(stderr, "prompt: %s\n", what);
    return 1;
}

int main(int argc, char **argv) {
    const int tokens = argc > 4 ? atoi(argv[2]) : 0;
    const int threads = argc > 4 ? atoi(argv[3]) : 0;
    const int runs = argc > 4 ? atoi(argv[4]) : 0;
    if (argc > 6 || tokens < 1 || threads < 1 || runs < 0)
        return fail("usage: prompt MODEL TOKENS THREADS RUNS [LOGITS]");
    llama_log_set(quiet, NULL);
    llama_backend_init();
    struct llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
    if (model == NULL)
        return fail("the model can't be read");
    struct llama_context_params options = llama_context_default_params();
    options.n_ctx = (uint32_t)tokens;
    options.n_batch = (uint32_t)tokens;
    options.n_threads = threads;
    options.n_threads_batch = threads;
    struct llama_context *context = llama_init_from_model(model, options);
    if (context == NULL)
        return fail("no context");
    const int words = llama_vocab_n_tokens(llama_model_get_vocab(model));

    struct llama_batch batch = llama_batch_init(tokens, 0, 1);
    batch.n_tokens = tokens;
    uint32_t state = 1;
    for (int i = 0; i < tokens; i++) {
        state = state * 1664525u + 1013904223u;
        batch.token[i] = (llama_token)((state >> 8) % (uint32_t)words);
        batch.pos[i] = i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = 1;
    }
    if (llama_decode(context, batch) != 0)
        return fail("decode failed");
    const float *logits = llama_get_logits(context);
    const size_t count = (size_t)tokens * (size_t)words;
    const uint64_t hash = hash_of((const unsigned char *)logits, count * sizeof *logits);
    if (argc == 6) {
        FILE *file = fopen(argv[5], "wb");
        if (file == NULL || fwrite(logits, sizeof *logits, count, file) != count ||
            fclose(file) != 0)
            return fail("the logits can't be written");
    }

    double best = -1;
    for (int i = 0; i < tokens; i++)
        batch.logits[i] = i == tokens - 1;
    for (int run = 0; run < runs; run++) {
        llama_memory_clear(llama_get_memory(context), true);
        const double start = seconds();
        if (llama_decode(context, batch) != 0)
            return fail("decode failed");
        llama_synchronize(context);
        const double time = seconds() - start;
        if (best < 0 || time < best)
            best = time;
    }
    printf("{\"best\": %.9f, \"hash\": \"%016llx\"}\n", best, (unsigned long long)hash);
    llama_batch_free(batch);
    llama_free(context);
    llama_model_free(model);
    llama_backend_free();
    return 0;
}
