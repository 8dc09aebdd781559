/* SPDX-License-Identifier: MIT
 *
 * The 32 virtual lanes of the row reductions: element i goes to lane i mod 32, each lane sums in
 * ascending order from +0, then lanes are added by halves: t[j] += t[j + h], h = 16 .. 1. The lanes
 * live in 32 / VF_N registers, so the order is the same for every width.
 */
#define LANE_REGS (ISO_LANES / VF_N)

/*
 * LANES_EACH(n, STEP): STEP(r, i, w) for the elements i .. i+w-1, w <= VF_N, which belong to the
 * lanes of register r; r is a constant after unrolling, w is VF_N but for the last one.
 * LANES_EACH_COMPACT: the same, but a loop where each lane is a register of its own, which takes as
 * long for these steps and a tenth of the code.
 */
#define LANES_LOOP(UNROLL, n, STEP)                                                                \
    do {                                                                                           \
        size_t i_ = 0;                                                                             \
        for (; i_ + ISO_LANES <= (n); i_ += ISO_LANES) {                                           \
            UNROLL                                                                                 \
            for (size_t r_ = 0; r_ < LANE_REGS; r_++)                                              \
                STEP(r_, i_ + r_ * VF_N, (size_t)VF_N);                                            \
        }                                                                                          \
        UNROLL                                                                                     \
        for (size_t r_ = 0; r_ < LANE_REGS; r_++) {                                                \
            if (i_ + r_ * VF_N < (n)) {                                                            \
                size_t w_ = (n)-i_ - r_ * VF_N;                                                    \
                STEP(r_, i_ + r_ * VF_N, w_ < VF_N ? w_ : (size_t)VF_N);                           \
            }                                                                                      \
        }                                                                                          \
    } while (0)
#define LANES_EACH(n, STEP) LANES_LOOP(ISO_UNROLL, n, STEP)
#ifdef VF_LANES_ROLLED
#define LANES_EACH_COMPACT(n, STEP) LANES_LOOP(ISO_NOT_UNROLLED, n, STEP)
#else
#define LANES_EACH_COMPACT LANES_EACH
#endif

static inline __attribute__((always_inline)) vf load_w(const float *p, size_t w) {
    return w == VF_N ? vf_load(p) : vf_load_n(p, w);
}
static inline __attribute__((always_inline)) void store_w(float *p, vf v, size_t w) {
    if (w == VF_N)
        vf_store(p, v);
    else
        vf_store_n(p, v, w);
}
/* With non-temporal stores, if `stream`. */
static inline __attribute__((always_inline)) void stream_w(float *p, vf v, size_t w, int stream) {
    if (VF_STREAMS && w == VF_N && stream)
        vf_stream(p, v);
    else
        store_w(p, v, w);
}
/* Of each row of a matrix, up to where its vectors lie in one line each, if rows begin alike. */
static inline size_t floats_before_line(const float *p, size_t ld) {
    return ld % VF_N == 0 ? -((uintptr_t)p / sizeof *p) % VF_N : 0;
}
/* Whether all rows of a matrix can be written by non-temporal stores. */
static inline int lies_in_vectors(const float *p, size_t ld) {
    return VF_STREAMS && (uintptr_t)p % sizeof(vf) == 0 && ld % VF_N == 0;
}
static inline __attribute__((always_inline)) vf keep_w(vf v, size_t w) {
    return w == VF_N ? v : vf_keep(v, w);
}

/* Spelt out: gcc for aarch64 leaves a loop over h rolled, and with it the lanes in memory. */
#define LANES_HALVE(h)                                                                             \
    if (LANE_REGS >= 2 * (h))                                                                      \
        ISO_UNROLLED (j, (h))                                                                      \
    t[j] = vf_add(t[j], t[j + (h)])
static inline __attribute__((always_inline)) float lanes_tree(vf *t) {
    LANES_HALVE(16);
    LANES_HALVE(8);
    LANES_HALVE(4);
    LANES_HALVE(2);
    LANES_HALVE(1);
    return vf_tree(t[0]);
}
#undef LANES_HALVE
