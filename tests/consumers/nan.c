/* SPDX-License-Identifier: MIT
 *
 * NaN is refused as an eps, and comes out of a softmax where it went in. A compiler that was told
 * -ffast-math takes such tests away, and this program may be compiled with it: it looks at bits.
 */
#include <isobit/ops.h>

#include <string.h>

int main(void) {
    const uint32_t nan = 0x7fc00000, one = 0x3f800000;
    uint32_t x[4] = {one, nan, one, one}, y[4];
    iso_norm_options norm = {.size = sizeof norm};
    float in[4], out[4];
    memcpy(in, x, sizeof in);
    memcpy(&norm.eps, &nan, sizeof nan);
    if (iso_layernorm_f32(out, 4, in, 4, 1, 4, &norm, NULL) != ISOBIT_E_OPTION)
        return 1;
    for (size_t i = 0; i < iso_isa_count(); i++) {
        const iso_context context = {.size = sizeof context, .isa = iso_isa_get(i)};
        if (iso_isa_missing(context.isa))
            continue;
        if (iso_softmax_f32(out, 4, in, 4, 1, 4, NULL, &context))
            return 2;
        memcpy(y, out, sizeof y);
        for (int j = 0; j < 4; j++)
            if ((y[j] & 0x7fffffff) <= 0x7f800000)
                return 3;
    }
    return 0;
}
