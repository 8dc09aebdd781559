/* SPDX-License-Identifier: MIT
 *
 * See cases.h. The shapes are those of Transformers of the paper's size (d 512, f 2048, 8 heads of
 * 64, 32000 words), of decoding (1 to 16 rows), and some that fit no block.
 */
#include "cases.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADS 8
#define VOCABULARY 32000

/* ------------------------------------------------------------------------------------- memory */

struct packed {
    struct packed *next;
    const struct bench_library *library; /* each has a layout of its own */
    int keys;                            /* key panels of all heads, else a weight */
    size_t n, k, bytes;
    void *block; /* NULL: shared with an older one */
    float *data;
    iso_packed matrix; /* of a weight: what iso_pack_f32 made of it */
};

static struct {
    void *blocks[3]; /* of in, out and other */
    float *in, *out, *other;
    size_t in_floats, out_floats;
    size_t used;           /* of in, by the case that is being prepared */
    size_t filled;         /* of in, with random numbers */
    uint64_t random_state; /* where they go on */
    size_t offset;
    void *workspace_block, *workspace;
    size_t workspace_bytes;
    struct packed *packed;
    uint32_t *ids;
} memory;

/* The largest case: 4096 x 4096 in, and half of it out. */
#define LEAST_FLOATS ((size_t)2 * 4096 * 4096 + ((size_t)1 << 20))

/*
 * What is written (outputs, the workspace, packed weights) lies in one place of a page relative to
 * the inputs and to each other; `offset` moves each by another distance.
 */
enum { MOVE_INPUT = 1, MOVE_OUTPUT, MOVE_WORKSPACE, MOVE_PACKED };

static void *allocate(void **block, size_t bytes, size_t move) {
    const size_t by = move * memory.offset % 4096;
    *block = aligned_alloc(4096, (bytes + by + 4095) / 4096 * 4096);
    return *block ? (char *)*block + by : NULL;
}

static void fill_input(size_t floats) {
    uint64_t x = memory.random_state;
    for (; memory.filled < floats; memory.filled++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        memory.in[memory.filled] = (float)((int32_t)(x >> 40) - (1 << 23)) * 0x1p-23f;
    }
    memory.random_state = x;
}

int bench_memory_init(size_t bytes, size_t offset) {
    const size_t floats = bytes / sizeof(float);
    memory.offset = offset;
    memory.in_floats = floats > LEAST_FLOATS ? floats : LEAST_FLOATS;
    memory.out_floats = memory.in_floats / 2;
    memory.in = allocate(&memory.blocks[0], memory.in_floats * sizeof(float), MOVE_INPUT);
    memory.out = allocate(&memory.blocks[1], memory.out_floats * sizeof(float), MOVE_OUTPUT);
    memory.other = allocate(&memory.blocks[2], memory.out_floats * sizeof(float), MOVE_OUTPUT);
    memory.ids = malloc(VOCABULARY * sizeof *memory.ids);
    if (!memory.in || !memory.out || !memory.other || !memory.ids)
        return 0;
    memory.random_state = UINT64_C(0x9e3779b97f4a7c15);
    fill_input(floats);
    for (size_t i = 0; i < VOCABULARY; i++)
        memory.ids[i] = (uint32_t)(i * 7919 % VOCABULARY);
    memset(memory.out, 0, floats / 2 * sizeof(float));
    memset(memory.other, 0, floats / 2 * sizeof(float));
    return 1;
}

const float *bench_input(void) { return memory.in; }
float *bench_output(void) { return memory.out; }
float *bench_other_output(void) { return memory.other; }

/* The one that was added last. */
static iso_status drop_packed(iso_status status) {
    struct packed *p = memory.packed;
    memory.packed = p->next;
    free(p->block);
    free(p);
    return status;
}

void bench_memory_free(void) {
    while (memory.packed)
        drop_packed(ISOBIT_OK);
    for (size_t i = 0; i < sizeof memory.blocks / sizeof *memory.blocks; i++)
        free(memory.blocks[i]);
    free(memory.ids);
    free(memory.workspace_block);
    memset(&memory, 0, sizeof memory);
}

