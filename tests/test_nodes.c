/* SPDX-License-Identifier: MIT
 *
 * The public operations against cases in the manner of ONNX's node tests: tests/data/nodes, made by
 * tools/make_nodes.py. Whatever the form of a node that the operations lack (another axis,
 * broadcasting, grouped heads) is made here from what they have, as a runtime would do it. Each
 * case runs on each instruction set; the bits must be the same, and each element must lie within
 * ONNX's tolerance and within its own bound, which is much tighter.
 *
 * A file: "cases N", then N times
 *     case NAME OPERATION
 *     with PARAMETER NUMBER ...
 *     tensor NAME RANK DIMENSION... VALUE...
 *     end
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <isobit/ops.h>

enum { RANK = 5, TENSORS = 10, PARAMETERS = 8, WORD = 64 };

struct tensor {
    char name[WORD];
    size_t rank, dims[RANK], count;
    double *values;
    float *floats; /* the same */
};

struct node {
    char name[WORD], op[WORD];
    struct {
        char name[WORD];
        double value;
    } parameters[PARAMETERS];
    size_t parameter_count;
    struct tensor tensors[TENSORS];
    size_t tensor_count;
};

/* ------------------------------------------------------------------------------------- reading */

static void word(FILE *f, char *to) {
    if (fscanf(f, "%63s", to) != 1)
        fail_msg("the file ends too early");
}

static double number(FILE *f) {
    char text[WORD], *end;
    word(f, text);
    double x = strtod(text, &end);
    if (*end)
        fail_msg("'%s' is not a number", text);
    return x;
}

static void read_tensor(FILE *f, struct node *node) {
    assert_true(node->tensor_count < TENSORS);
    struct tensor *t = &node->tensors[node->tensor_count++];
    word(f, t->name);
    t->rank = (size_t)number(f);
    assert_true(t->rank <= RANK);
    t->count = 1;
    for (size_t i = 0; i < t->rank; i++)
        t->count *= t->dims[i] = (size_t)number(f);
    t->values = calloc(t->count + 1, sizeof *t->values);
    t->floats = calloc(t->count + 1, sizeof *t->floats);
    assert_true(t->values && t->floats);
    for (size_t i = 0; i < t->count; i++) {
        t->values[i] = number(f);
        t->floats[i] = (float)t->values[i];
    }
}

static void read_node(FILE *f, struct node *node) {
    char text[WORD];
    *node = (struct node){.parameter_count = 0};
    word(f, text);
    assert_string_equal(text, "case");
    word(f, node->name);
    word(f, node->op);
    for (word(f, text); strcmp(text, "end") != 0; word(f, text)) {
        if (!strcmp(text, "tensor")) {
            read_tensor(f, node);
        } else {
            assert_string_equal(text, "with");
            assert_true(node->parameter_count < PARAMETERS);
            word(f, node->parameters[node->parameter_count].name);
            node->parameters[node->parameter_count++].value = number(f);
        }
    }
}

static void free_node(struct node *node) {
    for (size_t i = 0; i < node->tensor_count; i++) {
        free(node->tensors[i].values);
        free(node->tensors[i].floats);
    }
}

static const struct tensor *find(const struct node *node, const char *name) { /* or NULL */
    for (size_t i = 0; i < node->tensor_count; i++) {
        if (!strcmp(node->tensors[i].name, name))
            return &node->tensors[i];
    }
    return NULL;
}

static const struct tensor *get(const struct node *node, const char *name) {
    const struct tensor *t = find(node, name);
    if (!t)
        fail_msg("%s has no tensor %s", node->name, name);
    return t;
}

static double with(const struct node *node, const char *name) {
    for (size_t i = 0; i < node->parameter_count; i++) {
        if (!strcmp(node->parameters[i].name, name))
            return node->parameters[i].value;
    }
    fail_msg("%s has no parameter %s", node->name, name);
    return 0;
}

/* The product of the dimensions first .. last-1. */
static size_t extent(const struct tensor *t, size_t first, size_t last) {
    size_t n = 1;
    for (size_t i = first; i < last; i++)
        n *= t->dims[i];
    return n;
}

static size_t axis_of(const struct node *node, const struct tensor *t) {
    double axis = with(node, "axis");
    return (size_t)(axis < 0 ? axis + (double)t->rank : axis);
}

