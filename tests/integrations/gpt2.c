/* SPDX-License-Identifier: MIT
 *
 * A layer of a GPT-2 and its ends, and backward products, with functions as those of llm.c:
 * dense tensors, queries, keys and values side by side, a matrix of attention weights, words with
 * padding. Each result is compared with a true value computed from what went in.
 */
#include "program.h"

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

/* The program's own functions. */

void encoder_forward(float *out, int *inp, float *wte, float *wpe, int B, int T, int C) {
    own_calls++;
    for (int i = 0; i < B * T * C; i++)
        out[i] = wte[inp[i / C] * C + i % C] + wpe[i / C % T * C + i % C];
}

void layernorm_forward(float *out, float *mean, float *rstd, float *inp, float *weight, float *bias,
                       int B, int T, int C) {
    own_calls++;
    for (int row = 0; row < B * T; row++) {
        const float *x = inp + row * C;
        double sum = 0, squares = 0;
        for (int i = 0; i < C; i++)
            sum += (double)x[i];
        for (int i = 0; i < C; i++)
            squares += ((double)x[i] - sum / C) * ((double)x[i] - sum / C);
        mean[row] = (float)(sum / C);
        rstd[row] = (float)(1 / sqrt(squares / C + 1e-5));
        for (int i = 0; i < C; i++)
            out[row * C + i] = (x[i] - mean[row]) * rstd[row] * weight[i] + bias[i];
    }
}

void matmul_forward(float *out, const float *inp, const float *weight, const float *bias, int B,
                    int T, int C, int OC) {
    own_calls++;
    for (int row = 0; row < B * T; row++)
        for (int o = 0; o < OC; o++) {
            double sum = bias ? (double)bias[o] : 0;
            for (int i = 0; i < C; i++)
                sum += (double)inp[row * C + i] * (double)weight[o * C + i];
            out[row * OC + o] = (float)sum;
        }
}

void matmul_backward(float *dinp, float *dweight, float *dbias, const float *dout, const float *inp,
                     const float *weight, int B, int T, int C, int OC) {
    own_calls++;
    for (int row = 0; row < B * T; row++)
        for (int o = 0; o < OC; o++) {
            const float d = dout[row * OC + o];
            if (dbias)
                dbias[o] += d;
            for (int i = 0; i < C; i++) {
                dinp[row * C + i] += weight[o * C + i] * d;
                dweight[o * C + i] += inp[row * C + i] * d;
            }
        }
}

void attention_forward(float *out, float *preatt, float *att, float *inp, int B, int T, int C,
                       int NH) {
    own_calls++;
    const int hs = C / NH;
    for (int row = 0; row < B * NH * T; row++) {
        const int t = row % T, h = row / T % NH, b = row / T / NH;
        const float *q = inp + (b * T + t) * 3 * C + h * hs;
        float *to = out + (b * T + t) * C + h * hs;
        double sum = 0;
        for (int j = 0; j <= t; j++) {
            const float *k = inp + (b * T + j) * 3 * C + C + h * hs;
            double score = 0;
            for (int i = 0; i < hs; i++)
                score += (double)q[i] * (double)k[i];
            preatt[row * T + j] = (float)(score / sqrt(hs));
            sum += exp(score / sqrt(hs));
        }
        for (int j = 0; j < T; j++)
            att[row * T + j] = j <= t ? (float)(exp((double)preatt[row * T + j]) / sum) : 0;
        for (int i = 0; i < hs; i++) {
            double value = 0;
            for (int j = 0; j <= t; j++)
                value += (double)att[row * T + j] *
                         (double)inp[(b * T + j) * 3 * C + 2 * C + h * hs + i];
            to[i] = (float)value;
        }
    }
}

