/* SPDX-License-Identifier: MIT
 *
 * Functions of single elements, embeddings, position tables, and the FMA peak.
 */

/* Groups of vectors, then single ones: only the last of these may be short. */
ISO_INLINE void unary_each(float *y, const float *x, size_t n, const int function) {
    size_t i = 0;
    for (; i + VF_TOGETHER * VF_N <= n; i += VF_TOGETHER * VF_N) {
        vf v[VF_TOGETHER];
        ISO_UNROLLED (j, VF_TOGETHER)
            v[j] = vf_load(x + i + j * VF_N);
        vf_functions(v, v, function, VF_TOGETHER);
        ISO_UNROLLED (j, VF_TOGETHER)
            vf_store(y + i + j * VF_N, v[j]);
    }
    for (; i < n; i += VF_N) {
        size_t w = n - i < VF_N ? n - i : VF_N;
        vf v = load_w(x + i, w);
        vf_functions(&v, &v, function, 1);
        store_w(y + i, v, w);
    }
}

static void unary(float *y, const float *x, size_t n, int function) {
    switch (function) {
    case 1: unary_each(y, x, n, 1); break;
    case 2: unary_each(y, x, n, 2); break;
    case 3: unary_each(y, x, n, 3); break;
    case 4: unary_each(y, x, n, 4); break;
    case 5: unary_each(y, x, n, 5); break;
    case ISO_UNARY_EXP: unary_each(y, x, n, ISO_UNARY_EXP); break;
    case ISO_UNARY_ERF: unary_each(y, x, n, ISO_UNARY_ERF); break;
    default: unary_each(y, x, n, 0); break;
    }
}

/* y = scale * table[id] + position, by fma; without positions one multiplication. */
static void embed(float *y, size_t ldy, const uint32_t *ids, size_t count, const float *table,
                  size_t d, float scale, const float *positions, const uint32_t *rows) {
    const vf s = vf_set1(scale);
    for (size_t t = 0; t < count; t++, y += ldy) {
        const float *e = table + (size_t)ids[t] * d;
        const float *p = positions ? positions + (rows ? (size_t)rows[t] : t) * d : NULL;
        size_t i = 0;
        if (p)
            for (; i + VF_N <= d; i += VF_N)
                vf_store(y + i, vf_fma(vf_load(e + i), s, vf_load(p + i)));
        else
            for (; i + VF_N <= d; i += VF_N)
                vf_store(y + i, vf_mul(vf_load(e + i), s));
        if (i < d) {
            vf v = vf_load_n(e + i, d - i);
            vf_store_n(y + i, p ? vf_fma(v, s, vf_load_n(p + i, d - i)) : vf_mul(v, s), d - i);
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
    /* Sums that stay what they are, rounded: as quick as others, and no number ever gets extreme.
     * The sum comes last because it is what an FMA of Arm's overwrites. */
    const vf a = vf_set1(0x1p-20f), b = vf_set1(0x1p-20f);
    ISO_UNROLLED (i, VF_FMA_CHAINS)
        t[i] = vf_set1((float)(i + 1));
    for (size_t r = 0; r < rounds; r++)
        ISO_UNROLLED (i, VF_FMA_CHAINS)
            t[i] = vf_fma(a, b, t[i]);
    vf s = t[0];
    ISO_UNROLL
    for (size_t i = 1; i < VF_FMA_CHAINS; i++)
        s = vf_add(s, t[i]);
    return vf_tree(s);
}
