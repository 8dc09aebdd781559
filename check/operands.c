/* SPDX-License-Identifier: MIT
 *
 * The operands of a case as setup declares them: host copies, and what is expected of outputs.
 */
#include "common.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void iso_check_die(const char *what) {
    fprintf(stderr, "isobit: check: %s%s%s\n", what, errno ? ": " : "",
            errno ? strerror(errno) : "");
    exit(2);
}

void *iso_check_operands_alloc(struct iso_check_operands *o, size_t bytes) {
    bytes = (bytes + 63) / 64 * 64 + 64;
    if (o->pool_bytes - o->pool_used >= bytes) {
        void *p = o->pool + o->pool_used;
        o->pool_used += bytes;
        return p;
    }
    void *block = NULL;
    if (posix_memalign(&block, 64, bytes + 64))
        iso_check_die("memory");
    memcpy(block, &o->overflow, sizeof o->overflow);
    o->overflow = block;
    return (char *)block + 64;
}

void iso_check_operands_begin(struct iso_check_operands *o, uint64_t seed) {
    if (!o->pool) {
        o->pool_bytes = (size_t)4 << 20;
        void *pool = NULL;
        if (posix_memalign(&pool, 64, o->pool_bytes))
            iso_check_die("memory");
        o->pool = pool;
    }
    o->count = 0;
    o->pool_used = 0;
    o->random.state = seed * UINT64_C(0xd1342543de82ef95) + 1;
    o->filled = o->drawn = o->spot = o->cols = 0;
    o->last = 0;
}

void iso_check_operands_free_overflow(struct iso_check_operands *o) {
    while (o->overflow) {
        void *next;
        memcpy(&next, o->overflow, sizeof next);
        free(o->overflow);
        o->overflow = next;
    }
}

void iso_check_operands_end(struct iso_check_operands *o) {
    iso_check_operands_free_overflow(o);
    free(o->pool);
    o->pool = NULL;
}

void iso_check_fill_words(void *to, size_t bytes, uint32_t word) {
    char *p = to;
    for (; bytes >= 4; bytes -= 4, p += 4)
        memcpy(p, &word, 4);
    memset(p, 0xa5, bytes);
}

static struct iso_check_operand *declare(struct iso_check_operands *o, const char *name,
                                         enum iso_check_role role, size_t element, size_t rows,
                                         size_t cols, size_t ld) {
    if (o->count == ISO_CHECK_OPERANDS)
        errno = 0, iso_check_die("too many operands");
    struct iso_check_operand *v = &o->v[o->count++];
    *v = (struct iso_check_operand){.name = name,
                                    .role = role,
                                    .element = element,
                                    .rows = rows,
                                    .cols = cols,
                                    .ld = ld,
                                    .bytes = rows && cols ? ((rows - 1) * ld + cols) * element : 0};
    v->host = iso_check_operands_alloc(o, v->bytes);
    iso_check_fill_words(v->host, v->bytes,
                         role == ISO_CHECK_IN || role == ISO_CHECK_SCRATCH ? GAP_BITS
                                                                           : ISO_CHECK_CANARY_BITS);
    return v;
}

void *iso_check_in(struct iso_check_operands *o, const char *name, size_t element, size_t rows,
                   size_t cols, size_t ld) {
    return declare(o, name, ISO_CHECK_IN, element, rows, cols, ld)->host;
}

float *iso_check_in_f32(struct iso_check_operands *o, const char *name, size_t rows, size_t cols,
                        size_t ld, unsigned fill) {
    float *host = declare(o, name, ISO_CHECK_IN, sizeof(float), rows, cols, ld)->host;
    iso_check_fill(o, host, rows, cols, ld, fill);
    return host;
}

void *iso_check_out(struct iso_check_operands *o, const char *name, size_t rows, size_t cols,
                    size_t ld) {
    return declare(o, name, ISO_CHECK_OUT, sizeof(float), rows, cols, ld)->host;
}

float *iso_check_inout_f32(struct iso_check_operands *o, const char *name, size_t rows, size_t cols,
                           size_t ld, unsigned fill) {
    float *host = declare(o, name, ISO_CHECK_INOUT, sizeof(float), rows, cols, ld)->host;
    iso_check_fill(o, host, rows, cols, ld, fill);
    return host;
}

void iso_check_scratch(struct iso_check_operands *o, const char *name, size_t floats) {
    declare(o, name, ISO_CHECK_SCRATCH, sizeof(float), 1, floats, floats);
}

void iso_check_absent(struct iso_check_operands *o, const char *name) {
    struct iso_check_operand *v = declare(o, name, ISO_CHECK_IN, sizeof(float), 0, 0, 0);
    v->absent = true;
}

static void *result_array(struct iso_check_operands *o, unsigned index, void *have,
                          size_t element) {
    const struct iso_check_operand *v = &o->v[index];
    return have ? have : iso_check_operands_alloc(o, v->rows * v->cols * element);
}

double *iso_check_expect(struct iso_check_operands *o, unsigned index) {
    return o->v[index].expect = result_array(o, index, o->v[index].expect, sizeof(double));
}

double *iso_check_bound(struct iso_check_operands *o, unsigned index) {
    return o->v[index].bound = result_array(o, index, o->v[index].bound, sizeof(double));
}

float *iso_check_exact(struct iso_check_operands *o, unsigned index) {
    return o->v[index].exact = result_array(o, index, o->v[index].exact, sizeof(float));
}

void iso_check_operands_plain(struct iso_check_operands *o) {
    for (unsigned i = 0; i < o->count; i++)
        o->v[i].at = o->v[i].absent ? NULL : o->v[i].host;
}