void attention_backward(float *dinp, float *dpreatt, float *datt, float *dout, float *inp,
                        float *att, int B, int T, int C, int NH) {
    own_calls++;
    const int hs = C / NH;
    for (int row = 0; row < B * NH * T; row++) {
        const int t = row % T, h = row / T % NH, b = row / T / NH,
                  at = (b * T + t) * 3 * C + h * hs;
        const float *d = dout + (b * T + t) * C + h * hs, *p = att + row * T;
        double sum = 0;
        for (int j = 0; j <= t; j++) {
            const int key = (b * T + j) * 3 * C + C + h * hs;
            for (int i = 0; i < hs; i++) {
                datt[row * T + j] += inp[key + C + i] * d[i];
                dinp[key + C + i] += p[j] * d[i];
            }
            sum += (double)p[j] * (double)datt[row * T + j];
        }
        for (int j = 0; j <= t; j++) {
            const int key = (b * T + j) * 3 * C + C + h * hs;
            const float slope = p[j] * (datt[row * T + j] - (float)sum) / sqrtf((float)hs);
            dpreatt[row * T + j] += slope * sqrtf((float)hs);
            for (int i = 0; i < hs; i++) {
                dinp[at + i] += slope * inp[key + i];
                dinp[key + i] += slope * inp[at + i];
            }
        }
    }
}

