/* SPDX-License-Identifier: MIT
 *
 * A program whose header is of another age than the library. The structs that begin with their size
 * stand here as version 0.1 had them: what follows must stay as it is, whatever the headers become.
 * Each lies against a page that cannot be read, so that a library that reads more than it was given
 * crashes. Run against the library, and against one whose structs all have a member more.
 *
 * With NEWER the structs are those of headers that have a member more than the library knows: each
 * call must refuse them.
 */
#include <isobit/ops.h>
#ifdef OLDER_WITH_MODEL
#include <isobit/model.h>
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef NEWER
typedef iso_context context_01;
typedef iso_gemm_options gemm_01;
typedef iso_linear_options linear_01;
typedef iso_softmax_options softmax_01;
typedef iso_norm_options norm_01;
typedef iso_eltwise_options eltwise_01;
typedef iso_attention_options attention_01;
#define WANTED(status) ISOBIT_E_SIZE
#define REFUSED 1
#else
typedef struct context_01 {
    size_t size;
    const iso_isa *isa;
    const iso_executor *executor;
    void *workspace;
    size_t workspace_bytes;
} context_01;
typedef struct gemm_01 {
    size_t size;
    int trans_a, trans_b;
    float alpha, beta;
    const float *bias;
    iso_activation act;
    const float *residual;
    size_t ldr;
} gemm_01;
typedef struct linear_01 {
    size_t size;
    const float *bias;
    iso_activation act;
    const float *residual;
    size_t ldr;
} linear_01;
typedef struct softmax_01 {
    size_t size;
    int log, safe;
    const size_t *lengths;
    const uint8_t *mask;
    size_t ldm;
} softmax_01;
typedef struct norm_01 {
    size_t size;
    const float *gamma, *beta;
    float eps;
    const float *residual;
    size_t ldr;
    float *sum;
    size_t lds;
} norm_01;
typedef struct eltwise_01 {
    size_t size;
    const float *bias;
    iso_activation act;
    const float *residual;
    size_t ldr;
} eltwise_01;
typedef struct attention_01 {
    size_t size;
    float scale;
    int causal;
    size_t past;
    const size_t *key_lengths;
    const float *bias;
    iso_strides bias_strides;
    float *weights;
    iso_strides weights_strides;
    int key_panels;
} attention_01;
#define WANTED(status) (status)
#define REFUSED 0
#endif

/* A member of version 0.1 may not move. */
#define SAME(now, then, member)                                                                    \
    _Static_assert(offsetof(now, member) == offsetof(then, member) &&                              \
                       sizeof((now){0}.member) == sizeof((then){0}.member),                        \
                   #now "." #member " moved")
SAME(iso_context, context_01, size);
SAME(iso_context, context_01, isa);
SAME(iso_context, context_01, executor);
SAME(iso_context, context_01, workspace);
SAME(iso_context, context_01, workspace_bytes);
SAME(iso_gemm_options, gemm_01, size);
SAME(iso_gemm_options, gemm_01, trans_a);
SAME(iso_gemm_options, gemm_01, trans_b);
SAME(iso_gemm_options, gemm_01, alpha);
SAME(iso_gemm_options, gemm_01, beta);
SAME(iso_gemm_options, gemm_01, bias);
SAME(iso_gemm_options, gemm_01, act);
SAME(iso_gemm_options, gemm_01, residual);
SAME(iso_gemm_options, gemm_01, ldr);
SAME(iso_linear_options, linear_01, size);
SAME(iso_linear_options, linear_01, bias);
SAME(iso_linear_options, linear_01, act);
SAME(iso_linear_options, linear_01, residual);
SAME(iso_linear_options, linear_01, ldr);
SAME(iso_softmax_options, softmax_01, size);
SAME(iso_softmax_options, softmax_01, log);
SAME(iso_softmax_options, softmax_01, safe);
SAME(iso_softmax_options, softmax_01, lengths);
SAME(iso_softmax_options, softmax_01, mask);
SAME(iso_softmax_options, softmax_01, ldm);
SAME(iso_norm_options, norm_01, size);
SAME(iso_norm_options, norm_01, gamma);
SAME(iso_norm_options, norm_01, beta);
SAME(iso_norm_options, norm_01, eps);
SAME(iso_norm_options, norm_01, residual);
SAME(iso_norm_options, norm_01, ldr);
SAME(iso_norm_options, norm_01, sum);
SAME(iso_norm_options, norm_01, lds);
SAME(iso_eltwise_options, eltwise_01, size);
SAME(iso_eltwise_options, eltwise_01, bias);
SAME(iso_eltwise_options, eltwise_01, act);
SAME(iso_eltwise_options, eltwise_01, residual);
SAME(iso_eltwise_options, eltwise_01, ldr);
SAME(iso_attention_options, attention_01, size);
SAME(iso_attention_options, attention_01, scale);
SAME(iso_attention_options, attention_01, causal);
SAME(iso_attention_options, attention_01, past);
SAME(iso_attention_options, attention_01, key_lengths);
SAME(iso_attention_options, attention_01, bias);
SAME(iso_attention_options, attention_01, bias_strides);
SAME(iso_attention_options, attention_01, weights);
SAME(iso_attention_options, attention_01, weights_strides);
SAME(iso_attention_options, attention_01, key_panels);

static int failures;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                 \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)
/* What the call gives with a size that version 0.1 had; NEWER has another one. */
#define EXPECT(status, call) CHECK((call) == WANTED(status))

