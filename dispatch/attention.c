/* SPDX-License-Identifier: MIT
 *
 * Attention: argument checks, and the cut into heads and blocks of queries. Row-major keys are laid
 * into panels once for each head, unless there is a single query, or so few that it does not pay.
 * Where many queries use them, strided values are copied into contiguous rows: else they map to few
 * sets of the caches. A task does this for a head and uses it while it is in the cache, in scratch
 * for one head; where heads cannot be shared out evenly, it is done for all of them first.
 */
#include "check.h"
#include "verbose.h"

#include <isobit/ops.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_HEAD_WIDTH 512
#define SMALL_WORK ((size_t)1 << 19)
#define RUNS_PER_THREAD 4 /* at least, so that threads end together */
#define MANY 512          /* queries and keys from which on a copy of the values pays */

struct job {
    const struct iso_kernels *kernels;
    float *o;
    const float *q, *k, *v;
    int w16; /* keys and values are these, of type16: */
    const uint16_t *k16, *v16;
    int type16;
    const iso_attention_shape *s;
    const iso_attention_options *opt;
    float scale;
    /* Floats of a head's panels, and of its copy of the values, 0: none; one after the other. */
    size_t panels_head, values_head;
    float *heads, *scratch; /* [heads or tasks] panels and values; [tasks] */
    int rows;               /* one query, and keys in no panels */
    int whole_heads;        /* a task has a head to itself */
    int scattered;          /* heads of few queries, with key panels that are not all in L2 */
    size_t query_rows, query_blocks, tasks, scratch_task;
};

/* Panels of keys and rows of values of 16 bits. */
static size_t keys_w16(size_t count, size_t dh) { return iso_round_up(count, ISO_WIDE_PANEL) * dh; }
static size_t row_w16(size_t dh) { return iso_round_up(dh, ISO_WIDE_PANEL); }

static size_t keys_of(const struct job *t, size_t b) {
    return t->opt->key_lengths ? t->opt->key_lengths[b] : t->s->Sk;
}

/* Lays out the keys and values of head `at` (of B x H) as the `place`-th. */
static void pack_head(const struct job *t, size_t at, size_t place) {
    const iso_attention_shape *s = t->s;
    const size_t b = at / s->H, h = at % s->H;
    float *panels = t->heads + place * (t->panels_head + t->values_head);
    float *values = panels + t->panels_head;
    const float *v = t->v ? t->v + b * s->v.batch + h * s->v.head : NULL;
    if (t->panels_head)
        t->kernels->key_panels(panels, 0, t->k + b * s->k.batch + h * s->k.head, s->k.seq,
                               keys_of(t, b), s->dh);
    for (size_t j = 0; t->values_head && j < keys_of(t, b); j++)
        memcpy(values + j * s->dh, v + j * s->v.seq, s->dh * sizeof *values);
}

static void pack_heads(void *arg, size_t task) {
    const struct job *t = arg;
    for (size_t at = task; at < t->s->B * t->s->H; at += t->tasks)
        pack_head(t, at, at);
}

/* The keys and values of the task's next head, of which a block is prefetched meanwhile. The
 * hardware prefetches those that follow this one's in memory. */
static void prefetch_next_head(const struct job *t, struct iso_attention *a, size_t next) {
    const iso_attention_shape *s = t->s;
    if (next >= s->B * s->H || !(t->k || t->k16) || !(t->v || t->v16))
        return;
    const size_t b = next / s->H, h = next % s->H, nk = keys_of(t, b);
    const size_t k = b * s->k.batch + h * s->k.head, v = b * s->v.batch + h * s->v.head;
    int follows;
    if (t->w16) {
        a->k_after = (const float *)(const void *)(t->k16 + k);
        a->v_after = (const float *)(const void *)(t->v16 + v);
        follows =
            t->k16 + k == a->k16 + keys_w16(a->nk, s->dh) && t->v16 + v == a->v16 + a->nk * a->ldv;
    } else {
        a->k_after = t->k + k, a->v_after = t->v + v;
        follows = a->k_after == a->key_panels + iso_round_up(a->nk, ISO_PANEL) * s->dh &&
                  a->v_after == a->v + a->nk * a->ldv;
    }
    if (!follows)
        a->nk_after = nk < ISO_KEY_BLOCK ? nk : ISO_KEY_BLOCK;
}

