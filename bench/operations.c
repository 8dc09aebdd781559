/* SPDX-License-Identifier: MIT
 *
 * The operations, each with how its job is prepared and called.
 */
#include "operations.h"

void count_product(struct bench_job *job) {
    const double m = (double)job->spec->m, n = (double)job->spec->n, k = (double)job->spec->k;
    job->flops = 2 * m * n * k;
    job->bytes = 4 * (m * n + m * k + n * k);
    job->out_floats = job->spec->m * job->spec->n;
}

iso_status prepare_linear(struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n, k = job->spec->k;
    size_t bytes;
    iso_status status;
    count_product(job);
    const float *w = input(n * k); /* first, so that all m pack the same numbers */
    job->a = input(m * k), job->b = w;
    struct packed *p = find_packed(job->library, PACKED_F32, n, k);
    if (!p) {
        if ((status = job->library->pack_f32_bytes(&bytes, n, k)))
            return status;
        if (!w || !(p = add_packed(job->library, PACKED_F32, n, k, bytes)))
            return ISOBIT_E_NOMEM;
        status =
            job->library->pack_f32(&p->matrix.f32, p->data, bytes, w, k, n, k, 0, &job->context);
        if (status)
            return drop_packed(status);
        share_packed(p);
        p->matrix.f32.data = p->data;
    }
    job->packed = p->matrix;
    status = job->library->linear_f32_workspace_bytes(&bytes, &job->packed.f32, m, &job->context);
    return status ? status : need_workspace(job, bytes);
}

iso_status call_linear(const struct bench_job *job) {
    return job->library->linear_f32(job->out, job->packed.f32.n, job->a, job->packed.f32.k,
                                    &job->packed.f32, job->spec->m, NULL, &job->context);
}

static const iso_gemm_options times_b = {.size = sizeof times_b, .alpha = 1};
static const iso_gemm_options times_b_transposed = {
    .size = sizeof times_b_transposed, .trans_b = 1, .alpha = 1};

static iso_status prepare_gemm_as(struct bench_job *job, const iso_gemm_options *options) {
    const struct bench_case *s = job->spec;
    size_t bytes;
    count_product(job);
    job->a = input(s->m * s->k), job->b = input(s->k * s->n);
    iso_status status =
        job->library->gemm_f32_workspace_bytes(&bytes, s->m, s->n, s->k, options, &job->context);
    return status ? status : need_workspace(job, bytes);
}

iso_status prepare_gemm(struct bench_job *job) { return prepare_gemm_as(job, &times_b); }
iso_status prepare_gemm_bt(struct bench_job *job) {
    return prepare_gemm_as(job, &times_b_transposed);
}

iso_status call_gemm(const struct bench_job *job) {
    const struct bench_case *s = job->spec;
    return job->library->gemm_f32(job->out, s->n, job->a, s->k, job->b, s->n, s->m, s->n, s->k,
                                  &times_b, &job->context);
}

iso_status call_gemm_bt(const struct bench_job *job) {
    const struct bench_case *s = job->spec;
    return job->library->gemm_f32(job->out, s->n, job->a, s->k, job->b, s->k, s->m, s->n, s->k,
                                  &times_b_transposed, &job->context);
}

iso_status prepare_gemv(struct bench_job *job) {
    count_product(job);
    job->a = input(job->spec->k), job->b = input(job->spec->n * job->spec->k);
    return ISOBIT_OK;
}

iso_status call_gemv(const struct bench_job *job) {
    const size_t n = job->spec->n, k = job->spec->k;
    return job->library->gemv_f32(job->out, job->b, k, job->a, n, k, 0, &job->context);
}

iso_status call_gemv_t(const struct bench_job *job) {
    const size_t n = job->spec->n, k = job->spec->k;
    return job->library->gemv_f32(job->out, job->b, n, job->a, n, k, 1, &job->context);
}

/* Rows m of width n: a in, out written, b and c vectors of a row's width. */
iso_status prepare_rows(struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n;
    job->a = input(m * n), job->b = input(n), job->c = input(n);
    job->out_floats = m * n;
    job->elements = (double)m * (double)n;
    job->bytes = 8 * job->elements;
    return ISOBIT_OK;
}

