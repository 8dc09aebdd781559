/* SPDX-License-Identifier: MIT
 *
 * Tiles as the products of int8 and of BF16 use them: sums of 16 rows by 16 columns in 0 to 3, and
 *
 *     tall: 17 to 32 rows by two tiles of B    A in 4 5, B in 6 7
 *     flat: up to 16 rows by four              A in 4,   B in 5 6 7 5
 *
 * A product takes 16 cycles and the load of a tile 8, if it comes from L1: the tall one loads a
 * tile for each product.
 */
enum { AMX_TALL = 2 * AMX_ROWS, AMX_TILE_BYTES = AMX_ROWS * AMX_BYTES };

/* For up to 32 rows. */
static ISO_ONE_COPY void amx_configure(size_t rows) {
    struct amx_config config = {.palette = 1};
    const size_t first = rows < AMX_ROWS ? rows : AMX_ROWS;
    for (size_t t = 0; t < AMX_TILES; t++) {
        const int of_b = t >= (rows > AMX_ROWS ? 6 : 5);
        const int second = rows > AMX_ROWS && (t == 2 || t == 3 || t == 5);
        config.bytes[t] = AMX_BYTES;
        config.rows[t] = (uint8_t)(of_b ? AMX_ROWS : second ? rows - first : first);
    }
    TILE_CONFIGURE(&config);
}

/* The number of a tile is part of the instruction. */
#define AMX_EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
ISO_INLINE void amx_load(const size_t tile, const void *from, size_t stride) {
    switch (tile) {
#define AMX_CASE(t)                                                                                \
    case t: TILE_LOAD(t, from, stride); break;
        AMX_EACH(AMX_CASE)
#undef AMX_CASE
    }
}
ISO_INLINE void amx_store(const size_t tile, void *to, size_t stride) {
    switch (tile) {
#define AMX_CASE(t)                                                                                \
    case t: TILE_STORE(t, to, stride); break;
        AMX_EACH(AMX_CASE)
#undef AMX_CASE
    }
}
/* Sums, A and B: of tall, then of flat. */
#define AMX_PRODUCTS(X, DOT)                                                                       \
    X(DOT, 0, 4, 6)                                                                                \
    X(DOT, 1, 4, 7)                                                                                \
    X(DOT, 2, 5, 6)                                                                                \
    X(DOT, 3, 5, 7)                                                                                \
    X(DOT, 0, 4, 5) X(DOT, 1, 4, 6) X(DOT, 2, 4, 7) X(DOT, 3, 4, 5)
#define AMX_CASE(DOT, sum, a, b)                                                                   \
    case sum * 64 + a * 8 + b: DOT(sum, a, b); break;
enum amx_kind { AMX_S8, AMX_B16 };
ISO_INLINE void amx_dot(const enum amx_kind kind, const size_t sum, const size_t a,
                        const size_t b) {
    const size_t place = sum * 64 + a * 8 + b;
    if (kind == AMX_S8)
        switch (place) {
            AMX_PRODUCTS(AMX_CASE, TILE_DOT_U8_S8)
        default: ISO_REQUIRE(0);
        }
    else
        switch (place) {
            AMX_PRODUCTS(AMX_CASE, TILE_DOT_B16)
        default: ISO_REQUIRE(0);
        }
}
#undef AMX_CASE

/* For peaks: four chains of products with the same tile of A, and the same one of B, into `sums`.
 */
#define AMX_PEAK_OPS(step)                                                                         \
    (4U * 2 * AMX_ROWS * ISO_PANEL * (step)) /* of a round; steps of a tile */
ISO_INLINE void amx_peak(const enum amx_kind kind, void *sums, const void *a, const void *b,
                         size_t rounds) {
    amx_configure(AMX_TALL);
    for (size_t t = 4; t < AMX_TILES; t++)
        amx_load(t, t < 6 ? a : b, AMX_BYTES);
    for (size_t r = 0; r < rounds; r++) {
        amx_dot(kind, 0, 4, 6);
        amx_dot(kind, 1, 4, 7);
        amx_dot(kind, 2, 5, 6);
        amx_dot(kind, 3, 5, 7);
    }
    amx_store(0, sums, AMX_BYTES);
    TILE_RELEASE();
}
