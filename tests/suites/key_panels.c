/* SPDX-License-Identifier: MIT
 *
 * The suite of key_panels.
 */
#include <string.h>

#include <isobit/ops.h>

#include "kernels.h"
#include "oracle_kernels.h"
#include <isobit/check.h>
#include "suites/suites.h"

enum { K_FIRST, K_COUNT, K_DH, K_GAP };
enum { K_PANELS, K_K };

/* Where element c of key j lies. */
static size_t key_at(size_t j, size_t c, size_t dh) {
    return j / ISO_PANEL * dh * ISO_PANEL + c * ISO_PANEL + j % ISO_PANEL;
}

static void panels_cases(struct iso_check_cases *l) {
    static const size_t counts[] = {0, 1, 2, 3, 7, 15, 16, 17, 31, 63, 64, 65, 127, 129, 200};
    static const size_t firsts[] = {0, 1, 5, 15, 16, 31, 60, 63, 64, 65, 127, 130};
    static const size_t dhs[] = {1, 3, 8, 16, 17, 32, 64, 80};
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        iso_add(l, 1, 0, 0, 0, 512, 64, 0);
        iso_add(l, 1, 0, 0, 37, 1, 64, 0);
        return;
    }
    size_t t = 0;
    for (size_t d = 0; d < iso_count(dhs); d++) {
        for (size_t i = 0; i < iso_count(counts); i++) {
            for (size_t j = 0; j < iso_count(firsts); j++, t++)
                iso_add(l, 15, t % 4 ? ISO_CHECK_FILL_UNIFORM : ISO_CHECK_FILL_BITS, 0, firsts[j],
                        counts[i], dhs[d], t % 4);
        }
    }
    iso_add(l, 2, 0, ISO_CHECK_CASE_ALIGN, 3, 70, 19, 1);
    for (size_t kind = 0; kind < ISO_STRIDES; kind++) {
        for (size_t dh = 15; dh <= 66; dh += 17)
            iso_add(l, 6, 0, 0, 61, 7, dh, iso_stride_gap(kind, dh));
    }
    ISO_EACH_NEW_FILL(fill)
    iso_add(l, 6, fill, 0, 3, 70, 19, 1);
}

static void panels_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t end = c->p[K_FIRST] + c->p[K_COUNT], dh = c->p[K_DH];
    size_t extent = (end + ISO_PANEL - 1) / ISO_PANEL * ISO_PANEL * dh;
    iso_check_inout_f32(o, "panels", 1, extent, extent, ISO_CHECK_FILL_UNIFORM);
    iso_check_in_f32(o, "k", c->p[K_COUNT], dh, dh + c->p[K_GAP], c->fill);
}

static void panels_call(const void *table, const struct iso_check_case *c,
                        const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    t->key_panels(ISO_CHECK_AT(float, o, K_PANELS), c->p[K_FIRST],
                  ISO_CHECK_AT(const float, o, K_K), o->v[K_K].ld, c->p[K_COUNT], c->p[K_DH]);
}

static void panels_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t dh = c->p[K_DH], ld = o->v[K_K].ld;
    float *exact = iso_check_exact(o, K_PANELS);
    memcpy(exact, o->v[K_PANELS].host, o->v[K_PANELS].bytes); /* the other keys stay */
    for (size_t j = 0; j < c->p[K_COUNT]; j++) {
        for (size_t e = 0; e < dh; e++)
            exact[key_at(c->p[K_FIRST] + j, e, dh)] = ISO_CHECK_HOST(float, o, K_K)[j * ld + e];
    }
}

static double panels_bytes(const struct iso_check_case *c) {
    return 8.0 * (double)c->p[K_COUNT] * (double)c->p[K_DH];
}

static void panels_random(struct iso_check_case *c, struct iso_check_random *r) {
    c->p[K_FIRST] = iso_check_random_log(r, 200);
    c->p[K_COUNT] = iso_check_random_log(r, 200);
    c->p[K_DH] = 1 + iso_check_random_log(r, 99);
    c->p[K_GAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
}

const struct iso_check_suite iso_kernel_suite_key_panels = {.name = "key_panels",
                                                            .params = "first count dh gap",
                                                            .cases = panels_cases,
                                                            .setup = panels_setup,
                                                            .call = panels_call,
                                                            .reference = panels_reference,
                                                            .bytes = panels_bytes,
                                                            .random = panels_random};
