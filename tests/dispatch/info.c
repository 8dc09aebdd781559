/* SPDX-License-Identifier: MIT
 *
 * iso_info, and a reader of JSON.
 */
#include "test_dispatch.h"

/* A strict reader of JSON that keeps nothing: NULL when the text is not valid. */
static const char *json_value(const char *s);

static const char *json_space(const char *s) { return s ? s + strspn(s, " \t\r\n") : NULL; }

static const char *json_string(const char *s) {
    if (*s++ != '"') {
        return NULL;
    }
    for (; *s != '"'; ++s) {
        if ((unsigned char)*s < ' ' || (unsigned char)*s > '~') {
            return NULL;
        }
        if (*s == '\\') {
            ++s;
            if (*s == 'u') {
                if (strspn(s + 1, "0123456789abcdefABCDEF") < 4) {
                    return NULL;
                }
                s += 4;
            } else if (!*s || !strchr("\"\\/bfnrt", *s)) {
                return NULL;
            }
        }
    }
    return s + 1;
}

static const char *json_group(const char *s, char close, bool keys) {
    s = json_space(s + 1);
    if (*s == close) {
        return s + 1;
    }
    for (;;) {
        if (keys) {
            s = json_space(json_string(s));
            if (!s || *s != ':') {
                return NULL;
            }
            s = json_space(s + 1);
        }
        s = json_space(json_value(s));
        if (!s) {
            return NULL;
        }
        if (*s == close) {
            return s + 1;
        }
        if (*s != ',') {
            return NULL;
        }
        s = json_space(s + 1);
    }
}

static const char *json_value(const char *s) {
    static const char *const words[] = {"true", "false", "null"};
    if (*s == '{') {
        return json_group(s, '}', true);
    }
    if (*s == '[') {
        return json_group(s, ']', false);
    }
    if (*s == '"') {
        return json_string(s);
    }
    for (size_t i = 0; i < 3; ++i) {
        if (strncmp(s, words[i], strlen(words[i])) == 0) {
            return s + strlen(words[i]);
        }
    }
    const size_t digits = strspn(s, "0123456789");
    if (digits == 0 || (*s == '0' && digits > 1)) {
        return NULL;
    }
    s += digits;
    if (*s == '.') {
        const size_t more = strspn(s + 1, "0123456789");
        return more ? s + 1 + more : NULL;
    }
    return s;
}

static bool json_valid(const char *s) {
    s = json_space(json_value(json_space(s)));
    return s && *s == '\0';
}

void test_info(void **state) {
    (void)state;
    size_t needed = 0, again = 0;
    assert_false(json_valid("{\"a\": }"));
    assert_false(json_valid("{\"a\": 1,}"));
    assert_true(json_valid("{\"a\": [1, {}, \"\\\"\"], \"b\": 1.500}"));

    assert_int_equal(iso_set_isa(NULL), ISOBIT_OK);
    assert_int_equal(iso_info_json(NULL, 0, &needed), ISOBIT_E_WORKSPACE);
    assert_int_equal(iso_info_json(NULL, 1, &again), ISOBIT_E_NULL);
    assert_true(needed > 100);
    char *text = malloc(needed);
    char *cut = malloc(needed + 1);
    assert_non_null(text);
    assert_non_null(cut);
    assert_int_equal(iso_info_json(text, needed, &again), ISOBIT_OK);
    assert_int_equal(again, needed);
    assert_int_equal(strlen(text), needed - 1);
    assert_true(json_valid(text));
    assert_int_equal(iso_info_json(text, needed, NULL), ISOBIT_OK);

    /* Every cut: a terminated beginning of the whole, nothing written behind it. */
    for (size_t room = 1; room < needed; room += room < 64 || room + 64 > needed ? 1 : 13) {
        memset(cut, '#', needed + 1);
        assert_int_equal(iso_info_json(cut, room, &again), ISOBIT_E_WORKSPACE);
        assert_int_equal(again, needed);
        assert_int_equal(strlen(cut), room - 1);
        assert_memory_equal(cut, text, room - 1);
        assert_int_equal(cut[room], '#');
    }

    /* It names the features, the choice and the reasons. */
    char piece[256];
    for (size_t i = 0; i < iso_isa_count(); ++i) {
        const iso_isa *isa = iso_isa_get(i);
        const char *missing = iso_isa_missing(isa);
        snprintf(piece, sizeof(piece),
                 "{\"name\": \"%s\", \"available\": %s, \"chosen\": %s, \"missing\": %s%s%s}",
                 isa->name, missing ? "false" : "true", isa == iso_isa_active() ? "true" : "false",
                 missing ? "\"" : "", missing ? missing : "null", missing ? "\"" : "");
        assert_non_null(strstr(text, piece));
    }
    static const char *const keys[] = {
        "cpu",      "features", "xcr0",     "caches",   "isas",     "threads",     "usable",
        "affinity", "sleef",    "libcpuid", "versions", "compiler", "cgroup_cpus", "isobit",
        "numerics", "l1d",      "l2",       "l3",       "isa",      "architecture"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); ++i) {
        snprintf(piece, sizeof(piece), "\"%s\": ", keys[i]);
        assert_non_null(strstr(text, piece));
    }
    /* A CPU with an odd name and masked features. */
    struct iso_cpu odd = iso_machine()->cpu;
    strcpy(odd.name, "a\"b\\c~ \n\x7f\x80");
    odd.present = ISO_HAS(AVX) | ISO_HAS(AVX512F) | ISO_HAS(SVE);
    odd.usable = ISO_HAS(AVX);
    odd.osxsave = false;
    char *other = malloc(needed + 256);
    assert_non_null(other);
    assert_int_equal(iso_info_json_of(other, needed + 256, NULL, &odd), ISOBIT_OK);
    assert_true(json_valid(other));
    assert_non_null(strstr(other, "{\"name\": \"a\\\"b\\\\c~ \\u000a\\u007f\\u0080\", "));
    assert_non_null(strstr(other, "\"features\": [\"avx\"], \"masked\": [\"avx512f\", \"sve\"], "
                                  "\"xcr0\": null, "));
    free(other);
    free(text);
    free(cut);
}
