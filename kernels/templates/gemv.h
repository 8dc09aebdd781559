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

/* W is [k][ldw]: `wd` columns at a time, lane by lane; the lanes of a column meet in a tree. */
static void gemv_columns(float *y, const float *w, size_t ldw, const float *x, size_t wd,
                         size_t k) {
    float lanes[ISO_LANES * VF_N];
    for (size_t l = 0; l < ISO_LANES; l += 4) {
        vf t[4] = {vf_set1(0), vf_set1(0), vf_set1(0), vf_set1(0)};
        for (size_t p = l; p < k; p += ISO_LANES) {
            ISO_UNROLLED (q, 4)
                if (p + q < k)
                    t[q] = vf_fma(load_w(w + (p + q) * ldw, wd), vf_set1(x[p + q]), t[q]);
        }
        ISO_UNROLLED (q, 4)
            vf_store(lanes + (l + q) * VF_N, t[q]);
    }
    for (size_t h = ISO_LANES / 2; h > 0; h /= 2)
        for (size_t j = 0; j < h; j++)
            vf_store(lanes + j * VF_N,
                     vf_add(vf_load(lanes + j * VF_N), vf_load(lanes + (j + h) * VF_N)));
    store_w(y, vf_load(lanes), wd);
}

static void gemv(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                 int trans) {
    if (!trans) {
        gemv_rows(y, w, ldw, x, n, k);
        return;
    }
    for (size_t j = 0; j < n; j += VF_N)
        gemv_columns(y + j, w + j, ldw, x, n - j < VF_N ? n - j : VF_N, k);
}
