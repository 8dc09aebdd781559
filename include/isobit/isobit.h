/* SPDX-License-Identifier: MIT
 *
 * isobit: Transformer kernels for CPUs that give the same bits on every instruction set.
 *
 * This header holds what all other headers need: status codes, the version, the choice of the
 * instruction set (ISA), the executor (threads), and the context that carries them into a call.
 *
 * General rules of the library
 *  - Every function returns an iso_status and leaves its outputs untouched when the arguments are
 *    refused. The library never prints (but what ISOBIT_VERBOSE asks for, see below), exits, aborts
 *    or changes signal handlers, the locale, the environment or the floating-point control
 *    registers.
 *  - All functions may be called from any number of threads at once. Objects that are passed as
 *    pointer to const may be shared between threads.
 *  - Matrices are row-major. Sizes are size_t and count elements; strides ("ld", the distance
 *    between the starts of two rows) count elements too. No alignment is asked for, unless stated.
 *  - A size of zero is success and does nothing; the operands that would be empty may be NULL.
 *  - Outputs come first, then inputs, sizes, options and last the context.
 *  - An options struct begins with its own size, so that later versions can append members: set
 *    `.size = sizeof(the struct)` and leave the rest zero for defaults. NULL means all defaults.
 *    A library takes the size of any older header, and of its own.
 *
 * The bits: with the default rounding mode (to nearest even, no flush to zero) a result depends
 * on the operands alone. It is the same on scalar, AVX2, AVX-512 and NEON, for any number of
 * threads, any batch around a row, packed or not, at any alignment and stride. docs/numerics.md
 * defines the order of operations. Only native numerics, which somebody must ask for
 * (iso_set_numerics), have bits that depend on the CPU. Not promised: the sign and payload of a
 * NaN, exception flags, and equality between two versions of the library whose
 * ISOBIT_NUMERICS_VERSION differs.
 */
#ifndef ISOBIT_ISOBIT_H
#define ISOBIT_ISOBIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ISOBIT_API __attribute__((visibility("default")))
#else
#define ISOBIT_API
#endif

#define ISOBIT_VERSION_MAJOR 0
#define ISOBIT_VERSION_MINOR 1
#define ISOBIT_VERSION_PATCH 0

/* Changes whenever any result of any function may change a bit. */
#define ISOBIT_NUMERICS_VERSION 3

/* ------------------------------------------------------------------------------------ status */

typedef enum iso_status {
    ISOBIT_OK = 0,
    ISOBIT_E_NULL,        /* a pointer that is read or written is NULL */
    ISOBIT_E_SIZE,        /* the size member of an options struct is not one that we know */
    ISOBIT_E_DIM,         /* a dimension is out of range */
    ISOBIT_E_LD,          /* a stride is smaller than the row that it steps over */
    ISOBIT_E_OVERFLOW,    /* a product of sizes does not fit in the address space */
    ISOBIT_E_ALIAS,       /* an output overlaps an input where that is not allowed */
    ISOBIT_E_ALIGN,       /* a pointer lacks an alignment that is asked for */
    ISOBIT_E_DTYPE,       /* a tensor has another element type than expected */
    ISOBIT_E_OPTION,      /* an option has a value that does not exist */
    ISOBIT_E_UNSUPPORTED, /* valid, but not implemented, or not on this machine */
    ISOBIT_E_ISA,         /* no instruction set of that name, or the machine lacks it */
    ISOBIT_E_RANGE,       /* a value (a token id, a position) is out of range */
    ISOBIT_E_NOMEM,       /* memory or threads could not be had */
    ISOBIT_E_WORKSPACE,   /* the caller's workspace is too small */
    ISOBIT_E_IO,          /* a file could not be opened or read */
    ISOBIT_E_TRUNCATED,   /* a file ends before its contents do */
    ISOBIT_E_HEADER_SIZE, /* the header length of a safetensors file is impossible */
    ISOBIT_E_JSON,        /* not valid JSON, or not of the form that is expected */
    ISOBIT_E_UTF8,        /* text is not valid UTF-8 */
    ISOBIT_E_DUPLICATE,   /* a name occurs twice */
    ISOBIT_E_OFFSET,      /* tensor offsets are reversed, overlap or lie outside the file */
    ISOBIT_E_HOLE,        /* bytes of the file that no tensor claims */
    ISOBIT_E_SHAPE,       /* a tensor has another shape than expected */
    ISOBIT_E_MISSING,     /* a tensor, key or file is not there */
    ISOBIT_E_CONFIG,      /* a configuration value is impossible */
    ISOBIT_E_LIMIT,       /* a limit of the library is exceeded */
    ISOBIT_E_INTERNAL,    /* a defect of the library: please report it */
    ISOBIT_E_CANCELLED    /* the caller's own function has ended the call */
} iso_status;

/* A short English sentence without newline; never NULL, also for unknown codes. Static storage. */
ISOBIT_API const char *iso_strerror(iso_status status);

