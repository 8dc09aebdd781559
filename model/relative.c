/* SPDX-License-Identifier: MIT
 *
 * The bias that self-attention adds to the score of a query and a key: a number for each head that
 * depends on the distance of the two, all distances of a bucket having the same one (Raffel et al.
 * 2019, arXiv 1910.10683). Buckets are wider the farther away they are, and the last one has no
 * end.
 */
#include "layers.h"

#include <math.h>

/* The first half of the buckets have one distance each; then a bucket has a step of the logarithm.
 * Each step is rounded to float, as transformers does it: a distance may lie on an edge. */
static size_t bucket_of(size_t distance, size_t n, size_t max_distance) {
    const size_t exact = n / 2;
    if (distance < exact)
        return distance;
    const float ratio = (float)distance / (float)exact;
    const float share =
        (float)log((double)ratio) / (float)log((double)max_distance / (double)exact);
    const size_t bucket = exact + (size_t)(share * (float)(n - exact));
    return bucket < n ? bucket : n - 1;
}

void model_first_distances(uint32_t *first, size_t n, size_t max_distance) {
    size_t b = 0;
    for (size_t r = 0; r < max_distance && b < n; r++)
        for (const size_t bucket = bucket_of(r, n, max_distance); b <= bucket; b++)
            first[b] = (uint32_t)r;
    for (; b < n; b++)
        first[b] = (uint32_t)max_distance;
}

/* Of one head the bias of distances 0 ... before, downwards from *at, and if there are keys behind
 * a query, of 1 ... after upwards. */
static void by_distance(float *at, const model_stack *stack, const float *table, size_t h,
                        size_t before, size_t after) {
    const size_t n = stack->buckets, H = stack->H;
    const uint32_t *first = stack->first_distance;
    for (size_t r = 0, b = 0; r <= before; r++) {
        while (b + 1 < n && first[b + 1] <= r)
            b++;
        *(at - r) = table[b * H + h];
    }
    for (size_t r = 1, b = 0; r <= after; r++) {
        while (b + 1 < n && first[b + 1] <= r)
            b++;
        at[r] = table[(n + b) * H + h];
    }
}

iso_status model_bias_make(model_bias *bias, model_run *run, const model_stack *stack,
                           size_t longest, int causal) {
    *bias = (model_bias){0};
    if (!stack->layers || !stack->layer[0].relative || !longest)
        return ISOBIT_OK;
    bias->zero = longest - 1;
    bias->after = causal ? 0 : longest - 1;
    bias->ld = 2 * bias->zero + 1;
    bias->values = model_alloc3(&run->arena, stack->H, bias->ld, 1, sizeof *bias->values);
    if (!bias->values)
        return model_fail(run->error, ISOBIT_E_NOMEM, "out of memory for a bias of distances");
    /* Keys that nobody sees have places too. */
    memset(bias->values, 0, stack->H * bias->ld * sizeof *bias->values);
    return ISOBIT_OK;
}

void model_bias_set(model_bias *bias, const model_stack *stack, const model_layer *layer) {
    if (!bias->values || bias->of == layer->relative)
        return;
    for (size_t h = 0; h < stack->H; h++)
        by_distance(bias->values + h * bias->ld + bias->zero, stack, layer->relative, h, bias->zero,
                    bias->after);
    bias->of = layer->relative;
}

void model_bias_before(float *values, const model_stack *stack, const model_layer *layer,
                       size_t T) {
    for (size_t h = 0; h < stack->H && T; h++)
        by_distance(values + h * T + (T - 1), stack, layer->relative, h, T - 1, 0);
}
