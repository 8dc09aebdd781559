/* SPDX-License-Identifier: MIT
 *
 * sgemm_64_, cblas_sgemm_64 and, as OpenBLAS has it, cblas_sgemm64_: sizes are int64_t. Where
 * addresses have 32 bits there is nothing of it.
 */
#include <stdint.h>
#if PTRDIFF_MAX > INT32_MAX
#define ISOBIT_ILP64
#define BLAS_F77(name) name##_64_
#define BLAS_IS_64 1
#include "interface.h"

#define ALSO(name)                                                                                 \
    extern __typeof__(cblas_##name##_64) cblas_##name##64_                                         \
        __attribute__((alias("cblas_" #name "_64"), visibility("default")))
ALSO(sgemm);
ALSO(sgemv);
ALSO(sger);
ALSO(ssyrk);
ALSO(sdot);
ALSO(saxpy);
ALSO(sscal);
ALSO(snrm2);
ALSO(sasum);
ALSO(isamax);
ALSO(scopy);
ALSO(sswap);
#else
typedef int iso_blas_has_no_64; /* a file has something in it */
#endif
