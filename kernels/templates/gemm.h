/* SPDX-License-Identifier: MIT
 *
 * Packing, and the epilogue of a matrix product. The product itself is gemm_strip.
 */

/* n vectors into a panel that is `width` wide. */
static inline void pack_panel(float *dst, const float *src, size_t si, size_t sp, size_t n,
                              size_t k, size_t width) {
    if (si == 1) { /* rows of the panel lie contiguous */
        for (size_t p = 0; p < k; p++) {
            size_t j = 0;
            for (; j + VF_N <= n; j += VF_N)
                vf_store(dst + p * width + j, vf_load(src + p * sp + j));
            if (j < n)
                vf_store_n(dst + p * width + j, vf_load_n(src + p * sp + j, n - j), n - j);
        }
        return;
    }
    for (size_t j = 0; j < n; j += VF_N) {
        const size_t w = n - j < VF_N ? n - j : VF_N;
        size_t p = 0;
        if (sp == 1) /* columns lie contiguous: transpose squares */
            for (; p + VF_N <= k; p += VF_N)
                vf_transpose(dst + p * width + j, width, src + j * si + p, si, w);
        for (; p < k; p++)
            for (size_t i = j; i < j + w; i++)
                dst[p * width + i] = src[i * si + p * sp];
    }
}

static void gemm_pack(float *dst, const float *src, size_t si, size_t sp, size_t n, size_t k,
                      size_t width) {
    ISO_REQUIRE(width > 0);
    for (size_t j = 0; j < n; j += width) {
        size_t present = n - j < width ? n - j : width;
        if (present < width)
            memset(dst + j * k, 0, k * width * sizeof(float));
        pack_panel(dst + j * k, src + j * si, si, sp, present, k, width);
    }
}

/* clang-format off */
#define EPILOGUE_STEP(v, J, LOAD)                                                                  \
    do {                                                                                           \
        if (e->alpha != 1.0f)                                                                      \
            (v) = vf_mul(alpha, (v));                                                              \
        if (e->beta != 0.0f)                                                                       \
            (v) = vf_fma(beta, LOAD(c + i * ldc + (J)), (v));                                      \
        if (e->bias)                                                                               \
            (v) = vf_add((v), LOAD(e->bias + (J)));                                                \
        (v) = vf_activation((v), act);                                                             \
        if (e->residual)                                                                           \
            (v) = vf_add((v), LOAD(e->residual + i * e->ldr + (J)));                               \
    } while (0)
#define LOAD_TAIL(p) vf_load_n((p), n - j)

static inline __attribute__((always_inline)) void
epilogue_rows(float *c, size_t ldc, const float *t, size_t ldt, size_t m, size_t n,
              const struct iso_epilogue *e, const int act) {
    const vf alpha = vf_set1(e->alpha), beta = vf_set1(e->beta);
    for (size_t i = 0; i < m; i++) {
        size_t j = 0;
        for (; j + VF_N <= n; j += VF_N) {
            vf v = vf_load(t + i * ldt + j);
            EPILOGUE_STEP(v, j, vf_load);
            vf_store(c + i * ldc + j, v);
        }
        if (j < n) {
            vf v = LOAD_TAIL(t + i * ldt + j);
            EPILOGUE_STEP(v, j, LOAD_TAIL);
            vf_store_n(c + i * ldc + j, v, n - j);
        }
    }
}
/* clang-format on */
#undef LOAD_TAIL
#undef EPILOGUE_STEP

static void gemm_epilogue(float *c, size_t ldc, const float *t, size_t ldt, size_t m, size_t n,
                          const struct iso_epilogue *e) {
    switch (e->act) {
    case 1: epilogue_rows(c, ldc, t, ldt, m, n, e, 1); break;
    case 2: epilogue_rows(c, ldc, t, ldt, m, n, e, 2); break;
    case 3: epilogue_rows(c, ldc, t, ldt, m, n, e, 3); break;
    case 4: epilogue_rows(c, ldc, t, ldt, m, n, e, 4); break;
    case 5: epilogue_rows(c, ldc, t, ldt, m, n, e, 5); break;
    default: epilogue_rows(c, ldc, t, ldt, m, n, e, 0); break;
    }
}
