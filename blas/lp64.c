/* SPDX-License-Identifier: MIT
 *
 * sgemm_ and cblas_sgemm: sizes are int. The wheels of SciPy carry a BLAS whose names begin with
 * scipy_.
 */
#define BLAS_F77(name) name##_
#define BLAS_IS_64 0
#include "interface.h"

#define ROUTINE(name)                                                                              \
    BLAS_ALIAS(scipy_##name##_, name##_);                                                          \
    BLAS_ALIAS(scipy_cblas_##name, cblas_##name);
#include "routines.def"