/* Random numbers that no other operand of the case has; NULL when the array is used up. */
static const float *input(size_t floats) {
    if (!memory.in || floats > memory.in_floats - memory.used)
        return NULL;
    const float *p = memory.in + memory.used;
    /* Operands start in different places of a page. */
    size_t end = memory.used + (floats + 15) / 16 * 16 + 80;
    memory.used = end < memory.in_floats ? end : memory.in_floats;
    fill_input(memory.used);
    return p;
}

static iso_status need_workspace(struct bench_job *job, size_t bytes) {
    if (bytes > memory.workspace_bytes) {
        free(memory.workspace_block);
        memory.workspace = allocate(&memory.workspace_block, bytes, MOVE_WORKSPACE);
        memory.workspace_bytes = memory.workspace ? bytes : 0;
        if (!memory.workspace)
            return ISOBIT_E_NOMEM;
    }
    job->context.workspace = memory.workspace;
    job->context.workspace_bytes = memory.workspace_bytes;
    return ISOBIT_OK;
}

static struct packed *find_packed(const struct bench_library *library, int keys, size_t n,
                                  size_t k) {
    struct packed *p = memory.packed;
    while (p && !(p->library == library && p->keys == keys && p->n == n && p->k == k))
        p = p->next;
    return p;
}

static struct packed *add_packed(const struct bench_library *library, int keys, size_t n, size_t k,
                                 size_t bytes) {
    struct packed *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->library = library, p->keys = keys, p->n = n, p->k = k, p->bytes = bytes;
    p->data = allocate(&p->block, bytes, MOVE_PACKED);
    if (!p->data) {
        free(p);
        return NULL;
    }
    memset(p->data, 0, bytes);
    p->next = memory.packed;
    return memory.packed = p;
}

/*
 * Where packed data lie in the caches is worth some percent. Libraries that pack alike read the
 * same memory, so that it is not taken for a difference between them.
 */
static void share_packed(struct packed *p) {
    for (const struct packed *q = p->next; q; q = q->next)
        if (q->keys == p->keys && q->n == p->n && q->k == p->k && q->bytes == p->bytes &&
            memcmp(q->data, p->data, p->bytes) == 0) {
            free(p->block);
            p->block = NULL, p->data = q->data;
            return;
        }
}

/* ----------------------------------------------------------------------------- the operations */

struct bench_op {
    const char *name;
    iso_status (*prepare)(struct bench_job *job);
    iso_status (*call)(const struct bench_job *job);
    enum bench_form form;
    unsigned cost;  /* operations per element, where they are not counted in flops */
    unsigned needs; /* functions of the library, but for those of `separately` alone */
    /* the same in several steps, or NULL */
    iso_status (*separately)(const struct bench_job *job, float *out);
};

static void count_product(struct bench_job *job) {
    const double m = (double)job->spec->m, n = (double)job->spec->n, k = (double)job->spec->k;
    job->flops = 2 * m * n * k;
    job->bytes = 4 * (m * n + m * k + n * k);
    job->out_floats = job->spec->m * job->spec->n;
}

static iso_status prepare_linear(struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n, k = job->spec->k;
    size_t bytes;
    iso_status status;
    count_product(job);
    const float *w = input(n * k); /* first, so that all m pack the same numbers */
    job->a = input(m * k), job->b = w;
    struct packed *p = find_packed(job->library, 0, n, k);
    if (!p) {
        if ((status = job->library->pack_f32_bytes(&bytes, n, k)))
            return status;
        if (!w || !(p = add_packed(job->library, 0, n, k, bytes)))
            return ISOBIT_E_NOMEM;
        status = job->library->pack_f32(&p->matrix, p->data, bytes, w, k, n, k, 0, &job->context);
        if (status)
            return drop_packed(status);
        share_packed(p);
        p->matrix.data = p->data;
    }
    job->packed = p->matrix;
    status = job->library->linear_f32_workspace_bytes(&bytes, &job->packed, m, &job->context);
    return status ? status : need_workspace(job, bytes);
}

