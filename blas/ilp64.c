/* SPDX-License-Identifier: MIT
 *
 * sgemm_64_, cblas_sgemm_64 and, as OpenBLAS has it, cblas_sgemm64_: sizes are int64_t. The wheels
 * of NumPy carry a BLAS whose names begin with scipy_. Where addresses have 32 bits there is
 * nothing of it.
 */
#include <stdint.h>
#if PTRDIFF_MAX > INT32_MAX
#define ISOBIT_ILP64
#define BLAS_F77(name) name##_64_
#define BLAS_IS_64 1
#include "interface.h"

#define ROUTINE(name)                                                                              \
    BLAS_ALIAS(cblas_##name##64_, cblas_##name##_64);                                              \
    BLAS_ALIAS(scipy_##name##_64_, name##_64_);                                                    \
    BLAS_ALIAS(scipy_cblas_##name##64_, cblas_##name##_64);
#include "routines.def"
#else
typedef int iso_blas_has_no_64; /* a file has something in it */
#endif