static char *guard; /* where a page begins that cannot be touched */

static void *flush(const void *from, size_t bytes) { return memcpy(guard - bytes, from, bytes); }

/* A copy of a struct that ends where the page does that can be read. */
#define FLUSH(now, then, ...) ((const now *)flush(&(then){__VA_ARGS__}, sizeof(then)))

/* Sizes that no version had: `call` uses `o`, a pointer to the struct. */
#ifdef NEWER
#define NO_OTHER_SIZE(now, then, call) (void)0
#else
#define NO_OTHER_SIZE(now, then, call)                                                             \
    do {                                                                                           \
        const size_t wrong[] = {0,                                                                 \
                                8,                                                                 \
                                sizeof(then) - sizeof(void *),                                     \
                                sizeof(then) - 1,                                                  \
                                sizeof(now) + 8 * sizeof(void *),                                  \
                                (size_t)-1};                                                       \
        for (size_t i_ = 0; i_ < sizeof wrong / sizeof *wrong; i_++) {                             \
            const now *o = FLUSH(now, then, .size = wrong[i_]);                                    \
            CHECK((call) == ISOBIT_E_SIZE);                                                        \
        }                                                                                          \
    } while (0)
#endif

static const float one[] = {1}, two[] = {2};
static float y[4];

static void products(void) {
    float packed[16] __attribute__((aligned(64)));
    const float a[] = {3, 5}, r[] = {100, 0, 200};
    iso_packed w;
    size_t bytes;
#define GEMM(options) iso_gemm_f32(y, 1, a, 1, two, 1, 2, 1, 1, options, NULL)
    EXPECT(ISOBIT_OK, GEMM(FLUSH(iso_gemm_options, gemm_01, .size = sizeof(gemm_01), .alpha = 2,
                                 .bias = one, .residual = r, .ldr = 2)));
    CHECK(REFUSED || (y[0] == 113 && y[1] == 221));
    /* Nothing but the product, which has a shorter way. */
    EXPECT(ISOBIT_OK, GEMM(FLUSH(iso_gemm_options, gemm_01, .size = sizeof(gemm_01), .alpha = 1)));
    CHECK(REFUSED || (y[0] == 6 && y[1] == 10));
    EXPECT(ISOBIT_OK,
           iso_gemm_f32_workspace_bytes(
               &bytes, 2, 1, 1,
               FLUSH(iso_gemm_options, gemm_01, .size = sizeof(gemm_01), .alpha = 1), NULL));
    NO_OTHER_SIZE(iso_gemm_options, gemm_01, GEMM(o));
    NO_OTHER_SIZE(iso_gemm_options, gemm_01,
                  iso_gemm_f32_workspace_bytes(&bytes, 2, 1, 1, o, NULL));

    CHECK(iso_pack_f32(&w, packed, sizeof packed, two, 1, 1, 1, 0, NULL) == ISOBIT_OK);
#define LINEAR(options) iso_linear_f32(y, 1, a, 1, &w, 2, options, NULL)
    EXPECT(ISOBIT_OK, LINEAR(FLUSH(iso_linear_options, linear_01, .size = sizeof(linear_01),
                                   .bias = one, .residual = r, .ldr = 2)));
    CHECK(REFUSED || (y[0] == 107 && y[1] == 211));
    NO_OTHER_SIZE(iso_linear_options, linear_01, LINEAR(o));
}

