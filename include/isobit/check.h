/* SPDX-License-Identifier: MIT
 *
 * The harness of isobit for kernels of one's own: `isobit check --plugin FILE.so` (docs/check.md).
 *
 * A target is what is checked: variants of the same functions, such as one for each instruction
 * set, and suites. A suite is data about one operation: its cases, how a case's operands are made,
 * how the function is called on them, and what should come out. The harness owns everything else:
 * memory with guard pages, alignment, the calling convention, comparing, hashing, reporting.
 * Suites of usual operations come with the library (struct iso_check_operations); a suite of one's
 * own needs three functions: setup, call and reference. isobit's kernels are checked by this very
 * interface.
 *
 * Nothing here may be called by two threads at once. Where memory runs out, the program ends with
 * a line on stderr and exit code 2. Matrices are row-major, strides count elements.
 */
#ifndef ISOBIT_CHECK_H
#define ISOBIT_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <isobit/isobit.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this header; it is raised when a plug-in that was built with an older one cannot be used. */
#define ISO_CHECK_VERSION 1

/* ------------------------------------------------------------------------------- the numbers */

/*
 * Inputs come from integers by exact scaling, so that they are the same on every machine and no
 * libm has a say in them.
 */
struct iso_check_random {
    uint64_t state;
};
ISOBIT_API uint64_t iso_check_random_next(struct iso_check_random *r);
ISOBIT_API size_t iso_check_random_below(struct iso_check_random *r, size_t n); /* n >= 1 */
/* 0 .. max, all numbers of digits alike; and what a row may have beside its elements. */
ISOBIT_API size_t iso_check_random_log(struct iso_check_random *r, size_t max);
ISOBIT_API size_t iso_check_random_gap(struct iso_check_random *r);

enum iso_check_fill {
    ISO_CHECK_FILL_UNIFORM = 0, /* [-1, 1] in steps of 2^-23 */
    ISO_CHECK_FILL_INTEGER,     /* -8 .. 8: sums of products below 2^24 are exact */
    ISO_CHECK_FILL_WIDE,        /* both signs, exponents -20 .. 20 */
    ISO_CHECK_FILL_NORMAL,      /* sums of twelve uniform numbers, up to 6 */
    ISO_CHECK_FILL_TINY,        /* subnormal and just above */
    ISO_CHECK_FILL_HUGE,        /* near the largest float: sums overflow */
    ISO_CHECK_FILL_CANCEL,      /* pairs x, -x(1 + 2^-20) */
    ISO_CHECK_FILL_EQUAL,       /* one value for everything */
    ISO_CHECK_FILL_OFFSET,      /* 1e6 and a little */
    ISO_CHECK_FILL_RISING,      /* each above the one before it */
    ISO_CHECK_FILL_FALLING,
    ISO_CHECK_FILL_SCORES,    /* -100 .. 20, where exp goes through its whole range */
    ISO_CHECK_FILL_ZERO,      /* +0 and -0 */
    ISO_CHECK_FILL_SPECIAL,   /* uniform, with a NaN, an infinity or a -0 here and there */
    ISO_CHECK_FILL_MINUS_INF, /* uniform, with many -Inf */
    ISO_CHECK_FILL_BITS,      /* any of the 2^32 patterns */
    ISO_CHECK_FILL_COUNT,
    /* not among those that golden cases run through: */
    ISO_CHECK_FILL_SMALL =
        ISO_CHECK_FILL_COUNT, /* exponents -74 .. -67: sums of products are subnormal */
    ISO_CHECK_FILL_ONES,
    ISO_CHECK_FILL_ALTERNATE,   /* 1, -1, 1 ... */
    ISO_CHECK_FILL_EXPONENTS,   /* both signs, exponents -126 .. 127 */
    ISO_CHECK_FILL_POWERS,      /* powers of two, exponents -20 .. 20 */
    ISO_CHECK_FILL_OPPOSITE,    /* pairs x, -x + 2^-20 or less; in a product, along k */
    ISO_CHECK_FILL_SPIKE_FIRST, /* a row's first element is 2^20 times the others */
    ISO_CHECK_FILL_SPIKE_LAST,
    ISO_CHECK_FILL_PLATEAU, /* 1024 and normal numbers times 2^-10 */
    ISO_CHECK_FILL_EDGE,    /* where exp overflows, turns subnormal and is 0, a few ULP around */
    ISO_CHECK_FILL_LADDER,  /* 0, -1, ... -104, and again: exp goes down all steps */
    ISO_CHECK_FILL_STEEP,   /* each 90 above the one before: what went before counts for nothing */
    ISO_CHECK_FILL_MINUS_ZERO, /* -0 */
    ISO_CHECK_FILL_ALL_MINUS_INF,
    /* these single out one element, iso_check_case.spot: of the row ... */
    ISO_CHECK_FILL_TOP_AT,   /* 50 above the others */
    ISO_CHECK_FILL_ALONE_AT, /* all others are -Inf */
    /* ... or of all elements of the case, in the order in which they are filled */
    ISO_CHECK_FILL_NAN_AT,
    ISO_CHECK_FILL_INF_AT,
    ISO_CHECK_FILL_MINUS_INF_AT,
    ISO_CHECK_FILL_ALL
};
/* True when all values and what a kernel makes of them are finite and far from overflow. */
ISOBIT_API bool iso_check_fill_is_finite(unsigned fill);
/* True when sums of products may overflow on the way to a finite result. */
ISOBIT_API bool iso_check_fill_may_overflow(unsigned fill);
ISOBIT_API bool iso_check_fill_has_spot(unsigned fill);
ISOBIT_API const char *iso_check_fill_name(unsigned fill);
/* What fills have in common: "plain", "spread", "cancel", "scores", "special". */
ISOBIT_API const char *iso_check_fill_class(unsigned fill);

