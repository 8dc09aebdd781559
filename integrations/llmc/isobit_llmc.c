/* SPDX-License-Identifier: MIT
 *
 * The layers of llm.c's train_gpt2.c on isobit: all forward layers but the loss, and the backward
 * layers that are products. The other backward layers and the optimiser stay the program's own.
 * integrations/README.md says how to build it into the program.
 *
 * B sequences of T tokens, C channels, OC output channels, NH heads, V words, Vp words with
 * padding. All tensors are dense, the last index is contiguous.
 */
#include <math.h>

#define SHIM_NAME "isobit_llmc"
#define SHIM_FUNCTIONS(X)                                                                          \
    X(encoder_forward)                                                                             \
    X(layernorm_forward)                                                                           \
    X(matmul_forward)                                                                              \
    X(matmul_backward)                                                                             \
    X(attention_forward)                                                                           \
    X(attention_backward) X(gelu_forward) X(residual_forward) X(softmax_forward)
#include "../shim.h"

void encoder_forward(float *out, int *inp, float *wte, float *wpe, int B, int T, int C);
void layernorm_forward(float *out, float *mean, float *rstd, float *inp, float *weight, float *bias,
                       int B, int T, int C);
void matmul_forward(float *out, const float *inp, const float *weight, const float *bias, int B,
                    int T, int C, int OC);
void matmul_backward(float *dinp, float *dweight, float *dbias, const float *dout, const float *inp,
                     const float *weight, int B, int T, int C, int OC);
void attention_forward(float *out, float *preatt, float *att, float *inp, int B, int T, int C,
                       int NH);
void attention_backward(float *dinp, float *dpreatt, float *datt, float *dout, float *inp,
                        float *att, int B, int T, int C, int NH);
void gelu_forward(float *out, float *inp, int N);
void residual_forward(float *out, float *inp1, float *inp2, int N);
void softmax_forward(float *probs, float *logits, int B, int T, int V, int Vp);

/* fn(arg, i) for i < n, on the threads of the context. */
static void each(const iso_context *context, size_t n, void (*fn)(void *arg, size_t i), void *arg) {
    if (context && context->executor)
        context->executor->parallel_for(context->executor->user, n, fn, arg);
    else
        for (size_t i = 0; i < n; i++)
            fn(arg, i);
}

/* wte[inp] + wpe. The function is not told how many words wte has, so only ids below 0 are found
 * to be wrong. */
void encoder_forward(float *out, int *inp, float *wte, float *wpe, int B, int T, int C) {
    SHIM_CALLED(encoder_forward);
    const size_t t = (size_t)T, c = (size_t)C;
    for (size_t b = 0; b < (size_t)B; b++) {
        int last = 0;
        for (size_t i = b * t; i < (b + 1) * t; i++)
            last = inp[i] > last ? inp[i] : last;
        shim_check(iso_embed_f32(out + b * t * c, c, (const uint32_t *)inp + b * t, t, wte,
                                 (size_t)last + 1, c, 1.0f, wpe, NULL, t, shim_context(t * c)),
                   "encoder_forward");
    }
}

/*
 * The mean and 1 / sqrt(variance + eps) of rows, for the backward layer, in double and in an order
 * of their own: eight sums, each of every eighth element.
 */
struct moments {
    float *mean, *rstd;
    const float *x;
    size_t rows, n;
    double eps;
};
enum { LANES = 8, ROWS = 16 };