/* Block `block` of the queries of head `at`, whose keys and values are the `place`-th. heads: see
 * struct iso_attention. */
static void run_block(const struct job *t, size_t task, size_t at, size_t place, size_t block,
                      size_t heads) {
    const iso_attention_shape *s = t->s;
    const iso_attention_options *opt = t->opt;
    const size_t b = at / s->H, h = at % s->H, i = block * t->query_rows;
    const size_t nq = s->Sq - i < t->query_rows ? s->Sq - i : t->query_rows;
    const float *panels = t->heads + place * (t->panels_head + t->values_head);
    const float *k = t->k ? t->k + b * s->k.batch + h * s->k.head : NULL;
    struct iso_attention a = {
        .o = t->o + b * s->o.batch + h * s->o.head + i * s->o.seq,
        .ldo = s->o.seq,
        .q = t->q + b * s->q.batch + h * s->q.head + i * s->q.seq,
        .ldq = s->q.seq,
        .key_panels = opt->key_panels  ? k
                      : t->panels_head ? panels
                                       : NULL,
        .k = k,
        .ldk = s->k.seq,
        .v = t->v ? t->v + b * s->v.batch + h * s->v.head : NULL,
        .ldv = s->v.seq,
        .nq = nq,
        .nq_after = s->Sq - i - nq,
        .nk = keys_of(t, b),
        .dh = s->dh,
        .causal = opt->causal,
        .see = opt->past + i + 1,
        .window = opt->window,
        .scale = t->scale,
        .softcap = opt->softcap,
        .scratch = t->scratch + task * t->scratch_task,
        .heads = heads,
        .q_head = s->q.head,
        .k_head = s->k.head,
        .v_head = s->v.head,
        .o_head = s->o.head,
        .bias_head = opt->bias_strides.head,
        .weights_head = opt->weights_strides.head,
    };
    if (t->w16) {
        a.k16 = t->k16 ? t->k16 + b * s->k.batch + h * s->k.head : NULL;
        a.v16 = t->v16 ? t->v16 + b * s->v.batch + h * s->v.head : NULL;
        a.type16 = t->type16;
    }
    if (t->scattered)
        prefetch_next_head(t, &a, at + t->tasks);
    if (t->values_head)
        a.v = panels + t->panels_head, a.ldv = s->dh;
    if (opt->bias) {
        a.ldb = (ptrdiff_t)opt->bias_strides.seq;
        a.bias = opt->bias + b * opt->bias_strides.batch + h * opt->bias_strides.head +
                 (ptrdiff_t)i * a.ldb;
    }
    if (opt->weights) {
        a.weights = opt->weights + b * opt->weights_strides.batch + h * opt->weights_strides.head +
                    i * opt->weights_strides.seq;
        a.ldw = opt->weights_strides.seq;
        a.nk_weights = s->Sk;
    }
    if (t->w16)
        t->kernels->attention_w16(&a);
    else
        t->kernels->attention(&a);
}

static void run_heads(void *arg, size_t task) {
    const struct job *t = arg;
    for (size_t at = task; at < t->s->B * t->s->H; at += t->tasks) {
        pack_head(t, at, task);
        for (size_t block = 0; block < t->query_blocks; block++)
            run_block(t, task, at, task, block, 0);
    }
}

static void run_blocks(void *arg, size_t task) {
    const struct job *t = arg;
    for (size_t at = task; at < t->s->B * t->s->H * t->query_blocks; at += t->tasks)
        run_block(t, task, at / t->query_blocks, at / t->query_blocks, at % t->query_blocks, 0);
}

