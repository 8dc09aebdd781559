/* SPDX-License-Identifier: MIT
 *
 * oneDNN as a peer (see peers.h). Products of packed weights are its matmul with weights in the
 * form that it prefers, reordered ahead; plain products its sgemm; the others its primitives.
 * Attention, which it has no primitive for, is two matmuls and a softmax, as programs write it:
 * the scores of all heads go through memory.
 */
#include "peers.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>

/* The functions that are used, found when the program runs. */
#define FUNCTIONS(X)                                                                               \
    X(version)                                                                                     \
    X(get_effective_cpu_isa)                                                                       \
    X(sgemm)                                                                                       \
    X(engine_create)                                                                               \
    X(stream_create)                                                                               \
    X(stream_wait)                                                                                 \
    X(memory_create)                                                                               \
    X(memory_desc_init_by_strides)                                                                 \
    X(memory_desc_init_by_tag)                                                                     \
    X(primitive_attr_create)                                                                       \
    X(primitive_attr_set_output_scales)                                                            \
    X(primitive_desc_create)                                                                       \
    X(primitive_desc_destroy)                                                                      \
    X(primitive_desc_query_md)                                                                     \
    X(primitive_create)                                                                            \
    X(primitive_execute)                                                                           \
    X(reorder_primitive_desc_create)                                                               \
    X(matmul_desc_init)                                                                            \
    X(softmax_v2_forward_desc_init)                                                                \
    X(layer_normalization_forward_desc_init)                                                       \
    X(eltwise_forward_desc_init)
#define DECLARE(name) __typeof__(dnnl_##name) *name;
static struct { FUNCTIONS(DECLARE) } dnnl;

static dnnl_engine_t engine;
static dnnl_stream_t stream;
static void (*omp_set_threads)(int);
static size_t threads = 1;

/* Steps that are executed one after the other. Kept until the program ends. */
enum { MAX_STEPS = 3, MAX_ARGS = 4 };
struct step {
    dnnl_primitive_t primitive;
    int args;
    dnnl_exec_arg_t arg[MAX_ARGS];
};
struct plan {
    struct plan *next;
    const struct bench_case *spec;
    size_t threads;
    int steps; /* 0: oneDNN has no such operation, or refused it; negative: sgemm */
    struct step step[MAX_STEPS];
};
static struct plan *plans;

static dnnl_memory_desc_t describe(int dims, const size_t *size, const size_t *stride) {
    dnnl_memory_desc_t md;
    dnnl_dims_t d = {0}, s = {0};
    for (int i = 0; i < dims; i++)
        d[i] = (dnnl_dim_t)size[i], s[i] = (dnnl_dim_t)stride[i];
    dnnl.memory_desc_init_by_strides(&md, dims, d, dnnl_f32, s);
    return md;
}

static dnnl_memory_desc_t describe_matrix(size_t rows, size_t columns, size_t down, size_t across) {
    return describe(2, (size_t[]){rows, columns}, (size_t[]){down, across});
}

/* An argument of the step. Data that is only read is not const in this interface. */
static int give(struct step *s, int index, const dnnl_memory_desc_t *md, const float *data) {
    dnnl_memory_t memory;
    if (s->args == MAX_ARGS ||
        dnnl.memory_create(&memory, md, engine,
                           data ? (void *)(uintptr_t)data : DNNL_MEMORY_ALLOCATE))
        return 0;
    s->arg[s->args++] = (dnnl_exec_arg_t){.arg = index, .memory = memory};
    return 1;
}

static int run(const struct step *s) {
    return dnnl.primitive_execute(s->primitive, stream, s->args, s->arg) == dnnl_success;
}

/* From an operation's description to the primitive; `weights` receives the form that it wants. */
static int create(struct step *s, const void *desc, const_dnnl_primitive_attr_t attributes,
                  dnnl_memory_desc_t *weights) {
    dnnl_primitive_desc_t pd;
    if (dnnl.primitive_desc_create(&pd, desc, attributes, engine, NULL))
        return 0;
    int good = dnnl.primitive_create(&s->primitive, pd) == dnnl_success;
    if (good && weights)
        *weights = *dnnl.primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    dnnl.primitive_desc_destroy(pd);
    return good;
}

/* ------------------------------------------------------------------------------ the operations */

