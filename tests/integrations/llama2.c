/* SPDX-License-Identifier: MIT
 *
 * Functions as those of llama2.c, called as it does: weights at odd places of a file, one row at a
 * time, a norm in place, and softmax within a parallel loop of the program.
 */
#include "program.h"

#include <pthread.h>

void matmul(float *xout, float *x, float *w, int n, int d);
void softmax(float *x, int size);
void rmsnorm(float *o, float *x, float *weight, int size);

/* The program's own functions. */

void matmul(float *xout, float *x, float *w, int n, int d) {
    own_calls++;
    for (int i = 0; i < d; i++) {
        double sum = 0;
        for (int j = 0; j < n; j++)
            sum += (double)w[i * n + j] * (double)x[j];
        xout[i] = (float)sum;
    }
}

void softmax(float *x, int size) {
    own_calls++;
    double sum = 0;
    for (int i = 0; i < size; i++)
        sum += exp((double)x[i]);
    for (int i = 0; i < size; i++)
        x[i] = (float)(exp((double)x[i]) / sum);
}

void rmsnorm(float *o, float *x, float *weight, int size) {
    own_calls++;
    double squares = 0;
    for (int i = 0; i < size; i++)
        squares += (double)x[i] * (double)x[i];
    for (int i = 0; i < size; i++)
        o[i] = (float)((double)weight[i] * (double)x[i] / sqrt(squares / size + 1e-5));
}

/* What they should give; bounds as in gpt2.c. */

static void product(float *to, float *x, float *w, int n, int d) {
    matmul(to, x, w, n, d);
    for (int i = 0; i < d; i++) {
        double sum = 0, size = 0;
        for (int j = 0; j < n; j++) {
            const double term = (double)w[i * n + j] * (double)x[j];
            sum += term, size += fabs(term);
        }
        close_to("matmul", i, to[i], sum, (n + 2) * ULP * size);
    }
    add_to_hash(to, (size_t)d);
}

static void norm(float *to, float *x, float *weight, int n) {
    float *before = memory((size_t)n, sizeof *before); /* `to` may be x */
    memcpy(before, x, (size_t)n * sizeof *x);
    rmsnorm(to, x, weight, n);
    double squares = 0;
    for (int i = 0; i < n; i++)
        squares += (double)before[i] * (double)before[i];
    for (int i = 0; i < n; i++) {
        const double expect = (double)weight[i] * (double)before[i] / sqrt(squares / n + 1e-5);
        close_to("rmsnorm", i, to[i], expect, 16 * ULP * fabs(expect));
    }
    add_to_hash(to, (size_t)n);
    free(before);
}

/* Heads in threads of the program. */
enum { HEADS = 6, ROOM = 130 };
static float scores[HEADS][ROOM];
static int seen;

static void heads(int first, int step) {
    for (int h = first; h < HEADS; h += step)
        softmax(scores[h], seen);
}

#ifndef _OPENMP
static void *head_thread(void *arg) {
    heads(*(int *)arg, 2);
    return NULL;
}
#endif

static void attend(void) {
    float *before = numbers(HEADS * ROOM, 4);
    for (int h = 0; h < HEADS; h++)
        memcpy(scores[h], before + h * ROOM, sizeof scores[h]);
#ifdef _OPENMP
#pragma omp parallel for
    for (int h = 0; h < HEADS; h++)
        heads(h, HEADS);
#else
    static int second = 1;
    pthread_t thread;
    const int alone = pthread_create(&thread, NULL, head_thread, &second) != 0;
    heads(0, 2);
    if (alone)
        heads(1, 2);
    else
        pthread_join(thread, NULL);
#endif
    for (int h = 0; h < HEADS; h++) {
        const float *x = before + h * ROOM;
        double sum = 0;
        for (int i = 0; i < seen; i++)
            sum += exp((double)x[i]);
        for (int i = 0; i < ROOM; i++) {
            const double expect = i < seen ? exp((double)x[i]) / sum : (double)x[i];
            close_to("softmax", h * ROOM + i, scores[h][i], expect,
                     i < seen ? 48 * ULP * expect : 0);
        }
        add_to_hash(scores[h], ROOM);
    }
    free(before);
}

static void program(void) {
    enum { DIM = 120, HIDDEN = 331, WORDS = 8003 }; /* the last product is for threads */
    /* Seven ints lie before the weights, so that they are aligned to four bytes only. */
    float *file = numbers(7 + DIM * HIDDEN * 2 + DIM * DIM + WORDS * DIM + 2 * DIM, 0.3);
    float *weight = file + 7, *wq = weight + DIM, *w1 = wq + DIM * DIM, *w2 = w1 + DIM * HIDDEN;
    float *last = w2 + DIM * HIDDEN, *wcls = last + DIM;
    float *x = numbers(DIM, 1), xb[DIM], hb[HIDDEN], q[DIM];
    float *logits = memory(WORDS, sizeof *logits);
    for (seen = 1; seen <= ROOM; seen += 43) {
        norm(xb, x, weight, DIM);
        product(q, xb, wq, DIM, DIM);
        attend();
        product(hb, q, w1, DIM, HIDDEN);
        product(x, hb, w2, HIDDEN, DIM);
        norm(x, x, last, DIM);
        product(logits, x, wcls, DIM, WORDS);
    }
    free(file);
    free(x);
    free(logits);
}

int main(int argc, char **argv) {
    (void)argv;
    return run_on_sets(argc, program);
}
