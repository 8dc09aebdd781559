/* SPDX-License-Identifier: MIT
 *
 * sgemm_ and cblas_sgemm: sizes are int.
 */
#define BLAS_F77(name) name##_
#define BLAS_IS_64 0
#include "interface.h"