static int plan_linear(struct plan *p, const struct bench_job *job, float *out) {
    const size_t m = job->spec->m, n = job->spec->n, k = job->spec->k;
    struct step *s = &p->step[0];
    dnnl_memory_desc_t x = describe_matrix(m, k, k, 1), y = describe_matrix(m, n, n, 1);
    dnnl_memory_desc_t plain = describe_matrix(k, n, 1, k), wanted, chosen;
    dnnl_matmul_desc_t desc;
    if (dnnl.memory_desc_init_by_tag(&wanted, 2, (dnnl_dims_t){(dnnl_dim_t)k, (dnnl_dim_t)n},
                                     dnnl_f32, dnnl_format_tag_any) ||
        dnnl.matmul_desc_init(&desc, &x, &wanted, NULL, &y) || !create(s, &desc, NULL, &chosen))
        return 0;
    /* pack */
    struct step pack = {0};
    dnnl_primitive_desc_t pd;
    if (dnnl.reorder_primitive_desc_create(&pd, &plain, engine, &chosen, engine, NULL) ||
        dnnl.primitive_create(&pack.primitive, pd) || !give(&pack, DNNL_ARG_FROM, &plain, job->b) ||
        !give(&pack, DNNL_ARG_TO, &chosen, NULL) || !run(&pack))
        return 0;
    if (!give(s, DNNL_ARG_SRC, &x, job->a) || !give(s, DNNL_ARG_DST, &y, out))
        return 0;
    s->arg[s->args++] = (dnnl_exec_arg_t){.arg = DNNL_ARG_WEIGHTS, .memory = pack.arg[1].memory};
    return 1;
}

static int plan_softmax(struct plan *p, const struct bench_job *job, float *out) {
    const size_t m = job->spec->m, n = job->spec->n;
    dnnl_memory_desc_t md = describe_matrix(m, n, n, 1);
    dnnl_softmax_v2_desc_t desc;
    struct step *s = &p->step[0];
    return dnnl.softmax_v2_forward_desc_init(&desc, dnnl_forward_inference, dnnl_softmax_accurate,
                                             &md, &md, 1) == dnnl_success &&
           create(s, &desc, NULL, NULL) && give(s, DNNL_ARG_SRC, &md, job->a) &&
           give(s, DNNL_ARG_DST, &md, out);
}

static int plan_layernorm(struct plan *p, const struct bench_job *job, float *out) {
    const size_t m = job->spec->m, n = job->spec->n;
    dnnl_memory_desc_t md = describe_matrix(m, n, n, 1);
    dnnl_memory_desc_t vector = describe(1, &n, (size_t[]){1});
    dnnl_layer_normalization_desc_t desc;
    struct step *s = &p->step[0];
    return dnnl.layer_normalization_forward_desc_init(&desc, dnnl_forward_inference, &md, NULL,
                                                      1e-5f, dnnl_use_scale | dnnl_use_shift) ==
               dnnl_success &&
           create(s, &desc, NULL, NULL) && give(s, DNNL_ARG_SRC, &md, job->a) &&
           give(s, DNNL_ARG_SCALE, &vector, job->b) && give(s, DNNL_ARG_SHIFT, &vector, job->c) &&
           give(s, DNNL_ARG_DST, &md, out);
}

static int plan_eltwise(struct plan *p, const struct bench_job *job, float *out,
                        dnnl_alg_kind_t kind, float alpha) {
    const size_t m = job->spec->m, n = job->spec->n;
    dnnl_memory_desc_t md = describe_matrix(m, n, n, 1);
    dnnl_eltwise_desc_t desc;
    struct step *s = &p->step[0];
    return dnnl.eltwise_forward_desc_init(&desc, dnnl_forward_inference, kind, &md, alpha, 0) ==
               dnnl_success &&
           create(s, &desc, NULL, NULL) && give(s, DNNL_ARG_SRC, &md, job->a) &&
           give(s, DNNL_ARG_DST, &md, out);
}

/* Scores of all heads at once: beyond this they would not fit into any cache, nor in patience. */
#define MAX_SCORES ((size_t)1 << 24)

static int plan_attention(struct plan *p, const struct bench_job *job, float *out) {
    const iso_attention_shape *a = &job->shape;
    const size_t H = a->H, S = a->Sq, dh = a->dh;
    if (H * S * S > MAX_SCORES)
        return 0;
    const size_t rows[] = {H, S, dh}, keys[] = {H, dh, S}, square[] = {H, S, S};
    dnnl_memory_desc_t q = describe(3, rows, (size_t[]){a->q.head, a->q.seq, 1});
    dnnl_memory_desc_t k = describe(3, keys, (size_t[]){a->k.head, 1, a->k.seq});
    dnnl_memory_desc_t v = describe(3, rows, (size_t[]){a->v.head, a->v.seq, 1});
    dnnl_memory_desc_t o = describe(3, rows, (size_t[]){a->o.head, a->o.seq, 1});
    dnnl_memory_desc_t scores = describe(3, square, (size_t[]){S * S, S, 1});
    static dnnl_matmul_desc_t by_keys, by_values; /* too large for the stack */
    static dnnl_softmax_v2_desc_t softmax;
    dnnl_primitive_attr_t scaled;
    const float scale = job->scale;
    struct step *s = p->step;
    if (dnnl.primitive_attr_create(&scaled) ||
        dnnl.primitive_attr_set_output_scales(scaled, 1, 0, &scale) ||
        dnnl.matmul_desc_init(&by_keys, &q, &k, NULL, &scores) ||
        dnnl.softmax_v2_forward_desc_init(&softmax, dnnl_forward_inference, dnnl_softmax_accurate,
                                          &scores, &scores, 2) ||
        dnnl.matmul_desc_init(&by_values, &scores, &v, NULL, &o) ||
        !create(&s[0], &by_keys, scaled, NULL) || !create(&s[1], &softmax, NULL, NULL) ||
        !create(&s[2], &by_values, NULL, NULL) || !give(&s[0], DNNL_ARG_SRC, &q, job->a) ||
        !give(&s[0], DNNL_ARG_WEIGHTS, &k, job->b) || !give(&s[0], DNNL_ARG_DST, &scores, NULL) ||
        !give(&s[2], DNNL_ARG_WEIGHTS, &v, job->c) || !give(&s[2], DNNL_ARG_DST, &o, out))
        return 0;
    const dnnl_memory_t memory = s[0].arg[2].memory; /* the softmax works in place */
    s[1].arg[s[1].args++] = (dnnl_exec_arg_t){.arg = DNNL_ARG_SRC, .memory = memory};
    s[1].arg[s[1].args++] = (dnnl_exec_arg_t){.arg = DNNL_ARG_DST, .memory = memory};
    s[2].arg[s[2].args++] = (dnnl_exec_arg_t){.arg = DNNL_ARG_SRC, .memory = memory};
    return 3;
}

