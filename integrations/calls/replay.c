/* SPDX-License-Identifier: MIT
 *
 * Times calls of the BLAS that the environment names (LD_LIBRARY_PATH, LD_PRELOAD), as they stand
 * in lines of ISOBIT_VERBOSE: "sgemm m64n64k64:nt:lda512:ldb512:ldc64", and so sgemv and ssyrk.
 *
 * usage: replay MEGABYTES < LINES; prints for each line the seconds of a call whose operands lie
 * where the last call left them, and of one that takes them in turns from so much memory.
 */
#define _GNU_SOURCE
#include <isobit/cblas.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static __typeof__(cblas_sgemm) *gemm;
static __typeof__(cblas_sgemv) *gemv;
static __typeof__(cblas_ssyrk) *syrk;

struct call {
    enum { GEMM, GEMV, SYRK } routine;
    int m, n, k, ta, tb, lda, ldb, ldc; /* of GEMV n and k, increments are ldb and ldc */
    int upper;
    float alpha, beta; /* 1 or 2, 0 or 1 */
    size_t a, b, c;    /* floats */
};

static size_t floats_of(int count, int inc) { return (size_t)(count - 1) * (size_t)abs(inc) + 1; }

static int read_call(struct call *x, const char *line) {
    char routine[16], shape[200], ta, tb, half[8];
    memset(x, 0, sizeof *x);
    if (sscanf(line, "%15s %199s", routine, shape) != 2)
        return 0;
    x->alpha = strstr(shape, ":alpha") ? 2 : 1, x->beta = strstr(shape, ":beta") ? 1 : 0;
    if (strcmp(routine, "sgemm") == 0 &&
        sscanf(shape, "m%dn%dk%d:%c%c:lda%d:ldb%d:ldc%d", &x->m, &x->n, &x->k, &ta, &tb, &x->lda,
               &x->ldb, &x->ldc) == 8) {
        x->routine = GEMM, x->ta = ta == 't', x->tb = tb == 't';
        x->a = (size_t)(x->ta ? x->k : x->m) * (size_t)x->lda;
        x->b = (size_t)(x->tb ? x->n : x->k) * (size_t)x->ldb;
        x->c = (size_t)x->m * (size_t)x->ldc;
        return x->m > 0 && x->n > 0 && x->k > 0;
    }
    if (strcmp(routine, "sgemv") == 0 && sscanf(shape, "n%dk%d:%c:lda%d:incx%d:incy%d", &x->n,
                                                &x->k, &ta, &x->lda, &x->ldb, &x->ldc) == 6) {
        x->routine = GEMV, x->ta = ta == 't';
        x->a = (size_t)(x->ta ? x->k : x->n) * (size_t)x->lda;
        x->b = floats_of(x->k, x->ldb), x->c = floats_of(x->n, x->ldc);
        return x->n > 0 && x->k > 0;
    }
    if (strcmp(routine, "ssyrk") == 0 && sscanf(shape, "n%dk%d:%5[a-z]:%c:lda%d:ldc%d", &x->n,
                                                &x->k, half, &ta, &x->lda, &x->ldc) == 6) {
        x->routine = SYRK, x->ta = ta == 't', x->upper = half[0] == 'u';
        x->a = (size_t)(x->ta ? x->k : x->n) * (size_t)x->lda, x->c = (size_t)x->n * (size_t)x->ldc;
        return x->n > 0 && x->k > 0;
    }
    return 0;
}

static void call(const struct call *x, const float *a, const float *b, float *c) {
    const CBLAS_TRANSPOSE ta = x->ta ? CblasTrans : CblasNoTrans;
    const CBLAS_TRANSPOSE tb = x->tb ? CblasTrans : CblasNoTrans;
    if (x->routine == GEMM)
        gemm(CblasRowMajor, ta, tb, x->m, x->n, x->k, x->alpha, a, x->lda, b, x->ldb, x->beta, c,
             x->ldc);
    else if (x->routine == GEMV)
        gemv(CblasRowMajor, ta, x->ta ? x->k : x->n, x->ta ? x->n : x->k, x->alpha, a, x->lda, b,
             x->ldb, x->beta, c, x->ldc);
    else
        syrk(CblasRowMajor, x->upper ? CblasUpper : CblasLower, ta, x->n, x->k, x->alpha, a, x->lda,
             x->beta, c, x->ldc);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The best of some slots of half a millisecond or one call. */
static double seconds_of(const struct call *x, float *memory, size_t floats, size_t copies) {
    const size_t at_b = (x->a + 15) / 16 * 16, at_c = at_b + (x->b + 15) / 16 * 16;
    double best = 1e9;
    size_t calls = 1, turn = 0;
    for (int slot = 0; slot < 12; slot++) {
        const double begin = now();
        for (size_t i = 0; i < calls; i++) {
            float *p = memory + turn++ % copies * floats;
            call(x, p, p + at_b, p + at_c);
        }
        const double seconds = (now() - begin) / (double)calls;
        if (slot > 1 && seconds < best) /* the first ones may make threads */
            best = seconds;
        if (slot < 2)
            calls = 1 + (size_t)(5e-4 / seconds);
    }
    return best;
}

/* As the program would find it: that of a preloaded library comes first. */
static void find(void *pointer, const char *name) {
    void *symbol = dlsym(RTLD_DEFAULT, name);
    if (!symbol) {
        fprintf(stderr, "replay: no library with %s\n", name);
        exit(2);
    }
    memcpy(pointer, &symbol, sizeof symbol);
}

int main(int argc, char **argv) {
    const size_t room = argc == 2 ? (size_t)strtoul(argv[1], NULL, 10) << 18 : 0; /* floats */
    char line[300];
    if (!room) {
        fprintf(stderr, "usage: replay MEGABYTES < LINES\n");
        return 2;
    }
    (void)dlopen("libblas.so.3", RTLD_NOW | RTLD_GLOBAL);
    find(&gemm, "cblas_sgemm"), find(&gemv, "cblas_sgemv"), find(&syrk, "cblas_ssyrk");
    while (fgets(line, sizeof line, stdin)) {
        struct call x;
        if (!read_call(&x, line)) {
            fprintf(stderr, "replay: not a call: %s", line);
            return 2;
        }
        /* A page and a line more, so that copies do not lie in the same sets of a cache. */
        const size_t floats = (x.a + x.b + x.c + 48) / 16 * 16 + 1040;
        const size_t copies = room / floats > 1 ? room / floats : 1;
        float *memory = aligned_alloc(64, floats * copies * sizeof *memory);
        if (!memory) {
            fprintf(stderr, "replay: no memory\n");
            return 1;
        }
        for (size_t i = 0; i < floats * copies; i++)
            memory[i] = (float)(i % 17) - 8;
        const double hot = seconds_of(&x, memory, floats, 1);
        printf("%.9f %.9f\n", hot, seconds_of(&x, memory, floats, copies));
        free(memory);
    }
    return 0;
}
