/* SPDX-License-Identifier: MIT */
#include "check.h"

#define ACTIVATION(NAME, ...)                                                                      \
    _Static_assert((int)ISO_UNARY_##NAME == (int)ISOBIT_ACT_##NAME, "numbers of activations");
#include "activations.def"
#undef ACTIVATION

iso_status iso_check_epilogue(float *c, size_t ldc, size_t m, size_t n,
                              const struct iso_epilogue *e) {
    if ((unsigned)e->act >= ISO_ACTIVATIONS)
        return ISOBIT_E_OPTION;
    iso_status status = iso_check_matrix(c, m, n, ldc);
    if (!status && e->residual)
        status = iso_check_matrix(e->residual, m, n, e->ldr);
    if (!status && iso_overlap_partly(c, m, n, ldc, e->residual, e->ldr))
        status = ISOBIT_E_ALIAS;
    if (!status && iso_overlap(c, m, n, ldc, e->bias, 1, n, n))
        status = ISOBIT_E_ALIAS;
    return status;
}