static float *floats(size_t count) {
    float *p = calloc(count + 1, sizeof *p);
    assert_non_null(p);
    return p;
}

#define OK(call) assert_int_equal(call, ISOBIT_OK)

/* ---------------------------------------------------------------------------------- operations */

/* Each writes y [count of y], and w if the node has it. */
typedef void operation(const struct node *node, const iso_context *context, float *y, float *w);

static void run_softmax(const struct node *node, const iso_context *context, float *y, float *w) {
    (void)w;
    const struct tensor *x = get(node, "x");
    iso_softmax_options options = {.size = sizeof options, .log = with(node, "log") != 0};
    size_t axis = axis_of(node, x), n = x->dims[axis], rows = extent(x, 0, axis);
    size_t inner = extent(x, axis + 1, x->rank);
    if (with(node, "flatten") != 0 || inner == 1) {
        n = x->count / rows;
        OK(iso_softmax_f32(y, n, x->floats, n, rows, n, &options, context));
        return;
    }
    float *columns = floats(inner * n); /* the axis last */
    for (size_t r = 0; r < rows; r++) {
        const float *from = x->floats + r * n * inner;
        for (size_t i = 0; i < inner * n; i++)
            columns[i % inner * n + i / inner] = from[i];
        OK(iso_softmax_f32(columns, n, columns, n, inner, n, &options, context));
        for (size_t i = 0; i < inner * n; i++)
            y[r * n * inner + i] = columns[i % inner * n + i / inner];
    }
    free(columns);
}

static void run_norm(const struct node *node, const iso_context *context, float *y, float *w) {
    (void)w;
    const struct tensor *x = get(node, "x"), *bias = find(node, "bias");
    size_t rows = extent(x, 0, axis_of(node, x)), n = x->count / rows;
    iso_norm_options options = {.size = sizeof options,
                                .gamma = get(node, "scale")->floats,
                                .beta = bias ? bias->floats : NULL,
                                .eps = (float)with(node, "epsilon")};
    OK((strcmp(node->op, "rms_normalization") ? iso_layernorm_f32 : iso_rmsnorm_f32)(
        y, n, x->floats, n, rows, n, &options, context));
}

static void run_function(const struct node *node, const iso_context *context, float *y, float *w) {
    (void)w;
    const struct tensor *x = get(node, "x");
    iso_eltwise_options options = {.size = sizeof options,
                                   .act = (iso_activation)(int)with(node, "act")};
    size_t n = x->dims[x->rank - 1];
    OK(iso_eltwise_f32(y, n, x->floats, n, x->count / n, n, &options, context));
}

static void run_gemm(const struct node *node, const iso_context *context, float *y, float *w) {
    (void)w;
    const struct tensor *a = get(node, "a"), *b = get(node, "b"), *c = find(node, "c");
    iso_gemm_options options = {.size = sizeof options,
                                .trans_a = with(node, "trans_a") != 0,
                                .trans_b = with(node, "trans_b") != 0,
                                .alpha = (float)with(node, "alpha"),
                                .beta = c ? (float)with(node, "beta") : 0};
    size_t m = a->dims[options.trans_a], k = a->dims[!options.trans_a];
    size_t n = b->dims[!options.trans_b];
    size_t c_cols = c && c->rank ? c->dims[c->rank - 1] : 1;
    size_t c_rows = c && c->rank > 1 ? c->dims[0] : 1;
    for (size_t i = 0; i < m && c; i++) { /* broadcast */
        for (size_t j = 0; j < n; j++)
            y[i * n + j] = c->floats[i % c_rows * c_cols + j % c_cols];
    }
    OK(iso_gemm_f32(y, n, a->floats, a->dims[1], b->floats, b->dims[1], m, n, k, &options,
                    context));
    if (c && c_rows == 1 && c_cols == n && options.beta == 1) { /* that is a bias, the same bits */
        float *other = floats(m * n);
        options.beta = 0, options.bias = c->floats;
        OK(iso_gemm_f32(other, n, a->floats, a->dims[1], b->floats, b->dims[1], m, n, k, &options,
                        context));
        assert_memory_equal(other, y, m * n * sizeof *y);
        free(other);
    }
}

