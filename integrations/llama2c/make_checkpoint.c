/* SPDX-License-Identifier: MIT
 *
 * make_checkpoint FILE TOKENIZER DIM HIDDEN LAYERS HEADS KV_HEADS VOCABULARY TOKENS: a Llama 2 with
 * random weights in the format of llama2.c (seven ints, then the tensors), and a tokenizer for it
 * whose words are w0, w1, w2 ...
 */
#include "../driver.h"

#include <math.h>

static FILE *file;
static uint64_t state = 7;

static void die(void) {
    perror("make_checkpoint");
    exit(EXIT_FAILURE);
}

/* n uniform numbers around `middle` with the given standard deviation. */
static void tensor(size_t n, double middle, double deviation) {
    enum { PART = 4096 };
    float part[PART];
    for (size_t done = 0; done < n;) {
        const size_t count = n - done < PART ? n - done : PART;
        for (size_t i = 0; i < count; i++) {
            const double u = (double)(driver_random(&state) >> 40) / (1 << 23) - 1; /* [-1, 1) */
            part[i] = (float)(middle + u * 1.7320508 * deviation);
        }
        if (fwrite(part, sizeof *part, count, file) != count)
            die();
        done += count;
    }
}

static void write_tokenizer(const char *path, size_t words) {
    FILE *to = fopen(path, "wb");
    const int32_t longest = 16;
    if (!to || fwrite(&longest, sizeof longest, 1, to) != 1)
        die();
    for (size_t i = 0; i < words; i++) {
        char word[24];
        const int32_t bytes = snprintf(word, sizeof word, " w%zu", i);
        const float score = -(float)i;
        if (fwrite(&score, sizeof score, 1, to) != 1 || fwrite(&bytes, sizeof bytes, 1, to) != 1 ||
            fwrite(word, (size_t)bytes, 1, to) != 1)
            die();
    }
    if (fclose(to) != 0)
        die();
}

int main(int argc, char **argv) {
    size_t p[7] = {0};
    for (int i = 3; i < argc && i < 10; i++)
        p[i - 3] = strtoul(argv[i], NULL, 10);
    const size_t dim = p[0], hidden = p[1], layers = p[2], heads = p[3], kv_heads = p[4];
    const size_t words = p[5], tokens = p[6];
    if (argc != 10 || !dim || !hidden || !layers || !heads || dim % heads != 0 || !kv_heads ||
        heads % kv_heads != 0 || words < 3 || !tokens) {
        fprintf(stderr, "usage: make_checkpoint FILE TOKENIZER DIM HIDDEN LAYERS HEADS KV_HEADS "
                        "VOCABULARY TOKENS\n");
        return 2;
    }
    file = fopen(argv[1], "wb");
    const int32_t header[7] = {(int32_t)dim,      (int32_t)hidden, (int32_t)layers, (int32_t)heads,
                               (int32_t)kv_heads, (int32_t)words,  (int32_t)tokens};
    if (!file || fwrite(header, sizeof header, 1, file) != 1)
        die();
    const size_t kv = dim / heads * kv_heads;
    const double d = 1 / sqrt((double)dim);
    tensor(words * dim, 0, d); /* the embedding, also the classifier */
    tensor(layers * dim, 1, 0.1);
    tensor(layers * dim * dim, 0, d);
    tensor(layers * dim * kv, 0, d);
    tensor(layers * dim * kv, 0, d);
    tensor(layers * dim * dim, 0, d);
    tensor(layers * dim, 1, 0.1);
    tensor(layers * dim * hidden, 0, d);
    tensor(layers * dim * hidden, 0, 1 / sqrt((double)hidden));
    tensor(layers * dim * hidden, 0, d);
    tensor(dim, 1, 0.1);
    tensor(tokens * (dim / heads / 2) * 2, 0, 0); /* tables that are no longer used */
    if (fclose(file) != 0)
        die();
    write_tokenizer(argv[2], words);
    return 0;
}
