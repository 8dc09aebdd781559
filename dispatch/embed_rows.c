/* SPDX-License-Identifier: MIT
 *
 * See embed_rows.h.
 */
#include "embed_rows.h"

#define SMALL ((size_t)1 << 15) /* elements below which a call stays on one thread */

struct job {
    const struct iso_kernels *kernels;
    const struct iso_embedding *e;
    size_t tasks;
};

static void embed_row(const struct job *job, size_t row) {
    static const uint32_t first;
    const struct iso_embedding *t = job->e;
    const char *from = (const char *)t->table + t->ids[row] * t->row_bytes;
    const float *position =
        t->positions ? t->positions + (t->position_rows ? t->position_rows[row] : row) * t->d
                     : NULL;
    float values[ISO_EMBED_FLOATS];
    for (size_t j = 0, n; j < t->d; j += n) {
        n = t->d - j < ISO_EMBED_FLOATS ? t->d - j : ISO_EMBED_FLOATS;
        t->floats(values, from, j, n, t->type);
        job->kernels->embed(t->y + row * t->ldy + j, n, &first, 1, values, n, t->scale,
                            position ? position + j : NULL, &first, 0);
    }
}

static void embed_some(void *arg, size_t task) {
    const struct job *job = arg;
    const size_t count = job->e->count;
    for (size_t i = count * task / job->tasks; i < count * (task + 1) / job->tasks; i++)
        embed_row(job, i);
}

iso_status iso_embed_rows(const struct iso_embedding *t, size_t vocabulary, size_t position_count,
                          const iso_context *context) {
    const size_t count = t->count, d = t->d;
    struct job job = {.e = t};
    size_t bytes;
    iso_status status = iso_check_matrix(t->y, count, d, t->ldy);
    if (status || count == 0 || d == 0)
        return status;
    if (!t->ids || !t->table)
        return ISOBIT_E_NULL;
    if (__builtin_mul_overflow(vocabulary, t->row_bytes, &bytes) || bytes > PTRDIFF_MAX)
        return ISOBIT_E_OVERFLOW;
    if ((status = iso_check_ids(t->ids, count, vocabulary, t->positions, t->position_rows,
                                position_count)))
        return status;
    if (iso_bytes_overlap(t->y, iso_extent(count, d, t->ldy, sizeof *t->y), t->table, bytes) ||
        (t->positions && iso_overlap(t->y, count, d, t->ldy, t->positions, position_count, d, d)))
        return ISOBIT_E_ALIAS;
    if ((status = iso_context_kernels(&job.kernels, context)))
        return status;
    job.tasks = count * d < SMALL ? 1 : iso_context_threads(context);
    iso_parallel(context, job.tasks, embed_some, &job);
    return ISOBIT_OK;
}
