/* SPDX-License-Identifier: MIT
 *
 * The memory that benchmarks work on.
 */
#include "operations.h"

struct bench_memory memory;

/* The largest case: 4096 x 4096 in, and half of it out. */
#define LEAST_FLOATS ((size_t)2 * 4096 * 4096 + ((size_t)1 << 20))

/*
 * What is written (outputs, the workspace, packed weights) lies in one place of a page relative to
 * the inputs and to each other; `offset` moves each by another distance.
 */
enum { MOVE_INPUT = 1, MOVE_OUTPUT, MOVE_WORKSPACE, MOVE_PACKED };

static void *allocate(void **block, size_t bytes, size_t move) {
    const size_t by = move * memory.offset % 4096;
    *block = aligned_alloc(4096, (bytes + by + 4095) / 4096 * 4096);
    return *block ? (char *)*block + by : NULL;
}

static void fill_input(size_t floats) {
    uint64_t x = memory.random_state;
    for (; memory.filled < floats; memory.filled++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        memory.in[memory.filled] = (float)((int32_t)(x >> 40) - (1 << 23)) * 0x1p-23f;
    }
    memory.random_state = x;
}

int bench_memory_init(size_t bytes, size_t offset) {
    const size_t floats = bytes / sizeof(float);
    memory.offset = offset;
    memory.in_floats = floats > LEAST_FLOATS ? floats : LEAST_FLOATS;
    memory.out_floats = memory.in_floats / 2;
    memory.in = allocate(&memory.blocks[0], memory.in_floats * sizeof(float), MOVE_INPUT);
    memory.out = allocate(&memory.blocks[1], memory.out_floats * sizeof(float), MOVE_OUTPUT);
    memory.other = allocate(&memory.blocks[2], memory.out_floats * sizeof(float), MOVE_OUTPUT);
    memory.ids = malloc(VOCABULARY * sizeof *memory.ids);
    if (!memory.in || !memory.out || !memory.other || !memory.ids)
        return 0;
    memory.random_state = UINT64_C(0x9e3779b97f4a7c15);
    fill_input(floats);
    for (size_t i = 0; i < VOCABULARY; i++)
        memory.ids[i] = (uint32_t)(i * 7919 % VOCABULARY);
    memset(memory.out, 0, floats / 2 * sizeof(float));
    memset(memory.other, 0, floats / 2 * sizeof(float));
    return 1;
}

const float *bench_input(void) { return memory.in; }
float *bench_output(void) { return memory.out; }
size_t bench_output_bytes(void) { return memory.out_floats * sizeof(float); }
float *bench_other_output(void) { return memory.other; }

/* The one that was added last. */
iso_status drop_packed(iso_status status) {
    struct packed *p = memory.packed;
    memory.packed = p->next;
    free(p->block);
    free(p);
    return status;
}

void bench_memory_free(void) {
    while (memory.packed)
        drop_packed(ISOBIT_OK);
    for (size_t i = 0; i < sizeof memory.blocks / sizeof *memory.blocks; i++)
        free(memory.blocks[i]);
    free(memory.ids);
    free(memory.workspace_block);
    memset(&memory, 0, sizeof memory);
}

/* Random numbers that no other operand of the case has; NULL when the array is used up. */
const float *input(size_t floats) {
    if (!memory.in || floats > memory.in_floats - memory.used)
        return NULL;
    const float *p = memory.in + memory.used;
    /* Operands start in different places of a page. */
    size_t end = memory.used + (floats + 15) / 16 * 16 + 80;
    memory.used = end < memory.in_floats ? end : memory.in_floats;
    fill_input(memory.used);
    return p;
}

iso_status need_workspace(struct bench_job *job, size_t bytes) {
    if (bytes > memory.workspace_bytes) {
        free(memory.workspace_block);
        memory.workspace = allocate(&memory.workspace_block, bytes, MOVE_WORKSPACE);
        memory.workspace_bytes = memory.workspace ? bytes : 0;
        if (!memory.workspace)
            return ISOBIT_E_NOMEM;
    }
    job->context.workspace = memory.workspace;
    job->context.workspace_bytes = memory.workspace_bytes;
    return ISOBIT_OK;
}

struct packed *find_packed(const struct bench_library *library, enum packed_kind kind, size_t n,
                           size_t k) {
    struct packed *p = memory.packed;
    while (p && !(p->library == library && p->kind == kind && p->n == n && p->k == k))
        p = p->next;
    return p;
}

struct packed *add_packed(const struct bench_library *library, enum packed_kind kind, size_t n,
                          size_t k, size_t bytes) {
    struct packed *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->library = library, p->kind = kind, p->n = n, p->k = k, p->bytes = bytes;
    p->data = allocate(&p->block, bytes, MOVE_PACKED);
    if (!p->data) {
        free(p);
        return NULL;
    }
    memset(p->data, 0, bytes);
    p->next = memory.packed;
    return memory.packed = p;
}

/*
 * Where packed data lie in the caches is worth some percent. Libraries that pack alike read the
 * same memory, so that it is not taken for a difference between them.
 */
void share_packed(struct packed *p) {
    for (const struct packed *q = p->next; q; q = q->next)
        if (q->kind == p->kind && q->n == p->n && q->k == p->k && q->bytes == p->bytes &&
            memcmp(q->data, p->data, p->bytes) == 0) {
            free(p->block);
            p->block = NULL, p->data = q->data;
            return;
        }
}