iso_status call_softmax(const struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n;
    return job->library->softmax_f32(job->out, n, job->a, n, m, n, NULL, &job->context);
}

iso_status call_layernorm(const struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n;
    const iso_norm_options o = {.size = sizeof o, .gamma = job->b, .beta = job->c, .eps = 1e-5f};
    return job->library->layernorm_f32(job->out, n, job->a, n, m, n, &o, &job->context);
}

iso_status call_rmsnorm(const struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n;
    const iso_norm_options o = {.size = sizeof o, .gamma = job->b, .eps = 1e-5f};
    return job->library->rmsnorm_f32(job->out, n, job->a, n, m, n, &o, &job->context);
}

static iso_status call_eltwise(const struct bench_job *job, float *out, const float *x,
                               const float *bias, iso_activation act, const float *residual) {
    const size_t m = job->spec->m, n = job->spec->n;
    const iso_eltwise_options o = {
        .size = sizeof o, .bias = bias, .act = act, .residual = residual, .ldr = n};
    return job->library->eltwise_f32(out, n, x, n, m, n, &o, &job->context);
}

iso_status call_gelu_erf(const struct bench_job *job) {
    return call_eltwise(job, job->out, job->a, NULL, ISOBIT_ACT_GELU_ERF, NULL);
}
iso_status call_gelu_tanh(const struct bench_job *job) {
    return call_eltwise(job, job->out, job->a, NULL, ISOBIT_ACT_GELU_TANH, NULL);
}
iso_status call_silu(const struct bench_job *job) {
    return call_eltwise(job, job->out, job->a, NULL, ISOBIT_ACT_SILU, NULL);
}
iso_status call_relu(const struct bench_job *job) {
    return call_eltwise(job, job->out, job->a, NULL, ISOBIT_ACT_RELU, NULL);
}

/* --------------------------------------------------------- several things at once, or in steps */

/* The halves of each row of one matrix, act(a) b. */
iso_status prepare_gate(struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n;
    job->a = input(2 * m * n);
    job->out_floats = m * n;
    job->elements = (double)m * (double)n;
    job->bytes = 12 * job->elements;
    return ISOBIT_OK;
}

static iso_status call_gate(const struct bench_job *job, iso_activation act) {
    const size_t m = job->spec->m, n = job->spec->n;
    return job->library->gate_f32(job->out, n, job->a, 2 * n, job->a + n, 2 * n, m, n, act,
                                  &job->context);
}
iso_status call_swiglu(const struct bench_job *job) { return call_gate(job, ISOBIT_ACT_SILU); }
iso_status call_geglu(const struct bench_job *job) { return call_gate(job, ISOBIT_ACT_GELU_ERF); }

iso_status call_bias_gelu(const struct bench_job *job) {
    return call_eltwise(job, job->out, job->a, job->b, ISOBIT_ACT_GELU_TANH, NULL);
}
iso_status bias_then_gelu(const struct bench_job *job, float *out) {
    iso_status status = call_eltwise(job, out, job->a, job->b, ISOBIT_ACT_NONE, NULL);
    return status ? status : call_eltwise(job, out, out, NULL, ISOBIT_ACT_GELU_TANH, NULL);
}

/* x + residual, normalised; d is the residual. */
iso_status prepare_residual(struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n;
    iso_status status = prepare_rows(job);
    job->d = input(m * n);
    job->bytes = 12 * job->elements;
    return status ? status : job->d ? ISOBIT_OK : ISOBIT_E_NOMEM;
}