/* One query: keys as they lie. Heads that lie side by side in a row go together. */
static void run_rows(void *arg, size_t task) {
    const struct job *t = arg;
    const size_t all = t->s->B * t->s->H, each = all / t->tasks, more = all % t->tasks;
    const size_t begin = task * each + (task < more ? task : more);
    const size_t end = begin + each + (task < more);
    for (size_t at = begin, heads; at < end; at += heads) {
        heads = t->s->k.seq > t->s->dh ? ISO_HEADS_FLOATS / t->s->dh : 1;
        const size_t most[] = {ISO_HEADS, t->s->H - at % t->s->H, end - at};
        for (size_t i = 0; i < sizeof most / sizeof *most; i++)
            heads = heads < most[i] ? heads : most[i];
        run_block(t, task, at, 0, 0, heads);
    }
}

/* The extent of a strided tensor whose last dimension, of `last` elements, is contiguous. */
static iso_status check_tensor(const void *p, size_t B, size_t H, size_t S, size_t last,
                               const iso_strides *s) {
    size_t b, h, i, sum;
    if (!p)
        return ISOBIT_E_NULL;
    if (S > 1 && s->seq < last)
        return ISOBIT_E_LD;
    if (iso_mul_overflows(&b, B - 1, s->batch) || iso_mul_overflows(&h, H - 1, s->head) ||
        iso_mul_overflows(&i, S - 1, s->seq) || __builtin_add_overflow(b, h, &sum) ||
        __builtin_add_overflow(sum, i, &sum) || __builtin_add_overflow(sum, last, &sum) ||
        sum > PTRDIFF_MAX / sizeof(float))
        return ISOBIT_E_OVERFLOW;
    return ISOBIT_OK;
}

/*
 * Whether two tensors [B][H][S_o][n_o] and [B][H][S_x][n_x] overlap. Views of one buffer interleave
 * (q, k and v of one projection, heads side by side), so where the extents meet, all pairs of heads
 * are compared; heads that lie side by side count as one.
 */
static int tensors_overlap(const float *o, const iso_strides *so, size_t S_o, size_t n_o,
                           const float *x, const iso_strides *sx, size_t S_x, size_t n_x, size_t B,
                           size_t H) {
    if (!o || !x)
        return 0;
    const size_t extent_o = (B - 1) * so->batch + (H - 1) * so->head + (S_o - 1) * so->seq + n_o;
    const size_t extent_x = (B - 1) * sx->batch + (H - 1) * sx->head + (S_x - 1) * sx->seq + n_x;
    if (!iso_overlap(o, 1, extent_o, extent_o, x, 1, extent_x, extent_x))
        return 0;
    const size_t heads_o = so->head == n_o ? 1 : H, heads_x = sx->head == n_x ? 1 : H;
    const size_t columns_o = n_o * (H / heads_o), columns_x = n_x * (H / heads_x);
    for (size_t i = 0; i < B * heads_o; i++)
        for (size_t j = 0; j < B * heads_x; j++)
            if (iso_overlap(o + i / heads_o * so->batch + i % heads_o * so->head, S_o, columns_o,
                            so->seq, x + j / heads_x * sx->batch + j % heads_x * sx->head, S_x,
                            columns_x, sx->seq))
                return 1;
    return 0;
}

/* Whether an output [B][H][S][last] meets keys and values of 16 bits: whether the extents do. */
static int meets_w16(const float *o, const iso_strides *so, size_t last, const struct job *t) {
    const iso_attention_shape *s = t->s;
    const size_t b = s->B - 1, h = s->H - 1;
    const struct {
        const uint16_t *p;
        size_t extent;
    } x[] = {{t->k16, b * s->k.batch + h * s->k.head + keys_w16(s->Sk, s->dh)},
             {t->v16, b * s->v.batch + h * s->v.head + (s->Sk - 1) * s->v.seq + row_w16(s->dh)}};
    const size_t bytes = (b * so->batch + h * so->head + (s->Sq - 1) * so->seq + last) * sizeof *o;
    for (int i = 0; i < 2 && o; i++)
        if (iso_bytes_overlap(o, bytes, x[i].p, x[i].extent * sizeof *x->p))
            return 1;
    return 0;
}

