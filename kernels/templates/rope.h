/* SPDX-License-Identifier: MIT
 *
 * Rotary position embeddings (Su et al. 2021): pairs of components of a head rotated by an angle
 * that grows with the position. Three roundings for each result and no fused product: so it has the
 * bits of x cos + rotate_half(x) sin, as models are trained with it, and the scalar set need not
 * emulate anything.
 */

/* Elements i .. i+w-1 of both halves. */
ISO_INLINE void rope_halves(float *y, const float *x, const float *c, const float *s, size_t half,
                            size_t i, size_t w) {
    const vf a = load_w(x + i, w), b = load_w(x + half + i, w);
    const vf cosine = load_w(c + i, w), sine = load_w(s + i, w);
    store_w(y + i, vf_sub(vf_mul(a, cosine), vf_mul(b, sine)), w);
    store_w(y + half + i, vf_add(vf_mul(b, cosine), vf_mul(a, sine)), w);
}

/* k vectors, of which the last one holds `last` elements: x cos + (its neighbour) (-+sin). */
ISO_INLINE void rope_neighbours(float *y, const float *x, const float *c, const float *s,
                                const size_t k, size_t last) {
    vf v[2] = {vf_set1(0), vf_set1(0)}, t[2];
#define WIDTH (j + 1 < k ? VF_N : last)
    ISO_UNROLLED (j, k)
        v[j] = load_w(x + j * VF_N, WIDTH);
    ISO_UNROLLED (j, 2)
        t[j] = v[j];
    vf_swap_pairs(t);
    ISO_UNROLLED (j, k)
        store_w(y + j * VF_N,
                vf_add(vf_mul(v[j], load_w(c + j * VF_N, WIDTH)),
                       vf_mul(t[j], load_w(s + j * VF_N, WIDTH))),
                WIDTH);
#undef WIDTH
}

/* One head; halves: c and s [rotary / 2], else [rotary], for each element its own. */
ISO_INLINE void rope_head(float *y, const float *x, const float *c, const float *s, size_t dh,
                          size_t rotary, const int halves) {
    size_t i = 0;
    if (halves) {
        const size_t half = rotary / 2;
        for (; i + VF_N <= half; i += VF_N)
            rope_halves(y, x, c, s, half, i, VF_N);
        if (i < half)
            rope_halves(y, x, c, s, half, i, half - i);
    } else {
        for (; i + 2 * VF_N <= rotary; i += 2 * VF_N)
            rope_neighbours(y + i, x + i, c + i, s + i, 2, VF_N);
        if (VF_N > 1 && i + VF_N < rotary)
            rope_neighbours(y + i, x + i, c + i, s + i, 2, rotary - i - VF_N);
        else if (VF_N > 1 && i < rotary)
            rope_neighbours(y + i, x + i, c + i, s + i, 1, rotary - i);
    }
    if (y != x) {
        for (i = rotary; i + VF_N <= dh; i += VF_N)
            vf_store(y + i, vf_load(x + i));
        if (i < dh)
            vf_store_n(y + i, vf_load_n(x + i, dh - i), dh - i);
    }
}

static void rope(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                 const struct iso_rope *o) {
    const size_t heads = o->heads, dh = o->dh, rotary = o->rotary, half = rotary / 2;
    float c[ISO_ROPE_MOST], s[ISO_ROPE_MOST];
    for (size_t t = 0; t < rows; t++, y += ldy, x += ldx) {
        const float *cosine =
            o->table + (o->position_rows ? (size_t)o->position_rows[t] : t) * o->ld;
        const float *sine = cosine + half;
        if (o->halves) {
            for (size_t h = 0; h < heads; h++)
                rope_head(y + h * dh, x + h * dh, cosine, sine, dh, rotary, 1);
            continue;
        }
        for (size_t i = 0; i < half; i++) { /* once for all heads */
            c[2 * i] = c[2 * i + 1] = cosine[i];
            s[2 * i] = -sine[i], s[2 * i + 1] = sine[i];
        }
        for (size_t h = 0; h < heads; h++)
            rope_head(y + h * dh, x + h * dh, c, s, dh, rotary, 0);
    }
}

/*
 * The angle is exact: a position below 2^29 times a float fits in a double. Then SLEEF's functions
 * in double, as for `positions`, and one rounding to float.
 */
static void rope_table(float *table, size_t ld, size_t first, size_t count, const float *inv_freq,
                       size_t rotary, float scaling) {
    const size_t half = rotary / 2;
    for (size_t t = 0; t < count; t++, table += ld) {
        for (size_t i = 0; i < half; i++) {
            const double angle = (double)(first + t) * (double)inv_freq[i];
            const Sleef_double_2 sine_cosine = Sleef_cinz_sincosd1_u10purec(angle);
            table[i] = (float)(sine_cosine.y * (double)scaling);
            table[half + i] = (float)(sine_cosine.x * (double)scaling);
        }
    }
}