/* c = a b; the packed product has to give the same bits. */
static void product(float *c, const float *a, const float *b, size_t m, size_t n, size_t k,
                    const iso_context *context) {
    OK(iso_gemm_f32(c, n, a, k, b, n, m, n, k, NULL, context));
    size_t bytes;
    iso_packed weights;
    OK(iso_pack_f32_bytes(&bytes, n, k));
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    float *other = floats(m * n);
    assert_non_null(memory);
    OK(iso_pack_f32(&weights, memory, bytes, b, n, n, k, 1, context));
    OK(iso_linear_f32(other, n, a, k, &weights, m, NULL, context));
    assert_memory_equal(other, c, m * n * sizeof *c);
    if (n == 1) { /* another order of the sum */
        OK(iso_gemv_f32(other, a, k, b, m, k, 0, context));
        for (size_t i = 0; i < m; i++)
            assert_true(fabsf(other[i] - c[i]) <= 1e-5f * (1 + fabsf(c[i])));
    }
    free(other);
    free(memory);
}

static void run_matmul(const struct node *node, const iso_context *context, float *y, float *w) {
    (void)w;
    const struct tensor *a = get(node, "a"), *b = get(node, "b");
    size_t m = a->rank > 1 ? a->dims[a->rank - 2] : 1, k = a->dims[a->rank - 1];
    size_t n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    size_t ra = a->rank > 2 ? a->rank - 2 : 0, rb = b->rank > 2 ? b->rank - 2 : 0;
    size_t rank = ra > rb ? ra : rb, dims[RANK], batches = 1;
    for (size_t i = 0; i < rank; i++) { /* from the right */
        size_t da = i < ra ? a->dims[ra - 1 - i] : 1, db = i < rb ? b->dims[rb - 1 - i] : 1;
        batches *= dims[i] = da > db ? da : db;
    }
    for (size_t batch = 0; batch < batches; batch++) {
        size_t left = batch, at_a = 0, at_b = 0, step_a = 1, step_b = 1;
        for (size_t i = 0; i < rank; i++) {
            size_t index = left % dims[i];
            left /= dims[i];
            if (i < ra)
                at_a += index % a->dims[ra - 1 - i] * step_a, step_a *= a->dims[ra - 1 - i];
            if (i < rb)
                at_b += index % b->dims[rb - 1 - i] * step_b, step_b *= b->dims[rb - 1 - i];
        }
        product(y + batch * m * n, a->floats + at_a * m * k, b->floats + at_b * k * n, m, n, k,
                context);
    }
}

/* [B][S][H dh], or [B][H][S][dh] */
static iso_strides strides(size_t rank, size_t heads, size_t length, size_t dh) {
    return rank == 3 ? (iso_strides){length * heads * dh, dh, heads * dh}
                     : (iso_strides){heads * length * dh, length * dh, dh};
}

/* Keys or values as [B][H][past + S][dh]. */
static float *join(const struct tensor *past, const struct tensor *new, size_t batch, size_t heads,
                   size_t dh, size_t *keys) {
    size_t before = past ? past->dims[2] : 0;
    size_t length = new->rank == 3 ? new->dims[1] : new->dims[2];
    iso_strides from = strides(new->rank, heads, length, dh);
    *keys = before + length;
    float *all = floats(batch * heads * *keys * dh);
    for (size_t i = 0; i < batch * heads; i++) {
        float *to = all + i * *keys * dh;
        if (past)
            memcpy(to, past->floats + i * before * dh, before * dh * sizeof *to);
        for (size_t j = 0; j < length; j++)
            memcpy(to + (before + j) * dh,
                   new->floats + i / heads *from.batch + i % heads *from.head + j *from.seq,
                   dh * sizeof *to);
    }
    return all;
}

/* The mask as something to add, spread out to [B][H][Sq][keys]. */
static float *spread_mask(const struct tensor *mask, bool boolean, size_t batch, size_t heads,
                          size_t sq, size_t keys) {
    const size_t full[4] = {batch, heads, sq, keys};
    float *to = floats(batch * heads * sq * keys);
    for (size_t i = 0; i < batch * heads * sq * keys; i++) {
        size_t left = i, at = 0, step = 1;
        for (size_t d = 0; d < mask->rank; d++) { /* from the right */
            size_t own = mask->dims[mask->rank - 1 - d];
            at += left % full[3 - d] % own * step;
            step *= own;
            left /= full[3 - d];
        }
        to[i] = boolean ? (mask->floats[at] != 0 ? 0 : -INFINITY) : mask->floats[at];
    }
    return to;
}