static iso_status check(const struct job *t) {
    const iso_attention_shape *s = t->s;
    const iso_attention_options *opt = t->opt;
    size_t work;
    if ((t->w16 && !iso_is_w16((iso_w16)t->type16)) || !(opt->softcap >= 0) || isinf(opt->softcap))
        return ISOBIT_E_OPTION;
    if (s->dh > MAX_HEAD_WIDTH)
        return ISOBIT_E_DIM;
    if (iso_mul_overflows(&work, s->B, s->H) || iso_mul_overflows(&work, work, s->Sq) ||
        iso_mul_overflows(&work, s->B * s->H, s->Sk) || opt->past > PTRDIFF_MAX / 4 ||
        s->Sk > PTRDIFF_MAX / 4 || s->Sq > PTRDIFF_MAX / 4)
        return ISOBIT_E_OVERFLOW;
    if (!s->B || !s->H || !s->Sq || !s->dh)
        return ISOBIT_OK;
    for (size_t b = 0; opt->key_lengths && b < s->B; b++)
        if (opt->key_lengths[b] > s->Sk)
            return ISOBIT_E_RANGE;
    iso_status status = check_tensor(t->o, s->B, s->H, s->Sq, s->dh, &s->o);
    if (!status)
        status = check_tensor(t->q, s->B, s->H, s->Sq, s->dh, &s->q);
    if (!status && s->Sk && t->w16) {
        size_t panels;
        status = iso_mul_overflows(&panels, iso_round_up(s->Sk, ISO_WIDE_PANEL), s->dh)
                     ? ISOBIT_E_OVERFLOW
                     : check_tensor(t->k16, s->B, s->H, 1, panels, &s->k);
        if (!status)
            status = check_tensor(t->v16, s->B, s->H, s->Sk, row_w16(s->dh), &s->v);
    } else if (!status && s->Sk) {
        if (!opt->key_panels)
            status = check_tensor(t->k, s->B, s->H, s->Sk, s->dh, &s->k);
        else if (!t->k)
            status = ISOBIT_E_NULL;
        if (!status)
            status = check_tensor(t->v, s->B, s->H, s->Sk, s->dh, &s->v);
    }
    /* Of a bias by distance a head is one row, from that of the last query and the first key on. */
    const int by_distance = opt->bias && opt->bias_strides.seq == ISOBIT_BY_DISTANCE;
    const size_t bias_rows = by_distance ? 1 : s->Sq;
    const size_t bias_row = by_distance ? s->Sq - 1 + s->Sk : s->Sk;
    const float *bias = by_distance ? opt->bias - (s->Sq - 1) : opt->bias;
    if (!status && s->Sk && opt->bias)
        status = check_tensor(opt->bias, s->B, s->H, bias_rows, bias_row, &opt->bias_strides);
    if (!status && s->Sk && opt->weights)
        status = check_tensor(opt->weights, s->B, s->H, s->Sq, s->Sk, &opt->weights_strides);
    if (status || !s->Sk)
        return status;
    /* The outputs against the inputs and each other; heads of weights and bias are Sk wide. */
    const struct {
        const float *p;
        const iso_strides *strides;
        size_t S, last;
    } x[] = {{t->q, &s->q, s->Sq, s->dh},
             {t->v, &s->v, s->Sk, s->dh},
             {opt->key_panels ? NULL : t->k, &s->k, s->Sk, s->dh},
             {bias, &opt->bias_strides, bias_rows, bias_row},
             {opt->weights, &opt->weights_strides, s->Sq, s->Sk}};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        if (tensors_overlap(t->o, &s->o, s->Sq, s->dh, x[i].p, x[i].strides, x[i].S, x[i].last,
                            s->B, s->H) ||
            (i < 4 && tensors_overlap(opt->weights, &opt->weights_strides, s->Sq, s->Sk, x[i].p,
                                      x[i].strides, x[i].S, x[i].last, s->B, s->H)))
            return ISOBIT_E_ALIAS;
    return t->w16 && (meets_w16(t->o, &s->o, s->dh, t) ||
                      meets_w16(opt->weights, &opt->weights_strides, s->Sk, t))
               ? ISOBIT_E_ALIAS
               : ISOBIT_OK;
}