static double sum_of_lanes(const double s[LANES]) {
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

static void moments_of_rows(void *arg, size_t task) {
    const struct moments *m = arg;
    const size_t end = (task + 1) * ROWS < m->rows ? (task + 1) * ROWS : m->rows;
    for (size_t row = task * ROWS; row < end; row++) {
        const float *x = m->x + row * m->n;
        const size_t whole = m->n / LANES * LANES;
        double s[LANES] = {0};
        for (size_t i = 0; i < whole; i += LANES)
            for (size_t l = 0; l < LANES; l++)
                s[l] += x[i + l];
        for (size_t i = whole; i < m->n; i++)
            s[i - whole] += x[i];
        const double mean = sum_of_lanes(s) / (double)m->n;
        for (size_t l = 0; l < LANES; l++)
            s[l] = 0;
        for (size_t i = 0; i < whole; i += LANES)
            for (size_t l = 0; l < LANES; l++) {
                const double d = x[i + l] - mean;
                s[l] += d * d;
            }
        for (size_t i = whole; i < m->n; i++) {
            const double d = x[i] - mean;
            s[i - whole] += d * d;
        }
        m->mean[row] = (float)mean;
        m->rstd[row] = (float)(1 / sqrt(sum_of_lanes(s) / (double)m->n + m->eps));
    }
}

void layernorm_forward(float *out, float *mean, float *rstd, float *inp, float *weight, float *bias,
                       int B, int T, int C) {
    SHIM_CALLED(layernorm_forward);
    const size_t rows = (size_t)B * (size_t)T, c = (size_t)C;
    const iso_context *context = shim_context(rows * c);
    const iso_norm_options o = {.size = sizeof o, .gamma = weight, .beta = bias, .eps = 1e-5f};
    struct moments m = {.mean = mean, .rstd = rstd, .x = inp, .rows = rows, .n = c, .eps = o.eps};
    shim_check(iso_layernorm_f32(out, c, inp, c, rows, c, &o, context), "layernorm_forward");
    each(context, (rows + ROWS - 1) / ROWS, moments_of_rows, &m);
}

/* out = inp weight^T + bias; weight is [OC][C]. */
void matmul_forward(float *out, const float *inp, const float *weight, const float *bias, int B,
                    int T, int C, int OC) {
    SHIM_CALLED(matmul_forward);
    const size_t m = (size_t)B * (size_t)T, n = (size_t)OC, k = (size_t)C;
    const iso_gemm_options o = {.size = sizeof o, .trans_b = 1, .alpha = 1.0f, .bias = bias};
    shim_check(iso_gemm_f32(out, n, inp, k, weight, k, m, n, k, &o, shim_context(m * n * k)),
               "matmul_forward");
}

/* dinp += dout weight, dweight += dout^T inp, dbias += the sum of the rows of dout. */
void matmul_backward(float *dinp, float *dweight, float *dbias, const float *dout, const float *inp,
                     const float *weight, int B, int T, int C, int OC) {
    SHIM_CALLED(matmul_backward);
    const size_t rows = (size_t)B * (size_t)T, c = (size_t)C, oc = (size_t)OC;
    const iso_context *context = shim_context(rows * oc * c);
    const iso_gemm_options plain = {.size = sizeof plain, .alpha = 1.0f, .beta = 1.0f};
    const iso_gemm_options transposed = {
        .size = sizeof transposed, .trans_a = 1, .alpha = 1.0f, .beta = 1.0f};
    shim_check(iso_gemm_f32(dinp, c, dout, oc, weight, c, rows, c, oc, &plain, context),
               "matmul_backward: dinp");
    shim_check(iso_gemm_f32(dweight, c, dout, oc, inp, c, oc, c, rows, &transposed, context),
               "matmul_backward: dweight");
    if (!dbias)
        return;
    float *ones = malloc(rows * sizeof *ones);
    if (!ones && rows)
        shim_die("matmul_backward", "no memory");
    for (size_t i = 0; i < rows; i++)
        ones[i] = 1.0f;
    shim_check(iso_gemm_f32(dbias, oc, ones, rows, dout, oc, 1, oc, rows, &plain, context),
               "matmul_backward: dbias");
    free(ones);
}

/* Blocks of rows of the scaled scores, up to the last key that one of them sees. */
struct scores {
    float *to;
    const float *qkv;
    size_t T, C, NH, blocks;
    float scale;
};
enum { QUERIES = 64 };

static void scores_of_rows(void *arg, size_t task) {
    const struct scores *s = arg;
    const size_t hs = s->C / s->NH, first = task % s->blocks * QUERIES;
    const size_t h = task / s->blocks % s->NH, b = task / s->blocks / s->NH;
    const size_t rows = s->T - first < QUERIES ? s->T - first : QUERIES;
    const float *q = s->qkv + b * s->T * 3 * s->C + h * hs, *k = q + s->C;
    float *to = s->to + ((b * s->NH + h) * s->T + first) * s->T;
    const iso_gemm_options o = {.size = sizeof o, .trans_b = 1, .alpha = s->scale};
    shim_check(iso_gemm_f32(to, s->T, q + first * 3 * s->C, 3 * s->C, k, 3 * s->C, rows,
                            first + rows, hs, &o, NULL),
               "attention_forward: preatt");
}

/*
 * inp [B][T][q, k, v of C each], out [B][T][C], preatt and att [B][NH][T][T]. att is 0 beyond the
 * diagonal. preatt is defined up to the diagonal; beyond it some scores of keys that are not seen
 * are written, and others are left alone.
 */
void attention_forward(float *out, float *preatt, float *att, float *inp, int B, int T, int C,
                       int NH) {
    SHIM_CALLED(attention_forward);
    const size_t b = (size_t)B, t = (size_t)T, c = (size_t)C, h = (size_t)NH;
    if (h == 0 || b * t * c == 0)
        return;
    const size_t hs = c / h;
    const float scale = (float)(1 / sqrt((double)hs));
    const iso_context *context = shim_context(b * t * t * c);
    const iso_strides from = {.batch = t * 3 * c, .head = hs, .seq = 3 * c};
    const iso_attention_shape shape = {.B = b,
                                       .H = h,
                                       .Sq = t,
                                       .Sk = t,
                                       .dh = hs,
                                       .q = from,
                                       .k = from,
                                       .v = from,
                                       .o = {.batch = t * c, .head = hs, .seq = c}};
    const iso_attention_options o = {
        .size = sizeof o,
        .scale = scale,
        .causal = 1,
        .weights = att,
        .weights_strides = {.batch = h * t * t, .head = t * t, .seq = t}};
    shim_check(iso_attention_f32(out, inp, inp + c, inp + 2 * c, &shape, &o, context),
               "attention_forward");
    struct scores s = {.to = preatt,
                       .qkv = inp,
                       .T = t,
                       .C = c,
                       .NH = h,
                       .blocks = (t + QUERIES - 1) / QUERIES,
                       .scale = scale};
    each(context, b * h * s.blocks, scores_of_rows, &s);
}

/* A head of the backward layer. */
struct slopes {
    float *dinp, *dpreatt, *datt;
    const float *dout, *inp, *att;
    size_t T, C, NH;
    float scale;
};

static void slopes_of_head(void *arg, size_t task) {
    static const char function[] = "attention_backward";
    const struct slopes *s = arg;
    const size_t T = s->T, C = s->C, hs = C / s->NH, h = task % s->NH, b = task / s->NH;
    const float *q = s->inp + b * T * 3 * C + h * hs, *k = q + C, *v = k + C;
    float *dq = s->dinp + b * T * 3 * C + h * hs, *dk = dq + C, *dv = dk + C;
    const float *dout = s->dout + b * T * C + h * hs, *att = s->att + task * T * T;
    float *datt = s->datt + task * T * T, *dpreatt = s->dpreatt + task * T * T;
    float *slope = calloc(T * T, sizeof *slope); /* of the scores; 0 beyond the diagonal */
    if (!slope)
        shim_die(function, "no memory");

    iso_gemm_options o = {.size = sizeof o, .trans_b = 1, .alpha = 1.0f, .beta = 1.0f};
    for (size_t i = 0; i < T; i += QUERIES) { /* up to the last key that one of the rows sees */
        const size_t rows = T - i < QUERIES ? T - i : QUERIES;
        shim_check(
            iso_gemm_f32(datt + i * T, T, dout + i * C, C, v, 3 * C, rows, i + rows, hs, &o, NULL),
            function);
    }
    for (size_t i = 0; i < T; i++) {
        const float *p = att + i * T, *dp = datt + i * T;
        double lanes[LANES] = {0};
        for (size_t j = 0; j <= i; j++)
            lanes[j % LANES] += (double)p[j] * dp[j];
        const double sum = sum_of_lanes(lanes);
        for (size_t j = 0; j <= i; j++) {
            slope[i * T + j] = (float)(p[j] * (dp[j] - sum));
            dpreatt[i * T + j] += slope[i * T + j];
        }
    }
    o.trans_b = 0, o.trans_a = 1;
    shim_check(iso_gemm_f32(dv, 3 * C, att, T, dout, C, T, hs, T, &o, NULL), function);
    o.alpha = s->scale;
    shim_check(iso_gemm_f32(dk, 3 * C, slope, T, q, 3 * C, T, hs, T, &o, NULL), function);
    o.trans_a = 0;
    shim_check(iso_gemm_f32(dq, 3 * C, slope, T, k, 3 * C, T, hs, T, &o, NULL), function);
    free(slope);
}

/*
 * Adds to dinp, dpreatt and datt what follows from dout; their forms are as those of
 * attention_forward. The last two are defined up to the diagonal, as there. The slope of the scores
 * begins at 0 in each call, so what was in dpreatt before does not enter dinp; the program clears
 * it before each call.
 */
void attention_backward(float *dinp, float *dpreatt, float *datt, float *dout, float *inp,
                        float *att, int B, int T, int C, int NH) {
    SHIM_CALLED(attention_backward);
    const size_t b = (size_t)B, t = (size_t)T, c = (size_t)C, h = (size_t)NH;
    if (h == 0 || b * t * c == 0)
        return;
    struct slopes s = {.dinp = dinp,
                       .dpreatt = dpreatt,
                       .datt = datt,
                       .dout = dout,
                       .inp = inp,
                       .att = att,
                       .T = t,
                       .C = c,
                       .NH = h,
                       .scale = (float)(1 / sqrt((double)(c / h)))};
    each(shim_context(b * t * t * c), b * h, slopes_of_head, &s);
}

/* y = act(x) + residual over n elements: rows of 1024, which threads share, and the rest. */
static void elements(float *y, const float *x, size_t n, iso_activation act, const float *residual,
                     const char *function) {
    enum { ROW = 1024 };
    iso_eltwise_options o = {.size = sizeof o, .act = act, .residual = residual, .ldr = ROW};
    const size_t whole = n / ROW * ROW;
    shim_check(iso_eltwise_f32(y, ROW, x, ROW, n / ROW, ROW, &o, shim_context(n)), function);
    if (o.residual)
        o.residual += whole;
    shim_check(iso_eltwise_f32(y + whole, ROW, x + whole, ROW, 1, n - whole, &o, NULL), function);
}

void gelu_forward(float *out, float *inp, int N) {
    SHIM_CALLED(gelu_forward);
    elements(out, inp, (size_t)N, ISOBIT_ACT_GELU_TANH, NULL, "gelu_forward");
}

void residual_forward(float *out, float *inp1, float *inp2, int N) {
    SHIM_CALLED(residual_forward);
    elements(out, inp1, (size_t)N, ISOBIT_ACT_NONE, inp2, "residual_forward");
}

/* The first V of Vp columns take part, the others are 0. */
void softmax_forward(float *probs, float *logits, int B, int T, int V, int Vp) {
    SHIM_CALLED(softmax_forward);
    const size_t rows = (size_t)B * (size_t)T, v = (size_t)V, vp = (size_t)Vp;
    shim_check(iso_softmax_f32(probs, vp, logits, vp, rows, v, NULL, shim_context(rows * v)),
               "softmax_forward");
    for (size_t i = 0; vp > v && i < rows; i++)
        memset(probs + i * vp + v, 0, (vp - v) * sizeof *probs);
}
