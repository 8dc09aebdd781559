/* SPDX-License-Identifier: MIT
 *
 * The cases: which operation in which shape, what limits it, and how fast it ought to be. They call
 * the public functions, as programs do: with a workspace, and weights that were packed before. They
 * find these functions in a table (library.h), so that they can call more than one library.
 *
 * All cases share their memory. Inputs are parts of one large array of random numbers, so that a
 * case costs nothing until it runs and many of them can be measured in turns.
 */
#ifndef ISOBIT_BENCH_CASES_H
#define ISOBIT_BENCH_CASES_H

#include "library.h"
#include "peaks.h"

#include <isobit/ops.h>

enum bench_flags {
    BENCH_HEAVY = 1,   /* not in a quick run */
    BENCH_SCALAR = 2,  /* small enough for the scalar set too, which emulates the FMA */
    BENCH_THREADS = 4, /* also on all threads */
    BENCH_RATE = 8     /* shown in elements per second */
};

/* What a case ought to reach on one thread. */
enum bench_floor {
    BENCH_NO_FLOOR = 0,
    BENCH_FLOOR_X86,    /* percent of the FMA peak, on AVX-512 and on AVX2 */
    BENCH_FLOOR_VECTOR, /* percent of the FMA peak, on all sets but scalar */
    BENCH_FLOOR_RATE,   /* elements per FMA operation of the peak, on AVX-512 */
};
/* Beside these: products on the scalar set, in GFLOP/s. */
#define BENCH_SCALAR_FLOOR 1.0

/* What an operation computes, for peers that have it too. */
enum bench_form {
    BENCH_FORM_OTHER = 0,
    BENCH_FORM_LINEAR,
    BENCH_FORM_GEMM,
    BENCH_FORM_GEMM_BT,
    BENCH_FORM_GEMV,
    BENCH_FORM_GEMV_T,
    BENCH_FORM_SOFTMAX,
    BENCH_FORM_LAYERNORM,
    BENCH_FORM_GELU_ERF,
    BENCH_FORM_GELU_TANH,
    BENCH_FORM_SILU,
    BENCH_FORM_RELU,
    BENCH_FORM_ATTENTION
};

struct bench_op;

struct bench_case {
    const struct bench_op *op;
    size_t m, n, k; /* of attention: queries, keys, width of a head */
    enum bench_bound bound;
    unsigned flags;
    enum bench_floor floor;
    double floor_value;
};

/* A weight, as the operation takes it. */
union bench_packed {
    iso_packed f32;
    iso_packed_w16 w16;
    iso_packed_q q;
    iso_packed_s8 s8;
};

/* A case that is ready to be called. */
struct bench_job {
    const struct bench_case *spec;
    const struct bench_library *library;
    iso_context context;
    float *out;
    size_t out_floats;
    const float *a, *b, *c, *d; /* inputs, as the operation sees fit; of a product a and b */
    union bench_packed packed;
    iso_attention_shape shape;
    float scale; /* of attention */
    /* Work of one call. Bytes: each operand once. */
    double flops, bytes, elements;
    double operations; /* flops; of what is no product a nominal number */
};

extern const struct bench_case bench_cases[];
extern const size_t bench_case_count;

const char *bench_op_name(const struct bench_case *spec);
enum bench_form bench_form_of(const struct bench_case *spec);
int bench_is_product(const struct bench_case *spec);
void bench_shape(char *text, size_t bytes, const struct bench_case *spec);

/* A function that the case calls and the library lacks, or NULL. */
const char *bench_lacking(const struct bench_library *library, const struct bench_case *spec);

/* Whether its bits are those of one set alone. */
int bench_is_native(const struct bench_case *spec);

/* Whether a case has a row for an instruction set, on one or all threads; and the row's name. */
int bench_has_row(const struct bench_case *spec, const char *isa, int all_threads);
void bench_name(char *text, size_t bytes, const struct bench_case *spec, const char *isa,
                size_t threads);

/*
 * The memory: so many bytes to read at once, half of it to write; there is at least as much as the
 * largest case needs, but what lies beyond is touched when a case needs it. offset: a multiple of
 * 64 below 4096; it moves inputs, outputs, workspace and packed weights against each other, each by
 * another multiple of it, within a page. It changes no result. 0 when there is not so much memory.
 */
int bench_memory_init(size_t bytes, size_t offset);
const float *bench_input(void);
float *bench_output(void);
size_t bench_output_bytes(void);
float *bench_other_output(void); /* as large as the output; for peers */
void bench_memory_free(void);

/*
 * Allocates and packs what the case needs, if no other one of this library has needed it before. A
 * workspace that had to grow is another one: jobs that were prepared before cannot be called.
 */
iso_status bench_prepare(struct bench_job *job, const struct bench_library *library,
                         const struct bench_case *spec, const struct bench_place *place);
iso_status bench_call(const struct bench_job *job);

/*
 * The same by several calls instead of one, for operations that do more than one thing at once.
 * `out` is as large as the output.
 */
int bench_is_fused(const struct bench_case *spec);
iso_status bench_call_separately(const struct bench_job *job, float *out);

/* Overwrites the output, so that what a call leaves unwritten shows. */
void bench_spoil(const struct bench_job *job);
/* A number below 2^52 made of the bits of the output. */
double bench_checksum(const struct bench_job *job);

#endif
