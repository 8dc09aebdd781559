/* SPDX-License-Identifier: MIT
 *
 * See compare.h.
 */
#include "compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

/* -------------------------------------------------------------------------------- recording */

void iso_recorder_observe(struct iso_recorder *r, const struct iso_check_observation *seen) {
    if (!seen->place && (seen->first || !seen->bits)) {
        struct iso_record_case c;
        int8_t samples[ISO_RECORD_SAMPLES];
        iso_record_measure(&c, samples, seen->operands);
        c.key = iso_record_key(seen->c);
        r->last = iso_record_section(&r->record, seen->suite->name,
                                     seen->bits ? "" : seen->variant->name);
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
    k->only = NULL;
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

static struct iso_compared *row_of(struct iso_comparison *k,
                                   const struct iso_check_observation *seen) {
    for (size_t i = 0; i < k->row_count; i++) {
        if (k->rows[i].suite == seen->suite && k->rows[i].variant == seen->variant)
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
    k->rows[k->row_count] = (struct iso_compared){.suite = seen->suite, .variant = seen->variant};
    return &k->rows[k->row_count++];
}

/*
 * The section to compare with: where equal bits are promised that of all variants, else that of
 * the variant of the same name; failing these, any of the suite. The file's count: there is none.
 */
static size_t find_section(const struct iso_record *file,
                           const struct iso_check_observation *seen) {
    const char *variant = seen->bits ? "" : seen->variant->name;
    size_t found = file->count;
    for (size_t i = 0; i < file->count; i++) {
        const struct iso_record_section *s = &file->sections[i];
        if (strcmp(s->suite, seen->suite->name) != 0)
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

static int put_errors(char *text, size_t bytes, const struct iso_record_case *c) {
    int n = snprintf(text, bytes, "%.3f of the bound", c->bound / (double)ISO_RECORD_BOUND_UNIT);
    if (c->ulp != ISO_RECORD_NO_ULP && n > 0 && (size_t)n < bytes)
        n += snprintf(text + n, bytes - (size_t)n, ", %.1f ULP",
                      c->ulp / (double)ISO_RECORD_ULP_UNIT);
    return n;
}

/* "2 of 16 samples differ, by up to 1 ULP; largest error here ..., there ..." */
static void difference_text(char *text, size_t bytes, const struct iso_record_difference *d,
                            const struct iso_record_case *here,
                            const struct iso_record_case *there) {
    char errors[2][64], ulp[40] = "", parts[40] = "";
    put_errors(errors[0], sizeof errors[0], here);
    put_errors(errors[1], sizeof errors[1], there);
    if (d->ulp)
        snprintf(ulp, sizeof ulp, " by up to %u ULP", d->ulp);
    if (d->parts)
        snprintf(parts, sizeof parts, "%s by up to %.2f of the bound", d->ulp ? " or" : "",
                 d->parts / (double)ISO_RECORD_STEPS);
    snprintf(text, bytes,
             "other bits than in the file, within the bound: %u of %u samples differ%s%s; largest "
             "error here %s, there %s",
             d->samples, here->count, ulp, parts, errors[0], errors[1]);
}

static void tell(struct iso_comparison *k, const struct iso_check_observation *seen,
                 const char *text) {
    if (k->differs)
        k->differs(k, seen, text, k->row->count[k->verdict]);
}

/* The outputs of a call that is right have another hash. */
static void differing(struct iso_comparison *k, const struct iso_check_observation *seen,
                      const struct iso_record_section *section,
                      const struct iso_record_case *there) {
    struct iso_record_case here;
    int8_t samples[ISO_RECORD_SAMPLES];
    char text[400];
    iso_record_measure(&here, samples, seen->operands);
    struct iso_record_difference d = {0};
    if (here.count == there->count)
        d = iso_record_differences(seen->operands, samples, section->samples + there->first,
                                   here.count);
    k->row->ulp = d.ulp > k->row->ulp ? d.ulp : k->row->ulp;
    k->row->parts = d.parts > k->row->parts ? d.parts : k->row->parts;
    difference_text(text, sizeof text, &d, &here, there);
    tell(k, seen, text);
}

bool iso_comparison_observe(struct iso_comparison *k, const struct iso_check_observation *seen) {
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
        if (k->only && strcmp(k->only, s->suite) != 0)
            continue;
        for (size_t j = 0; j < s->count; j++)
            met += k->index[i].met[j];
        if (met || !*s->variant) /* else a variant that was compared with another one */
            *unmet += s->count - met;
    }
    return all;
}