static iso_norm_options norm_options(const struct bench_job *job, const float *residual) {
    return (iso_norm_options){.size = sizeof(iso_norm_options),
                              .gamma = job->b,
                              .beta = job->c,
                              .eps = 1e-5f,
                              .residual = residual,
                              .ldr = job->spec->n};
}
iso_status call_add_layernorm(const struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n;
    const iso_norm_options o = norm_options(job, job->d);
    return job->library->layernorm_f32(job->out, n, job->a, n, m, n, &o, &job->context);
}
iso_status add_then_layernorm(const struct bench_job *job, float *out) {
    const size_t m = job->spec->m, n = job->spec->n;
    const iso_norm_options o = norm_options(job, NULL);
    iso_status status = call_eltwise(job, out, job->a, NULL, ISOBIT_ACT_NONE, job->d);
    return status ? status : job->library->layernorm_f32(out, n, out, n, m, n, &o, &job->context);
}
iso_status call_add_rmsnorm(const struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n;
    const iso_norm_options o = norm_options(job, job->d);
    return job->library->rmsnorm_f32(job->out, n, job->a, n, m, n, &o, &job->context);
}
iso_status add_then_rmsnorm(const struct bench_job *job, float *out) {
    const size_t m = job->spec->m, n = job->spec->n;
    const iso_norm_options o = norm_options(job, NULL);
    iso_status status = call_eltwise(job, out, job->a, NULL, ISOBIT_ACT_NONE, job->d);
    return status ? status : job->library->rmsnorm_f32(out, n, out, n, m, n, &o, &job->context);
}

/* The first half of a feed-forward block: y = act(x W^T + bias). */
iso_status prepare_linear_bias(struct bench_job *job) {
    iso_status status = prepare_linear(job);
    job->c = input(job->spec->n);
    return status ? status : job->c ? ISOBIT_OK : ISOBIT_E_NOMEM;
}
static iso_status linear_with(const struct bench_job *job, float *out, const float *bias,
                              iso_activation act) {
    const iso_linear_options o = {.size = sizeof o, .bias = bias, .act = act};
    return job->library->linear_f32(out, job->packed.f32.n, job->a, job->packed.f32.k,
                                    &job->packed.f32, job->spec->m, &o, &job->context);
}
static iso_status linear_then(const struct bench_job *job, float *out, iso_activation act) {
    iso_status status = linear_with(job, out, NULL, ISOBIT_ACT_NONE);
    return status ? status : call_eltwise(job, out, out, job->c, act, NULL);
}
iso_status call_linear_gelu(const struct bench_job *job) {
    return linear_with(job, job->out, job->c, ISOBIT_ACT_GELU_TANH);
}
iso_status linear_then_gelu(const struct bench_job *job, float *out) {
    return linear_then(job, out, ISOBIT_ACT_GELU_TANH);
}
iso_status call_linear_relu(const struct bench_job *job) {
    return linear_with(job, job->out, job->c, ISOBIT_ACT_RELU);
}
iso_status linear_then_relu(const struct bench_job *job, float *out) {
    return linear_then(job, out, ISOBIT_ACT_RELU);
}

/* -------------------------------------------------------------------------------- embedding */

/* m words of width n. The rows of the table that are read stay in the caches between calls. */
iso_status prepare_embed(struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n;
    job->a = input(m * n), job->b = input(VOCABULARY * n);
    job->out_floats = m * n;
    job->elements = (double)m * (double)n;
    job->bytes = 12 * job->elements;
    return ISOBIT_OK;
}

iso_status call_embed(const struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n;
    return job->library->embed_f32(job->out, n, memory.ids, m, job->b, VOCABULARY, n, 22.627417f,
                                   job->a, NULL, m, &job->context);
}

/* m rows of n / k heads that are k wide, at positions 0 .. m-1; and their table. */
iso_status prepare_rope(struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n, dh = job->spec->k;
    job->a = input(m * n), job->b = input(m * dh);
    job->out_floats = m * n;
    job->elements = (double)m * (double)n;
    job->bytes = 8 * job->elements;
    return ISOBIT_OK;
}

static iso_status call_rope(const struct bench_job *job, iso_rope_layout layout) {
    const size_t m = job->spec->m, n = job->spec->n, dh = job->spec->k;
    return job->library->rope_f32(job->out, n, job->a, n, m, n / dh, dh, dh, layout, job->b, dh,
                                  NULL, m, &job->context);
}
iso_status call_rope_half(const struct bench_job *job) { return call_rope(job, ISOBIT_ROPE_HALF); }
iso_status call_rope_pairs(const struct bench_job *job) {
    return call_rope(job, ISOBIT_ROPE_INTERLEAVED);
}

