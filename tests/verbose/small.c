/* SPDX-License-Identifier: MIT
 *
 * Which products are so small that they have no plan: at the edges of each limit, as a line of
 * ISOBIT_VERBOSE=2 tells. Their bits are those of others (test_ops), so that nothing else shows it.
 */
#include "../test_verbose.h"

enum { FLOATS = 200 * 1040 };
enum { TINY = 1, PLANNED = 2, BY_SET = 3, ADDING = 6 }; /* BY_SET: tiny for scalar alone */

static const struct small {
    size_t m, n, k;
    int trans_a, trans_b;
    size_t lda, ldb, ldc; /* 0: the least */
    float beta;
    int threads, told;
} products[] = {
    {1024, 16, 16, 0, 0, 0, 0, 0, 0, 1, TINY},
    {1025, 16, 16, 0, 0, 0, 0, 0, 0, 1, PLANNED},
    {8, 192, 16, 0, 0, 0, 0, 0, 0, 1, TINY},
    {8, 208, 16, 0, 0, 0, 0, 0, 0, 1, PLANNED},
    {4, 193, 16, 0, 0, 0, 0, 0, 0, 1, PLANNED},
    {8, 16, 512, 0, 0, 0, 0, 0, 0, 1, TINY},
    {8, 16, 513, 0, 0, 0, 0, 0, 0, 1, PLANNED},
    {8, 64, 512, 0, 0, 0, 0, 0, 0, 1, TINY},
    {8, 80, 410, 0, 0, 0, 0, 0, 0, 1, PLANNED},
    {127, 64, 128, 0, 0, 0, 0, 0, 0, 1, TINY},
    {128, 64, 128, 0, 0, 0, 0, 0, 0, 1, PLANNED},
    {63, 64, 128, 0, 0, 0, 0, 0, 0, 2, TINY},
    {64, 64, 128, 0, 0, 0, 0, 0, 0, 2, PLANNED},
    {64, 64, 128, 0, 0, 0, 0, 0, 0, 1, TINY},
    {1, 16, 1, 0, 0, (1 << 24) - 1, 0, 0, 0, 1, TINY},
    {1, 16, 1, 0, 0, 1 << 24, 0, 0, 0, 1, PLANNED},
    {1, 16, 1, 0, 0, 0, (1 << 24) - 1, 0, 0, 1, TINY},
    {1, 16, 1, 0, 0, 0, 1 << 24, 0, 0, 1, PLANNED},
    {1, 16, 1, 0, 0, 0, 0, (1 << 24) - 1, 0, 1, TINY},
    {1, 16, 1, 0, 0, 0, 0, 1 << 24, 0, 1, PLANNED},
    {5, 16, 64, 0, 1, 0, 0, 0, 0, 1, TINY},
    {1, 17, 32, 0, 1, 0, 0, 0, 0, 1, TINY},
    {5, 32, 33, 0, 1, 0, 0, 0, 0, 1, PLANNED},
    {100, 16, 130, 1, 0, 1040, 0, 0, 0, 1, TINY},
    {100, 16, 130, 1, 0, 1024, 0, 0, 0, 1, PLANNED}, /* rows that alias */
    {4, 16, 130, 1, 0, 1024, 0, 0, 0, 1, TINY},
    {64, 2, 16, 0, 0, 0, 0, 0, 0, 1, BY_SET}, /* vectors along rows, see iso_gemm_is_narrow */
    {64, 18, 16, 0, 0, 0, 0, 0, 0, 1, BY_SET},
    {64, 2, 16, 0, 0, 0, 0, 0, 1, 1, BY_SET},
    {64, 2, 16, 0, 0, 0, 0, 0, 2, 1, TINY}, /* not where sums wait */
    {8, 192, 16, 0, 0, 0, 0, 0, 2, 1, TINY},
    {8, 208, 16, 0, 0, 0, 0, 0, 2, 1, PLANNED},
    {8, 192, 16, 0, 0, 0, 0, 0, 1, 1, TINY},
    {130, 128, 128, 0, 0, 0, 0, 0, 1, 1, ADDING},
    {130, 128, 128, 0, 0, 0, 0, 0, 2, 1, PLANNED},
};
#define PRODUCTS (sizeof(products) / sizeof(*products))

static const char *set_name;
static size_t or_least(size_t ld, size_t least) { return ld ? ld : least; }

static int all_products(void) {
    iso_context x = {.size = sizeof(x)};
    iso_pool *pool = NULL;
    float *a = calloc(FLOATS, sizeof(float)), *b = calloc(FLOATS, sizeof(float));
    float *c = calloc(FLOATS, sizeof(float));
    int bad = !a || !b || !c || iso_isa_find(&x.isa, set_name) || iso_pool_create(&pool, 2);
    for (size_t i = 0; i < PRODUCTS && !bad; ++i) {
        const struct small *s = &products[i];
        const iso_gemm_options o = {.size = sizeof(o),
                                    .alpha = 1,
                                    .beta = s->beta,
                                    .trans_a = s->trans_a,
                                    .trans_b = s->trans_b};
        x.executor = s->threads > 1 ? iso_pool_executor(pool) : NULL;
        bad = iso_gemm_f32(c, or_least(s->ldc, s->n), a, or_least(s->lda, s->trans_a ? s->m : s->k),
                           b, or_least(s->ldb, s->trans_b ? s->k : s->n), s->m, s->n, s->k, &o,
                           &x) != 0;
    }
    iso_pool_destroy(pool);
    free(a), free(b), free(c);
    return bad;
}

void small_products_are_told(void **state) {
    (void)state;
    for (size_t isa = 0; isa < iso_isa_count(); ++isa) {
        if (iso_isa_missing(iso_isa_get(isa))) {
            continue;
        }
        set_name = iso_isa_name(iso_isa_get(isa));
        const bool scalar_set = strcmp(set_name, "scalar") == 0;
        char *text = run("2", NULL, all_products), *rest = text;
        is_header(next_line(&rest));
        for (size_t i = 0; i < PRODUCTS; ++i) {
            const struct small *s = &products[i];
            const char *line = next_line(&rest), *way = line ? strrchr(line, ',') : NULL;
            const bool tiny = s->told == TINY || (s->told == BY_SET && scalar_set);
            if (!way || (strcmp(way, ",tiny") == 0) != tiny) {
                fail_msg("product %zu with %s: %s", i, set_name, line ? line : "no line");
            }
            if (s->told & PLANNED && s->told != BY_SET) {
                assert_true((strstr(way, "tiles add to C") != NULL) == (s->told == ADDING));
            }
        }
        assert_null(next_line(&rest));
        free(text);
    }
}
