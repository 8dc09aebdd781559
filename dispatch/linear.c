/* SPDX-License-Identifier: MIT
 *
 * Products with packed weights, of floats, of 16 bits and in groups; packing of floats (that of the
 * others is in w16.c and q.c).
 */
#include "packed_weights.h"
#include "plan_text.h"
#include "q.h"
#include "verbose.h"

iso_status iso_pack_f32_bytes(size_t *bytes, size_t n, size_t k) {
    size_t floats;
    if (!bytes)
        return ISOBIT_E_NULL;
    if (n > SIZE_MAX - ISO_PANEL || iso_mul_overflows(&floats, iso_round_up(n, ISO_PANEL), k))
        return ISOBIT_E_OVERFLOW;
    *bytes = floats * sizeof(float);
    return ISOBIT_OK;
}

struct packing {
    const struct iso_kernels *kernels;
    float *panels;
    const float *w; /* element (j, p) at w[j * wj + p * wp] */
    size_t wj, wp, n, k, tasks;
};

static void pack_some(void *arg, size_t task) {
    const struct packing *t = arg;
    const size_t panels = (t->n + ISO_PANEL - 1) / ISO_PANEL;
    const size_t first = panels * task / t->tasks, end = panels * (task + 1) / t->tasks;
    if (first < end)
        t->kernels->gemm_pack(
            t->panels + first * ISO_PANEL * t->k, t->w + first * ISO_PANEL * t->wj, t->wj, t->wp,
            iso_min_size(t->n, end * ISO_PANEL) - first * ISO_PANEL, t->k, ISO_PANEL);
}

static iso_status pack_call(iso_packed *p, void *packed, size_t packed_bytes, const float *w,
                            size_t ldw, size_t n, size_t k, int trans_w,
                            const iso_context *context) {
    size_t bytes;
    if (!p)
        return ISOBIT_E_NULL;
    iso_status status = iso_pack_f32_bytes(&bytes, n, k);
    if (!status)
        status = iso_check_matrix(w, trans_w ? k : n, trans_w ? n : k, ldw);
    if (status)
        return status;
    const struct iso_kernels *kernels;
    status =
        iso_check_packed(&kernels, packed, packed_bytes, bytes, w,
                         iso_extent(trans_w ? k : n, trans_w ? n : k, ldw, sizeof *w), context);
    if (status)
        return status;
    if (n && k) {
        struct packing t = {kernels,           packed, w, trans_w ? 1 : ldw,
                            trans_w ? ldw : 1, n,      k, iso_context_threads(context)};
        iso_parallel(context, t.tasks, pack_some, &t);
    }
    *p = (iso_packed){packed, n, k};
    return ISOBIT_OK;
}

iso_status iso_pack_f32(iso_packed *p, void *packed, size_t packed_bytes, const float *w,
                        size_t ldw, size_t n, size_t k, int trans_w, const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    const iso_status status = pack_call(p, packed, packed_bytes, w, ldw, n, k, trans_w, context);
    if (begin)
        iso_verbose_end(begin, iso_verbose_clock(), "pack_f32", context, status, NULL,
                        "n%zuk%zu:%c:ldw%zu", n, k, trans_w ? 't' : 'n', ldw);
    return status;
}

/* The kernels of a call, and in native numerics those that multiply these weights. */
static iso_status kernels_of(const struct iso_kernels **kernels, struct iso_weights *w,
                             const iso_context *context) {
    const struct iso_isa *isa;
    const iso_status status = iso_context_isa(&isa, context);
    if (status)
        return status;
    *kernels = isa->kernels;
    if (w->w16 && w->type == ISO_W16_BF16) {
        const int native = iso_numerics_are_native();
        if (native < 0)
            return ISOBIT_E_OPTION;
        w->native = native && isa->s8->gemm_b16 ? iso_isa_s8(isa) : NULL;
    }
    return ISOBIT_OK;
}