static double gelu(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

void gelu_forward(float *out, float *inp, int N) {
    own_calls++;
    for (int i = 0; i < N; i++)
        out[i] = (float)gelu((double)inp[i]);
}

void residual_forward(float *out, float *inp1, float *inp2, int N) {
    own_calls++;
    for (int i = 0; i < N; i++)
        out[i] = inp1[i] + inp2[i];
}

void softmax_forward(float *probs, float *logits, int B, int T, int V, int Vp) {
    own_calls++;
    for (int row = 0; row < B * T; row++) {
        double sum = 0;
        for (int i = 0; i < V; i++)
            sum += exp((double)logits[row * Vp + i]);
        for (int i = 0; i < Vp; i++)
            probs[row * Vp + i] = i < V ? (float)(exp((double)logits[row * Vp + i]) / sum) : 0;
    }
}

/* What they should give. Bounds: a sum of n terms is off by n roundings of the sum of their
 * absolute values at most; the other factors are small and generous. */

static void check_layernorm(const float *out, const float *mean, const float *rstd,
                            const float *inp, const float *weight, const float *bias, int rows,
                            int C) {
    for (int row = 0; row < rows; row++) {
        const float *x = inp + row * C;
        double sum = 0, squares = 0, size = 0;
        for (int i = 0; i < C; i++)
            sum += (double)x[i], size += fabs((double)x[i]);
        const double m = sum / C;
        for (int i = 0; i < C; i++)
            squares += ((double)x[i] - m) * ((double)x[i] - m);
        const double r = 1 / sqrt(squares / C + 1e-5);
        close_to("mean", row, mean[row], m, 2 * ULP * fabs(m) + 1e-12 * size / C);
        close_to("rstd", row, rstd[row], r, 2 * ULP * r);
        for (int i = 0; i < C; i++)
            close_to("layernorm", row * C + i, out[row * C + i],
                     ((double)x[i] - m) * r * (double)weight[i] + (double)bias[i],
                     16 * ULP *
                         (fabs((double)weight[i]) * r * (fabs((double)x[i]) + size / C) +
                          fabs((double)bias[i])));
    }
}

/* out = start + a b, element (i, j) of a at a[i * ai + j * aj] and so on; out is rows x cols. */
static void check_product(const char *what, const float *out, const float *start, int start_step,
                          const float *a, int ai, int aj, const float *b, int bi, int bj, int rows,
                          int cols, int n) {
    for (int row = 0; row < rows; row++)
        for (int col = 0; col < cols; col++) {
            double sum = start ? (double)start[row * start_step + col] : 0, size = fabs(sum);
            for (int i = 0; i < n; i++) {
                const double product = (double)a[row * ai + i * aj] * (double)b[i * bi + col * bj];
                sum += product;
                size += fabs(product);
            }
            close_to(what, row * cols + col, out[row * cols + col], sum, (n + 2) * ULP * size);
        }
}

static void check_attention(const float *out, const float *preatt, const float *att,
                            const float *inp, int B, int T, int C, int NH) {
    const int hs = C / NH;
    double *p = memory((size_t)T, sizeof *p);
    for (int row = 0; row < B * NH * T; row++) {
        const int t = row % T, h = row / T % NH, b = row / T / NH;
        const float *q = inp + (b * T + t) * 3 * C + h * hs;
        double total = 0, off = 0;
        for (int j = 0; j <= t; j++) {
            double score = 0, size = 0;
            for (int i = 0; i < hs; i++) {
                const double product =
                    (double)q[i] * (double)inp[(b * T + j) * 3 * C + C + h * hs + i];
                score += product, size += fabs(product);
            }
            const double bound = (hs + 3) * ULP * size / sqrt(hs);
            close_to("preatt", row * T + j, preatt[row * T + j], score / sqrt(hs), bound);
            off = fmax(off, bound);
            p[j] = exp(score / sqrt(hs));
            total += p[j];
        }
        off = 2 * off + (T + 16) * ULP;
        for (int j = 0; j < T; j++) {
            const double expect = j <= t ? p[j] / total : 0;
            close_to("att", row * T + j, att[row * T + j], expect, off * expect);
        }
        for (int i = 0; i < hs; i++) {
            double value = 0, size = 0;
            for (int j = 0; j <= t; j++) {
                const double v = (double)inp[(b * T + j) * 3 * C + 2 * C + h * hs + i];
                value += p[j] / total * v, size += p[j] / total * fabs(v);
            }
            const int at = (b * T + t) * C + h * hs + i;
            close_to("attention", at, out[at], value, (off + T * ULP) * size);
        }
    }
    free(p);
}

static void check_softmax(const float *probs, const float *logits, int rows, int V, int Vp) {
    for (int row = 0; row < rows; row++) {
        const float *x = logits + row * Vp;
        double total = 0, largest = 0;
        for (int i = 0; i < V; i++)
            total += exp((double)x[i]), largest = fmax(largest, fabs((double)x[i]));
        for (int i = 0; i < Vp; i++) {
            const double expect = i < V ? exp((double)x[i]) / total : 0;
            close_to("probs", row * Vp + i, probs[row * Vp + i], expect,
                     (4 * largest + 32) * ULP * expect);
        }
    }
}

enum { B = 3, T = 76, C = 72, NH = 3, V = 301, Vp = 320 };

static float *block; /* of activations and what they are made of, in one piece as in llm.c */
static size_t used;

static float *part(int n) {
    used += (size_t)n;
    return block + used - (size_t)n;
}

static void linear(float *out, const float *inp, int in, int to, int with_bias) {
    float *weight = numbers((size_t)in * (size_t)to, 0.2), *bias = numbers((size_t)to, 0.5);
    matmul_forward(out, inp, weight, with_bias ? bias : NULL, B, T, in, to);
    check_product("matmul", out, with_bias ? bias : NULL, 0, inp, in, 1, weight, 1, in, B * T, to,
                  in);
    free(weight);
    free(bias);
}

static void norm(float *out, float *inp) {
    float *weight = numbers(C, 1.5), *bias = numbers(C, 0.5), *mean = part(B * T);
    float *rstd = part(B * T);
    layernorm_forward(out, mean, rstd, inp, weight, bias, B, T, C);
    check_layernorm(out, mean, rstd, inp, weight, bias, B * T, C);
    free(weight);
    free(bias);
}

/* Begins with zeros, as the program does. */
static void attend_backward(float *inp, float *att) {
    const int hs = C / NH;
    float *dout = numbers(B * T * C, 1), *dinp = memory(B * T * 3 * C, sizeof *dinp);
    float *datt = memory(B * NH * T * T, sizeof *datt);
    float *dpreatt = memory(B * NH * T * T, sizeof *dpreatt);
    double *true_value = memory(B * T * 3 * C, sizeof *true_value);
    double *bound = memory(B * T * 3 * C, sizeof *bound);
    attention_backward(dinp, dpreatt, datt, dout, inp, att, B, T, C, NH);
    for (int row = 0; row < B * NH * T; row++) {
        const int t = row % T, h = row / T % NH, b = row / T / NH;
        const float *p = att + row * T, *d = dout + (b * T + t) * C + h * hs;
        double slope[T], off[T], sum = 0, size = 0;
        for (int j = 0; j <= t; j++) {
            const float *v = inp + (b * T + j) * 3 * C + 2 * C + h * hs;
            slope[j] = off[j] = 0;
            for (int i = 0; i < hs; i++) {
                slope[j] += (double)v[i] * (double)d[i];
                off[j] += (hs + 2) * ULP * fabs((double)v[i] * (double)d[i]);
            }
            close_to("datt", row * T + j, datt[row * T + j], slope[j], off[j]);
            sum += (double)p[j] * slope[j];
            size += (double)p[j] * off[j];
        }
        const int to = (b * T + t) * 3 * C + h * hs; /* the query's place */
        for (int j = 0; j <= t; j++) {
            slope[j] = (double)p[j] * (slope[j] - sum);
            off[j] = (double)p[j] * (off[j] + size) + 2 * ULP * fabs(slope[j]);
            close_to("dpreatt", row * T + j, dpreatt[row * T + j], slope[j], off[j]);
            const int from = (b * T + j) * 3 * C + h * hs;
            for (int i = 0; i < hs; i++) {
                const double scale = 1 / sqrt(hs), more = (T + 4) * ULP;
                const double q = scale * (double)inp[to + i];
                const double k = scale * (double)inp[from + C + i];
                const double pv = (double)p[j] * (double)d[i];
                true_value[to + i] += slope[j] * k;
                bound[to + i] += fabs(k) * (off[j] + more * fabs(slope[j]));
                true_value[from + C + i] += slope[j] * q;
                bound[from + C + i] += fabs(q) * (off[j] + more * fabs(slope[j]));
                true_value[from + 2 * C + i] += pv;
                bound[from + 2 * C + i] += more * fabs(pv);
            }
        }
        add_to_hash(dpreatt + row * T, (size_t)t + 1);
    }
    for (int i = 0; i < B * T * 3 * C; i++)
        close_to("attention's dinp", i, dinp[i], true_value[i], bound[i]);
    add_to_hash(dinp, B * T * 3 * C);
    free(dout);
    free(dinp);
    free(datt);
    free(dpreatt);
    free(true_value);
    free(bound);
}

static void residual(float *out, float *a, float *b) {
    residual_forward(out, a, b, B * T * C);
    for (int i = 0; i < B * T * C; i++)
        close_to("residual", i, out[i], (double)(float)(a[i] + b[i]), 0);
}

static void backward(const float *inp, int in, int to, int with_bias) {
    const size_t rows = B * T, n = (size_t)in, m = (size_t)to;
    float *weight = numbers(n * m, 0.2), *dout = numbers(rows * m, 1);
    float *dinp = numbers(rows * n, 1), *dweight = numbers(n * m, 1), *dbias = numbers(m, 1);
    float *dinp0 = memory(rows * n, sizeof *dinp), *dweight0 = memory(n * m, sizeof *dinp);
    float *dbias0 = memory(m, sizeof *dinp), *ones = memory(rows, sizeof *ones);
    memcpy(dinp0, dinp, rows * n * sizeof *dinp);
    memcpy(dweight0, dweight, n * m * sizeof *dinp);
    memcpy(dbias0, dbias, m * sizeof *dinp);
    for (size_t i = 0; i < rows; i++)
        ones[i] = 1;
    matmul_backward(dinp, dweight, with_bias ? dbias : NULL, dout, inp, weight, B, T, in, to);
    check_product("dinp", dinp, dinp0, in, dout, to, 1, weight, in, 1, B * T, in, to);
    check_product("dweight", dweight, dweight0, in, dout, 1, to, inp, in, 1, to, in, B * T);
    if (with_bias)
        check_product("dbias", dbias, dbias0, 0, ones, 0, 1, dout, to, 1, 1, to, B * T);
    else
        for (size_t i = 0; i < m; i++)
            close_to("no dbias", (int)i, dbias[i], (double)dbias0[i], 0);
    add_to_hash(dinp, rows * n);
    add_to_hash(dweight, n * m);
    add_to_hash(dbias, m);
    float *const all[] = {weight, dout, dinp, dweight, dbias, dinp0, dweight0, dbias0, ones};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void program(void) {
    block = memory(1 << 20, sizeof *block);
    used = 0;
    float *wte = numbers(Vp * C, 1), *wpe = numbers(T * C, 1);
    int tokens[B * T];
    for (int i = 0; i < B * T; i++)
        tokens[i] = (int)(random_bits() % V);
    float *encoded = part(B * T * C), *ln1 = part(B * T * C);
    float *qkv = part(B * T * 3 * C), *atty = part(B * T * C), *preatt = part(B * NH * T * T);
    float *att = part(B * NH * T * T), *attproj = part(B * T * C), *residual2 = part(B * T * C);
    float *ln2 = part(B * T * C), *fch = part(B * T * 4 * C), *fch_gelu = part(B * T * 4 * C);
    float *fcproj = part(B * T * C), *residual3 = part(B * T * C), *lnf = part(B * T * C);
    float *logits = part(B * T * Vp), *probs = part(B * T * Vp);
    for (int i = 0; i < B * NH * T * T; i++)
        att[i] = NAN;
    for (int i = 0; i < B * T * Vp; i++)
        probs[i] = NAN;

    encoder_forward(encoded, tokens, wte, wpe, B, T, C);
    for (int i = 0; i < B * T * C; i++)
        close_to("encoded", i, encoded[i],
                 (double)(float)(wte[tokens[i / C] * C + i % C] + wpe[i / C % T * C + i % C]), 0);
    norm(ln1, encoded);
    linear(qkv, ln1, C, 3 * C, 1);
    attention_forward(atty, preatt, att, qkv, B, T, C, NH);
    check_attention(atty, preatt, att, qkv, B, T, C, NH);
    attend_backward(qkv, att);
    linear(attproj, atty, C, C, 1);
    residual(residual2, encoded, attproj);
    norm(ln2, residual2);
    linear(fch, ln2, C, 4 * C, 1);
    const int odd = B * T * 4 * C - 37; /* not a whole number of rows of anything */
    gelu_forward(fch_gelu, fch, odd);
    gelu_forward(fch_gelu + odd, fch + odd, 37);
    for (int i = 0; i < B * T * 4 * C; i++)
        close_to("gelu", i, fch_gelu[i], gelu((double)fch[i]), 16 * ULP * fabs((double)fch[i]));
    linear(fcproj, fch_gelu, 4 * C, C, 1);
    residual(residual3, residual2, fcproj);
    norm(lnf, residual3);
    linear(logits, lnf, C, Vp, 0);
    softmax_forward(probs, logits, B, T, V, Vp);
    check_softmax(probs, logits, B * T, V, Vp);
    backward(lnf, C, Vp, 0);
    backward(fch_gelu, 4 * C, C, 1);

    for (int row = 0; row < B * NH * T;
         row++) /* the program defines no score beyond the diagonal */
        add_to_hash(preatt + row * T, (size_t)(row % T + 1));
    for (int i = 0; i < B * NH * T * T; i++)
        preatt[i] = 0;
    add_to_hash(block, used);
    free(wte);
    free(wpe);
    free(block);
}

int main(int argc, char **argv) {
    (void)argv;
    return run_on_sets(argc, program);
}