/* ------------------------------------------------------------------------------ the operands */

/* What outputs hold before the call. No kernel makes this NaN by itself, so where it still stands
 * nothing was written. */
#define ISO_CHECK_CANARY_BITS UINT32_C(0xffe5c3a1)

enum iso_check_role { ISO_CHECK_IN, ISO_CHECK_OUT, ISO_CHECK_INOUT, ISO_CHECK_SCRATCH };

struct iso_check_operand {
    const char *name;
    enum iso_check_role role;
    bool absent;    /* passed as NULL */
    size_t element; /* bytes: 1, 4 or 8 */
    size_t rows, cols, ld;
    size_t bytes;   /* from the first element to the end of the last */
    void *host;     /* what it holds before the call; gaps of inputs are NaN */
    void *at;       /* where it lies during the call */
    double *expect; /* outputs: [rows][cols] the true values, or NULL */
    double *bound;  /* how far from them a result may lie */
    float *exact;   /* the bits themselves, where they can be predicted; else NULL */
};

enum { ISO_CHECK_OPERANDS = 12 };

struct iso_check_operands {
    struct iso_check_operand v[ISO_CHECK_OPERANDS];
    unsigned count;
    struct iso_check_random random;
    float equal; /* state of the fills */
    float last;
    size_t filled;      /* elements of the row */
    size_t cols;        /* of the row; 0: not known */
    size_t spot, drawn; /* iso_check_case.spot, and the elements of the case so far */
    char *pool;         /* memory of the case */
    size_t pool_used, pool_bytes;
    void *overflow; /* list of blocks that did not fit */
};

/*
 * Declared by setup in the order in which `call` numbers them. The pointer is the host copy; for
 * iso_check_in the gaps of ld hold NaN and the elements are for the suite to fill. Zero-sized
 * operands are not NULL in the call, but touching them faults.
 */
ISOBIT_API void *iso_check_in(struct iso_check_operands *o, const char *name, size_t element,
                              size_t rows, size_t cols, size_t ld);
