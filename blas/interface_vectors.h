/* SPDX-License-Identifier: MIT
 *
 * A part of interface.h: the routines of vectors.
 */
static void looked_at(double begin, const char *routine, blas_int n, blas_int incx, blas_int incy) {
    if (begin > 0)
        iso_blas_end(begin, routine, NULL, "n%zu:incx%td:incy%td", SIZE(n), (ptrdiff_t)incx,
                     (ptrdiff_t)incy);
}

static __attribute__((noinline)) float dot_of_any(blas_int n, const float *x, blas_int incx,
                                                  const float *y, blas_int incy) {
    const double begin = iso_blas_begin();
    const float sum = n <= 0
                          ? 0
                          : iso_blas_dot((size_t)n, const_vector_of(x, (size_t)n, (ptrdiff_t)incx),
                                         const_vector_of(y, (size_t)n, (ptrdiff_t)incy));
    looked_at(begin, "sdot", n, incx, incy);
    return sum;
}

float cblas_sdot(blas_int n, const float *x, blas_int incx, const float *y, blas_int incy) {
    float sum;
    if (n > 0 && incx == 1 && incy == 1 && !iso_verbose() &&
        iso_gemv_f32(&sum, x, (size_t)n, y, 1, (size_t)n, 0, NULL) == ISOBIT_OK)
        return sum;
    return dot_of_any(n, x, incx, y, incy);
}

void cblas_saxpy(blas_int n, float alpha, const float *x, blas_int incx, float *y, blas_int incy) {
    const double begin = iso_blas_begin();
    if (n > 0 && alpha != 0)
        iso_blas_axpby((size_t)n, alpha, const_vector_of(x, (size_t)n, (ptrdiff_t)incx), 1,
                       vector_of(y, (size_t)n, (ptrdiff_t)incy));
    looked_at(begin, "saxpy", n, incx, incy);
}

void cblas_sscal(blas_int n, float alpha, float *x, blas_int incx) {
    const double begin = iso_blas_begin();
    if (n > 0 && incx > 0 && alpha != 1)
        iso_blas_axpby((size_t)n, alpha, (struct const_vector){x, (ptrdiff_t)incx}, 0,
                       (struct vector){x, (ptrdiff_t)incx});
    looked_at(begin, "sscal", n, incx, 0);
}

float cblas_snrm2(blas_int n, const float *x, blas_int incx) {
    const double begin = iso_blas_begin();
    const float norm =
        n <= 0 ? 0 : iso_blas_nrm2((size_t)n, const_vector_of(x, (size_t)n, (ptrdiff_t)incx));
    looked_at(begin, "snrm2", n, incx, 0);
    return norm;
}

float cblas_sasum(blas_int n, const float *x, blas_int incx) {
    const double begin = iso_blas_begin();
    const float sum = n <= 0 || incx <= 0
                          ? 0
                          : iso_blas_asum((size_t)n, (struct const_vector){x, (ptrdiff_t)incx});
    looked_at(begin, "sasum", n, incx, 0);
    return sum;
}

size_t cblas_isamax(blas_int n, const float *x, blas_int incx) {
    const double begin = iso_blas_begin();
    const size_t at = n <= 0 || incx <= 0
                          ? 0
                          : iso_blas_iamax((size_t)n, (struct const_vector){x, (ptrdiff_t)incx});
    looked_at(begin, "isamax", n, incx, 0);
    return at;
}

void cblas_scopy(blas_int n, const float *x, blas_int incx, float *y, blas_int incy) {
    const double begin = iso_blas_begin();
    if (n > 0)
        iso_blas_copy((size_t)n, const_vector_of(x, (size_t)n, (ptrdiff_t)incx),
                      vector_of(y, (size_t)n, (ptrdiff_t)incy));
    looked_at(begin, "scopy", n, incx, incy);
}

void cblas_sswap(blas_int n, float *x, blas_int incx, float *y, blas_int incy) {
    const double begin = iso_blas_begin();
    if (n > 0)
        iso_blas_swap((size_t)n, vector_of(x, (size_t)n, (ptrdiff_t)incx),
                      vector_of(y, (size_t)n, (ptrdiff_t)incy));
    looked_at(begin, "sswap", n, incx, incy);
}

ISOBIT_API float BLAS_F77(sdot)(const blas_int *n, const float *x, const blas_int *incx,
                                const float *y, const blas_int *incy);
float BLAS_F77(sdot)(const blas_int *n, const float *x, const blas_int *incx, const float *y,
                     const blas_int *incy) {
    return cblas_sdot(*n, x, *incx, y, *incy);
}

ISOBIT_API void BLAS_F77(saxpy)(const blas_int *n, const float *alpha, const float *x,
                                const blas_int *incx, float *y, const blas_int *incy);
void BLAS_F77(saxpy)(const blas_int *n, const float *alpha, const float *x, const blas_int *incx,
                     float *y, const blas_int *incy) {
    cblas_saxpy(*n, *alpha, x, *incx, y, *incy);
}

ISOBIT_API void BLAS_F77(sscal)(const blas_int *n, const float *alpha, float *x,
                                const blas_int *incx);
void BLAS_F77(sscal)(const blas_int *n, const float *alpha, float *x, const blas_int *incx) {
    cblas_sscal(*n, *alpha, x, *incx);
}

ISOBIT_API float BLAS_F77(snrm2)(const blas_int *n, const float *x, const blas_int *incx);
float BLAS_F77(snrm2)(const blas_int *n, const float *x, const blas_int *incx) {
    return cblas_snrm2(*n, x, *incx);
}

ISOBIT_API float BLAS_F77(sasum)(const blas_int *n, const float *x, const blas_int *incx);
float BLAS_F77(sasum)(const blas_int *n, const float *x, const blas_int *incx) {
    return cblas_sasum(*n, x, *incx);
}

/* From 1; 0 where there is no element. */
ISOBIT_API blas_int BLAS_F77(isamax)(const blas_int *n, const float *x, const blas_int *incx);
blas_int BLAS_F77(isamax)(const blas_int *n, const float *x, const blas_int *incx) {
    return *n <= 0 || *incx <= 0 ? 0 : (blas_int)cblas_isamax(*n, x, *incx) + 1;
}

ISOBIT_API void BLAS_F77(scopy)(const blas_int *n, const float *x, const blas_int *incx, float *y,
                                const blas_int *incy);
void BLAS_F77(scopy)(const blas_int *n, const float *x, const blas_int *incx, float *y,
                     const blas_int *incy) {
    cblas_scopy(*n, x, *incx, y, *incy);
}

ISOBIT_API void BLAS_F77(sswap)(const blas_int *n, float *x, const blas_int *incx, float *y,
                                const blas_int *incy);
void BLAS_F77(sswap)(const blas_int *n, float *x, const blas_int *incx, float *y,
                     const blas_int *incy) {
    cblas_sswap(*n, x, *incx, y, *incy);
}
