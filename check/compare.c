/* SPDX-License-Identifier: MIT
 *
 * See compare.h. An error is kept as a number of steps. A step is one ULP of the true value, or a
 * hundredth of the bound where that is larger, so that every error within its bound fits a byte.
 * Where a step is an ULP, two such errors of the same output differ by exactly as many ULP as the
 * outputs themselves.
 */
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { STEPS = 100, MEANINGFUL_ULP = 8 };

/* -------------------------------------------------------------------------------- measuring */

static void put_le(unsigned char *to, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

uint32_t iso_record_key(const struct iso_case *c) {
    unsigned char bytes[8 * (ISO_CASE_PARAMS + 3)];
    for (unsigned i = 0; i < ISO_CASE_PARAMS; i++)
        put_le(bytes + 8 * i, c->p[i], 8);
    put_le(bytes + 8 * ISO_CASE_PARAMS, c->fill, 8);
    put_le(bytes + 8 * (ISO_CASE_PARAMS + 1), c->spot, 8);
    put_le(bytes + 8 * (ISO_CASE_PARAMS + 2), c->seed, 8);
    return (uint32_t)XXH3_64bits(bytes, sizeof bytes);
}

static double ulp_of(double y) {
    int exponent;
    if (y == 0 || !isfinite(y))
        return 0x1p-149;
    frexp(y, &exponent); /* y < 2^exponent */
    exponent = exponent < -125 ? -125 : exponent > 128 ? 128 : exponent;
    return ldexp(1, exponent - 24);
}

static bool counted(double value, double expect, double bound) {
    return isfinite(value) && isfinite(expect) && isfinite(bound) && bound > 0;
}

/* The unit of a sample; *ulp tells which. */
static double step_of(double expect, double bound, bool *is_ulp) {
    double ulp = ulp_of(expect);
    *is_ulp = bound <= STEPS * ulp;
    return *is_ulp ? ulp : bound / STEPS;
}

static int8_t sample(double value, double expect, double bound) {
    bool is_ulp;
    if (!counted(value, expect, bound))
        return ISO_RECORD_NO_SAMPLE;
    double steps = floor((value - expect) / step_of(expect, bound, &is_ulp) + 0.5);
    return (int8_t)fmax(-127, fmin(127, steps));
}

static bool is_output(const struct iso_operand *v) {
    return (v->role == ISO_OUT || v->role == ISO_INOUT) && !v->absent && v->bytes;
}

static size_t output_count(const struct iso_operands *o) {
    size_t n = 0;
    for (unsigned i = 0; i < o->count; i++)
        n += is_output(&o->v[i]) ? o->v[i].rows * o->v[i].cols : 0;
    return n;
}

uint64_t iso_record_hash(const struct iso_operands *o) {
    unsigned char words[4 * 256];
    size_t n = 0;
    uint64_t hash = 0; /* a block's hash seeds that of the next one */
    for (unsigned i = 0; i < o->count; i++) {
        const struct iso_operand *v = &o->v[i];
        for (size_t r = 0; is_output(v) && r < v->rows; r++) {
            const float *row = (const float *)v->at + r * v->ld;
            for (size_t c = 0; c < v->cols; c++) {
                uint32_t bits;
                memcpy(&bits, &row[c], sizeof bits);
                put_le(words + n, (bits & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : bits, 4);
                n += 4;
                if (n == sizeof words) {
                    hash = XXH3_64bits_withSeed(words, n, hash);
                    n = 0;
                }
            }
        }
    }
    return XXH3_64bits_withSeed(words, n, hash);
}

/* The k-th of n samples among `all` outputs, taken as one sequence: in the k-th stretch, anywhere,
 * so that samples of a matrix are not all of one column. */
static size_t sample_place(size_t k, size_t n, size_t all) {
    size_t begin = (size_t)((uint64_t)k * all / n), end = (size_t)((uint64_t)(k + 1) * all / n);
    return begin + (size_t)((k + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 40) % (end - begin);
}

/* The largest errors of a case. */
struct worst {
    double bound, ulp;
    bool in_ulp; /* an ULP is meaningful for all outputs */
};

static void add_error(struct worst *w, double value, double expect, double bound) {
    if (!counted(value, expect, bound))
        return;
    double error = fabs(value - expect), ulp = ulp_of(expect);
    w->bound = fmax(w->bound, error / bound);
    w->ulp = fmax(w->ulp, error / ulp);
    w->in_ulp = w->in_ulp && bound <= MEANINGFUL_ULP * ulp;
}

static uint8_t rounded_up(double x, unsigned unit, uint8_t most) {
    return (uint8_t)fmin(ceil(x * unit), most);
}

void iso_record_measure(struct iso_record_case *m, int8_t samples[ISO_RECORD_SAMPLES],
                        const struct iso_operands *o) {
    size_t all = output_count(o), place = 0, taken = 0;
    size_t n = all < ISO_RECORD_SAMPLES ? all : ISO_RECORD_SAMPLES;
    struct worst w = {.in_ulp = true};
    for (unsigned i = 0; i < o->count; i++) {
        const struct iso_operand *v = &o->v[i];
        for (size_t r = 0; is_output(v) && r < v->rows; r++) {
            for (size_t c = 0; c < v->cols; c++, place++) {
                double value = (double)((const float *)v->at)[r * v->ld + c];
                double expect = v->expect ? v->expect[r * v->cols + c] : NAN;
                double bound = v->expect ? v->bound[r * v->cols + c] : 0;
                add_error(&w, value, expect, bound);
                if (taken < n && place == sample_place(taken, n, all))
                    samples[taken++] = sample(value, expect, bound);
            }
        }
    }
    *m = (struct iso_record_case){.hash = iso_record_hash(o), .count = (uint8_t)n};
    m->bound = rounded_up(w.bound, ISO_RECORD_BOUND_UNIT, ISO_RECORD_BOUND_UNIT);
    m->ulp = w.in_ulp ? rounded_up(w.ulp, ISO_RECORD_ULP_UNIT, ISO_RECORD_NO_ULP - 1)
                      : ISO_RECORD_NO_ULP;
}

/* -------------------------------------------------------------------------------- recording */

void iso_recorder_observe(struct iso_recorder *r, const struct iso_observation *seen) {
    if (!seen->place && (seen->first || !seen->bits)) {
        struct iso_record_case c;
        int8_t samples[ISO_RECORD_SAMPLES];
        iso_record_measure(&c, samples, seen->operands);
        c.key = iso_record_key(seen->c);
        r->last =
            iso_record_section(&r->record, seen->suite->kernel, seen->bits ? "" : seen->set->name);
        if (!r->last || !iso_record_add(r->last, c, samples)) {
            r->last = NULL;
            r->failed = true;
        }
    }
    if (seen->wrong && r->last)
        r->last->cases[r->last->count - 1].bound = ISO_RECORD_WRONG;
}

/* -------------------------------------------------------------------------------- comparing */

/* Where the cases of a section are: sorted by key, those of one key as they ran. */
struct place {
    uint32_t key, number;
};
struct iso_section_index {
    struct place *places;
    bool *met; /* by the number of a case */
};

static int by_key(const void *a, const void *b) {
    const struct place *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

bool iso_comparison_begin(struct iso_comparison *k, const struct iso_record *file) {
    k->file = file;
    k->rows = k->row = NULL;
    k->row_count = k->room = 0;
    k->index = calloc(file->count + 1, sizeof *k->index);
    for (size_t i = 0; i < file->count && k->index; i++) {
        size_t n = file->sections[i].count;
        k->index[i].places = malloc((n + 1) * sizeof(struct place));
        k->index[i].met = calloc(n + 1, 1);
        if (!k->index[i].places || !k->index[i].met) {
            iso_comparison_end(k);
            return false;
        }
        for (size_t j = 0; j < n; j++)
            k->index[i].places[j] = (struct place){file->sections[i].cases[j].key, (uint32_t)j};
        qsort(k->index[i].places, n, sizeof(struct place), by_key);
    }
    return k->index != NULL;
}

void iso_comparison_end(struct iso_comparison *k) {
    for (size_t i = 0; k->index && i < k->file->count; i++) {
        free(k->index[i].places);
        free(k->index[i].met);
    }
    free(k->index);
    free(k->rows);
    k->index = NULL;
    k->rows = k->row = NULL;
    k->row_count = k->room = 0;
}

static struct iso_compared *row_of(struct iso_comparison *k, const struct iso_observation *seen) {
    for (size_t i = 0; i < k->row_count; i++) {
        if (k->rows[i].suite == seen->suite && k->rows[i].set == seen->set)
            return &k->rows[i];
    }
    if (k->row_count == k->room) {
        size_t room = k->room ? 2 * k->room : 64;
        void *rows = realloc(k->rows, room * sizeof *k->rows);
        if (!rows)
            return NULL;
        k->rows = rows;
        k->room = room;
    }
    k->rows[k->row_count] = (struct iso_compared){.suite = seen->suite, .set = seen->set};
    return &k->rows[k->row_count++];
}

/*
 * The section to compare with: where equal bits are promised that of all variants, else that of
 * the variant of the same name; failing these, any of the suite. The file's count: there is none.
 */
static size_t find_section(const struct iso_record *file, const struct iso_observation *seen) {
    const char *variant = seen->bits ? "" : seen->set->name;
    size_t found = file->count;
    for (size_t i = 0; i < file->count; i++) {
        const struct iso_record_section *s = &file->sections[i];
        if (strcmp(s->suite, seen->suite->kernel) != 0)
            continue;
        if (!strcmp(s->variant, variant))
            return i;
        if (found == file->count)
            found = i;
    }
    return found;
}

/* The case of that key, if there are several one with this hash; NULL: there is none. */
static const struct iso_record_case *find_case(struct iso_comparison *k, size_t section,
                                               uint32_t key, uint64_t hash) {
    if (section == k->file->count)
        return NULL;
    const struct iso_record_section *s = &k->file->sections[section];
    const struct place *places = k->index[section].places;
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (places[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    const struct iso_record_case *found = NULL;
    for (; low < s->count && places[low].key == key; low++) {
        const struct iso_record_case *c = &s->cases[places[low].number];
        k->index[section].met[places[low].number] = true;
        if (!found || (found->hash != hash && c->hash == hash))
            found = c;
    }
    return found;
}

/* How samples differ: how many, and by how many steps of each kind. */
struct difference {
    unsigned samples, ulp, parts;
};

static struct difference compare_samples(const struct iso_operands *o, const int8_t *here,
                                         const int8_t *there, unsigned count) {
    struct difference d = {0};
    size_t all = output_count(o), place = 0;
    unsigned taken = 0;
    for (unsigned i = 0; i < o->count; i++) {
        const struct iso_operand *v = &o->v[i];
        for (size_t e = 0; is_output(v) && e < v->rows * v->cols && taken < count; e++, place++) {
            if (place != sample_place(taken, count, all))
                continue;
            int a = here[taken], b = there[taken];
            unsigned steps = (unsigned)abs(a - b);
            taken++;
            if (!steps || a == ISO_RECORD_NO_SAMPLE || b == ISO_RECORD_NO_SAMPLE || !v->expect)
                continue;
            bool is_ulp;
            step_of(v->expect[e], v->bound[e], &is_ulp);
            unsigned *most = is_ulp ? &d.ulp : &d.parts;
            *most = steps > *most ? steps : *most;
            d.samples++;
        }
    }
    return d;
}

static int put_errors(char *text, size_t bytes, const struct iso_record_case *c) {
    int n = snprintf(text, bytes, "%.3f of the bound", c->bound / (double)ISO_RECORD_BOUND_UNIT);
    if (c->ulp != ISO_RECORD_NO_ULP && n > 0 && (size_t)n < bytes)
        n += snprintf(text + n, bytes - (size_t)n, ", %.1f ULP",
                      c->ulp / (double)ISO_RECORD_ULP_UNIT);
    return n;
}

/* "2 of 16 samples differ, by up to 1 ULP; largest error here ..., there ..." */
static void difference_text(char *text, size_t bytes, const struct difference *d,
                            const struct iso_record_case *here,
                            const struct iso_record_case *there) {
    char errors[2][64], ulp[40] = "", parts[40] = "";
    put_errors(errors[0], sizeof errors[0], here);
    put_errors(errors[1], sizeof errors[1], there);
    if (d->ulp)
        snprintf(ulp, sizeof ulp, " by up to %u ULP", d->ulp);
    if (d->parts)
        snprintf(parts, sizeof parts, "%s by up to %.2f of the bound", d->ulp ? " or" : "",
                 d->parts / (double)STEPS);
    snprintf(text, bytes,
             "other bits than in the file, within the bound: %u of %u samples differ%s%s; largest "
             "error here %s, there %s",
             d->samples, here->count, ulp, parts, errors[0], errors[1]);
}

static void tell(struct iso_comparison *k, const struct iso_observation *seen, const char *text) {
    if (k->differs)
        k->differs(k, seen, text, k->row->count[k->verdict]);
}

/* The outputs of a call that is right have another hash. */
static void differing(struct iso_comparison *k, const struct iso_observation *seen,
                      const struct iso_record_section *section,
                      const struct iso_record_case *there) {
    struct iso_record_case here;
    int8_t samples[ISO_RECORD_SAMPLES];
    char text[400];
    iso_record_measure(&here, samples, seen->operands);
    struct difference d = {0};
    if (here.count == there->count)
        d = compare_samples(seen->operands, samples, section->samples + there->first, here.count);
    k->row->ulp = d.ulp > k->row->ulp ? d.ulp : k->row->ulp;
    k->row->parts = d.parts > k->row->parts ? d.parts : k->row->parts;
    difference_text(text, sizeof text, &d, &here, there);
    tell(k, seen, text);
}

bool iso_comparison_observe(struct iso_comparison *k, const struct iso_observation *seen) {
    if (seen->place) { /* the first place has been judged */
        if (seen->wrong && k->row && k->verdict != ISO_WRONG) {
            k->row->count[k->verdict]--;
            k->row->count[ISO_WRONG]++;
            k->verdict = ISO_WRONG;
        }
        return k->row != NULL;
    }
    k->row = row_of(k, seen);
    if (!k->row)
        return false;
    size_t section = find_section(k->file, seen);
    uint64_t hash = iso_record_hash(seen->operands);
    const struct iso_record_case *there = find_case(k, section, iso_record_key(seen->c), hash);
    bool wrong_there = there && there->bound == ISO_RECORD_WRONG;
    k->verdict = seen->wrong || wrong_there ? ISO_WRONG
                 : !there                   ? ISO_ABSENT
                 : there->hash == hash      ? ISO_EQUAL
                 : seen->bits               ? ISO_DIFFERENT
                                            : ISO_ALLOWED;
    k->row->count[k->verdict]++;
    if (wrong_there && !seen->wrong)
        tell(k, seen, "right here, but wrong where the file was recorded");
    else if (k->verdict == ISO_DIFFERENT || k->verdict == ISO_ALLOWED)
        differing(k, seen, &k->file->sections[section], there);
    return true;
}

struct iso_compared iso_comparison_total(const struct iso_comparison *k, size_t *unmet) {
    struct iso_compared all = {0};
    for (size_t i = 0; i < k->row_count; i++) {
        const struct iso_compared *row = &k->rows[i];
        for (unsigned v = 0; v < ISO_VERDICTS; v++)
            all.count[v] += row->count[v];
        all.ulp = row->ulp > all.ulp ? row->ulp : all.ulp;
        all.parts = row->parts > all.parts ? row->parts : all.parts;
    }
    *unmet = 0;
    for (size_t i = 0; i < k->file->count; i++) {
        const struct iso_record_section *s = &k->file->sections[i];
        size_t met = 0;
        for (size_t j = 0; j < s->count; j++)
            met += k->index[i].met[j];
        if (met || !*s->variant) /* else a variant that was compared with another one */
            *unmet += s->count - met;
    }
    return all;
}