ISOBIT_API float *iso_check_in_f32(struct iso_check_operands *o, const char *name, size_t rows,
                                   size_t cols, size_t ld, unsigned fill);
ISOBIT_API void *iso_check_out(struct iso_check_operands *o, const char *name, size_t rows,
                               size_t cols, size_t ld);
ISOBIT_API float *iso_check_inout_f32(struct iso_check_operands *o, const char *name, size_t rows,
                                      size_t cols, size_t ld, unsigned fill);
ISOBIT_API void iso_check_scratch(struct iso_check_operands *o, const char *name, size_t floats);
ISOBIT_API void iso_check_absent(struct iso_check_operands *o, const char *name);

/* Fills rows x cols; may be called again with another fill. */
ISOBIT_API void iso_check_fill(struct iso_check_operands *o, float *to, size_t rows, size_t cols,
                               size_t ld, unsigned fill);
ISOBIT_API float iso_check_fill_value(struct iso_check_operands *o, unsigned fill);

/* Arrays for expectations, made on demand; freed with the case. */
ISOBIT_API void *iso_check_operands_alloc(struct iso_check_operands *o, size_t bytes);
ISOBIT_API double *iso_check_expect(struct iso_check_operands *o, unsigned index);
ISOBIT_API double *iso_check_bound(struct iso_check_operands *o, unsigned index);
ISOBIT_API float *iso_check_exact(struct iso_check_operands *o, unsigned index);

ISOBIT_API void iso_check_operands_begin(struct iso_check_operands *o, uint64_t seed);
ISOBIT_API void iso_check_operands_end(struct iso_check_operands *o);
/* Places the operands in their host copies, aligned to 64 bytes: for benchmarks. */
ISOBIT_API void iso_check_operands_plain(struct iso_check_operands *o);

#define ISO_CHECK_AT(type, o, index) ((type *)(o)->v[index].at)
#define ISO_CHECK_HOST(type, o, index) ((type *)(o)->v[index].host)

/* --------------------------------------------------------------------------------- the suite */

enum { ISO_CHECK_CASE_PARAMS = 12 };

enum iso_check_case_flags {
    /* its results enter the hash of the fixed plan; runs in every plan */
    ISO_CHECK_CASE_GOLDEN = 1,
    ISO_CHECK_CASE_ALIGN = 2,    /* runs at all 64 alignments */
    ISO_CHECK_CASE_ONCE = 4,     /* runs in one place only: long sweeps */
    ISO_CHECK_CASE_TRAPLESS = 8, /* must not raise invalid, divide by zero or overflow */
    ISO_CHECK_CASE_NO_BITS = 16  /* results may differ between variants */
};

struct iso_check_case {
    size_t p[ISO_CHECK_CASE_PARAMS]; /* in the order of iso_check_suite.params */
    unsigned fill, flags;
    size_t spot; /* which element the fill singles out; 0 with most fills */
    uint64_t seed;
};

enum iso_check_plan {
    ISO_CHECK_PLAN_QUICK,
    ISO_CHECK_PLAN_FULL,
    ISO_CHECK_PLAN_EXHAUSTIVE,
    ISO_CHECK_PLAN_BENCH
};

struct iso_check_cases {
    struct iso_check_case *v;
    size_t count, room;
    enum iso_check_plan plan;
};
/* Appends a case. A case that is neither golden nor of the plan's share is dropped: in the quick
 * plan one in `thin` stays. */
ISOBIT_API void iso_check_cases_add(struct iso_check_cases *list, struct iso_check_case c,
                                    unsigned thin);

/*
 * An operation. name, params, setup, call and reference are needed; NULL and 0 elsewhere stand for
 * what is said there.
 */