static iso_status call_linear(const struct bench_job *job) {
    return job->library->linear_f32(job->out, job->packed.n, job->a, job->packed.k, &job->packed,
                                    job->spec->m, NULL, &job->context);
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

static iso_status prepare_gemm(struct bench_job *job) { return prepare_gemm_as(job, &times_b); }
static iso_status prepare_gemm_bt(struct bench_job *job) {
    return prepare_gemm_as(job, &times_b_transposed);
}

static iso_status call_gemm(const struct bench_job *job) {
    const struct bench_case *s = job->spec;
    return job->library->gemm_f32(job->out, s->n, job->a, s->k, job->b, s->n, s->m, s->n, s->k,
                                  &times_b, &job->context);
}

static iso_status call_gemm_bt(const struct bench_job *job) {
    const struct bench_case *s = job->spec;
    return job->library->gemm_f32(job->out, s->n, job->a, s->k, job->b, s->k, s->m, s->n, s->k,
                                  &times_b_transposed, &job->context);
}

static iso_status prepare_gemv(struct bench_job *job) {
    count_product(job);
    job->a = input(job->spec->k), job->b = input(job->spec->n * job->spec->k);
    return ISOBIT_OK;
}

static iso_status call_gemv(const struct bench_job *job) {
    const size_t n = job->spec->n, k = job->spec->k;
    return job->library->gemv_f32(job->out, job->b, k, job->a, n, k, 0, &job->context);
}

static iso_status call_gemv_t(const struct bench_job *job) {
    const size_t n = job->spec->n, k = job->spec->k;
    return job->library->gemv_f32(job->out, job->b, n, job->a, n, k, 1, &job->context);
}

/* Rows m of width n: a in, out written, b and c vectors of a row's width. */
static iso_status prepare_rows(struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n;
    job->a = input(m * n), job->b = input(n), job->c = input(n);
    job->out_floats = m * n;
    job->elements = (double)m * (double)n;
    job->bytes = 8 * job->elements;
    return ISOBIT_OK;
}

static iso_status call_softmax(const struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n;
    return job->library->softmax_f32(job->out, n, job->a, n, m, n, NULL, &job->context);
}

static iso_status call_layernorm(const struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n;
    const iso_norm_options o = {.size = sizeof o, .gamma = job->b, .beta = job->c, .eps = 1e-5f};
    return job->library->layernorm_f32(job->out, n, job->a, n, m, n, &o, &job->context);
}

static iso_status call_rmsnorm(const struct bench_job *job) {
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

static iso_status call_gelu_erf(const struct bench_job *job) {
    return call_eltwise(job, job->out, job->a, NULL, ISOBIT_ACT_GELU_ERF, NULL);
}
static iso_status call_gelu_tanh(const struct bench_job *job) {
    return call_eltwise(job, job->out, job->a, NULL, ISOBIT_ACT_GELU_TANH, NULL);
}
static iso_status call_silu(const struct bench_job *job) {
    return call_eltwise(job, job->out, job->a, NULL, ISOBIT_ACT_SILU, NULL);
}
static iso_status call_relu(const struct bench_job *job) {
    return call_eltwise(job, job->out, job->a, NULL, ISOBIT_ACT_RELU, NULL);
}

/* --------------------------------------------------------- several things at once, or in steps */

/* The halves of each row of one matrix, act(a) b. */
static iso_status prepare_gate(struct bench_job *job) {
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
static iso_status call_swiglu(const struct bench_job *job) {
    return call_gate(job, ISOBIT_ACT_SILU);
}
static iso_status call_geglu(const struct bench_job *job) {
    return call_gate(job, ISOBIT_ACT_GELU_ERF);
}

static iso_status call_bias_gelu(const struct bench_job *job) {
    return call_eltwise(job, job->out, job->a, job->b, ISOBIT_ACT_GELU_TANH, NULL);
}
static iso_status bias_then_gelu(const struct bench_job *job, float *out) {
    iso_status status = call_eltwise(job, out, job->a, job->b, ISOBIT_ACT_NONE, NULL);
    return status ? status : call_eltwise(job, out, out, NULL, ISOBIT_ACT_GELU_TANH, NULL);
}

/* x + residual, normalised; d is the residual. */
static iso_status prepare_residual(struct bench_job *job) {
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
static iso_status call_add_layernorm(const struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n;
    const iso_norm_options o = norm_options(job, job->d);
    return job->library->layernorm_f32(job->out, n, job->a, n, m, n, &o, &job->context);
}
static iso_status add_then_layernorm(const struct bench_job *job, float *out) {
    const size_t m = job->spec->m, n = job->spec->n;
    const iso_norm_options o = norm_options(job, NULL);
    iso_status status = call_eltwise(job, out, job->a, NULL, ISOBIT_ACT_NONE, job->d);
    return status ? status : job->library->layernorm_f32(out, n, out, n, m, n, &o, &job->context);
}
static iso_status call_add_rmsnorm(const struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n;
    const iso_norm_options o = norm_options(job, job->d);
    return job->library->rmsnorm_f32(job->out, n, job->a, n, m, n, &o, &job->context);
}
static iso_status add_then_rmsnorm(const struct bench_job *job, float *out) {
    const size_t m = job->spec->m, n = job->spec->n;
    const iso_norm_options o = norm_options(job, NULL);
    iso_status status = call_eltwise(job, out, job->a, NULL, ISOBIT_ACT_NONE, job->d);
    return status ? status : job->library->rmsnorm_f32(out, n, out, n, m, n, &o, &job->context);
}

/* The first half of a feed-forward block: y = act(x W^T + bias). */
static iso_status prepare_linear_bias(struct bench_job *job) {
    iso_status status = prepare_linear(job);
    job->c = input(job->spec->n);
    return status ? status : job->c ? ISOBIT_OK : ISOBIT_E_NOMEM;
}
static iso_status linear_with(const struct bench_job *job, float *out, const float *bias,
                              iso_activation act) {
    const iso_linear_options o = {.size = sizeof o, .bias = bias, .act = act};
    return job->library->linear_f32(out, job->packed.n, job->a, job->packed.k, &job->packed,
                                    job->spec->m, &o, &job->context);
}
static iso_status linear_then(const struct bench_job *job, float *out, iso_activation act) {
    iso_status status = linear_with(job, out, NULL, ISOBIT_ACT_NONE);
    return status ? status : call_eltwise(job, out, out, job->c, act, NULL);
}
static iso_status call_linear_gelu(const struct bench_job *job) {
    return linear_with(job, job->out, job->c, ISOBIT_ACT_GELU_TANH);
}
static iso_status linear_then_gelu(const struct bench_job *job, float *out) {
    return linear_then(job, out, ISOBIT_ACT_GELU_TANH);
}
static iso_status call_linear_relu(const struct bench_job *job) {
    return linear_with(job, job->out, job->c, ISOBIT_ACT_RELU);
}
static iso_status linear_then_relu(const struct bench_job *job, float *out) {
    return linear_then(job, out, ISOBIT_ACT_RELU);
}

/* -------------------------------------------------------------------------------- embedding */

/* m words of width n. The rows of the table that are read stay in the caches between calls. */
static iso_status prepare_embed(struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n;
    job->a = input(m * n), job->b = input(VOCABULARY * n);
    job->out_floats = m * n;
    job->elements = (double)m * (double)n;
    job->bytes = 12 * job->elements;
    return ISOBIT_OK;
}

static iso_status call_embed(const struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n;
    return job->library->embed_f32(job->out, n, memory.ids, m, job->b, VOCABULARY, n, 22.627417f,
                                   job->a, NULL, m, &job->context);
}

/* m rows of n / k heads that are k wide, at positions 0 .. m-1; and their table. */
static iso_status prepare_rope(struct bench_job *job) {
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
static iso_status call_rope_half(const struct bench_job *job) {
    return call_rope(job, ISOBIT_ROPE_HALF);
}
static iso_status call_rope_pairs(const struct bench_job *job) {
    return call_rope(job, ISOBIT_ROPE_INTERLEAVED);
}

/* m positions of n elements. */
static iso_status prepare_rope_table(struct bench_job *job) {
    const size_t m = job->spec->m, n = job->spec->n;
    job->a = input(n / 2);
    job->out_floats = m * n;
    job->elements = (double)m * (double)n;
    job->bytes = 4 * job->elements;
    return ISOBIT_OK;
}

static iso_status call_rope_table(const struct bench_job *job) {
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

static iso_status prepare_attention(struct bench_job *job) { return prepare_attention_as(job, 0); }
static iso_status prepare_causal(struct bench_job *job) { return prepare_attention_as(job, 1); }

static iso_status call_attention_as(const struct bench_job *job, int causal, int panels) {
    const iso_attention_options o = attention_options(job, causal, panels);
    return job->library->attention_f32(job->out, job->a, job->b, job->c, &job->shape, &o,
                                       &job->context);
}

static iso_status call_attention(const struct bench_job *job) {
    return call_attention_as(job, 0, 0);
}
static iso_status call_causal(const struct bench_job *job) { return call_attention_as(job, 1, 0); }

/* Causal, each query with so many keys at most, as Mistral's layers have it. */
enum { WINDOW = 256 };
static iso_attention_options windowed(const struct bench_job *job) {
    iso_attention_options o = attention_options(job, 1, 0);
    o.size = sizeof o; /* no library without the option has anything to compare */
    o.window = WINDOW;
    return o;
}

static iso_status prepare_window(struct bench_job *job) {
    const double rows = (double)job->spec->m, w = WINDOW;
    iso_status status = prepare_attention_as(job, 1);
    if (rows > w) /* the first w queries see less, the others w keys */
        job->flops *= (w * (w + 1) / 2 + (rows - w) * w) / (rows * (rows + 1) / 2);
    const iso_attention_options o = windowed(job);
    return status ? status : workspace_for(job, &o);
}

static iso_status call_window(const struct bench_job *job) {
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

static iso_status prepare_bias(struct bench_job *job) { return prepare_biased(job, 0); }
static iso_status prepare_distance(struct bench_job *job) { return prepare_biased(job, 1); }
static iso_status call_bias(const struct bench_job *job) { return call_biased(job, 0); }
static iso_status call_distance(const struct bench_job *job) { return call_biased(job, 1); }

/* One query for each head against a cache of n keys in panels. */
static iso_status prepare_decode(struct bench_job *job) {
    const size_t keys = job->spec->n, dh = job->spec->k, d = HEADS * dh;
    const size_t panels = job->library->key_panels_floats(keys, dh);
    const float *k = input(HEADS * keys * dh);
    job->a = input(d), job->c = input(HEADS * keys * dh);
    struct packed *p = find_packed(job->library, 1, keys, dh);
    if (!p) {
        if (!k || !(p = add_packed(job->library, 1, keys, dh, HEADS * panels * sizeof(float))))
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

static iso_status call_decode(const struct bench_job *job) { return call_attention_as(job, 0, 1); }

/* The same against keys and values as projections leave them. */
static iso_status prepare_row_major(struct bench_job *job) {
    const size_t keys = job->spec->n, dh = job->spec->k, d = HEADS * dh;
    const iso_strides by_row = {.batch = keys * d, .head = dh, .seq = d};
    job->a = input(d), job->b = input(keys * d), job->c = input(keys * d);
    job->shape = (iso_attention_shape){1, HEADS, 1, keys, dh, by_row, by_row, by_row, by_row};
    job->flops = 4.0 * (double)keys * (double)d;
    job->bytes = 8.0 * (double)keys * (double)d;
    job->out_floats = d;
    return attention_workspace(job, 0, 0);
}

/* ------------------------------------------------------------------------------------ the list */

/*
 * Operations per element of what is no product, for the roofline: additions, multiplications and
 * comparisons of the kernels, a division as one. exp takes 20 of them.
 */
#define EXP 20
#define OP(name, prepare, call, form, cost, needs)                                                 \
    static const struct bench_op name = {#name, prepare, call, BENCH_FORM_##form, cost, needs, NULL}
#define FUSED_OP(name, prepare, call, separately, cost, needs)                                     \
    static const struct bench_op name = {#name, prepare, call,      BENCH_FORM_OTHER,              \
                                         cost,  needs,   separately}
#define NEEDS_GEMM (BENCH_BIT(gemm_f32) | BENCH_BIT(gemm_f32_workspace_bytes))
#define NEEDS_LINEAR                                                                               \
    (BENCH_BIT(pack_f32_bytes) | BENCH_BIT(pack_f32) | BENCH_BIT(linear_f32) |                     \
     BENCH_BIT(linear_f32_workspace_bytes))
#define NEEDS_ATTENTION (BENCH_BIT(attention_f32) | BENCH_BIT(attention_f32_workspace_bytes))
#define NEEDS_PANELS (BENCH_BIT(key_panels_floats) | BENCH_BIT(key_panels_append))
OP(linear, prepare_linear, call_linear, LINEAR, 0, NEEDS_LINEAR);
OP(gemm, prepare_gemm, call_gemm, GEMM, 0, NEEDS_GEMM);
OP(gemm_bt, prepare_gemm_bt, call_gemm_bt, GEMM_BT, 0, NEEDS_GEMM);
OP(gemv, prepare_gemv, call_gemv, GEMV, 0, BENCH_BIT(gemv_f32));
OP(gemv_t, prepare_gemv, call_gemv_t, GEMV_T, 0, BENCH_BIT(gemv_f32));
OP(softmax, prepare_rows, call_softmax, SOFTMAX, EXP + 4, BENCH_BIT(softmax_f32));
OP(layernorm, prepare_rows, call_layernorm, LAYERNORM, 8, BENCH_BIT(layernorm_f32));
OP(rmsnorm, prepare_rows, call_rmsnorm, OTHER, 4, BENCH_BIT(rmsnorm_f32));
OP(attention, prepare_attention, call_attention, ATTENTION, 0, NEEDS_ATTENTION);
OP(attention_causal, prepare_causal, call_causal, OTHER, 0, NEEDS_ATTENTION);
OP(attention_window, prepare_window, call_window, OTHER, 0, NEEDS_ATTENTION);
OP(attention_bias, prepare_bias, call_bias, OTHER, 0, NEEDS_ATTENTION);
OP(attention_t5, prepare_distance, call_distance, OTHER, 0, NEEDS_ATTENTION);
OP(attention_decode, prepare_decode, call_decode, OTHER, 0, NEEDS_ATTENTION | NEEDS_PANELS);
OP(decode_row_major, prepare_row_major, call_attention, OTHER, 0, NEEDS_ATTENTION);
OP(gelu_erf, prepare_rows, call_gelu_erf, GELU_ERF, 30, BENCH_BIT(eltwise_f32));
OP(gelu_tanh, prepare_rows, call_gelu_tanh, GELU_TANH, EXP + 8, BENCH_BIT(eltwise_f32));
OP(silu, prepare_rows, call_silu, SILU, EXP + 3, BENCH_BIT(eltwise_f32));
OP(relu, prepare_rows, call_relu, RELU, 1, BENCH_BIT(eltwise_f32));
OP(swiglu, prepare_gate, call_swiglu, OTHER, EXP + 4, BENCH_BIT(gate_f32));
OP(geglu, prepare_gate, call_geglu, OTHER, 31, BENCH_BIT(gate_f32));
OP(embed, prepare_embed, call_embed, OTHER, 2, BENCH_BIT(embed_f32));
OP(rope_half, prepare_rope, call_rope_half, OTHER, 3, BENCH_BIT(rope_f32));
OP(rope_interleaved, prepare_rope, call_rope_pairs, OTHER, 3, BENCH_BIT(rope_f32));
OP(rope_table, prepare_rope_table, call_rope_table, OTHER, 60, BENCH_BIT(rope_table_f32));
FUSED_OP(linear_bias_gelu, prepare_linear_bias, call_linear_gelu, linear_then_gelu, 0,
         NEEDS_LINEAR);
FUSED_OP(linear_bias_relu, prepare_linear_bias, call_linear_relu, linear_then_relu, 0,
         NEEDS_LINEAR);
FUSED_OP(bias_gelu, prepare_rows, call_bias_gelu, bias_then_gelu, EXP + 9, BENCH_BIT(eltwise_f32));
FUSED_OP(add_layernorm, prepare_residual, call_add_layernorm, add_then_layernorm, 9,
         BENCH_BIT(layernorm_f32));
FUSED_OP(add_rmsnorm, prepare_residual, call_add_rmsnorm, add_then_rmsnorm, 5,
         BENCH_BIT(rmsnorm_f32));

/* 5e9 elements for each 265e9 operations: what a good softmax reaches beside such a peak. */
#define SOFTMAX_FLOOR (5.0 / 265)

/*
 * A product of one row waits for its weights, from 2 to 4 rows on for the FMA units: each float of
 * the weights takes 2 operations per row, and L2 gives as many floats per second as these units do
 * 4 to 6 operations. From memory 4 rows wait as well.
 */
const struct bench_case bench_cases[] = {
    {&linear, 512, 512, 512, BENCH_FMA, BENCH_THREADS, BENCH_FLOOR_X86, 90},
    {&linear, 512, 2048, 512, BENCH_FMA, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear, 512, 512, 2048, BENCH_FMA, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear, 128, 2048, 512, BENCH_FMA, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear, 2048, 2048, 2048, BENCH_FMA, BENCH_THREADS | BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&linear, 128, VOCABULARY, 512, BENCH_FMA, BENCH_THREADS | BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&linear, 64, 512, 512, BENCH_FMA, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&linear, 16, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&linear, 4, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&linear, 1, 512, 512, BENCH_READ, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&linear, 1, VOCABULARY, 512, BENCH_READ, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear, 63, 65, 67, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm, 512, 512, 512, BENCH_FMA, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&gemm, 64, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm, 16, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm, 4, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm, 1, 512, 512, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&gemm, 4, VOCABULARY, 512, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&gemm, 1, VOCABULARY, 512, BENCH_READ, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&gemm, 64, 64, 64, BENCH_FMA, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&gemm, 32, 32, 32, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm, 16, 16, 16, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm, 63, 65, 67, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm_bt, 512, 512, 512, BENCH_FMA, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&gemm_bt, 64, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm_bt, 16, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm_bt, 4, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm_bt, 1, 512, 512, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&gemm_bt, 64, 64, 64, BENCH_FMA, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&gemm_bt, 32, 32, 32, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm_bt, 16, 16, 16, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm_bt, 63, 65, 67, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemv, 1, 512, 512, BENCH_READ, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&gemv_t, 1, 512, 512, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&gemv, 1, VOCABULARY, 512, BENCH_READ, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&gemv_t, 1, VOCABULARY, 512, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&softmax, 512, 512, 0, BENCH_COPY, BENCH_RATE | BENCH_SCALAR, BENCH_FLOOR_RATE, SOFTMAX_FLOOR},
    {&softmax, 512, 1024, 0, BENCH_COPY, BENCH_RATE | BENCH_THREADS, BENCH_FLOOR_RATE,
     SOFTMAX_FLOOR},
    {&softmax, 128, VOCABULARY, 0, BENCH_COPY, BENCH_RATE | BENCH_THREADS | BENCH_HEAVY,
     BENCH_NO_FLOOR, 0},
    {&layernorm, 128, 512, 0, BENCH_COPY, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&layernorm, 512, 1024, 0, BENCH_COPY, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&rmsnorm, 128, 512, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&layernorm, 16384, 1024, 0, BENCH_COPY, BENCH_THREADS | BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&rmsnorm, 512, 1024, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&rmsnorm, 16384, 1024, 0, BENCH_COPY, BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&attention, 512, 512, 32, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention, 512, 512, 48, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention, 128, 128, 64, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention, 512, 512, 64, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention, 512, 512, 80, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention, 512, 512, 96, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention, 512, 512, 128, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention, 1024, 1024, 64, BENCH_FMA, BENCH_THREADS, BENCH_FLOOR_VECTOR, 50},
    {&attention, 4096, 4096, 64, BENCH_FMA, BENCH_THREADS | BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&attention_causal, 128, 128, 64, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention_causal, 512, 512, 64, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention_causal, 1024, 1024, 64, BENCH_FMA, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&attention_causal, 4096, 4096, 64, BENCH_FMA, BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&attention_window, 1024, 1024, 64, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention_window, 4096, 4096, 64, BENCH_FMA, BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&attention_bias, 128, 128, 64, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention_bias, 1024, 1024, 64, BENCH_FMA, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&attention_t5, 128, 128, 64, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention_t5, 1024, 1024, 64, BENCH_FMA, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&attention_decode, 1, 512, 64, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&attention_decode, 1, 4096, 64, BENCH_READ, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&attention_decode, 1, 16384, 64, BENCH_READ, BENCH_THREADS | BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&decode_row_major, 1, 512, 64, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&decode_row_major, 1, 4096, 64, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&gelu_erf, 128, 512, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&gelu_erf, 4096, 4096, 0, BENCH_COPY, BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&gelu_tanh, 128, 512, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&gelu_tanh, 4096, 4096, 0, BENCH_COPY, BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&silu, 128, 512, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&silu, 4096, 4096, 0, BENCH_COPY, BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&relu, 128, 512, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&relu, 4096, 4096, 0, BENCH_COPY, BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&swiglu, 128, 512, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&swiglu, 4096, 4096, 0, BENCH_COPY, BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&geglu, 128, 512, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&embed, 512, 512, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&rope_half, 128, 1024, 64, BENCH_COPY, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&rope_half, 128, 4096, 128, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&rope_interleaved, 128, 1024, 64, BENCH_COPY, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&rope_table, 512, 128, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&linear_bias_gelu, 128, 2048, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&linear_bias_gelu, 1, 2048, 512, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&linear_bias_relu, 128, 2048, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&linear_bias_relu, 1, 2048, 512, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&bias_gelu, 512, 2048, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&add_layernorm, 128, 512, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&add_layernorm, 512, 1024, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&add_layernorm, 8192, 1024, 0, BENCH_COPY, BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&add_rmsnorm, 128, 512, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&add_rmsnorm, 512, 1024, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
};
const size_t bench_case_count = sizeof bench_cases / sizeof *bench_cases;

const char *bench_op_name(const struct bench_case *spec) { return spec->op->name; }
enum bench_form bench_form_of(const struct bench_case *spec) { return spec->op->form; }

int bench_is_product(const struct bench_case *spec) {
    return spec->op == &linear || spec->op == &gemm || spec->op == &gemm_bt;
}

int bench_is_fused(const struct bench_case *spec) { return spec->op->separately != NULL; }

iso_status bench_call_separately(const struct bench_job *job, float *out) {
    return job->spec->op->separately(job, out);
}

void bench_shape(char *text, size_t bytes, const struct bench_case *spec) {
    const struct bench_op *op = spec->op;
    if (op == &attention || op == &attention_causal || op == &attention_window ||
        op == &attention_bias || op == &attention_t5)
        snprintf(text, bytes, "B1H%dS%zud%zu", HEADS, spec->m, spec->k);
    else if (op == &attention_decode || op == &decode_row_major)
        snprintf(text, bytes, "B1H%dK%zud%zu", HEADS, spec->n, spec->k);
    else if (op == &gemv || op == &gemv_t)
        snprintf(text, bytes, "%zux%zu", spec->n, spec->k);
    else if (spec->k)
        snprintf(text, bytes, "%zux%zux%zu", spec->m, spec->n, spec->k);
    else
        snprintf(text, bytes, "%zux%zu", spec->m, spec->n);
}

const char *bench_lacking(const struct bench_library *library, const struct bench_case *spec) {
    return bench_operation_name(library->lacks & spec->op->needs);
}

int bench_has_row(const struct bench_case *spec, const char *isa, int all_threads) {
    return (spec->flags & BENCH_SCALAR || strcmp(isa, "scalar") != 0) &&
           (spec->flags & BENCH_THREADS || !all_threads);
}

void bench_name(char *text, size_t bytes, const struct bench_case *spec, const char *isa,
                size_t threads) {
    char shape[32];
    bench_shape(shape, sizeof shape, spec);
    snprintf(text, bytes, "%s/%s/%s/t%zu", bench_op_name(spec), shape, isa, threads);
}

iso_status bench_prepare(struct bench_job *job, const struct bench_library *library,
                         const struct bench_case *spec, const struct bench_place *place) {
    *job = (struct bench_job){
        .spec = spec,
        .library = library,
        .context = {.size = sizeof(iso_context), .isa = place->isa, .executor = place->executor},
        .out = memory.out,
    };
    memory.used = 0;
    iso_status status = spec->op->prepare(job);
    if (!status && (!job->a || job->out_floats > memory.out_floats))
        status = ISOBIT_E_NOMEM;
    job->operations = job->flops > 0 ? job->flops : job->elements * spec->op->cost;
    return status;
}

iso_status bench_call(const struct bench_job *job) { return job->spec->op->call(job); }

void bench_spoil(const struct bench_job *job) {
    memset(job->out, 0xff, job->out_floats * sizeof(float));
}

double bench_checksum(const struct bench_job *job) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < job->out_floats; i++) {
        uint32_t bits;
        memcpy(&bits, job->out + i, sizeof bits);
        h = (h ^ bits) * UINT64_C(0x100000001b3);
        h ^= h >> 29;
    }
    return (double)(h >> 12);
}
