/* SPDX-License-Identifier: MIT
 *
 * The report: a line for each routine and property, as a table, JSON, JUnit or Markdown. Of the
 * cases that fail the smallest is shown, with the line that replays it.
 */
#include "blas.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct line {
    bool looked;
    size_t cases, failures;
    double worst;
    const struct blas_case *c; /* the smallest that fails */
    const char *text;
    char replay[1400];
};

static void find_line(struct line *line, const struct blas_run *run, enum blas_routine routine,
                      enum blas_property property) {
    double smallest = 0;
    *line = (struct line){0};
    for (size_t i = 0; i < run->plan.count; i++) {
        const struct blas_case *c = &run->plan.v[i];
        const struct blas_result *r = &run->results[i];
        if (c->routine != routine)
            continue;
        line->cases += r->looked >> property & 1;
        if (property == BLAS_ERROR && r->worst > line->worst && c->family != BLAS_RANGE)
            line->worst = r->worst;
        for (unsigned j = 0; j < r->count; j++) {
            double size = blas_size(c);
            if (r->v[j].property != property)
                continue;
            if (!line->failures++ || size < smallest)
                line->c = c, line->text = r->v[j].text, smallest = size;
        }
    }
    line->looked = line->cases || line->failures;
    if (line->c) {
        char text[400];
        blas_case_text(text, sizeof text, line->c);
        snprintf(line->replay, sizeof line->replay, "isobit check --blas %.900s --replay '%s'",
                 run->file, text);
    }
}

/* For everything that is printed: a line and what it is about. */
struct context {
    FILE *f;
    const struct blas_run *run;
    enum blas_format format;
    size_t lines, failures;
};

static void print_escaped(FILE *f, const char *text, enum blas_format format) {
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (format == BLAS_JUNIT && strchr("<>&\"'", c))
            fprintf(f, "&#%d;", c);
        else if (format == BLAS_JSON && (c == '"' || c == '\\'))
            fprintf(f, "\\%c", c);
        else
            putc(c < ' ' || c == 127 ? ' ' : c, f);
    }
}

static void print_row(struct context *k, enum blas_routine routine, enum blas_property property,
                      const struct line *line) {
    FILE *f = k->f;
    char result[64] = "holds";
    const char *name = blas_name(routine), *about = blas_property_name(property);
    bool same = property >= BLAS_BITS_AGAIN;
    if (line->failures)
        snprintf(result, sizeof result, same ? "differs" : "FAILS");
    else if (property == BLAS_ERROR)
        snprintf(result, sizeof result, "%.3f of the bound", line->worst);
    else if (same)
        snprintf(result, sizeof result, "same");
    switch (k->format) {
    case BLAS_TABLE:
        fprintf(f, "%-7s %-22s %6zu cases  %s\n", name, about, line->cases, result);
        if (line->failures) {
            fprintf(f, "        %zu of them; the smallest: %s\n        ", line->failures,
                    line->text);
            fprintf(f, "%s\n", line->replay);
        }
        break;
    case BLAS_JSON:
        fprintf(f,
                "%s\n  {\"routine\": \"%s\", \"property\": \"%s\", \"cases\": %zu, "
                "\"failures\": %zu, \"result\": \"%s\"",
                k->lines ? "," : "", name, about, line->cases, line->failures,
                line->failures ? "FAIL" : "PASS");
        if (property == BLAS_ERROR)
            fprintf(f, ", \"error_of_bound\": %.6g", line->worst);
        if (line->failures) {
            fprintf(f, ", \"reason\": \"");
            print_escaped(f, line->text, k->format);
            fprintf(f, "\", \"replay\": \"");
            print_escaped(f, line->replay, k->format);
            fprintf(f, "\"");
        }
        fprintf(f, "}");
        break;
    case BLAS_JUNIT:
        fprintf(f, "  <testcase classname=\"%s\" name=\"%s\"", name, about);
        if (line->failures) {
            fprintf(f, "><failure message=\"");
            print_escaped(f, line->text, k->format);
            fprintf(f, "\">");
            print_escaped(f, line->replay, k->format);
            fprintf(f, "</failure></testcase>\n");
        } else {
            fprintf(f, "/>\n");
        }
        break;
    case BLAS_MARKDOWN: break;
    }
}