static void run_attention(const struct node *node, const iso_context *context, float *y, float *w) {
    const struct tensor *q = get(node, "q"), *mask = find(node, "mask"),
                        *past = find(node, "past_k");
    const struct tensor *lengths = find(node, "lengths");
    size_t heads = (size_t)with(node, "heads"), kv_heads = (size_t)with(node, "kv_heads");
    size_t batch = q->dims[0], sq = q->rank == 3 ? q->dims[1] : q->dims[2];
    size_t dh = q->count / (batch * heads * sq), keys, per = heads / kv_heads;
    float *k = join(past, get(node, "k"), batch, kv_heads, dh, &keys);
    float *v = join(find(node, "past_v"), get(node, "v"), batch, kv_heads, dh, &keys);
    size_t some[8] = {0}, panel = iso_key_panels_floats(keys, dh);
    float *bias =
        mask ? spread_mask(mask, with(node, "boolean") != 0, batch, heads, sq, keys) : NULL;
    float *panels = floats(batch * kv_heads * panel), *other = floats(q->count);
    assert_true(batch <= 8);
    for (size_t b = 0; b < batch && lengths; b++)
        some[b] = (size_t)lengths->values[b];
    for (size_t i = 0; i < batch * kv_heads; i++)
        OK(iso_key_panels_append(panels + i * panel, 0, k + i * keys * dh, dh, keys, dh, context));

    iso_strides own = strides(q->rank, heads, sq, dh);
    iso_attention_shape shape = {.B = batch,
                                 .H = per,
                                 .Sq = sq,
                                 .Sk = keys,
                                 .dh = dh,
                                 .q = own,
                                 .o = own,
                                 .k = {kv_heads * keys * dh, 0, dh}, /* shared by the group */
                                 .v = {kv_heads * keys * dh, 0, dh}};
    double scale = with(node, "scale");
    iso_attention_options options = {
        .size = sizeof options,
        .scale = (float)(scale != 0 ? scale : 1 / sqrt((double)dh)),
        .causal = with(node, "causal") != 0,
        .past = past ? past->dims[2] : 0,
        .key_lengths = lengths ? some : NULL,
        .bias_strides = {heads * sq * keys, sq * keys, keys},
        .weights_strides = {heads * sq * keys, sq * keys, keys},
    };
    for (size_t g = 0; g < kv_heads; g++) {
        size_t at = g * per * own.head, scores = g * per * sq * keys;
        options.bias = bias ? bias + scores : NULL;
        options.weights = w ? w + scores : NULL;
        OK(iso_attention_f32(y + at, q->floats + at, k + g * keys * dh, v + g * keys * dh, &shape,
                             &options, context));
        iso_attention_shape cached = shape; /* keys as a cache holds them: the same bits */
        iso_attention_options from_panels = options;
        cached.k = (iso_strides){kv_heads * panel, 0, 0};
        from_panels.key_panels = 1;
        OK(iso_attention_f32(other + at, q->floats + at, panels + g * panel, v + g * keys * dh,
                             &cached, &from_panels, context));
    }
    assert_memory_equal(other, y, q->count * sizeof *y);
    free(k);
    free(v);
    free(bias);
    free(panels);
    free(other);
}

static void run_embedding(const struct node *node, const iso_context *context, float *y, float *w) {
    (void)w;
    const struct tensor *table = get(node, "table"), *ids = get(node, "ids");
    const struct tensor *positions = find(node, "positions");
    uint32_t at[16];
    assert_true(ids->count <= 16);
    for (size_t i = 0; i < ids->count; i++)
        at[i] = (uint32_t)ids->values[i];
    OK(iso_embed_f32(y, table->dims[1], at, ids->count, table->floats, table->dims[0],
                     table->dims[1], (float)with(node, "scale"),
                     positions ? positions->floats : NULL, NULL, positions ? positions->dims[0] : 0,
                     context));
}

/* ------------------------------------------------------------------------------------ the test */

static size_t elements;
static double worst, worst_onnx; /* in units of the bounds */

