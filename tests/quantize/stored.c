/* SPDX-License-Identifier: MIT
 *
 * A reader of safetensors for tests: JSON by jansson, numbers by their definition in double.
 */
#include "test_quantize.h"

#include <math.h>

stored stored_read(const char *folder) {
    char path[200];
    stored s = {0};
    (void)snprintf(path, sizeof path, "%s/model.safetensors", folder);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    s.count = (size_t)ftell(file);
    rewind(file);
    assert_non_null(s.bytes = malloc(s.count));
    assert_int_equal(fread(s.bytes, 1, s.count, file), s.count);
    (void)fclose(file);
    size_t header = 0;
    assert_true(s.count > 8);
    for (int i = 0; i < 8; i++)
        header |= (size_t)s.bytes[i] << 8 * i;
    assert_true(header < s.count);
    s.header = json_loadb((const char *)s.bytes + 8, header, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(s.header);
    s.data = s.bytes + 8 + header;
    return s;
}

void stored_free(stored *s) {
    free(s->bytes);
    json_decref(s->header);
}

static size_t element_bytes(const char *dtype) {
    static const struct {
        const char *name;
        size_t bytes;
    } known[] = {{"F64", 8}, {"I64", 8},  {"F32", 4}, {"I32", 4},
                 {"F16", 2}, {"BF16", 2}, {"I8", 1},  {"U8", 1}};
    for (size_t i = 0; i < COUNT(known); i++)
        if (strcmp(known[i].name, dtype) == 0)
            return known[i].bytes;
    fail_msg("element type %s", dtype);
    return 0;
}

bool stored_find(const stored *s, const char *name, stored_tensor *t) {
    const json_t *entry = json_object_get(s->header, name);
    if (!entry)
        return false;
    const json_t *shape = json_object_get(entry, "shape");
    const json_t *offsets = json_object_get(entry, "data_offsets");
    *t = (stored_tensor){.dtype = json_string_value(json_object_get(entry, "dtype")), .count = 1};
    assert_non_null(t->dtype);
    t->rank = json_array_size(shape);
    assert_true(t->rank <= COUNT(t->shape));
    for (size_t i = 0; i < t->rank; i++) {
        t->shape[i] = (size_t)json_integer_value(json_array_get(shape, i));
        t->count *= t->shape[i];
    }
    const size_t begin = (size_t)json_integer_value(json_array_get(offsets, 0));
    const size_t end = (size_t)json_integer_value(json_array_get(offsets, 1));
    t->at = s->data + begin;
    t->bytes = end - begin;
    assert_true(begin <= end && s->data + end <= s->bytes + s->count);
    assert_int_equal(t->bytes, t->count * element_bytes(t->dtype));
    assert_int_equal(begin % element_bytes(t->dtype), 0);
    return true;
}

static double float_number(uint64_t bits, int exponent_bits, int fraction_bits) {
    const int most = (1 << exponent_bits) - 1, exponent = (int)(bits >> fraction_bits) & most;
    const double fraction = (double)(bits & (((uint64_t)1 << fraction_bits) - 1));
    double value;
    if (exponent == most)
        value = fraction != 0 ? (double)NAN : (double)INFINITY;
    else
        value = ldexp(exponent ? fraction + ldexp(1, fraction_bits) : fraction,
                      (exponent ? exponent : 1) - most / 2 - fraction_bits);
    return bits >> (exponent_bits + fraction_bits) & 1 ? -value : value;
}

double stored_number(const stored_tensor *t, size_t i) {
    const size_t bytes = element_bytes(t->dtype);
    uint64_t bits = 0;
    for (size_t k = 0; k < bytes; k++)
        bits |= (uint64_t)t->at[i * bytes + k] << 8 * k;
    if (t->dtype[0] == 'I') /* two's complement */
        return (double)(int64_t)(bits << (64 - 8 * bytes)) / ldexp(1, 64 - 8 * (int)bytes);
    if (t->dtype[0] == 'U')
        return (double)bits;
    return strcmp(t->dtype, "F64") == 0    ? float_number(bits, 11, 52)
           : strcmp(t->dtype, "F32") == 0  ? float_number(bits, 8, 23)
           : strcmp(t->dtype, "BF16") == 0 ? float_number(bits, 8, 7)
                                           : float_number(bits, 5, 10);
}

double rounded(double x, int p, int least) {
    if (x == 0)
        return x;
    const int e = ilogb(x), unit = (e > least ? e : least) - (p - 1);
    return ldexp(rint(ldexp(x, -unit)), unit); /* of two that are as near the even one */
}
