/* SPDX-License-Identifier: MIT
 *
 * The rows of a call among its threads, from one attention to the next.
 *
 * Between two attentions no row needs another one. So where there are enough rows for all threads,
 * each thread takes blocks of them through all ops between, alone: one parallel region instead of
 * one for each op, and what an op writes is still in L2 when the next one reads it. With fewer rows
 * each op is cut on its own, products by columns. One thread takes blocks for the sake of L2.
 */
#include "layers.h"

#include <stdatomic.h>

struct job {
    model_run *run;
    const model_positionwise *p;
    size_t rows, blocks;
    atomic_size_t next; /* the first block that nobody has taken */
};

/* Block `b`, in a run that has all but the rows. */
static iso_status run_block(model_run *part, const struct job *job, size_t b) {
    const model_run *run = job->run;
    const size_t d = run->model->config.d;
    const size_t first = job->rows * b / job->blocks, end = job->rows * (b + 1) / job->blocks;
    model_positionwise p = *job->p;
    part->x = run->x + first * d;
    part->h = run->h + first * run->model->columns;
    if (p.next)
        part->wide = run->wide + first * p.next->w.n;
    if (p.embed)
        p.ids += first;
    if (p.positions)
        p.positions += first;
    return model_positionwise_rows(part, &p, end - first);
}

/* Blocks one by one: a thread that comes late, or never, holds nobody up. */
static void take_blocks(void *arg, size_t task) {
    struct job *job = arg;
    model_part *part = &job->run->parts[task];
    size_t b;
    while ((b = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->blocks) {
        const iso_status status = run_block(&part->run, job, b);
        part->status = part->status ? part->status : status;
    }
}

iso_status model_between(model_run *run, const model_positionwise *p, size_t rows) {
    if (model_run_one_by_one(run, rows))
        return model_positionwise_rows(run, p, rows);
    const size_t threads = run->threads, most = threads * MODEL_BLOCK_ROWS;
    struct job job = {.run = run, .p = p, .rows = rows};
    iso_status status = ISOBIT_OK;
    job.blocks = (rows + most - 1) / most * threads;
    if (threads == 1) {
        model_run part = *run;
        for (size_t b = 0; b < job.blocks && !status; b++)
            status = run_block(&part, &job, b);
        run->lap = part.lap;
        return status;
    }
    atomic_init(&job.next, 0);
    run->context.executor->parallel_for(run->context.executor->user, threads, take_blocks, &job);
    for (size_t i = 0; i < threads; i++) {
        model_part *part = &run->parts[i];
        if (run->profile) {
            run->profile->flops += part->profile.flops;
            part->profile.flops = 0;
        }
        if (part->status && !status) {
            status = part->status;
            if (run->error)
                *run->error = part->error;
        }
    }
    return status;
}