static struct iso_gemm_shape shape_of(const struct iso_weights *w, size_t m,
                                      const iso_context *context) {
    return (struct iso_gemm_shape){.m = m,
                                   .n = w->n,
                                   .k = w->k,
                                   .threads = iso_context_threads(context),
                                   .panels = 1,
                                   .w16 = w->w16,
                                   .b16 = w->native != NULL,
                                   .q = w->q};
}

static iso_status workspace_bytes(size_t *bytes, struct iso_weights *w, size_t m,
                                  const iso_context *context) {
    const struct iso_kernels *kernels;
    size_t floats = 0;
    iso_status status = kernels_of(&kernels, w, context);
    if (!status && m && w->n && w->k) {
        const struct iso_gemm_machine machine = iso_gemm_this_machine(kernels);
        const struct iso_gemm_shape shape = shape_of(w, m, context);
        status = iso_gemm_promise(&floats, &shape, &machine, 1);
    }
    if (!status)
        *bytes = iso_scratch_bytes(floats);
    return status;
}

static iso_status linear_call(float *y, size_t ldy, const float *x, size_t ldx,
                              struct iso_weights *w, size_t m, const iso_linear_options *options,
                              const iso_context *context) {
    struct iso_epilogue e = {.alpha = 1.0f};
    const struct iso_kernels *kernels;
    iso_linear_options own;
    if (options) {
        if (!(options = ISO_OPTIONS(options, own, ldr)))
            return ISOBIT_E_SIZE;
        e.bias = options->bias, e.act = (int)options->act;
        e.residual = options->residual, e.ldr = options->ldr;
    }
    const size_t n = w->n, k = w->k;
    iso_status status = iso_check_epilogue(y, ldy, m, n, &e);
    if (!status)
        status = kernels_of(&kernels, w, context);
    if (status || m == 0 || n == 0)
        return status;
    if ((status = iso_check_matrix(x, m, k, ldx)) || (status = iso_check_matrix(w->data, k, n, n)))
        return status;
    if (iso_overlap(y, m, n, ldy, x, m, k, ldx))
        return ISOBIT_E_ALIAS;
    struct iso_product t = {.machine = iso_gemm_this_machine(kernels),
                            .m = m,
                            .n = n,
                            .k = k,
                            .c = y,
                            .ldc = ldy,
                            .a = x,
                            .ai = ldx,
                            .ap = 1,
                            .b = w->w16 || w->q ? NULL : w->data,
                            .bs = ISO_PANEL,
                            .bps = iso_weights_panel(w),
                            .w = w,
                            .e = &e};
    if (k == 0) {
        iso_finish_zeros(&t);
        return ISOBIT_OK;
    }
    struct iso_gemm_shape shape = shape_of(w, m, context);
    if ((status = iso_check_workspace(context, &shape, &t.machine, 1)))
        return status;
    shape.own_sums = iso_needs_own_sums(&e, y);
    t.plan = iso_gemm_plan(&shape, &t.machine);
    return iso_product_run(context, &t);
}

/* The plan in words. */
static void say_plan(char *text, size_t bytes, const float *y, struct iso_weights *w, size_t m,
                     const iso_linear_options *o, const iso_context *context) {
    const struct iso_epilogue e = {.alpha = 1.0f, .residual = o->residual};
    const struct iso_kernels *kernels;
    if (kernels_of(&kernels, w, context))
        return;
    const struct iso_gemm_machine machine = iso_gemm_this_machine(kernels);
    struct iso_gemm_shape shape = shape_of(w, m, context);
    shape.own_sums = iso_needs_own_sums(&e, y);
    iso_gemm_say(text, bytes, &shape, &machine);
}

