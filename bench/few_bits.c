/* SPDX-License-Identifier: MIT
 *
 * Linear layers with weights of 16, 8 and 4 bits.
 */
#include "operations.h"

static const iso_q_format formats[] = {
    [PACKED_Q8] = {8, 32, ISOBIT_SCALE_F16}, [PACKED_Q4] = {4, 32, ISOBIT_SCALE_F16}};

/* Random floats of at most 1 as what is packed; of blocks the scale is 2^-7, or 2^-3. */
static void as_bf16(uint16_t *to, const float *w, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &w[i], sizeof bits);
        to[i] = (uint16_t)(bits >> 16);
    }
}
static void as_q8(unsigned char *to, const float *w, size_t count) {
    static const uint16_t scale = 0x2000;
    for (size_t i = 0; i < count; i += 32, to += 34) {
        memcpy(to, &scale, sizeof scale);
        for (size_t e = 0; e < 32; e++)
            to[2 + e] = (unsigned char)(int)(w[i + e] * 127);
    }
}
static void as_q4(unsigned char *to, const float *w, size_t count) {
    static const uint16_t scale = 0x3000;
    for (size_t i = 0; i < count; i += 32, to += 18) {
        memcpy(to, &scale, sizeof scale);
        for (size_t e = 0; e < 16; e++)
            to[2 + e] =
                (unsigned char)((int)(w[i + e] * 7 + 8) | (int)(w[i + e + 16] * 7 + 8) << 4);
    }
}

static iso_status packed_bytes(const struct bench_library *l, size_t *bytes, enum packed_kind kind,
                               size_t n, size_t k) {
    return kind == PACKED_W16  ? l->pack_w16_bytes(bytes, n, k)
           : kind == PACKED_S8 ? l->pack_s8_bytes(bytes, n, k)
                               : l->pack_q_bytes(bytes, n, k, &formats[kind]);
}

/* `plain` has room for n * k numbers of 16 bits. */
static iso_status pack(struct packed *p, void *to, void *plain, const float *w, size_t n, size_t k,
                       const iso_context *context) {
    const struct bench_library *l = p->library;
    switch (p->kind) {
    case PACKED_S8: return l->pack_s8(&p->matrix.s8, to, p->bytes, w, k, n, k, 0, context);
    case PACKED_W16:
        as_bf16(plain, w, n * k);
        return l->pack_w16(&p->matrix.w16, to, p->bytes, plain, k, n, k, 0, ISOBIT_BF16, context);
    case PACKED_Q8: as_q8(plain, w, n * k); break;
    default: as_q4(plain, w, n * k);
    }
    return l->pack_q(&p->matrix.q, to, p->bytes, plain, k / 32, n, k, &formats[p->kind], context);
}

/* Libraries that pack alike read the same memory, to which the matrix then points. */
static void share(struct packed *p) {
    iso_packed_s8 *s8 = &p->matrix.s8;
    const char *data = (const char *)p->data;
    const ptrdiff_t scales = p->kind == PACKED_S8 ? (const char *)s8->scales - data : 0;
    const ptrdiff_t start = p->kind == PACKED_S8 ? (const char *)s8->start - data : 0;
    share_packed(p);
    data = (const char *)p->data;
    if (p->kind == PACKED_S8) {
        s8->data = (const int8_t *)data;
        s8->scales = (const float *)(const void *)(data + scales);
        s8->start = (const int32_t *)(const void *)(data + start);
    } else if (p->kind == PACKED_W16) {
        p->matrix.w16.data = (const uint16_t *)(const void *)data;
    } else {
        p->matrix.q.data = (const uint32_t *)(const void *)data;
    }
}

