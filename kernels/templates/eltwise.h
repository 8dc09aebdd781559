/* SPDX-License-Identifier: MIT
 *
 * Functions of single elements, embeddings, position tables, and the FMA peak.
 */

/* clang-format off */
#define UNARY_LOOP(EXPRESSION)                                                                     \
    for (size_t i = 0; i < n; i += VF_N) {                                                         \
        size_t w = n - i < VF_N ? n - i : VF_N;                                                    \
        vf v = load_w(x + i, w);                                                                   \
        store_w(y + i, (EXPRESSION), w);                                                           \
    }                                                                                              \
    break

static void unary(float *y, const float *x, size_t n, int function) {
    switch (function) {
    case 1: UNARY_LOOP(vf_relu(v));
    case 2: UNARY_LOOP(vf_silu(v));
    case 3: UNARY_LOOP(vf_gelu_erf(v));
    case 4: UNARY_LOOP(vf_gelu_tanh(v));
    case 5: UNARY_LOOP(vf_tanh_quiet(v));
    case ISO_UNARY_EXP: UNARY_LOOP(vf_exp(v));
    case ISO_UNARY_ERF: UNARY_LOOP(vf_erf_exact(v));
    default: UNARY_LOOP(v);
    }
}
#undef UNARY_LOOP
/* clang-format on */

/* y = scale * table[id] + position, by fma; without positions one multiplication. */
static void embed(float *y, size_t ldy, const uint32_t *ids, size_t count, const float *table,
                  size_t d, float scale, const float *positions, const uint32_t *rows) {
    const vf s = vf_set1(scale);
    for (size_t t = 0; t < count; t++, y += ldy) {
        const float *e = table + (size_t)ids[t] * d;
        const float *p = positions ? positions + (rows ? (size_t)rows[t] : t) * d : NULL;
        for (size_t i = 0; i < d; i += VF_N) {
            size_t w = d - i < VF_N ? d - i : VF_N;
            vf v = load_w(e + i, w);
            store_w(y + i, p ? vf_fma(v, s, load_w(p + i, w)) : vf_mul(v, s), w);
        }
    }
}

/*
 * Sinusoidal positions in double, rounded once. SLEEF's functions without FMA in plain C give the
 * same doubles everywhere; a libm does not.
 */
static void positions(float *y, size_t ldy, size_t first, size_t count, size_t d, int layout) {
    const size_t sines = layout == 2 ? d / 2 : (d + 1) / 2;
    for (size_t i = 0; i < sines; i++) {
        double exponent = layout == 2 ? (sines > 1 ? (double)i / (double)(sines - 1) : 0)
                                      : (double)(2 * i) / (double)d;
        double f = Sleef_cinz_powd1_u10purec(10000.0, exponent);
        const size_t s = layout == 0 ? 2 * i : i, c = layout == 0 ? 2 * i + 1 : sines + i;
        for (size_t t = 0; t < count; t++) {
            double angle = (double)(first + t) / f;
            y[t * ldy + s] = (float)Sleef_cinz_sind1_u10purec(angle);
            if (c < d)
                y[t * ldy + c] = (float)Sleef_cinz_cosd1_u10purec(angle);
        }
    }
    if (layout == 2 && d % 2)
        for (size_t t = 0; t < count; t++)
            y[t * ldy + d - 1] = 0;
}

/* Independent chains of FMAs in registers: as many as the machine can do. */
static float fma_peak(size_t rounds) {
    vf t[VF_FMA_CHAINS];
    const vf a = vf_set1(0.999f), b = vf_set1(0.001f);
    ISO_UNROLLED (i, VF_FMA_CHAINS)
        t[i] = vf_set1((float)i);
    for (size_t r = 0; r < rounds; r++)
        ISO_UNROLLED (i, VF_FMA_CHAINS)
            t[i] = vf_fma(t[i], a, b);
    vf s = t[0];
    ISO_UNROLL
    for (size_t i = 1; i < VF_FMA_CHAINS; i++)
        s = vf_add(s, t[i]);
    return vf_tree(s);
}
