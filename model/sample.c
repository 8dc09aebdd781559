/* SPDX-License-Identifier: MIT
 *
 * Sampling in whole numbers. Probabilities come from the library's softmax, whose bits are
 * promised; from there on they are multiples of 2^-48, so that sums are exact, in any order, and
 * nothing has to be sorted: a cut through the ranks is found digit by digit, as a radix sort would
 * look at them.
 */
#include "sample.h"

#include <float.h>
#include <math.h>

model_random model_philox(model_random c, const uint32_t key[2]) {
    uint32_t a = key[0], b = key[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t x = (uint64_t)c.word[0] * 0xD2511F53u, y = (uint64_t)c.word[2] * 0xCD9E8D57u;
        c = (model_random){{(uint32_t)(y >> 32) ^ c.word[1] ^ a, (uint32_t)y,
                            (uint32_t)(x >> 32) ^ c.word[3] ^ b, (uint32_t)x}};
        a += 0x9E3779B9u;
        b += 0xBB67AE85u;
    }
    return c;
}

iso_status model_warp_check(const model_warp *warp, iso_error *error) {
    const double temperature = (double)warp->temperature, top_p = (double)warp->top_p;
    if (!(temperature > 0) || !isfinite(temperature))
        return model_fail(error, ISOBIT_E_OPTION, "temperature is %g; a number above 0 is expected",
                          temperature);
    if (!(top_p > 0 && top_p <= 1))
        return model_fail(error, ISOBIT_E_OPTION,
                          "top_p is %g; a number above 0 and at most 1 is expected", top_p);
    if (!(warp->min_p >= 0 && warp->min_p <= 1))
        return model_fail(error, ISOBIT_E_OPTION, "min_p is %g; a number from 0 to 1 is expected",
                          (double)warp->min_p);
    return ISOBIT_OK;
}

int model_candidates_make(model_candidates *k, model_arena *arena, size_t V) {
    *k = (model_candidates){.ids = model_alloc(arena, V, sizeof *k->ids),
                            .values = model_alloc(arena, V, sizeof *k->values),
                            .weights = model_alloc(arena, V, sizeof *k->weights),
                            .sums = model_alloc(arena, MODEL_DIGITS, sizeof *k->sums)};
    return k->ids && k->values && k->weights && k->sums;
}

/* A probability in units of 2^-48. */
static inline uint64_t whole(float p) { return (uint64_t)(int64_t)((double)p * 0x1p48); }

/* Whole numbers that are in the order of the floats. */
static inline uint32_t key_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ (bits >> 31 ? UINT32_MAX : (uint32_t)1 << 31);
}

/* Where a walk from the largest value down, over the weights, gets to the limit. */
typedef struct cut {
    uint32_t key;   /* all above it are within; 0: all are */
    uint64_t above; /* the sum of the weights above it, which is less than the limit */
} cut;

/* Each counts 1, or its weight. */
static cut find_cut(const model_candidates *k, int weighted, uint64_t limit) {
    static const unsigned shifts[] = {21, 10, 0}, digits[] = {2048, 2048, 1024};
    cut at = {0, 0};
    uint32_t mask = 0;
    for (int level = 0; level < 3; level++) {
        memset(k->sums, 0, MODEL_DIGITS * sizeof *k->sums);
        for (size_t i = 0; i < k->count; i++) {
            const uint32_t key = key_of(k->values[i]);
            if ((key & mask) == at.key)
                k->sums[(key >> shifts[level]) % digits[level]] +=
                    weighted ? whole(k->weights[i]) : 1;
        }
        uint32_t digit = digits[level] - 1;
        for (; at.above + k->sums[digit] < limit; digit--) {
            at.above += k->sums[digit];
            if (!digit) /* at the first level only: all of them do not get there */
                return (cut){0, at.above};
        }
        at.key |= digit << shifts[level];
        mask |= (digits[level] - 1) << shifts[level];
    }
    return at;
}

/* Those from the k-th largest on are left out; what equals it stays. */
static void keep_top_k(model_candidates *k, size_t top_k) {
    if (!top_k || top_k >= k->count)
        return;
    const cut at = find_cut(k, 0, top_k);
    size_t kept = 0;
    for (size_t i = 0; i < k->count; i++)
        if (key_of(k->values[i]) >= at.key) {
            k->values[kept] = k->values[i];
            k->ids[kept++] = k->ids[i];
        }
    k->count = kept;
}

/* The best ones whose betters have less than top_p; of equal ones the lower index is the better. */
static void keep_top_p(model_candidates *k, float top_p) {
    uint64_t limit = whole(top_p);
    if (top_p >= 1)
        return;
    limit = limit ? limit : 1; /* the best one stays, in any case */
    const cut at = find_cut(k, 1, limit);
    uint64_t sum = at.above;
    size_t kept = 0;
    for (size_t i = 0; i < k->count; i++) {
        const uint32_t key = key_of(k->values[i]);
        if (key < at.key || (key == at.key && sum >= limit))
            continue;
        if (key == at.key)
            sum += whole(k->weights[i]);
        k->values[kept] = k->values[i];
        k->weights[kept] = k->weights[i];
        k->ids[kept++] = k->ids[i];
    }
    k->count = kept;
}

/* Those with at least min_p times the probability of the most probable one. */
static void keep_min_p(model_candidates *k, float min_p) {
    float most = 0;
    size_t kept = 0;
    if (!(min_p > 0))
        return;
    for (size_t i = 0; i < k->count; i++)
        most = k->weights[i] > most ? k->weights[i] : most;
    const double least = (double)min_p * (double)most; /* exact, as all products of two floats */
    for (size_t i = 0; i < k->count; i++)
        if (!((double)k->weights[i] < least)) {
            k->weights[kept] = k->weights[i];
            k->ids[kept++] = k->ids[i];
        }
    k->count = kept;
}

iso_status model_warp_row(model_candidates *k, const model_warp *warp, const float *row, size_t V,
                          const iso_context *context) {
    const iso_softmax_options options = {.size = sizeof options};
    const float temperature = warp->temperature;
    size_t count = 0;
    k->count = 0;
    for (size_t v = 0; v < V; v++) {
        const float value = row[v] / temperature + 0.0f; /* one zero, since keys tell two apart */
        k->values[count] = value;
        k->ids[count] = (uint32_t)v;
        count += value > -INFINITY;
        if (value > FLT_MAX)
            return ISOBIT_OK;
    }
    k->count = count;
    keep_top_k(k, warp->top_k);
    if (!k->count)
        return ISOBIT_OK;
    const iso_status status =
        iso_softmax_f32(k->weights, k->count, k->values, k->count, 1, k->count, &options, context);
    if (status) {
        k->count = 0;
        return status;
    }
    keep_top_p(k, warp->top_p);
    keep_min_p(k, warp->min_p);
    return ISOBIT_OK;
}

/* The upper half of the product. */
static uint64_t multiply_high(uint64_t a, uint64_t b) {
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t middle = a1 * b0 + (a0 * b0 >> 32), rest = a0 * b1 + (uint32_t)middle;
    return a1 * b1 + (middle >> 32) + (rest >> 32);
}

uint32_t model_draw(const model_candidates *k, uint64_t bits) {
    uint64_t all = 0;
    for (size_t i = 0; i < k->count; i++)
        all += whole(k->weights[i]);
    uint64_t at = multiply_high(bits, all);
    size_t i = 0;
    for (; i + 1 < k->count && at >= whole(k->weights[i]); i++)
        at -= whole(k->weights[i]);
    return k->ids[i];
}
