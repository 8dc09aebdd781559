/* SPDX-License-Identifier: MIT
 *
 * `isobit check --blas LIB`: any BLAS against the definition of its routines. What the files of
 * this folder share: a case, the functions of a library, and the properties that are looked at.
 *
 * The library under test is loaded in child processes only (children.c). A child calls it with the
 * operands, guard pages and trampolines of check/, and leaves what it found in shared memory, so
 * that a call which crashes, hangs or ends the process is a finding like any other.
 */
#ifndef ISOBIT_CHECK_BLAS_H
#define ISOBIT_CHECK_BLAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <isobit/check.h>

enum blas_routine {
    BLAS_GEMM,
    BLAS_GEMV,
    BLAS_GER,
    BLAS_SYRK,
    BLAS_DOT,
    BLAS_AXPY,
    BLAS_SCAL,
    BLAS_NRM2,
    BLAS_ASUM,
    BLAS_AMAX,
    BLAS_ROUTINES
};

/* How a routine is called. Those on vectors have no layout: only FORTRAN and COLUMN. */
enum blas_api { BLAS_FORTRAN, BLAS_COLUMN, BLAS_ROW, BLAS_DNNL, BLAS_APIS };

/* What a case is for. */
enum blas_family {
    BLAS_PLAIN,  /* finite numbers: the error */
    BLAS_RANGE,  /* subnormal results; sums of squares that would overflow */
    BLAS_BETA0,  /* beta = 0 and NaN in the output */
    BLAS_ALPHA0, /* alpha = 0 and NaN in the inputs */
    BLAS_NAN,    /* a NaN or an infinity somewhere */
    BLAS_STRIDE, /* increments, negative ones among them */
    BLAS_BAD,    /* an argument that must be reported */
    BLAS_BITS,   /* again, elsewhere, with other strides, a part alone */
    BLAS_LARGE,  /* threads and CPU types */
    BLAS_FAMILIES
};

/* A line of the report each. */
enum blas_property {
    BLAS_ERROR,
    BLAS_IN_RANGE,
    BLAS_ZERO_BETA,
    BLAS_ZERO_ALPHA,
    BLAS_SPECIAL,
    BLAS_INCREMENTS,
    BLAS_ARGUMENTS,
    BLAS_OUTSIDE,
    BLAS_INPUTS,
    BLAS_RETURNS,
    BLAS_REGISTERS,
    BLAS_VECTOR_STATE,
    BLAS_FLAGS,
    BLAS_CONTROL,
    BLAS_BITS_AGAIN,
    BLAS_BITS_ALIGNMENT,
    BLAS_BITS_STRIDE,
    BLAS_BITS_PART,
    BLAS_BITS_THREADS,
    BLAS_BITS_CPU,
    BLAS_PROPERTIES
};

struct blas_case {
    enum blas_routine routine;
    enum blas_api api;
    enum blas_family family;
    char trans_a, trans_b, uplo; /* 'N', 'T'; 'U', 'L' */
    int m, n, k, pad;            /* every leading dimension is that much more than needed */
    int incx, incy;
    float alpha, beta;
    unsigned fill;   /* iso_check_fill */
    size_t spot;     /* which element the fill singles out */
    int bad;         /* position of the argument that is wrong, counted as in C; 0: none */
    unsigned offset; /* elements past a page, for the third place */
    uint64_t seed;
};

/* ---------------------------------------------------------------------------- the library */

typedef void (*blas_function)(void);
enum { BLAS_FUNCTIONS = 2 * BLAS_ROUTINES + 1 }; /* Fortran and C of each; dnnl_sgemm */
struct blas_table {
    blas_function f[BLAS_FUNCTIONS];
};
const struct iso_check_target *blas_target(void); /* for the trampolines */

/* What was found out about a library, in shared memory: no pointers. */
enum blas_kind {
    BLAS_KIND_OTHER,
    BLAS_KIND_OPENBLAS,
    BLAS_KIND_BLIS,
    BLAS_KIND_MKL,
    BLAS_KIND_ISOBIT,
    BLAS_KIND_DNNL
};
struct blas_library {
    bool has[BLAS_FUNCTIONS];
    enum blas_kind kind;
    char types[40][16]; /* of CPUs, where they have numbers: BLIS */
    char about[160];    /* what it says of itself, or "" */
    char wrong[256];    /* why it cannot be used; "" where it can */
};

/* Loads it into this process; the table's functions may be NULL. NULL or a reason. */
void blas_load(const char *file, struct blas_table *table, struct blas_library *library);
/* Makes a BLIS choose its kernels, which otherwise the first call does. For a CPU type that it was
 * built without it aborts here. */
void blas_choose_type(void);
/* By the library's own function; false when it has none. */
bool blas_set_threads(int threads);

/* ------------------------------------------------------------------------------ the routines */

const char *blas_name(enum blas_routine routine); /* "sgemm" */
const char *blas_api_name(enum blas_api api);     /* "cblas-row" */
const char *blas_family_name(enum blas_family family);
bool blas_has(const struct blas_library *library, enum blas_routine routine, enum blas_api api);
/* What of the routines: "beta" and so on take part, and the property is looked at. */
bool blas_applies(enum blas_routine routine, enum blas_property property);
const char *blas_property_name(enum blas_property property);