/* m positions of n elements. */
iso_status prepare_rope_table(struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n;
    job->a = input(n / 2);
    job->out_floats = m * n;
    job->elements = (double)m * (double)n;
    job->bytes = 4 * job->elements;
    return ISOBIT_OK;
}

iso_status call_rope_table(const struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n;
    return job->library->rope_table_f32(job->out, n, 0, m, job->a, n, 1, &job->context);
}

/* ---------------------------------------------------------------------------------- attention */

static iso_attention_options attention_options(const struct bench_job *job, int causal,
                                               int panels) {
    /* The size that older libraries know: isobit_ab compares with them. */
    return (iso_attention_options){.size = offsetof(iso_attention_options, window),
                                   .scale = job->scale,
                                   .causal = causal,
                                   .key_panels = panels};
}

static iso_status workspace_for(struct bench_job *job, const iso_attention_options *options) {
    iso_attention_options o = *options;
    size_t bytes;
    o.scale = job->scale = job->spec->k == 64 ? 0.125f : 0.1f;
    iso_status status =
        job->library->attention_f32_workspace_bytes(&bytes, &job->shape, &o, &job->context);
    return status ? status : need_workspace(job, bytes);
}

static iso_status attention_workspace(struct bench_job *job, int causal, int panels) {
    const iso_attention_options o = attention_options(job, causal, panels);
    return workspace_for(job, &o);
}

/* Heads lie side by side in rows of the model's width, as projections leave them. */
static iso_status prepare_attention_as(struct bench_job *job, int causal) {
    const size_t S = job->spec->m, dh = job->spec->k, d = HEADS * dh;
    const iso_strides by_row = {.batch = S * d, .head = dh, .seq = d};
    const double rows = (double)S, keys = causal ? (rows + 1) / 2 : rows;
    job->a = input(S * d), job->b = input(S * d), job->c = input(S * d);
    job->shape = (iso_attention_shape){1, HEADS, S, S, dh, by_row, by_row, by_row, by_row};
    job->flops = 4 * HEADS * rows * keys * (double)dh;
    job->bytes = 16 * rows * (double)d;
    job->out_floats = S * d;
    return attention_workspace(job, causal, 0);
}

iso_status prepare_attention(struct bench_job *job) { return prepare_attention_as(job, 0); }
iso_status prepare_causal(struct bench_job *job) { return prepare_attention_as(job, 1); }

static iso_status call_attention_as(const struct bench_job *job, int causal, int panels) {
    const iso_attention_options o = attention_options(job, causal, panels);
    return job->library->attention_f32(job->out, job->a, job->b, job->c, &job->shape, &o,
                                       &job->context);
}

iso_status call_attention(const struct bench_job *job) { return call_attention_as(job, 0, 0); }
iso_status call_causal(const struct bench_job *job) { return call_attention_as(job, 1, 0); }

/* Causal, each query with so many keys at most, as Mistral's layers have it. */
enum { WINDOW = 256 };
static iso_attention_options windowed(const struct bench_job *job) {
    iso_attention_options o = attention_options(job, 1, 0);
    o.size = sizeof o; /* no library without the option has anything to compare */
    o.window = WINDOW;
    return o;
}

iso_status prepare_window(struct bench_job *job) {
    const double rows = (double)job->spec->m, w = WINDOW;
    iso_status status = prepare_attention_as(job, 1);
    if (rows > w) /* the first w queries see less, the others w keys */
        job->flops *= (w * (w + 1) / 2 + (rows - w) * w) / (rows * (rows + 1) / 2);
    const iso_attention_options o = windowed(job);
    return status ? status : workspace_for(job, &o);
}