/* Routines down, properties across; then the findings. */
static void print_markdown(FILE *f, const struct blas_run *run) {
    struct line line;
    fprintf(f, "| |");
    for (unsigned r = 0; r < BLAS_ROUTINES; r++)
        fprintf(f, " %s |", blas_name(r));
    fprintf(f, "\n|---|");
    for (unsigned r = 0; r < BLAS_ROUTINES; r++)
        fprintf(f, "---|");
    for (unsigned p = 0; p < BLAS_PROPERTIES; p++) {
        fprintf(f, "\n| %s |", blas_property_name(p));
        for (unsigned r = 0; r < BLAS_ROUTINES; r++) {
            find_line(&line, run, r, p);
            if (!line.looked)
                fprintf(f, " |");
            else if (line.failures)
                fprintf(f, " **%s** |", p >= BLAS_BITS_AGAIN ? "differs" : "no");
            else if (p == BLAS_ERROR)
                fprintf(f, " %.3f |", line.worst);
            else
                fprintf(f, " %s |", p >= BLAS_BITS_AGAIN ? "same" : "yes");
        }
    }
    fprintf(f, "\n");
    for (unsigned r = 0; r < BLAS_ROUTINES; r++) {
        for (unsigned p = 0; p < BLAS_PROPERTIES; p++) {
            find_line(&line, run, r, p);
            if (!line.failures)
                continue;
            fprintf(f, "\n- %s, %s: ", blas_name(r), blas_property_name(p));
            print_escaped(f, line.text, BLAS_MARKDOWN);
            fprintf(f, "\n\n      %s\n", line.replay);
        }
    }
}

static void begin(const struct context *k, size_t lines, size_t failures) {
    FILE *f = k->f;
    const struct blas_run *run = k->run;
    const char *missing = blas_not_checked();
    if (k->format == BLAS_TABLE) {
        fprintf(f, "%s%s%s\n", run->file, run->library->about[0] ? ": " : "", run->library->about);
        if (*missing)
            fprintf(f, "NOTE: not checked on this machine: %s\n", missing);
    } else if (k->format == BLAS_JSON) {
        fprintf(f, "{\"library\": \"");
        print_escaped(f, run->file, k->format);
        fprintf(f, "\", \"about\": \"");
        print_escaped(f, run->library->about, k->format);
        fprintf(f, "\", \"not_checked\": \"");
        print_escaped(f, missing, k->format);
        fprintf(f, "\",\n \"results\": [");
    } else if (k->format == BLAS_JUNIT) {
        fprintf(f, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"");
        print_escaped(f, run->file, k->format);
        fprintf(f, "\" tests=\"%zu\" failures=\"%zu\">\n", lines, failures);
    } else {
        fprintf(f, "**%s**%s%s\n\n", run->file, run->library->about[0] ? ": " : "",
                run->library->about);
        if (*missing)
            fprintf(f, "Not checked on this machine: %s\n\n", missing);
    }
}

size_t blas_print(FILE *f, const struct blas_run *run, enum blas_format format) {
    struct context k = {.f = f, .run = run, .format = format};
    static struct line lines[BLAS_ROUTINES][BLAS_PROPERTIES];
    size_t count = 0, failures = 0, cases = 0;
    for (unsigned r = 0; r < BLAS_ROUTINES; r++) {
        for (unsigned p = 0; p < BLAS_PROPERTIES; p++) {
            find_line(&lines[r][p], run, r, p);
            count += lines[r][p].looked;
            failures += lines[r][p].failures != 0;
        }
    }
    for (size_t i = 0; i < run->plan.count; i++)
        cases += run->results[i].looked != 0;
    begin(&k, count, failures);
    if (format == BLAS_MARKDOWN) {
        print_markdown(f, run);
        return failures;
    }
    for (unsigned r = 0; r < BLAS_ROUTINES; r++) {
        for (unsigned p = 0; p < BLAS_PROPERTIES; p++) {
            if (!lines[r][p].looked)
                continue;
            print_row(&k, r, p, &lines[r][p]);
            k.lines++;
        }
    }
    if (format == BLAS_TABLE)
        fprintf(f, "%zu cases, %zu lines: %zu do not hold\n", cases, count, failures);
    else if (format == BLAS_JSON)
        fprintf(f, "\n ],\n \"result\": \"%s\"}\n", failures ? "FAIL" : "PASS");
    else
        fprintf(f, "</testsuite>\n");
    return failures;
}