static void rows(void) {
    const float x[] = {1, -1}, r[] = {10, 0, 20};
    const uint8_t mask[] = {1, 7, 0};
    float sum[3];
#define SOFTMAX(options) iso_softmax_f32(y, 1, x, 1, 2, 1, options, NULL)
    EXPECT(ISOBIT_OK, SOFTMAX(FLUSH(iso_softmax_options, softmax_01, .size = sizeof(softmax_01),
                                    .mask = mask, .ldm = 2)));
    CHECK(REFUSED || (y[0] == 1 && y[1] == 0));
    NO_OTHER_SIZE(iso_softmax_options, softmax_01, SOFTMAX(o));
    for (int rms = 0; rms < 2; rms++) {
#define NORM(options) (rms ? iso_rmsnorm_f32 : iso_layernorm_f32)(y, 1, x, 1, 2, 1, options, NULL)
        EXPECT(ISOBIT_OK, NORM(FLUSH(iso_norm_options, norm_01, .size = sizeof(norm_01), .eps = 1,
                                     .residual = r, .ldr = 2, .sum = sum, .lds = 2)));
        CHECK(REFUSED || (sum[0] == 11 && sum[2] == 19));
        NO_OTHER_SIZE(iso_norm_options, norm_01, NORM(o));
    }
#define ELTWISE(options) iso_eltwise_f32(y, 1, x, 1, 2, 1, options, NULL)
    EXPECT(ISOBIT_OK, ELTWISE(FLUSH(iso_eltwise_options, eltwise_01, .size = sizeof(eltwise_01),
                                    .bias = two, .residual = r, .ldr = 2)));
    CHECK(REFUSED || (y[0] == 13 && y[1] == 21));
    NO_OTHER_SIZE(iso_eltwise_options, eltwise_01, ELTWISE(o));
}

static void attention(void) {
    const iso_attention_shape s = {
        .B = 1, .H = 1, .Sq = 1, .Sk = 2, .dh = 1, .k = {0, 0, 1}, .v = {0, 0, 1}};
    const float k[16] = {0, 100}, v[] = {1, 2};
    size_t bytes;
    /* Keys in panels have no stride; taken as rows with a stride of 0 they would be ISOBIT_E_LD or
     * both the first one. */
    iso_attention_shape panels = s;
    panels.k.seq = 0;
#define ATTENTION(options) iso_attention_f32(y, one, k, v, &panels, options, NULL)
    EXPECT(ISOBIT_OK, ATTENTION(FLUSH(iso_attention_options, attention_01,
                                      .size = sizeof(attention_01), .scale = 1, .key_panels = 1)));
    CHECK(REFUSED || y[0] == 2);
    NO_OTHER_SIZE(iso_attention_options, attention_01, ATTENTION(o));
    EXPECT(ISOBIT_OK,
           iso_attention_f32_workspace_bytes(
               &bytes, &s,
               FLUSH(iso_attention_options, attention_01, .size = sizeof(attention_01), .scale = 1),
               NULL));
    NO_OTHER_SIZE(iso_attention_options, attention_01,
                  iso_attention_f32_workspace_bytes(&bytes, &s, o, NULL));
}

static void contexts(void) {
    const iso_isa *scalar;
    char scratch[1];
    size_t bytes;
    CHECK(iso_isa_find(&scalar, "scalar") == ISOBIT_OK);
#define EMPTY(context) iso_positions_f32(y, 2, 0, 1, 2, ISOBIT_POS_HALF_D, context)
    EXPECT(ISOBIT_OK,
           EMPTY(FLUSH(iso_context, context_01, .size = sizeof(context_01), .isa = scalar)));
    CHECK(REFUSED || (y[0] == 0 && y[1] == 1));
    NO_OTHER_SIZE(iso_context, context_01, EMPTY(o));
    /* One that is too small, which only its last member says. */
    const iso_gemm_options turned = {.size = sizeof turned, .trans_a = 1, .trans_b = 1, .alpha = 1};
    float *big = calloc(3 * 256 * 256, sizeof *big);
    if (!big)
        exit(1);
    EXPECT(ISOBIT_E_WORKSPACE,
           iso_gemm_f32(big, 256, big + 256 * 256, 256, big + 2 * 256 * 256, 256, 256, 256, 256,
                        &turned,
                        FLUSH(iso_context, context_01, .size = sizeof(context_01),
                              .workspace = scratch, .workspace_bytes = sizeof scratch)));
    free(big);
    EXPECT(ISOBIT_OK,
           iso_gemm_f32_workspace_bytes(
               &bytes, 9, 9, 9, NULL,
               FLUSH(iso_context, context_01, .size = sizeof(context_01), .isa = scalar)));
}