/* "0.1.0", the version of the library that runs (the macros give that of the header). */
ISOBIT_API const char *iso_version(void);

/* ------------------------------------------------------------------------- instruction sets */

/*
 * One compiled set of kernels, from best to plainest: on x86-64 "avx512", "avx2", "scalar"; on
 * aarch64 "neon", "scalar". A level is a set that differs from another one in products of int8
 * alone, and in native numerics of BF16, and stands before it: "avx512_amx", "avx512_bf16",
 * "avx512_vnni", "avx2_vnni"; "neon_bf16", "neon_i8mm", "neon_dotprod". Opaque, static, immutable.
 *
 * Linux wants to be asked before a process uses AMX, and from then on wants room for 8 KiB more on
 * the stacks of signal handlers (sigaltstack). The first such product with "avx512_amx" asks; if
 * the answer is no, products are those of "avx512_bf16"; those of int8 have the same bits.
 */
typedef struct iso_isa iso_isa;

/* How many instruction sets this library was compiled with, and each of them, best first. */
ISOBIT_API size_t iso_isa_count(void);
ISOBIT_API const iso_isa *iso_isa_get(size_t index); /* NULL when index is out of range */

ISOBIT_API const char *iso_isa_name(const iso_isa *isa);

/*
 * Why this machine cannot run the set ("the CPU lacks avx512f", "XCR0 lacks ZMM state"), or NULL
 * when it can. Static storage.
 */
ISOBIT_API const char *iso_isa_missing(const iso_isa *isa);

/*
 * Finds a set by name. ISOBIT_E_ISA when there is none of that name or the machine lacks it:
 * iso_isa_names() then helps to say what would have been valid.
 */
ISOBIT_API iso_status iso_isa_find(const iso_isa **isa, const char *name);

/* The names that iso_isa_find accepts on this machine, "avx512, avx2, scalar". Static storage. */
ISOBIT_API const char *iso_isa_names(void);

/*
 * The set that calls without one of their own use. The first use of the library picks the best
 * that the machine has, or the one that the environment variable ISOBIT_ISA names. When that
 * variable names none that can run, calls that need the choice return ISOBIT_E_ISA and
 * iso_isa_active gives NULL: nothing is ignored silently.
 */
ISOBIT_API const iso_isa *iso_isa_active(void);

/*
 * Changes that choice, for all threads, from the next call on. NULL returns to the automatic
 * choice (the environment variable included). ISOBIT_E_ISA leaves the choice as it was.
 */
ISOBIT_API iso_status iso_set_isa(const char *name);

/* --------------------------------------------------------------------------------- numerics */

/*
 * Changes which numerics calls have, for all threads, from the next call on.
 *
 * "fixed", the default: the bits that this header promises.
 *
 * "native": iso_linear_w16 with BF16 weights multiplies with the instructions that the CPU has for
 * it: "avx512_amx" (TDPBF16PS), "avx512_bf16" (VDPBF16PS), "neon_bf16" (BFMMLA). That is faster
 * than f32 but for VDPBF16PS on Intel's cores, which takes twice as long there. Rows of x are
 * rounded to BF16, to nearest even; products are exact, or rounded once, and summed in f32 in an
 * order that only k decides; bias, activation and residual follow as ever. Subnormal numbers may
 * count as 0. Before the activation a result is as far from that of the rounded x as
 * (k + 6) u (Σ|x||w| + |bias|) at most, u = 2^-24, and what subnormal numbers add to that; the
 * rounding of x is another 2^-8 Σ|x||w| (docs/numerics.md). Bits then depend on the CPU's
 * instructions, but not on threads, the batch around a row, packing, alignment or strides. Packed
 * weights are the same for both. Everything else, and every set without such instructions, keeps
 * the bits of "fixed".
 *
 * NULL: what the environment variable ISOBIT_NUMERICS names, "fixed" if it is not set; as at the
 * first use. ISOBIT_E_OPTION: there are no such numerics; then it stays as it was. Where the
 * variable names none, iso_linear_w16 with BF16 weights returns ISOBIT_E_OPTION until this function
 * has been called: nothing is ignored silently. Sizes of workspaces are those of the numerics at
 * hand: they are to be asked for again after a change.
 */
ISOBIT_API iso_status iso_set_numerics(const char *name);

/*
 * The numerics of calls with a set, or NULL for the active one, to be told beside every hash of
 * results: "2", the ISOBIT_NUMERICS_VERSION of the library, or "native (avx512_bf16)" with the name
 * of the set. NULL where ISOBIT_NUMERICS is wrong. Static storage.
 */
ISOBIT_API const char *iso_numerics(const iso_isa *isa);

/* ---------------------------------------------------------------------------------- machine */