/* The options to read, in `own` where the caller's cannot be; NULL when their size is unknown. */
static const iso_attention_options *options_or_default(const iso_attention_options *options,
                                                       iso_attention_options *own,
                                                       const iso_attention_shape *s) {
    if (options)
        return ISO_OPTIONS(options, *own, key_panels);
    *own = (iso_attention_options){.size = sizeof *own};
    if (s->dh)
        own->scale = (float)(1.0 / sqrt((double)s->dh));
    return own;
}

/* Laying keys into panels pays from so many queries on; some kernels need it where few queries, or
 * the last of many, are a block. */
#define QUERIES_IN_PLACE ((size_t)3 * ISO_QUERY_BLOCK)

static int keys_in_place(const iso_attention_shape *s, const iso_attention_options *opt) {
    const size_t last = s->Sq % ISO_QUERY_BLOCK;
    return s->Sq <= QUERIES_IN_PLACE && (last == 0 || last > ISO_QUERIES_FEW) && !opt->weights &&
           !iso_keys_exceed_l2(s->Sk, s->dh);
}

/* Tasks, and the scratch that they and the panels take. */
static iso_status plan(struct job *t, size_t *floats, size_t threads) {
    const iso_attention_shape *s = t->s;
    size_t heads = s->B * s->H, work;
    const int panels = t->opt->key_panels || t->w16; /* there are some */
    t->query_rows = ISO_QUERY_BLOCK;
    if (!t->w16 && iso_keys_exceed_l2(s->Sk, s->dh) &&
        heads * (s->Sq / (ISO_QUERY_BLOCKS * ISO_QUERY_BLOCK)) >= RUNS_PER_THREAD * threads)
        t->query_rows = ISO_QUERY_BLOCKS * ISO_QUERY_BLOCK;
    t->query_blocks = (s->Sq + t->query_rows - 1) / t->query_rows;
    if (iso_mul_overflows(&work, heads * s->Sq, s->Sk) || iso_mul_overflows(&work, work, s->dh))
        work = SIZE_MAX;
    t->tasks = work < SMALL_WORK ? 1 : threads;
    if (t->tasks > heads * t->query_blocks)
        t->tasks = heads * t->query_blocks;
    t->whole_heads = t->tasks < 2 || heads % t->tasks == 0 || heads / t->tasks >= 4;
    t->panels_head = t->values_head = 0;
    t->scattered = panels && s->Sq <= ISO_QUERIES_FEW &&
                   iso_keys_exceed_l2(heads * s->Sk / (t->w16 ? 2 : 1), s->dh);
    t->rows = !panels && s->Sq == 1;
    if (!panels && !t->rows && !keys_in_place(s, t->opt)) {
        t->panels_head = iso_key_panels_floats(s->Sk, s->dh);
        if (t->panels_head == 0 && s->Sk)
            return ISOBIT_E_OVERFLOW;
    }
    if (!t->w16 && s->Sq >= MANY && s->Sk >= MANY && s->v.seq != s->dh &&
        iso_mul_overflows(&t->values_head, s->Sk, s->dh))
        return ISOBIT_E_OVERFLOW;
    size_t packed;
    t->scratch_task = iso_round_up(ISO_ATTENTION_SCRATCH(t->query_rows, s->dh), ISO_LINE);
    *floats = t->tasks * t->scratch_task;
    t->values_head = iso_round_up(t->values_head, ISO_LINE);
    return iso_mul_overflows(&packed, t->panels_head + t->values_head,
                             t->whole_heads ? t->tasks : heads) ||
                   __builtin_add_overflow(*floats, packed, floats)
               ? ISOBIT_E_OVERFLOW
               : ISOBIT_OK;
}

