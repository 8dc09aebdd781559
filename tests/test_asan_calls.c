/* SPDX-License-Identifier: MIT
 *
 * usage: test_asan_calls ISA BYTES
 * A softmax of a row whose memory ends BYTES early, or that has been freed (0): the address
 * sanitizer is to stop the kernel (asan_calls.c), and ctest wants its words.
 */
#include <isobit/isobit.h>
#include <isobit/ops.h>

#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
    enum { n = 64 };
    const iso_isa *isa;
    if (count != 3)
        return 2;
    if (iso_isa_find(&isa, arguments[1])) {
        printf("SKIPPED: this machine cannot run %s\n", arguments[1]);
        return 77;
    }
    const size_t less = strtoul(arguments[2], NULL, 10);
    const iso_context context = {.size = sizeof context, .isa = isa};
    float y[n], *x = calloc(1, n * sizeof *x - less);
    if (!x)
        return 2;
    if (less == 0)
        free(x);
    (void)iso_softmax_f32(y, n, x, n, 1, n, NULL, &context);
    puts("nothing happened");
    return 0;
}