/*
 * Writes what the library sees of the machine (CPU name, feature bits, XCR0, caches, instruction
 * sets with the reason for each that is left out, threads, versions) as one JSON object. Writes
 * at most `bytes` bytes including the terminating NUL, and sets *needed (may be NULL) to the bytes
 * needed; ISOBIT_E_WORKSPACE when they do not fit (then text is cut, but terminated).
 */
ISOBIT_API iso_status iso_info_json(char *text, size_t bytes, size_t *needed);

/*
 * In the same way, the environment variables that libraries and tool of the project read, as a JSON
 * array of objects: name, value (null: not set), source ("environment", "default" or "invalid"),
 * problem (what is wrong with an invalid value, and what comes of it, else null), default, reader,
 * effect. A byte beyond ASCII in a value stands for the character of the same number.
 */
ISOBIT_API iso_status iso_env_json(char *text, size_t bytes, size_t *needed);

/* ---------------------------------------------------------------------------------- threads */

/*
 * An executor runs fn(arg, i) for all i in [0, n), in any order, on any threads, and returns when
 * all are done. It is the way to bring a thread pool of your own. The library starts no thread by
 * itself; without an executor everything runs on the calling thread. Results do not depend on it.
 * parallel_for must be callable from several threads at once if you use it so. max_threads is how
 * many calls of fn may run at the same time (at least 1); the library sizes its tasks by it.
 */
typedef struct iso_executor {
    void (*parallel_for)(void *user, size_t n, void (*fn)(void *arg, size_t i), void *arg);
    void *user;
    size_t max_threads;
} iso_executor;

/*
 * A ready-made pool of `threads` threads, the calling thread included; 0 means as many as the CPU
 * affinity mask and the cgroup quota allow. It sleeps when idle. Calls of parallel_for from inside
 * one of its own tasks run serially on the calling thread; so do calls from a second thread while
 * the pool is busy. After fork() the child may use the pool: it runs serially there.
 */
typedef struct iso_pool iso_pool;
ISOBIT_API iso_status iso_pool_create(iso_pool **pool, size_t threads);
ISOBIT_API void iso_pool_destroy(iso_pool *pool);                       /* NULL is allowed */
ISOBIT_API const iso_executor *iso_pool_executor(const iso_pool *pool); /* lives as long as it */

/* How many threads iso_pool_create(&p, 0) would use: at least 1. */
ISOBIT_API size_t iso_usable_threads(void);

/* ---------------------------------------------------------------------------------- context */

/*
 * What a call may use. Every member may be zero; the context itself may be NULL.
 * The workspace is scratch memory, any alignment, not shared between calls that run at the same
 * time. Functions that need some have a companion *_workspace_bytes; without a workspace they
 * allocate and free it within the call.
 */
typedef struct iso_context {
    size_t size;                  /* sizeof(iso_context) */
    const iso_isa *isa;           /* NULL: the active one */
    const iso_executor *executor; /* NULL: the calling thread */
    void *workspace;              /* NULL: allocated by the call */
    size_t workspace_bytes;
} iso_context;

/* --------------------------------------------------------------- looking at what happens */

/*
 * The environment variable ISOBIT_VERBOSE, read once, at the first call of an operation:
 *   0 or none: nothing.
 *   1: one line of CSV for each call of an operation of ops.h, also where another function of the
 *      library makes the call, and when it is refused (functions that only compute a size have
 *      none). A line says who writes them:
 *        iso_verbose,1,info,isobit 0.1.0,numerics 3,NAME OF THE CPU,avx512 avx2 scalar
 *      and each of the others names the operation, the instruction set, the shape, the threads
 *      that the call may use, and the time; or in its place "error" and the sentence of
 *      iso_strerror. What a refused call leaves unknown is "-".
 *        iso_verbose,1,exec,gemm_f32,avx512,m128n512k512:nt:lda512:ldb512:ldc512,thr1,0.123456ms
 *      The second field is the version of this format. Fields with a comma are in quotes. The
 *      shape lists sizes, then strides, then the options that are in use.
 *   2: one more field: the way that was taken, for matrix products and attention; else "-".
 *   Anything else: one line that says so, and nothing more.
 * The lines go to the standard error output, or are appended to the file that ISOBIT_VERBOSE_FILE
 * names; each with one write(), so those of threads and processes do not mix. Programs that run
 * with other rights than their user's (AT_SECURE) ignore both variables.
 */

/* The level: 0, 1 or 2. */
ISOBIT_API int iso_verbose(void);

/*
 * For libraries above this one: writes such a line about a call of theirs, or nothing at level 0.
 * Ask iso_verbose() first, so that a clock is read only when somebody looks. shape and reason are
 * free text and may be NULL, for "-"; context may be NULL; ms is not used unless status is
 * ISOBIT_OK. errno stays as it is.
 */
ISOBIT_API void iso_verbose_call(const char *operation, const iso_context *context,
                                 const char *shape, const char *reason, iso_status status,
                                 double ms);

#ifdef __cplusplus
}
#endif

#endif
