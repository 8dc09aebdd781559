/* SPDX-License-Identifier: MIT
 *
 * driver CHECKPOINT STEPS [LOGITS]: runs llama2.c's run.c from its first token on, the likeliest
 * token each time, and prints the tokens and a hash of all logits. Writes the logits to the file
 * LOGITS. Compile it with -DTESTING and -DPROGRAM='"FOLDER/run.c"'.
 */
#include "../driver.h"

#include PROGRAM

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: driver CHECKPOINT STEPS [LOGITS]\n");
        return 2;
    }
    Transformer transformer;
    build_transformer(&transformer, argv[1]);
    const size_t words = (size_t)transformer.config.vocab_size;
    int steps = atoi(argv[2]);
    if (steps > transformer.config.seq_len)
        steps = transformer.config.seq_len;
    float *all = malloc((size_t)steps * words * sizeof *all);
    if (!all) {
        perror("driver");
        return 1;
    }
    int token = 1;
    printf("tokens");
    for (int pos = 0; pos < steps; pos++) {
        float *logits = forward(&transformer, token, pos);
        memcpy(all + (size_t)pos * words, logits, words * sizeof *logits);
        token = sample_argmax(logits, (int)words);
        printf(" %d", token);
    }
    printf("\nhash %016llx\n",
           (unsigned long long)driver_hash(DRIVER_HASH, all, (size_t)steps * words));
    if (argc > 3)
        driver_write(argv[3], all, (size_t)steps * words);
    free(all);
    free_transformer(&transformer);
    return 0;
}
