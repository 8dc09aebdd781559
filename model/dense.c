/* SPDX-License-Identifier: MIT
 *
 * The Dense modules of sentence-transformers: linear layers between the pooling of a sentence and
 * the length of its vector, each from a folder of its own ("2_Dense"). They are small, and few rows
 * go through them, so that their weights are f32 whatever the model is multiplied as.
 */
#include "layers.h"

#include <stdio.h>
#include <string.h>

/* -------------------------------------------------------------------------------- their weights */

static iso_status take(model_source *source, const model_dense_config *c, model_linear *linear) {
    static const char *const weight = "linear.weight", *const bias = "linear.bias";
    const iso_status status = model_take_packed(source, linear, &weight, 1, c->out, c->in, 0);
    return status || !c->bias ? status
                              : model_take_vector(source, &linear->bias, &bias, 1, c->out, 0);
}

/* What a source has counted joins what another one has. */
static void count(model_source *all, const model_source *own) {
    all->parameters += own->parameters;
    for (size_t i = 0; i < MODEL_UNKNOWN; i++)
        all->of_type[i] += own->of_type[i];
}

static iso_status take_module(model_source *all, const model_dense_config *c, model_dense *to,
                              const char *path, size_t max_header_bytes, iso_error *error) {
    model_checkpoint checkpoint = {.file.fd = -1};
    model_source source = {.checkpoint = &checkpoint,
                           .prefix = "",
                           .arena = all->arena,
                           .context = all->context,
                           .error = error,
                           .reject_nonfinite = all->reject_nonfinite,
                           .widen = 1,
                           .compute = ISOBIT_COMPUTE_F32};
    iso_status status = model_weights_open(&checkpoint, path, max_header_bytes, error);
    to->act = c->act;
    if (!status)
        status = take(&source, c, &to->linear);
    if (!status && !all->uses) {
        source.load = 1;
        status = take(&source, c, &to->linear);
        if (!status)
            status = model_source_finish(&source);
        if (!status)
            status = model_checkpoint_unchanged(&checkpoint, error);
    }
    count(all, &source);
    model_arena_free(&source.scratch);
    model_checkpoint_close(&checkpoint);
    return status;
}

iso_status model_dense_take(iso_model *model, model_source *source, const char *directory,
                            size_t max_header_bytes) {
    const model_sentence *s = &model->config.sentence;
    iso_status status = ISOBIT_OK;
    if (!s->dense_count)
        return status;
    model->dense = model_alloc(source->arena, s->dense_count, sizeof *model->dense);
    if (!model->dense)
        return model_fail(source->error, ISOBIT_E_NOMEM, "out of memory");
    memset(model->dense, 0, s->dense_count * sizeof *model->dense);
    for (size_t i = 0; i < s->dense_count && !status; i++) {
        const char *const folder = s->dense[i].folder;
        const size_t bytes = strlen(directory) + strlen(folder) + 2;
        char *path = model_alloc(&source->scratch, bytes, 1);
        iso_error own = {0};
        if (!path)
            return model_fail(source->error, ISOBIT_E_NOMEM, "out of memory");
        (void)snprintf(path, bytes, "%s/%s", directory, folder);
        status = take_module(source, &s->dense[i], &model->dense[i], path, max_header_bytes, &own);
        if (status)
            return model_fail(source->error, status, "%s: %s", folder, own.message);
    }
    return status;
}

/* ------------------------------------------------------------------------------------- products */

iso_status model_dense_apply(model_run *run, float *y, const float *x, size_t rows) {
    const size_t modules = run->model->config.sentence.dense_count;
    iso_status status = ISOBIT_OK;
    for (size_t i = 0; i < modules && !status; i++) {
        const model_dense *dense = &run->model->dense[i];
        const iso_packed *w = &dense->linear.w;
        size_t bytes;
        float *to = i + 1 == modules ? y : model_alloc3(&run->arena, rows, w->n, 1, sizeof *to);
        if (!to)
            return model_fail(run->error, ISOBIT_E_NOMEM, "out of memory");
        status = iso_linear_f32_workspace_bytes(&bytes, w, rows, &run->context);
        status =
            status ? model_run_fail(run, status, "workspace") : model_run_workspace(run, bytes);
        if (!status)
            status = model_project(run, to, w->n, x, w->k, &dense->linear, rows, dense->act, NULL);
        x = to;
    }
    return status;
}
