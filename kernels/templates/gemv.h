/* SPDX-License-Identifier: MIT
 *
 * y = W x: each y[j] is a dot product over the 32 virtual lanes with FMA, then their tree; the
 * same bits for both layouts of W.
 */

static void gemv_rows(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k) {
    for (size_t j = 0; j < n; j++) {
        const float *row = w + j * ldw;
        vf t[LANE_REGS];
        ISO_UNROLLED (r, LANE_REGS)
            t[r] = vf_set1(0);
#define GEMV_STEP(r, i, wd) t[r] = vf_fma(load_w(row + (i), wd), load_w(x + (i), wd), t[r])
        LANES_EACH(k, GEMV_STEP);
#undef GEMV_STEP
        y[j] = lanes_tree(t);
    }
}

/*
 * W is [k][ldw]: up to 32 columns at a time, with the 32 lanes of each on the stack (4 KiB). Rows
 * that go to the same lane are 32 apart; four of them are added between a load and a store of the
 * lane.
 */
#define GEMV_COLUMNS 32

static void gemv_columns(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k) {
    float lanes[ISO_LANES * GEMV_COLUMNS];
    const size_t step = 4 * ISO_LANES;
    memset(lanes, 0, sizeof lanes);
    size_t p = 0;
    for (; n == GEMV_COLUMNS && p + step <= k; p += step)
        for (size_t l = 0; l < ISO_LANES; l++) {
            const float *row = w + (p + l) * ldw;
            float *lane = lanes + l * GEMV_COLUMNS;
            vf x4[4];
            ISO_UNROLLED (q, 4)
                x4[q] = vf_set1(x[p + l + q * ISO_LANES]);
            ISO_UNROLLED (j, GEMV_COLUMNS / VF_N) {
                vf t = vf_load(lane + j * VF_N);
                ISO_UNROLLED (q, 4)
                    t = vf_fma(vf_load(row + q * ISO_LANES * ldw + j * VF_N), x4[q], t);
                vf_store(lane + j * VF_N, t);
            }
        }
    for (; p < k; p++) {
        float *lane = lanes + p % ISO_LANES * GEMV_COLUMNS;
        for (size_t j = 0; j < n; j += VF_N) {
            size_t wd = n - j < VF_N ? n - j : VF_N;
            vf t = vf_fma(load_w(w + p * ldw + j, wd), vf_set1(x[p]), vf_load(lane + j));
            vf_store(lane + j, t);
        }
    }
    for (size_t h = ISO_LANES / 2; h > 0; h /= 2)
        for (size_t j = 0; j < h * GEMV_COLUMNS; j += VF_N)
            vf_store(lanes + j, vf_add(vf_load(lanes + j), vf_load(lanes + j + h * GEMV_COLUMNS)));
    for (size_t j = 0; j < n; j += VF_N)
        store_w(y + j, vf_load(lanes + j), n - j < VF_N ? n - j : VF_N);
}

static void gemv(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                 int trans) {
    if (!trans) {
        gemv_rows(y, w, ldw, x, n, k);
        return;
    }
    for (size_t j = 0; j < n; j += GEMV_COLUMNS)
        gemv_columns(y + j, w + j, ldw, x, n - j < GEMV_COLUMNS ? n - j : GEMV_COLUMNS, k);
}
