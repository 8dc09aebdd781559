/* SPDX-License-Identifier: MIT
 *
 * make_checkpoint FILE LAYERS HEADS CHANNELS TOKENS VOCABULARY: a GPT-2 with random weights in the
 * format of llm.c (version 3, float): 256 ints, then the tensors one after the other.
 */
#include "../driver.h"

#include <math.h>

static FILE *file;
static uint64_t state = 42;

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
        if (fwrite(part, sizeof *part, count, file) != count) {
            perror("make_checkpoint");
            exit(EXIT_FAILURE);
        }
        done += count;
    }
}

int main(int argc, char **argv) {
    if (argc != 7) {
        fprintf(stderr, "usage: make_checkpoint FILE LAYERS HEADS CHANNELS TOKENS VOCABULARY\n");
        return 2;
    }
    const size_t L = strtoul(argv[2], NULL, 10), NH = strtoul(argv[3], NULL, 10);
    const size_t C = strtoul(argv[4], NULL, 10), T = strtoul(argv[5], NULL, 10);
    const size_t V = strtoul(argv[6], NULL, 10), Vp = (V + 127) / 128 * 128;
    if (!L || !NH || !T || !V || C % NH != 0 || !(file = fopen(argv[1], "wb"))) {
        fprintf(stderr, "make_checkpoint: bad sizes, or %s cannot be written\n", argv[1]);
        return 1;
    }
    const int32_t header[256] = {20240326,   3,           (int32_t)T, (int32_t)V,
                                 (int32_t)L, (int32_t)NH, (int32_t)C, (int32_t)Vp};
    if (fwrite(header, sizeof header, 1, file) != 1)
        return 1;
    const double d = 0.02, project = d / sqrt(2 * (double)L); /* as GPT-2 begins */
    tensor(V * C, 0, d);
    tensor((Vp - V) * C, 0, 0);
    tensor(T * C, 0, d);
    tensor(L * C, 1, 0.1); /* ln1 */
    tensor(L * C, 0, 0.1);
    tensor(L * 3 * C * C, 0, d);
    tensor(L * 3 * C, 0, d);
    tensor(L * C * C, 0, project);
    tensor(L * C, 0, d);
    tensor(L * C, 1, 0.1); /* ln2 */
    tensor(L * C, 0, 0.1);
    tensor(L * 4 * C * C, 0, d);
    tensor(L * 4 * C, 0, d);
    tensor(L * C * 4 * C, 0, project);
    tensor(L * C, 0, d);
    tensor(C, 1, 0.1); /* last norm */
    tensor(C, 0, 0.1);
    if (fclose(file) != 0) {
        perror("make_checkpoint");
        return 1;
    }
    return 0;
}
