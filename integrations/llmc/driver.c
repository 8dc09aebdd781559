/* SPDX-License-Identifier: MIT
 *
 * driver CHECKPOINT B T STEPS [LOGITS]: trains the model of llm.c's train_gpt2.c on one batch of
 * random tokens, with its own functions as its main calls them, and prints the losses, a hash of
 * all logits, losses and attention weights, and the shortest times. Writes the logits of the first
 * step, before any training, to the file LOGITS. Compile it with -DTESTING and
 * -DPROGRAM='"FOLDER/train_gpt2.c"'.
 */
#include "../driver.h"

#include PROGRAM

int main(int argc, char **argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: driver CHECKPOINT B T STEPS [LOGITS]\n");
        return 2;
    }
    const size_t B = strtoul(argv[2], NULL, 10), T = strtoul(argv[3], NULL, 10);
    const int steps = atoi(argv[4]);
    GPT2 model;
    gpt2_build_from_checkpoint(&model, argv[1]);
    const size_t V = (size_t)model.config.vocab_size, Vp = (size_t)model.config.padded_vocab_size;
    int *tokens = malloc((B * T + 1) * sizeof *tokens);
    uint64_t random = 1;
    for (size_t i = 0; i <= B * T; i++)
        tokens[i] = (int)(driver_random(&random) % V);

    uint64_t hash = DRIVER_HASH;
    double forward = 1e30, whole = 1e30;
    for (int step = 0; step < steps; step++) {
        const double start = driver_seconds();
        gpt2_forward(&model, tokens, tokens + 1, B, T);
        const double middle = driver_seconds();
        gpt2_zero_grad(&model);
        gpt2_backward(&model);
        gpt2_update(&model, 1e-4f, 0.9f, 0.999f, 1e-8f, 0.0f, step + 1);
        const double end = driver_seconds();
        forward = middle - start < forward ? middle - start : forward;
        whole = end - start < whole ? end - start : whole;
        if (step == 0 && argc > 5)
            driver_write(argv[5], model.acts.logits, B * T * Vp);
        hash = driver_hash(hash, model.acts.logits, B * T * Vp);
        hash = driver_hash(hash, model.acts.losses, B * T);
        hash = driver_hash(hash, model.acts.att, model.act_sizes[7]);
        printf("loss %d %.9g\n", step, (double)model.mean_loss);
    }
    hash = driver_hash(hash, model.params_memory, model.num_parameters);
    printf("hash %016llx\n", (unsigned long long)hash);
    printf("forward_ms %.3f\n", 1e3 * forward);
    printf("step_ms %.3f\n", 1e3 * whole);
    gpt2_free(&model);
    free(tokens);
    return 0;
}
