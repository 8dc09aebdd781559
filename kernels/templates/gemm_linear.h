/* SPDX-License-Identifier: MIT
 *
 * Full tiles of gemm_direct.h that do something more: gemm_linear adds biases to a product with
 * packed weights while it stores, gemm_packing packs a row-major B while it reads.
 */

/* Sums with their biases, and ReLU after that, go to C. Without biases -0 is added, which changes
 * nothing. */
static inline __attribute__((always_inline)) void linear_store(float *c, size_t ldc, const vf *t,
                                                               const size_t m, const size_t vectors,
                                                               int add, const float *bias,
                                                               int relu) {
    const vf least = vf_set1(relu ? 0.0f : -__builtin_inff());
    vf b[GEMM_VECTORS(GEMM_DIRECT_MR)];
    ISO_UNROLLED (j, vectors)
        b[j] = bias ? vf_load(bias + j * VF_N) : vf_set1(-0.0f);
    ISO_UNROLLED (i, m) {
        ISO_UNROLLED (j, vectors) {
            float *q = c + j * VF_N;
            vf v = t[i * vectors + j];
            if (add)
                v = vf_add(vf_load(q), v);
            vf_store(q, vf_max(least, vf_add(v, b[j])));
        }
        ISO_NEXT_ROW(c, ldc, i, m);
    }
}

#define LINEAR_RUNS 3 /* of prefetches, interleaved; where these are rare, one is as fast */

static void gemm_linear(float *c, size_t ldc, const float *a, size_t lda, const float *b,
                        size_t bps, size_t n, size_t k, int add, const float *bias, int relu,
                        const float *const *prefetch, size_t prefetch_bytes, size_t prefetch_ld,
                        int interleaved) {
    const size_t m = GEMM_DIRECT_MR, vectors = GEMM_VECTORS(GEMM_DIRECT_MR), width = vectors * VF_N;
    _Static_assert(ISO_LINEAR_COLUMNS % (GEMM_VECTORS(GEMM_DIRECT_MR) * VF_N) == 0, "whole tiles");
    ISO_REQUIRE(n > 0 && n % ISO_LINEAR_COLUMNS == 0 && k > 0 && ldc >= n);
    const size_t stride =
        prefetch_ld ? prefetch_ld * sizeof *b
                    : (uint32_t)prefetch_bytes / (uint32_t)(ISO_LINEAR_COLUMNS / width * k);
    const int side_by_side = GEMM_INTERLEAVED && interleaved && !prefetch_ld && stride >= 32;
    const char *later = NULL;
    for (size_t j = 0; j < n; j += width) {
        const float *panel = b + j / ISO_PANEL * bps + j % ISO_PANEL;
        vf t[GEMM_SUMS];
        if (prefetch && j % ISO_LINEAR_COLUMNS == 0)
            later = (const char *)prefetch[j / ISO_LINEAR_COLUMNS];
        else if (prefetch_ld)
            later = NULL;
#define LINEAR_SUMS(later, stride, runs)                                                           \
    direct_sums(t, a, lda, panel, ISO_PANEL, bps, m, vectors, VF_N, k, 0, 1, later, stride, runs)
        if (later && side_by_side)
            LINEAR_SUMS(&later, stride / LINEAR_RUNS, LINEAR_RUNS);
        else if (later)
            LINEAR_SUMS(&later, stride, 1);
        else
            LINEAR_SUMS(NULL, 0, 1);
#undef LINEAR_SUMS
        if (bias || relu)
            linear_store(c + j, ldc, t, m, vectors, add, bias ? bias + j : NULL, relu);
        else
            direct_store(c + j, ldc, t, m, vectors, VF_N, add);
    }
}

/* Rows of B that are prefetched ahead: the hardware does not, and they are not read again. */
#define PACK_AHEAD 48
/* Whether tiles have several lines of a row: these go to L1, unless it has few misses at a time. */
#define PACK_WIDE (GEMM_VECTORS(GEMM_DIRECT_MR) * VF_N > ISO_PANEL)

ISO_INLINE void packing_tiles(float *c, size_t ldc, const float *a, size_t lda, const float *b,
                              size_t ldb, float *panels, size_t n, size_t k, int add,
                              const int level) {
    const size_t m = GEMM_DIRECT_MR, vectors = GEMM_VECTORS(GEMM_DIRECT_MR), width = vectors * VF_N;
    const size_t ahead_end = k > PACK_AHEAD ? k - PACK_AHEAD : 0;
    const size_t bps = k * ISO_PANEL;
    size_t two = 2 * bps, three = 3 * lda;
    ISO_OPAQUE(two);
    ISO_OPAQUE(three);
    ISO_REQUIRE(n > 0 && n % ISO_LINEAR_COLUMNS == 0 && k > 0 && ldc >= n);
    for (size_t j = 0; j < n; j += width) {
        const float *four[GEMM_DIRECT_TALL / 4 + 1], *from = b + j;
        const float *ahead = from + (k - ahead_end) * ldb;
        float *to = panels + j / ISO_PANEL * bps + j % ISO_PANEL;
        vf t[GEMM_SUMS];
        ISO_UNROLLED (i, m * vectors)
            t[i] = vf_set1(0);
        ISO_UNROLLED (i, (m + 3) / 4)
            four[i] = a + 4 * i * lda;
        for (const float *end = a + ahead_end;; end = a + k, ahead = b + j + width) {
            while (__builtin_expect(four[0] != end, 1)) {
                vf bv[GEMM_VECTORS(GEMM_DIRECT_MR)];
                ISO_UNROLLED (l, vectors) {
                    bv[l] = vf_load(from + l * VF_N);
                    vf_store(to + DIRECT_PANEL(l * VF_N / ISO_PANEL) + l * VF_N % ISO_PANEL, bv[l]);
                }
                ISO_AFTER(bv[vectors - 1], ahead);
                ISO_UNROLLED (l, (width + ISO_PANEL - 1) / ISO_PANEL)
                    direct_prefetch(ahead + l * ISO_PANEL + LAST_OF_LINE(width), level);
                direct_step(t, four, lda, three, bv, m, vectors);
                const vf done = t[m * vectors - 1];
                direct_next(four, m, done);
                ISO_AFTER(done, from);
                ISO_AFTER(done, ahead);
                ISO_AFTER(done, to);
                from += ldb, ahead += ldb, to += ISO_PANEL;
            }
            if (end == a + k)
                break; /* else the next columns are prefetched */
        }
        direct_store(c + j, ldc, t, m, vectors, VF_N, add);
    }
}

/* Functions of their own: in one compilers would let both loops share what they have in common, and
 * jump there. */
#define PACKING(name, level)                                                                       \
    static ISO_ONE_COPY void name(float *c, size_t ldc, const float *a, size_t lda,                \
                                  const float *b, size_t ldb, float *panels, size_t n, size_t k,   \
                                  int add) {                                                       \
        packing_tiles(c, ldc, a, lda, b, ldb, panels, n, k, add, level);                           \
    }
PACKING(packing_l1, PREFETCH_L1)
PACKING(packing_l2, PREFETCH_L2)

static void gemm_packing(float *c, size_t ldc, const float *a, size_t lda, const float *b,
                         size_t ldb, float *panels, size_t n, size_t k, int mode) {
    const int add = mode & ISO_DIRECT_ADD;
    if (!PACK_WIDE || mode & ISO_DIRECT_BEYOND_L2)
        packing_l2(c, ldc, a, lda, b, ldb, panels, n, k, add);
    else
        packing_l1(c, ldc, a, lda, b, ldb, panels, n, k, add);
}
