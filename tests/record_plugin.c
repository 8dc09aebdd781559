/* SPDX-License-Identifier: MIT
 *
 * A plug-in whose results depend on the environment, as those of others depend on the machine, for
 * test_record.sh: gemv with its sums taken forward, or with ORDER=backward from the end, or with
 * ORDER=wrong without the last term. PROMISE=bound: equal bits are not promised.
 */
#include <isobit/check.h>

#include <stdlib.h>
#include <string.h>

static bool has(const char *name, const char *value) {
    const char *is = getenv(name);
    return is && !strcmp(is, value);
}

static void sums(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                 bool backward, bool wrong) {
    for (size_t j = 0; j < n; j++) {
        float sum = 0;
        for (size_t i = 0; i + wrong < k; i++) {
            size_t at = backward ? k - 1 - i : i;
            sum += w[j * ldw + at] * x[at];
        }
        y[j] = sum;
    }
}

static void forward(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k) {
    sums(y, w, ldw, x, n, k, false, false);
}
static void backward(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k) {
    sums(y, w, ldw, x, n, k, true, false);
}
static void wrong(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k) {
    sums(y, w, ldw, x, n, k, false, k > 30);
}

const struct iso_check_target *iso_check_plugin(void) {
    static struct iso_check_operations table;
    static const struct iso_check_variant variants[] = {{.name = "plain", .table = &table}};
    static struct iso_check_target target = {.size = sizeof target,
                                             .version = ISO_CHECK_VERSION,
                                             .name = "sums",
                                             .variants = variants,
                                             .variant_count = 1};
    table.gemv = has("ORDER", "backward") ? backward : has("ORDER", "wrong") ? wrong : forward;
    target.promises = has("PROMISE", "bound") ? 0 : ISO_CHECK_SAME_BITS;
    return &target;
}