/* With a line about it, if that is asked for; `status` is what was found out about w. */
static iso_status linear(const char *name, iso_status status, float *y, size_t ldy, const float *x,
                         size_t ldx, struct iso_weights *w, size_t m,
                         const iso_linear_options *options, const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    if (!status)
        status = linear_call(y, ldy, x, ldx, w, m, options, context);
    if (begin) {
        static const iso_linear_options none;
        iso_linear_options own;
        const iso_linear_options *o = ISO_OPTIONS_OR(options, own, ldr, &none);
        const uint64_t end = iso_verbose_clock();
        char way[400] = "no product";
        if (!status && w->n && w->k && m)
            say_plan(way, sizeof way, y, w, m, o, context);
        iso_verbose_end(begin, end, name, context, status, way, "m%zun%zuk%zu:ldx%zu:ldy%zu%s%s%s",
                        m, w->n, w->k, ldx, ldy, o->bias ? ":bias" : "",
                        iso_verbose_act((int)o->act), o->residual ? ":residual" : "");
    }
    return status;
}

static struct iso_weights weights_of(const iso_packed *w) {
    return w ? (struct iso_weights){w->data, w->n, w->k, 0, 0, 0, NULL}
             : (struct iso_weights){.n = 0};
}

iso_status iso_linear_f32(float *y, size_t ldy, const float *x, size_t ldx, const iso_packed *w,
                          size_t m, const iso_linear_options *options, const iso_context *context) {
    struct iso_weights of = weights_of(w);
    return linear("linear_f32", w ? ISOBIT_OK : ISOBIT_E_NULL, y, ldy, x, ldx, &of, m, options,
                  context);
}

iso_status iso_linear_f32_workspace_bytes(size_t *bytes, const iso_packed *w, size_t m,
                                          const iso_context *context) {
    struct iso_weights of = weights_of(w);
    return bytes && w ? workspace_bytes(bytes, &of, m, context) : ISOBIT_E_NULL;
}

static iso_status weights_of_16(struct iso_weights *of, const iso_packed_w16 *w) {
    *of = (struct iso_weights){.n = 0};
    if (!w)
        return ISOBIT_E_NULL;
    *of = (struct iso_weights){w->data, w->n, w->k, 1, 0, (int)w->type, NULL};
    return iso_is_w16(w->type) ? ISOBIT_OK : ISOBIT_E_OPTION;
}

iso_status iso_linear_w16(float *y, size_t ldy, const float *x, size_t ldx, const iso_packed_w16 *w,
                          size_t m, const iso_linear_options *options, const iso_context *context) {
    struct iso_weights of;
    const iso_status status = weights_of_16(&of, w);
    return linear("linear_w16", status, y, ldy, x, ldx, &of, m, options, context);
}

iso_status iso_linear_w16_workspace_bytes(size_t *bytes, const iso_packed_w16 *w, size_t m,
                                          const iso_context *context) {
    struct iso_weights of;
    const iso_status status = bytes ? weights_of_16(&of, w) : ISOBIT_E_NULL;
    return status ? status : workspace_bytes(bytes, &of, m, context);
}

static iso_status weights_of_q(struct iso_weights *of, const iso_packed_q *w) {
    *of = (struct iso_weights){.n = 0};
    if (!w)
        return ISOBIT_E_NULL;
    const int type = iso_q_type(&w->format);
    if (type < 0)
        return ISOBIT_E_OPTION;
    *of = (struct iso_weights){w->data, w->n, w->k, 0, (int)w->format.bits, type, NULL};
    return w->k % iso_q_block(type) ? ISOBIT_E_DIM : ISOBIT_OK;
}

iso_status iso_linear_q(float *y, size_t ldy, const float *x, size_t ldx, const iso_packed_q *w,
                        size_t m, const iso_linear_options *options, const iso_context *context) {
    struct iso_weights of;
    const iso_status status = weights_of_q(&of, w);
    return linear("linear_q", status, y, ldy, x, ldx, &of, m, options, context);
}

iso_status iso_linear_q_workspace_bytes(size_t *bytes, const iso_packed_q *w, size_t m,
                                        const iso_context *context) {
    struct iso_weights of;
    const iso_status status = bytes ? weights_of_q(&of, w) : ISOBIT_E_NULL;
    return status ? status : workspace_bytes(bytes, &of, m, context);
}