/* The sizes of the matrices and vectors of a case, as they lie in memory. */
struct blas_shape {
    unsigned count; /* operands, the result not counted */
    struct {
        const char *name;
        bool vector, output;
        size_t rows, cols; /* rows one after the other, cols numbers in each; a vector: n, 1 */
        size_t ld;
        int inc;
    } v[3];
};
void blas_shape(struct blas_shape *s, const struct blas_case *c);
/* Declares and fills the operands in the order of the routine's arguments, a returned number last.
 */
void blas_setup(struct iso_check_operands *o, const struct blas_case *c);
/* Sets what should come out, and how far from it a result may lie. */
void blas_reference(struct iso_check_operands *o, const struct blas_case *c);

/* One call. p: the operands, result: of a function; ld: their leading dimensions. Returns false
 * when the scalars, which Fortran passes by reference, are not what they were. status: of
 * dnnl_sgemm. */
struct blas_call {
    const struct blas_case *c;
    float *p[3];
    int ld[3];
    float *result;
    int status;
};
bool blas_run(const struct blas_table *table, struct blas_call *call);
/* The call with the operands where they are. */
void blas_call_begin(struct blas_call *call, const struct blas_case *c,
                     const struct iso_check_operands *o);
/* The case of a part of the output, row or element `first`, `count` of them; operands remain.
 * False: the routine has no such part. */
bool blas_part(struct blas_call *call, struct blas_case *part, int first, int count);

/* ------------------------------------------------------------------------------- bad arguments */

struct blas_report {
    int calls, info;
    bool from_c;   /* by cblas_xerbla */
    char name[24]; /* of the routine */
};
extern struct blas_report blas_reported;
/* The positions that can be wrong, ending with 0. */
const int *blas_bad_positions(enum blas_routine routine, enum blas_api api);
/* NULL, or what is wrong with blas_reported after a call of this case. */
const char *blas_report_wrong(const struct blas_call *call);

/* --------------------------------------------------------------------------------- the cases */

struct blas_plan {
    struct blas_case *v;
    size_t count, room;
};
/* All cases of the routines that the library has; only: one of them, or BLAS_ROUTINES. */
void blas_plan(struct blas_plan *plan, const struct blas_library *library, enum blas_routine only,
               bool quick, bool bits);
/* How much work a case is: the smallest one that fails is reported. */
double blas_size(const struct blas_case *c);
/* "sgemm check=plain api=fortran trans=NT m=3 ..." and back: NULL, or the word that is wrong. */
void blas_case_text(char *text, size_t bytes, const struct blas_case *c);
const char *blas_case_parse(struct blas_case *c, const char *text);

/* -------------------------------------------------------------------------------- the results */

enum { BLAS_FINDINGS = 8, BLAS_TEXT = 240 };
/* Of one case; in shared memory. */
struct blas_result {
    volatile int state; /* 0: not begun, 1: begun, 2: done */
    unsigned count;
    struct {
        enum blas_property property;
        char text[BLAS_TEXT];
    } v[BLAS_FINDINGS];
    double worst; /* largest error, in parts of the bound */
    size_t elements;
    uint64_t hash;   /* of the bits of the outputs: BLAS_LARGE */
    uint32_t looked; /* a bit for each property that was looked at */
};
void blas_found(struct blas_result *r, enum blas_property property, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* In the child. */
void blas_child_begin(const struct blas_table *table);
void blas_check_case(const struct blas_table *table, const struct blas_case *c,
                     struct blas_result *result);
void blas_check_bits(const struct blas_table *table, const struct blas_case *c,
                     struct blas_result *result);
/* What cannot be looked at on this machine; "" when there is nothing. */
const char *blas_not_checked(void);

/* A way to run the library: environment variables "NAME=value" and threads. */
struct blas_variant {
    char name[64];
    char environment[2][48];
    int threads; /* 0: as the library likes */
};
/* Those in which the CPU types and threads of a library are compared; the first is the base. */
size_t blas_variants(struct blas_variant *v, size_t room, const struct blas_library *library,
                     int most_threads);

/* In the parent. */
struct blas_run {
    const char *file;
    unsigned seconds; /* for one case */
    struct blas_plan plan;
    struct blas_result *results; /* [plan.count] */
    struct blas_library *library;
};
/* Loads the library in a child; false when that alone crashes or hangs (reason in text). */
bool blas_probe(struct blas_run *run, char *text, size_t bytes);
/* Each case in children; then those of BLAS_LARGE for each variant. */
void blas_run_all(struct blas_run *run, int most_threads);

/* ---------------------------------------------------------------------------------- the report */

enum blas_format { BLAS_TABLE, BLAS_JSON, BLAS_JUNIT, BLAS_MARKDOWN };
/* Prints it; returns how many lines say that something does not hold. */
size_t blas_print(FILE *f, const struct blas_run *run, enum blas_format format);

/* The command: `isobit check --blas LIB [OPTION...]`; returns an exit code. */
int isobit_check_blas(int argc, char **argv);

#endif