#ifdef OLDER_WITH_MODEL
#ifdef NEWER
typedef iso_load_options load_01;
typedef iso_generate_options generate_01;
typedef iso_profile profile_01;
#else
typedef struct load_01 {
    size_t size;
    int reject_nonfinite;
    size_t max_header_bytes;
} load_01;
typedef struct generate_01 {
    size_t size;
    size_t beams, hypotheses, max_length, max_new_tokens;
    int has_length_penalty;
    float length_penalty;
    iso_early_stopping early_stopping;
    float repetition_penalty;
    size_t no_repeat_ngram, min_length;
    int attention;
    size_t batch_tokens;
} generate_01;
typedef struct profile_01 {
    size_t size;
    int by_kind;
    double flops;
    double kind_seconds[8];
    size_t steps;
    double step_seconds, fastest_step, step_flops, step_weight_bytes;
} profile_01;
#endif
SAME(iso_load_options, load_01, size);
SAME(iso_load_options, load_01, reject_nonfinite);
SAME(iso_load_options, load_01, max_header_bytes);
SAME(iso_generate_options, generate_01, size);
SAME(iso_generate_options, generate_01, beams);
SAME(iso_generate_options, generate_01, hypotheses);
SAME(iso_generate_options, generate_01, max_length);
SAME(iso_generate_options, generate_01, max_new_tokens);
SAME(iso_generate_options, generate_01, has_length_penalty);
SAME(iso_generate_options, generate_01, length_penalty);
SAME(iso_generate_options, generate_01, early_stopping);
SAME(iso_generate_options, generate_01, repetition_penalty);
SAME(iso_generate_options, generate_01, no_repeat_ngram);
SAME(iso_generate_options, generate_01, min_length);
SAME(iso_generate_options, generate_01, attention);
SAME(iso_generate_options, generate_01, batch_tokens);
SAME(iso_profile, profile_01, size);
SAME(iso_profile, profile_01, by_kind);
SAME(iso_profile, profile_01, flops);
SAME(iso_profile, profile_01, kind_seconds);
SAME(iso_profile, profile_01, steps);
SAME(iso_profile, profile_01, step_seconds);
SAME(iso_profile, profile_01, fastest_step);
SAME(iso_profile, profile_01, step_flops);
SAME(iso_profile, profile_01, step_weight_bytes);

static void models(const char *directory) {
    iso_model *model = NULL, *other = NULL;
    iso_generation *result = NULL;
    const uint32_t source[] = {5, 6, 2};
    const size_t length = 3;
    CHECK(iso_model_load(&model, directory, NULL, NULL, NULL) == ISOBIT_OK);
    if (!model)
        return;
#define LOAD(options) iso_model_load(&other, directory, options, NULL, NULL)
    EXPECT(ISOBIT_OK, LOAD(FLUSH(iso_load_options, load_01, .size = sizeof(load_01))));
    iso_model_free(other);
    EXPECT(ISOBIT_E_HEADER_SIZE,
           LOAD(FLUSH(iso_load_options, load_01, .size = sizeof(load_01), .max_header_bytes = 9)));
    NO_OTHER_SIZE(iso_load_options, load_01, LOAD(o));
    EXPECT(ISOBIT_OK,
           iso_model_load(&other, directory, NULL,
                          FLUSH(iso_context, context_01, .size = sizeof(context_01)), NULL));
    if (!REFUSED)
        iso_model_free(other);
    NO_OTHER_SIZE(iso_context, context_01, iso_model_load(&other, directory, NULL, o, NULL));

    iso_profile *profile =
        (iso_profile *)flush(&(profile_01){.size = sizeof(profile_01)}, sizeof(profile_01));
    EXPECT(ISOBIT_OK, iso_model_set_profile(model, profile));
    profile_01 timed;
    CHECK(iso_generate(&result, model, source, &length, 1, NULL, NULL, NULL) == ISOBIT_OK);
    iso_generation_free(result);
    memcpy(&timed, profile, sizeof timed);
    CHECK(REFUSED || (timed.flops > 0 && timed.steps > 0 && timed.step_weight_bytes > 0));
    CHECK(iso_model_set_profile(model, NULL) == ISOBIT_OK);
    NO_OTHER_SIZE(iso_profile, profile_01, iso_model_set_profile(model, (iso_profile *)o));

#define GENERATE(options) iso_generate(&result, model, source, &length, 1, options, NULL, NULL)
    EXPECT(ISOBIT_OK, GENERATE(FLUSH(iso_generate_options, generate_01, .size = sizeof(generate_01),
                                     .beams = 3, .hypotheses = 2, .batch_tokens = 100)));
    if (!REFUSED) {
        CHECK(result->count == 2 && result->hypotheses == 2);
        iso_generation_free(result);
    }
    NO_OTHER_SIZE(iso_generate_options, generate_01, GENERATE(o));
    iso_model_free(model);
}
#endif

int main(int argc, char **argv) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + page, page, PROT_NONE))
        return 1;
    guard = memory + page;
    products();
    rows();
    attention();
    contexts();
    if (argc > 1) {
#ifdef OLDER_WITH_MODEL
        models(argv[1]);
#endif
    }
    return failures != 0;
}