struct iso_check_suite {
    const char *name;   /* where the target has a function of this name, variants in whose table it
                         * is NULL are skipped */
    const char *params; /* "m n k gap"; also for reports */
    bool by_plan;       /* each plan has other golden cases, and a hash of its own */
    /* The fixed plan. NULL: each parameter from least to most, the others at random, and each kind
     * of input; plain inputs must raise no flags. */
    void (*cases)(struct iso_check_cases *list);
    /* Declares the operands, from c->p and c->fill. */
    void (*setup)(struct iso_check_operands *o, const struct iso_check_case *c);
    /* Calls the function in `table`, that of a variant, on the operands (ISO_CHECK_AT). */
    void (*call)(const void *table, const struct iso_check_case *c,
                 const struct iso_check_operands *o);
    /* Sets expect, bound and exact of the outputs from the host copies (ISO_CHECK_HOST). */
    void (*reference)(struct iso_check_operands *o, const struct iso_check_case *c);
    /* Anything else that should hold of the results (at `at`): NULL, or what is wrong. */
    const char *(*check)(const struct iso_check_operands *o, const struct iso_check_case *c);
    /* The name of the group whose errors a case is counted with: a constant. NULL: the class of its
     * fill. */
    const char *(*group)(const struct iso_check_case *c);
    /* A case of the random stream: parameters, fill and flags. NULL: as for cases, except that a
     * suite with cases and without this has none. */
    void (*random)(struct iso_check_case *c, struct iso_check_random *r);
    /* Work of one call: operations, and bytes that must move; NULL or 0 when it makes no sense. */
    double (*flops)(const void *table, const struct iso_check_case *c);
    double (*bytes)(const struct iso_check_case *c);
    /* For a suite without cases: the range of each parameter, and kinds of input that make no sense
     * here, 1 << fill each. A parameter whose name ends in "gap" is what rows have behind their
     * elements; it needs no range. */
    size_t least[ISO_CHECK_CASE_PARAMS], most[ISO_CHECK_CASE_PARAMS];
    uint64_t without;
};
#define ISO_CHECK_FILL_BIT(fill) (UINT64_C(1) << (fill))

/* "m=3 n=17 ... fill=uniform" */
ISOBIT_API void iso_check_case_text(char *text, size_t bytes, const struct iso_check_suite *suite,
                                    const struct iso_check_case *c);

/* --------------------------------------------------------------------- operations that it knows */

/*
 * Usual operations; those that a variant does not have are NULL. No operand overlaps another, sizes
 * may be 0 unless it says so, and nothing is aligned. Gaps of rows (ld) are neither read nor
 * written. Sums may be taken in any order, products fused or not. A result may lie as far from the
 * true value as roundings of this order may take it, with exp, log, erf and tanh within 1 ULP.
 * Inputs may hold NaN and infinities; what then comes out is what IEEE arithmetic gives.
 */
struct iso_check_operations {
    /* C [m][n] = A [m][k] times B [k][n] */
    void (*gemm)(float *c, size_t ldc, const float *a, size_t lda, const float *b, size_t ldb,
                 size_t m, size_t n, size_t k);
    /* y[j] = row j of W [n][k] times x [k] */
    void (*gemv)(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k);
    /* Each row: exp(x - max) / sum. A row with NaN or +Inf, or of -Inf only, is NaN. */
    void (*softmax)(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n);
    /* y[i] = log(sum(exp(row i))); n >= 1. -Inf for a row of -Inf, +Inf where there is one. */
    void (*logsumexp)(float *y, const float *x, size_t ldx, size_t rows, size_t n);
    /* (x - mean) / sqrt(variance + eps) * gamma + beta; gamma and beta [n]; n >= 1. */
    void (*layernorm)(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                      const float *gamma, const float *beta, float eps);
    /* x / sqrt(mean of x * x + eps) * gamma; n >= 1. */
    void (*rmsnorm)(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                    const float *gamma, float eps);
    /* One head: o [nq][dh] = softmax(scale q k^T) v, q [nq][dh], k and v [nk][dh]; nk >= nq. If
     * causal, query i sees keys 0 .. nk - nq + i. There is neither bias nor mask, window or list
     * of lengths, and weights do not come out: what has them needs a suite of its own. */
    void (*attention)(float *o, size_t ldo, const float *q, size_t ldq, const float *k, size_t ldk,
                      const float *v, size_t ldv, size_t nq, size_t nk, size_t dh, float scale,
                      int causal);
    /* Element-wise, as iso_activation has them: with erf, and with tanh. */
    void (*gelu)(float *y, const float *x, size_t n);
    void (*gelu_tanh)(float *y, const float *x, size_t n);
    void (*silu)(float *y, const float *x, size_t n);
    /* x < 0 ? 0 : x; NaN stays NaN, the sign of a zero may be either. */
    void (*relu)(float *y, const float *x, size_t n);
    /* y [count][d]: row ids[i] of table, to the bit. */
    void (*embed)(float *y, size_t ldy, const uint32_t *ids, size_t count, const float *table,
                  size_t ldt, size_t d);
};