iso_status call_window(const struct bench_job *job) {
    const iso_attention_options o = windowed(job);
    return job->library->attention_f32(job->out, job->a, job->b, job->c, &job->shape, &o,
                                       &job->context);
}

/* With a bias: S x S numbers for each head, or one for each distance, as T5 has it. */
static iso_attention_options biased(const struct bench_job *job, int by_distance) {
    const size_t S = job->spec->m;
    iso_attention_options o = attention_options(job, 0, 0);
    o.bias = by_distance ? job->d + (S - 1) : job->d;
    o.bias_strides =
        by_distance ? (iso_strides){0, 2 * S - 1, ISOBIT_BY_DISTANCE} : (iso_strides){0, S * S, S};
    return o;
}

static iso_status prepare_biased(struct bench_job *job, int by_distance) {
    const size_t S = job->spec->m, head = by_distance ? 2 * S - 1 : S * S;
    iso_status status = prepare_attention_as(job, 0);
    job->d = input(HEADS * head);
    job->bytes += 4.0 * HEADS * (double)head;
    const iso_attention_options o = biased(job, by_distance);
    return status ? status : workspace_for(job, &o);
}

static iso_status call_biased(const struct bench_job *job, int by_distance) {
    const iso_attention_options o = biased(job, by_distance);
    return job->library->attention_f32(job->out, job->a, job->b, job->c, &job->shape, &o,
                                       &job->context);
}

iso_status prepare_bias(struct bench_job *job) { return prepare_biased(job, 0); }
iso_status prepare_distance(struct bench_job *job) { return prepare_biased(job, 1); }
iso_status call_bias(const struct bench_job *job) { return call_biased(job, 0); }
iso_status call_distance(const struct bench_job *job) { return call_biased(job, 1); }

/* One query for each head against a cache of n keys in panels. */
iso_status prepare_decode(struct bench_job *job) {
    const size_t keys = job->spec->n, dh = job->spec->k, d = HEADS * dh;
    const size_t panels = job->library->key_panels_floats(keys, dh);
    const float *k = input(HEADS * keys * dh);
    job->a = input(d), job->c = input(HEADS * keys * dh);
    struct packed *p = find_packed(job->library, PACKED_KEYS, keys, dh);
    if (!p) {
        if (!k ||
            !(p = add_packed(job->library, PACKED_KEYS, keys, dh, HEADS * panels * sizeof(float))))
            return ISOBIT_E_NOMEM;
        for (size_t h = 0; h < HEADS; h++) {
            iso_status status = job->library->key_panels_append(
                p->data + h * panels, 0, k + h * keys * dh, dh, keys, dh, &job->context);
            if (status)
                return drop_packed(status);
        }
        share_packed(p);
    }
    job->b = p->data;
    job->shape = (iso_attention_shape){.B = 1,
                                       .H = HEADS,
                                       .Sq = 1,
                                       .Sk = keys,
                                       .dh = dh,
                                       .q = {d, dh, d},
                                       .k = {HEADS * panels, panels, 0},
                                       .v = {HEADS * keys * dh, keys * dh, dh},
                                       .o = {d, dh, d}};
    job->flops = 4.0 * HEADS * (double)keys * (double)dh;
    job->bytes = 8.0 * HEADS * (double)keys * (double)dh;
    job->out_floats = d;
    return attention_workspace(job, 0, 1);
}

iso_status call_decode(const struct bench_job *job) { return call_attention_as(job, 0, 1); }

/* The same against keys and values as projections leave them. */
iso_status prepare_row_major(struct bench_job *job) {
    const size_t keys = job->spec->n, dh = job->spec->k, d = HEADS * dh;
    const iso_strides by_row = {.batch = keys * d, .head = dh, .seq = d};
    job->a = input(d), job->b = input(keys * d), job->c = input(keys * d);
    job->shape = (iso_attention_shape){1, HEADS, 1, keys, dh, by_row, by_row, by_row, by_row};
    job->flops = 4.0 * (double)keys * (double)d;
    job->bytes = 8.0 * (double)keys * (double)d;
    job->out_floats = d;
    return attention_workspace(job, 0, 0);
}