static int plan_steps(struct plan *p, const struct bench_job *job, float *out) {
    switch (bench_form_of(job->spec)) {
    case BENCH_FORM_LINEAR: return plan_linear(p, job, out);
    case BENCH_FORM_GEMM:
    case BENCH_FORM_GEMM_BT:
    case BENCH_FORM_GEMV:
    case BENCH_FORM_GEMV_T: return -1;
    case BENCH_FORM_SOFTMAX: return plan_softmax(p, job, out);
    case BENCH_FORM_LAYERNORM: return plan_layernorm(p, job, out);
    case BENCH_FORM_GELU_ERF: return plan_eltwise(p, job, out, dnnl_eltwise_gelu_erf, 0);
    case BENCH_FORM_GELU_TANH: return plan_eltwise(p, job, out, dnnl_eltwise_gelu_tanh, 0);
    case BENCH_FORM_SILU: return plan_eltwise(p, job, out, dnnl_eltwise_swish, 1);
    case BENCH_FORM_RELU: return plan_eltwise(p, job, out, dnnl_eltwise_relu, 0);
    case BENCH_FORM_ATTENTION: return plan_attention(p, job, out);
    default: return 0;
    }
}

static const void *prepare(const struct bench_job *job, float *out) {
    struct plan *p = plans;
    while (p && !(p->spec == job->spec && p->threads == threads))
        p = p->next;
    if (!p) {
        p = calloc(1, sizeof *p);
        if (!p)
            return NULL;
        p->spec = job->spec, p->threads = threads;
        p->steps = plan_steps(p, job, out);
        p->next = plans;
        plans = p;
    }
    return p->steps ? p : NULL;
}

static void call(const void *state, const struct bench_job *job, float *out) {
    const struct plan *p = state;
    const dnnl_dim_t m = (dnnl_dim_t)job->spec->m, n = (dnnl_dim_t)job->spec->n,
                     k = (dnnl_dim_t)job->spec->k;
    for (int i = 0; i < p->steps; i++)
        run(&p->step[i]);
    if (p->steps > 0) {
        dnnl.stream_wait(stream);
        return;
    }
    switch (bench_form_of(job->spec)) {
    case BENCH_FORM_GEMM:
    case BENCH_FORM_GEMV_T:
        dnnl.sgemm('N', 'N', m, n, k, 1, job->a, k, job->b, n, 0, out, n);
        break;
    default: dnnl.sgemm('N', 'T', m, n, k, 1, job->a, k, job->b, k, 0, out, n); break;
    }
}

static void set_threads(size_t n) {
    threads = n;
    if (omp_set_threads)
        omp_set_threads((int)n);
}

int bench_open_onednn(struct bench_peer *peer) {
    void *library = bench_open_library("libdnnl.so.2"), *omp = bench_open_library("libgomp.so.1");
    if (!library || !omp || !bench_find_symbol(&omp_set_threads, omp, "omp_set_num_threads"))
        return 0;
#define FIND(name)                                                                                 \
    if (!bench_find_symbol(&dnnl.name, library, "dnnl_" #name))                                    \
        return 0;
    FUNCTIONS(FIND)
    set_threads(1);
    if (dnnl.engine_create(&engine, dnnl_cpu, 0) ||
        dnnl.stream_create(&stream, engine, dnnl_stream_default_flags))
        return 0;
    const dnnl_version_t *v = dnnl.version();
    const unsigned isa = (unsigned)dnnl.get_effective_cpu_isa();
    *peer = (struct bench_peer){
        .name = "oneDNN", .set_threads = set_threads, .prepare = prepare, .call = call};
    snprintf(peer->version, sizeof peer->version, "oneDNN %d.%d.%d, %s", v->major, v->minor,
             v->patch,
             isa >= dnnl_cpu_isa_avx512_core ? "AVX-512"
             : isa >= dnnl_cpu_isa_avx2      ? "AVX2"
                                             : "without AVX2");
    return 1;
}