/* -------------------------------------------------------------------------------- the target */

/* A function of the tables: "(float *y, const float *x, size_t n)", and where its pointer lies. An
 * argument is a pointer, float, double, or an integer type of C or stdint.h. */
struct iso_check_function {
    const char *name, *arguments;
    size_t offset;
};
#define ISO_CHECK_FUNCTION(type, member, arguments)                                                \
    { #member, arguments, offsetof(type, member) }

struct iso_check_variant {
    const char *name;
    const void *table;   /* struct iso_check_operations, or a struct that begins with one */
    const char *missing; /* why it cannot run here, such as "no AVX2"; NULL: it can */
};

/* Within the bounds, and nothing touched that is not its own, is promised always; and: */
enum iso_check_promises {
    /* the same bits whenever it is called again, wherever the operands lie */
    ISO_CHECK_SAME_PLACES = 1,
    /* and on all variants */
    ISO_CHECK_SAME_BITS = 2,
    /* plain inputs raise neither invalid nor division by zero nor overflow */
    ISO_CHECK_NO_FLAGS = 4,
    /* errno stays; functions of libm change it */
    ISO_CHECK_NO_ERRNO = 8
};

/*
 * What a plug-in hands out. Names are of letters, digits and _ - + . only, at most 31; at most 16
 * variants, 48 suites and 48 functions.
 */
struct iso_check_target {
    size_t size;      /* sizeof(struct iso_check_target) */
    unsigned version; /* ISO_CHECK_VERSION */
    const char *name;
    const struct iso_check_variant *variants;
    size_t variant_count;
    unsigned promises;
    double tolerance;   /* results may lie so many bounds away; 0: 1 */
    size_t stack_limit; /* most bytes of stack that a call may use; 0: any */
    /* operations of one's own; NULL and 0: none */
    const struct iso_check_suite *const *suites;
    size_t suite_count;
    const struct iso_check_function *functions; /* behind struct iso_check_operations */
    size_t function_count;
    size_t table_bytes; /* of each variant's table; 0: sizeof(struct iso_check_operations) */
    bool own_table;     /* the tables do not begin with struct iso_check_operations */
    /* Why a suite cannot run on a variant, or NULL; for suites that have not the name of a
     * function. NULL: they run on all. */
    const char *(*missing)(const struct iso_check_suite *suite,
                           const struct iso_check_variant *variant);
};

/*
 * The one function that a plug-in exports. It is called in a process of its own first, so a crash
 * in it does no harm. What it returns stays its own. A plug-in may, but need not be linked with
 * libisobit_check: the functions above are those of the program that loads it.
 */
ISOBIT_API const struct iso_check_target *iso_check_plugin(void);

/*
 * The command `isobit check` for a target, in a program of one's own: all options, and the exit
 * code: 0 all is as promised, 1 something is not, 2 wrong usage or a target that cannot be used.
 */
ISOBIT_API int iso_check_main(const struct iso_check_target *target, int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif
