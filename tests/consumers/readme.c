/* SPDX-License-Identifier: MIT */
#include <isobit/ops.h>
#include <stdio.h>

int main(void) {
    const float x[4] = {0.1f, 0.2f, 0.3f, 0.4f};
    float y[4];
    for (size_t i = 0; i < iso_isa_count(); i++) { /* every instruction set, best first */
        iso_context context = {.size = sizeof context, .isa = iso_isa_get(i)};
        if (iso_isa_missing(context.isa) == NULL &&
            iso_softmax_f32(y, 4, x, 4, 1, 4, NULL, &context) == ISOBIT_OK)
            printf("%-8s %a %a %a %a\n", iso_isa_name(context.isa), y[0], y[1], y[2], y[3]);
    }
}