static iso_status workspace_bytes(const struct bench_job *job, size_t *bytes,
                                  enum packed_kind kind) {
    const struct bench_library *l = job->library;
    const union bench_packed *w = &job->packed;
    const size_t m = job->spec->m;
    return kind == PACKED_W16  ? l->linear_w16_workspace_bytes(bytes, &w->w16, m, &job->context)
           : kind == PACKED_S8 ? l->linear_s8_workspace_bytes(bytes, &w->s8, m, &job->context)
                               : l->linear_q_workspace_bytes(bytes, &w->q, m, &job->context);
}

static iso_status prepare(struct bench_job *job, enum packed_kind kind) {
    const size_t m = job->spec->m, n = job->spec->n, k = job->spec->k;
    size_t bytes;
    iso_status status = packed_bytes(job->library, &bytes, kind, n, k);
    count_product(job);
    job->bytes = 4 * ((double)m * (double)n + (double)m * (double)k) + (double)bytes;
    const float *w = input(n * k); /* first, so that all m pack the same numbers */
    job->a = input(m * k), job->b = w;
    struct packed *p = find_packed(job->library, kind, n, k);
    if (!status && !p) {
        void *plain = malloc(2 * n * k);
        if (!w || !plain || !(p = add_packed(job->library, kind, n, k, bytes))) {
            free(plain);
            return ISOBIT_E_NOMEM;
        }
        status = pack(p, p->data, plain, w, n, k, &job->context);
        free(plain);
        if (status)
            return drop_packed(status);
        share(p);
    }
    if (status)
        return status;
    job->packed = p->matrix;
    status = workspace_bytes(job, &bytes, kind);
    return status ? status : need_workspace(job, bytes);
}

iso_status prepare_bf16(struct bench_job *job) { return prepare(job, PACKED_W16); }

/* In native numerics, which the workspace is for as well; all other cases have fixed ones. */
static iso_status back_to_fixed(const struct bench_job *job, iso_status status) {
    const iso_status back = job->library->set_numerics("fixed");
    return status ? status : back;
}
iso_status prepare_b16(struct bench_job *job) {
    const iso_status status = job->library->set_numerics("native");
    return status ? status : back_to_fixed(job, prepare(job, PACKED_W16));
}

iso_status prepare_q8(struct bench_job *job) { return prepare(job, PACKED_Q8); }
iso_status prepare_q4(struct bench_job *job) { return prepare(job, PACKED_Q4); }
static iso_status prepare_q_s8(struct bench_job *job, enum packed_kind kind) {
    size_t bytes;
    iso_status status = prepare(job, kind);
    if (!status)
        status = job->library->linear_q_s8_workspace_bytes(&bytes, &job->packed.q, job->spec->m,
                                                           &job->context);
    return status ? status : need_workspace(job, bytes);
}
iso_status prepare_q8_s8(struct bench_job *job) { return prepare_q_s8(job, PACKED_Q8); }
iso_status prepare_q4_s8(struct bench_job *job) { return prepare_q_s8(job, PACKED_Q4); }
iso_status prepare_s8(struct bench_job *job) { return prepare(job, PACKED_S8); }

iso_status call_w16(const struct bench_job *job) {
    return job->library->linear_w16(job->out, job->spec->n, job->a, job->spec->k, &job->packed.w16,
                                    job->spec->m, NULL, &job->context);
}
iso_status call_b16(const struct bench_job *job) {
    const iso_status status = job->library->set_numerics("native");
    return status ? status : back_to_fixed(job, call_w16(job));
}
iso_status call_q(const struct bench_job *job) {
    return job->library->linear_q(job->out, job->spec->n, job->a, job->spec->k, &job->packed.q,
                                  job->spec->m, NULL, &job->context);
}
iso_status call_q_s8(const struct bench_job *job) {
    return job->library->linear_q_s8(job->out, job->spec->n, job->a, job->spec->k, &job->packed.q,
                                     job->spec->m, NULL, &job->context);
}
iso_status call_s8(const struct bench_job *job) {
    return job->library->linear_s8(job->out, job->spec->n, job->a, job->spec->k, &job->packed.s8,
                                   job->spec->m, NULL, &job->context);
}