/* ONNX: |error| <= 1e-7 + 1e-3 |true value|. Ours: the file's, which also rounds the value. */
static void judge(const struct node *node, const char *set, const char *name, const float *got) {
    char bound_name[WORD + 8];
    snprintf(bound_name, sizeof bound_name, "%s.bound", name);
    const struct tensor *want = get(node, name), *bound = get(node, bound_name);
    for (size_t i = 0; i < want->count; i++) {
        double value = want->values[i], error = fabs((double)got[i] - value);
        double most = bound->values[i] + 1e-10 * fabs(value), onnx = 1e-7 + 1e-3 * fabs(value);
        if (isinf(value) ? (double)got[i] == value : error <= most && error <= onnx) {
            elements++;
            if (bound->values[i] > 0 && error > worst * most)
                worst = error / most;
            if (error > worst_onnx * onnx)
                worst_onnx = error / onnx;
            continue;
        }
        fail_msg("%s on %s: %s[%zu] is %.9g, should be %.11g; error %.3g, the bound is %.3g, "
                 "ONNX's tolerance %.3g",
                 node->name, set, name, i, (double)got[i], value, error, most, onnx);
    }
}

static void run_node(const struct node *node) {
    static const struct {
        const char *op;
        operation *run;
    } operations[] = {{"softmax", run_softmax},
                      {"layer_normalization", run_norm},
                      {"rms_normalization", run_norm},
                      {"function", run_function},
                      {"gemm", run_gemm},
                      {"matmul", run_matmul},
                      {"attention", run_attention},
                      {"embedding", run_embedding}};
    operation *run = NULL;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        run = strcmp(operations[i].op, node->op) ? run : operations[i].run;
    if (!run)
        fail_msg("%s: there is no operation %s", node->name, node->op);
    size_t y_count = get(node, "y")->count, w_count = find(node, "w") ? get(node, "w")->count : 0;
    float *first = floats(y_count + w_count), *now = floats(y_count + w_count);
    const char *first_set = NULL;
    for (size_t s = 0; s < iso_isa_count(); s++) {
        const iso_isa *isa = iso_isa_get(s);
        if (iso_isa_missing(isa))
            continue;
        iso_context context = {.size = sizeof context, .isa = isa};
        for (size_t i = 0; i < y_count + w_count; i++)
            now[i] = NAN; /* what is not written shows */
        run(node, &context, now, w_count ? now + y_count : NULL);
        judge(node, iso_isa_name(isa), "y", now);
        if (w_count)
            judge(node, iso_isa_name(isa), "w", now + y_count);
        if (!first_set) {
            first_set = iso_isa_name(isa);
            memcpy(first, now, (y_count + w_count) * sizeof *now);
        }
        if (memcmp(first, now, (y_count + w_count) * sizeof *now))
            fail_msg("%s: other bits on %s than on %s", node->name, iso_isa_name(isa), first_set);
    }
    assert_non_null(first_set);
    free(first);
    free(now);
}

/* state: the name of the file and how many cases it has to hold at least. */
struct file {
    const char *name;
    size_t least;
};

static void run_file(void **state) {
    const struct file *file = *state;
    char path[512], text[WORD];
    snprintf(path, sizeof path, "%s/nodes/%s.txt", ISOBIT_TEST_DATA, file->name);
    FILE *f = fopen(path, "r");
    if (!f)
        fail_msg("%s cannot be opened", path);
    do { /* comments */
        word(f, text);
        if (text[0] == '#')
            assert_true(fscanf(f, "%*[^\n]") == 0);
    } while (text[0] == '#');
    assert_string_equal(text, "cases");
    size_t count = (size_t)number(f);
    assert_true(count >= file->least);
    elements = 0, worst = worst_onnx = 0;
    for (size_t i = 0; i < count; i++) {
        struct node node;
        read_node(f, &node);
        run_node(&node);
        free_node(&node);
    }
    assert_int_equal(fscanf(f, "%63s", text), EOF);
    fclose(f);
    print_message("%s: %zu cases, %zu results; largest error %.3f of the bound, %.5f of ONNX's "
                  "tolerance\n",
                  file->name, count, elements, worst, worst_onnx);
}

int main(void) {
    static struct file files[] = {{"softmax", 22}, {"normalization", 42}, {"function", 15},
                                  {"gemm", 16},    {"matmul", 9},         {"attention", 44},
                                  {"embedding", 4}};
    enum { FILES = sizeof files / sizeof *files };
    struct CMUnitTest tests[FILES];
    for (size_t i = 0; i < FILES; i++)
        tests[i] = (struct CMUnitTest){
            .name = files[i].name, .test_func = run_file, .initial_state = &files[i]};
    return cmocka_run_group_tests_name("nodes", tests, NULL, NULL);
}
