/* SPDX-License-Identifier: MIT
 *
 * Kernels whose arithmetic can be made wrong in the last bit: FLIP(x, what) is the float x, a
 * result of arithmetic, and a site that flip.c can spoil. Included by the kernels that
 * flip_kernels.c is made of, and by flip.c.
 */
#ifndef ISOBIT_TESTS_FLIP_H
#define ISOBIT_TESTS_FLIP_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* One place in the sources (macros: where they are used) whose results can be spoilt. */
struct flip_site {
    const char *file, *function, *what;
    int line;
    size_t calls;               /* with a result that is finite and not 0: others are left alone */
} __attribute__((aligned(64))); /* the compiler must not leave gaps between them */
/* The sites lie beside each other, in a section of their own. */
extern struct flip_site flip_first[] __asm__("__start_flip_sites");
extern struct flip_site flip_end[] __asm__("__stop_flip_sites");

/* Of this site, each call whose number modulo `every` is `phase` gets the wrong last bit. */
struct flip_choice {
    const struct flip_site *site;
    size_t every, phase;
};
extern struct flip_choice flip_choice;

static inline int flip_hits(struct flip_site *site) {
    size_t call = site->calls++;
    return site == flip_choice.site && call % flip_choice.every == flip_choice.phase;
}
static inline float flip_float(float x, struct flip_site *site) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffff) == 0 || (bits & 0x7f800000) == 0x7f800000)
        return x;
    bits ^= (uint32_t)flip_hits(site);
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline double flip_double(double x, struct flip_site *site) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x == 0 || x - x != 0)
        return x;
    bits ^= (uint64_t)flip_hits(site);
    memcpy(&x, &bits, sizeof x);
    return x;
}

#define FLIP_SITE(type, x, name, n)                                                                \
    ({                                                                                             \
        static struct flip_site site_##n __attribute__((section("flip_sites"))) = {                \
            .file = __FILE__, .line = __LINE__, .what = (name)};                                   \
        site_##n.function = __func__;                                                              \
        flip_##type((x), &site_##n);                                                               \
    })
#define FLIP_NUMBERED(type, x, name, n) FLIP_SITE(type, x, name, n)
#define FLIP(x, name) FLIP_NUMBERED(float, x, name, __COUNTER__)
#define FLIP_DOUBLE(x, name) FLIP_NUMBERED(double, x, name, __COUNTER__)

#endif