static iso_status workspace_bytes(size_t *bytes, struct job *t,
                                  const iso_attention_options *options,
                                  const iso_context *context) {
    iso_attention_options own;
    const iso_attention_shape *shape = t->s;
    size_t floats = 0, work;
    if (!bytes || !shape)
        return ISOBIT_E_NULL;
    if (!(t->opt = options_or_default(options, &own, shape)))
        return ISOBIT_E_SIZE;
    if (shape->dh > MAX_HEAD_WIDTH)
        return ISOBIT_E_DIM;
    if (iso_mul_overflows(&work, shape->B, shape->H) || iso_mul_overflows(&work, work, shape->Sq))
        return ISOBIT_E_OVERFLOW;
    iso_status status = iso_context_kernels(&t->kernels, context);
    if (!status && work && shape->dh)
        status = plan(t, &floats, iso_context_threads(context));
    if (!status)
        *bytes = iso_scratch_bytes(floats);
    return status;
}

iso_status iso_attention_f32_workspace_bytes(size_t *bytes, const iso_attention_shape *shape,
                                             const iso_attention_options *options,
                                             const iso_context *context) {
    struct job t = {.s = shape};
    return workspace_bytes(bytes, &t, options, context);
}

iso_status iso_attention_w16_workspace_bytes(size_t *bytes, const iso_attention_shape *shape,
                                             const iso_attention_options *options,
                                             const iso_context *context) {
    struct job t = {.s = shape, .w16 = 1};
    return workspace_bytes(bytes, &t, options, context);
}

/* *t becomes the job, as far as it gets. */
static iso_status attention_call(struct job *t, iso_attention_options *own,
                                 const iso_attention_options *options, const iso_context *context) {
    const iso_attention_shape *shape = t->s;
    if (!shape)
        return ISOBIT_E_NULL;
    if (!(t->opt = options_or_default(options, own, shape)))
        return ISOBIT_E_SIZE;
    iso_status status = check(t);
    if (!status)
        status = iso_context_kernels(&t->kernels, context);
    if (status || !shape->B || !shape->H || !shape->Sq || !shape->dh)
        return status;
    t->scale = t->opt->softcap > 0 ? t->opt->scale / t->opt->softcap : t->opt->scale;

    size_t floats;
    float *scratch;
    void *owned;
    status = plan(t, &floats, iso_context_threads(context));
    if (!status)
        status = iso_scratch(&scratch, &owned, context, floats);
    if (status)
        return status;
    t->scratch = scratch;
    t->heads = scratch + t->tasks * t->scratch_task;
    if (!t->whole_heads && t->panels_head + t->values_head)
        iso_parallel(context, t->tasks, pack_heads, t);
    iso_parallel(context, t->tasks,
                 t->rows          ? run_rows
                 : t->whole_heads ? run_heads
                                  : run_blocks,
                 t);
    free(owned);
    return ISOBIT_OK;
}

static const char *way_of(const struct job *t, int key_panels) {
    if (t->w16)
        return t->type16 == ISO_W16_BF16 ? "keys and values of 16 bits (bf16)"
                                         : "keys and values of 16 bits (f16)";
    if (key_panels)
        return "keys in panels";
    if (t->rows)
        return "one query with keys in place";
    if (!t->panels_head)
        return "keys in place";
    return t->values_head ? "packs keys and values" : "packs keys";
}

static const char *why(const struct job *t) {
    if (t->w16)
        return "they are widened in registers";
    if (t->opt->key_panels)
        return "keys lie in panels already";
    if (t->rows)
        return "keys of one query are read once";
    if (!t->panels_head)
        return "keys in panels pay for more queries";
    if (t->opt->weights)
        return "keys in panels are what weights are computed from";
    if (iso_keys_exceed_l2(t->s->Sk, t->s->dh))
        return "keys come from beyond L2";
    return t->s->Sq > QUERIES_IN_PLACE ? "keys are used by many blocks of queries"
                                       : "keys in panels suit few queries";
}

