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
    const struct blas_run *run;
    enum blas_format format;
    size_t lines, failures;
};

static void print_escaped(const char *text, enum blas_format format) {
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (format == BLAS_JUNIT && strchr("<>&\"'", c))
            printf("&#%d;", c);
        else if (format == BLAS_JSON && (c == '"' || c == '\\'))
            printf("\\%c", c);
        else if (format == BLAS_MARKDOWN && c == '|')
            printf("\\|");
        else if (c < ' ' || (c == 127))
            putchar(' ');
        else
            putchar(c);
    }
}

static void print_row(struct context *k, enum blas_routine routine, enum blas_property property,
                      const struct line *line) {
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
        printf("%-7s %-22s %6zu cases  %s\n", name, about, line->cases, result);
        if (line->failures) {
            printf("        %zu of them; the smallest: %s\n        ", line->failures, line->text);
            printf("%s\n", line->replay);
        }
        break;
    case BLAS_JSON:
        printf("%s\n  {\"routine\": \"%s\", \"property\": \"%s\", \"cases\": %zu, "
               "\"failures\": %zu, \"result\": \"%s\"",
               k->lines ? "," : "", name, about, line->cases, line->failures,
               line->failures ? "FAIL" : "PASS");
        if (property == BLAS_ERROR)
            printf(", \"error_of_bound\": %.6g", line->worst);
        if (line->failures) {
            printf(", \"reason\": \"");
            print_escaped(line->text, k->format);
            printf("\", \"replay\": \"");
            print_escaped(line->replay, k->format);
            printf("\"");
        }
        printf("}");
        break;
    case BLAS_JUNIT:
        printf("  <testcase classname=\"%s\" name=\"%s\"", name, about);
        if (line->failures) {
            printf("><failure message=\"");
            print_escaped(line->text, k->format);
            printf("\">");
            print_escaped(line->replay, k->format);
            printf("</failure></testcase>\n");
        } else {
            printf("/>\n");
        }
        break;
    case BLAS_MARKDOWN: break;
    }
}

/* Routines down, properties across; then the findings. */
static void print_markdown(const struct blas_run *run) {
    struct line line;
    printf("| |");
    for (unsigned r = 0; r < BLAS_ROUTINES; r++)
        printf(" %s |", blas_name(r));
    printf("\n|---|");
    for (unsigned r = 0; r < BLAS_ROUTINES; r++)
        printf("---|");
    for (unsigned p = 0; p < BLAS_PROPERTIES; p++) {
        printf("\n| %s |", blas_property_name(p));
        for (unsigned r = 0; r < BLAS_ROUTINES; r++) {
            find_line(&line, run, r, p);
            if (!line.looked)
                printf(" |");
            else if (line.failures)
                printf(" **%s** |", p >= BLAS_BITS_AGAIN ? "differs" : "no");
            else if (p == BLAS_ERROR)
                printf(" %.3f |", line.worst);
            else
                printf(" %s |", p >= BLAS_BITS_AGAIN ? "same" : "yes");
        }
    }
    printf("\n");
    for (unsigned r = 0; r < BLAS_ROUTINES; r++) {
        for (unsigned p = 0; p < BLAS_PROPERTIES; p++) {
            find_line(&line, run, r, p);
            if (!line.failures)
                continue;
            printf("\n- %s, %s: ", blas_name(r), blas_property_name(p));
            print_escaped(line.text, BLAS_MARKDOWN);
            printf("\n\n      %s\n", line.replay);
        }
    }
}

static void begin(const struct context *k, size_t lines, size_t failures) {
    const struct blas_run *run = k->run;
    const char *missing = blas_not_checked();
    if (k->format == BLAS_TABLE) {
        printf("%s%s%s\n", run->file, run->library->about[0] ? ": " : "", run->library->about);
        if (*missing)
            printf("NOTE: not checked on this machine: %s\n", missing);
    } else if (k->format == BLAS_JSON) {
        printf("{\"library\": \"");
        print_escaped(run->file, k->format);
        printf("\", \"about\": \"");
        print_escaped(run->library->about, k->format);
        printf("\", \"not_checked\": \"");
        print_escaped(missing, k->format);
        printf("\",\n \"results\": [");
    } else if (k->format == BLAS_JUNIT) {
        printf("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"");
        print_escaped(run->file, k->format);
        printf("\" tests=\"%zu\" failures=\"%zu\">\n", lines, failures);
    } else {
        printf("**%s**%s%s\n\n", run->file, run->library->about[0] ? ": " : "",
               run->library->about);
        if (*missing)
            printf("Not checked on this machine: %s\n\n", missing);
    }
}

size_t blas_print(const struct blas_run *run, enum blas_format format) {
    struct context k = {.run = run, .format = format};
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
        print_markdown(run);
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
        printf("%zu cases, %zu lines: %zu do not hold\n", cases, count, failures);
    else if (format == BLAS_JSON)
        printf("\n ],\n \"result\": \"%s\"}\n", failures ? "FAIL" : "PASS");
    else
        printf("</testsuite>\n");
    return failures;
}
