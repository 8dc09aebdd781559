/* SPDX-License-Identifier: MIT
 *
 * Rows of floats to blocks of int8 (kernels.h). A block that the row does not fill has zeros.
 */

/* The nearest integers of times * x, of those that are as near the even ones, are in the lowest
 * bytes of the sums' bits: see iso_s8_nearest. */
ISO_INLINE void blocks_round(int32_t *integers, const float *x, float times) {
    float nearest[ISO_S8_BLOCK];
    ISO_UNROLLED (j, ISO_S8_BLOCK / VF_N)
        vf_store(nearest + j * VF_N,
                 vf_add(vf_mul(vf_load(x + j * VF_N), vf_set1(times)), vf_set1(0x1.8p23f)));
    memcpy(integers, nearest, sizeof nearest);
    for (size_t j = 0; j < ISO_S8_BLOCK; j++)
        integers[j] -= 0x4b400000;
}

/* Each 8 in the order 7 5 3 1 6 4 2 0, on machines of either byte order: reversed, then every
 * second one. Byte by byte, compilers make an insertion of each. */
ISO_INLINE void blocks_place(int8_t *q, const int32_t *integers) {
    union {
        int8_t bytes[ISO_S8_BLOCK];
        uint64_t eights[ISO_S8_BLOCK / 8];
    } u;
    for (size_t j = 0; j < ISO_S8_BLOCK; j++)
        u.bytes[j] = (int8_t)integers[j];
    for (size_t i = 0; i < ISO_S8_BLOCK / 8; i++) {
        uint64_t x = __builtin_bswap64(u.eights[i]), swap;
        swap = (x ^ x >> 8) & 0x0000ff000000ff00;
        x ^= swap ^ swap << 8;
        swap = (x ^ x >> 16) & 0x00000000ffff0000;
        u.eights[i] = x ^ swap ^ swap << 16;
    }
    for (size_t j = 0; j < ISO_S8_BLOCK; j++)
        q[j] = u.bytes[j];
}

static ISO_ONE_COPY void blocks_one(struct iso_s8_block *to, const float *x) {
    union {
        uint32_t bits;
        float value;
    } most;
    s8m all = S8_NONE;
    ISO_UNROLLED (j, ISO_S8_BLOCK / VF_N)
        all = s8_most(all, vf_load(x + j * VF_N));
    most.bits = s8_most_of(all);
    const float inverse = iso_s8_inverse(&to->scale, most.value, most.bits < 0x7f800000);
    int32_t integers[ISO_S8_BLOCK], sums[2] = {0, 0};
    if (inverse > 0)
        blocks_round(integers, x, inverse);
    else
        memset(integers, 0, sizeof integers);
    for (size_t j = 0; j < ISO_S8_BLOCK / 2; j++)
        sums[0] += integers[j];
    for (size_t j = ISO_S8_BLOCK / 2; j < ISO_S8_BLOCK; j++)
        sums[1] += integers[j];
    blocks_place(to->q, integers);
    for (size_t i = 0; i < 3; i++) {
        const int32_t sum = i < 2 ? sums[i] : sums[0] + sums[1];
        to->start[i] = -8 * sum;
        to->scaled[i] = (float)sum * to->scale;
    }
    to->unused = 0;
}

static void quantize_blocks(struct iso_s8_block *to, size_t ldt, const float *x, size_t ldx,
                            size_t rows, size_t n) {
    ISO_REQUIRE(rows <= 1 || (ldt >= iso_s8_blocks(n) && ldx >= n));
    for (size_t i = 0; i < rows; i++, to += ldt, x += ldx) {
        struct iso_s8_block *block = to;
        size_t j = 0;
        for (; j + ISO_S8_BLOCK <= n; j += ISO_S8_BLOCK)
            blocks_one(block++, x + j);
        if (j < n) {
            float last[ISO_S8_BLOCK] = {0};
            memcpy(last, x + j, (n - j) * sizeof *last);
            blocks_one(block, last);
        }
    }
}