static iso_status traced_call(struct job t, const iso_attention_options *options,
                              const iso_context *context) {
    iso_attention_options own; /* to which t may point */
    const uint64_t begin = iso_verbose_begin();
    const iso_status status = attention_call(&t, &own, options, context);
    if (begin) {
        static const iso_attention_options no_options;
        static const iso_attention_shape no_shape;
        const iso_attention_shape *s = t.s ? t.s : &no_shape;
        iso_attention_options shown;
        const iso_attention_options *x = ISO_OPTIONS_OR(options, shown, key_panels, &no_options);
        const uint64_t end = iso_verbose_clock();
        char way[200] = "nothing to do", past[32] = "", window[32] = "";
        if (t.tasks && !status)
            snprintf(way, sizeof way, "%s; tasks %zu%s; blocks of %zu queries; %s",
                     way_of(&t, x->key_panels), t.tasks, t.whole_heads ? "; by heads" : "",
                     t.query_rows < s->Sq ? t.query_rows : s->Sq, why(&t));
        if (x->causal)
            snprintf(past, sizeof past, ":causal:past%zu", x->past);
        if (x->window)
            snprintf(window, sizeof window, ":window%zu", x->window);
        iso_verbose_end(begin, end, t.w16 ? "attention_w16" : "attention_f32", context, status, way,
                        "B%zuH%zuSq%zuSk%zudh%zu:ldq%zu:ldk%zu:ldv%zu:ldo%zu%s%s%s%s%s%s%s", s->B,
                        s->H, s->Sq, s->Sk, s->dh, s->q.seq, s->k.seq, s->v.seq, s->o.seq, past,
                        window, x->softcap != 0 ? ":softcap" : "",
                        x->key_lengths ? ":key_lengths" : "", x->bias ? ":bias" : "",
                        x->weights ? ":weights" : "", x->key_panels ? ":key_panels" : "");
    }
    return status;
}

iso_status iso_attention_f32(float *o, const float *q, const float *k, const float *v,
                             const iso_attention_shape *shape, const iso_attention_options *options,
                             const iso_context *context) {
    return traced_call((struct job){.o = o, .q = q, .k = k, .v = v, .s = shape}, options, context);
}

iso_status iso_attention_w16(float *o, const float *q, const uint16_t *k, const uint16_t *v,
                             iso_w16 type, const iso_attention_shape *shape,
                             const iso_attention_options *options, const iso_context *context) {
    const struct job t = {
        .o = o, .q = q, .w16 = 1, .k16 = k, .v16 = v, .type16 = (int)type, .s = shape};
    return traced_call(t, options, context);
}

size_t iso_key_panels_floats(size_t capacity, size_t dh) {
    size_t floats;
    if (capacity > SIZE_MAX - ISO_PANEL ||
        iso_mul_overflows(&floats, iso_round_up(capacity, ISO_PANEL), dh))
        return 0;
    return floats;
}

static iso_status key_panels_call(float *panels, size_t first, const float *k, size_t ldk,
                                  size_t count, size_t dh, const iso_context *context) {
    const struct iso_kernels *kernels;
    size_t floats = 0;
    iso_status status = iso_check_matrix(k, count, dh, ldk);
    if (!status && count && dh) {
        if (first <= SIZE_MAX - count)
            floats = iso_key_panels_floats(first + count, dh);
        if (!floats)
            status = ISOBIT_E_OVERFLOW;
        else if (!panels)
            status = ISOBIT_E_NULL;
        else if (iso_overlap(panels, 1, floats, floats, k, count, dh, ldk))
            status = ISOBIT_E_ALIAS;
    }
    if (!status)
        status = iso_context_kernels(&kernels, context);
    if (!status && count && dh)
        kernels->key_panels(panels, first, k, ldk, count, dh);
    return status;
}

iso_status iso_key_panels_append(float *panels, size_t first, const float *k, size_t ldk,
                                 size_t count, size_t dh, const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    const iso_status status = key_panels_call(panels, first, k, ldk, count, dh, context);
    if (begin)
        iso_verbose_end(begin, iso_verbose_clock(), "key_panels_append", context, status, NULL,
                        "first%zucount%zudh%zu:ldk%zu", first, count, dh, ldk);
    return status;
}
