/* SPDX-License-Identifier: MIT
 *
 * The results as a JUnit file, one test case for each operation on each variant.
 */
#include "report.h"

#include <inttypes.h>
#include <string.h>

/* Text and attributes of XML; what XML 1.0 has no character for becomes '?'. */
static void put(FILE *f, const char *text) {
    for (; *text; text++) {
        switch (*text) {
        case '&': fputs("&amp;", f); break;
        case '<': fputs("&lt;", f); break;
        case '>': fputs("&gt;", f); break;
        case '"': fputs("&quot;", f); break;
        default: putc((unsigned char)*text < ' ' || *text == 127 ? '?' : *text, f);
        }
    }
}

/* The findings of an operation on a variant are those of its first row that failed. */
static bool has_findings(const struct iso_check_report *r, size_t row) {
    for (size_t i = 0; i < row; i++) {
        if (r->rows[i].suite == r->rows[row].suite && r->rows[i].variant == r->rows[row].variant &&
            r->rows[i].tally.failures)
            return false;
    }
    return true;
}

static void put_failure(FILE *f, const struct iso_check_report *r, size_t row) {
    const struct iso_check_row *t = &r->rows[row];
    fprintf(f, "      <failure message=\"%zu failures\">", t->tally.failures);
    for (size_t i = 0; i < r->finding_count && has_findings(r, row); i++) {
        const struct iso_check_finding *e = &r->findings[i];
        if (strcmp(e->name, t->suite->name) != 0 || strcmp(e->variant, t->variant->name) != 0)
            continue;
        put(f, e->reason);
        if (e->replay[0]) {
            fputs("\n  ", f);
            put(f, r->command);
            fputs(" --replay '", f);
            put(f, e->replay);
            putc('\'', f);
        }
        putc('\n', f);
    }
    fputs("</failure>\n", f);
}

void iso_check_report_junit(FILE *f, const struct iso_check_report *r,
                            const struct iso_check_run *run) {
    size_t failed = 0, skipped = 0;
    for (size_t i = 0; i < r->row_count; i++) {
        failed += r->rows[i].tally.failures != 0;
        skipped += r->rows[i].missing != NULL;
    }
    fprintf(f, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
               "  <testsuite name=\"isobit check ");
    put(f, run->target->name);
    fprintf(f, "\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\" time=\"%.3f\">\n",
            r->row_count, failed, skipped, iso_check_run_seconds(run));
    for (size_t i = 0; i < r->row_count; i++) {
        const struct iso_check_row *t = &r->rows[i];
        fputs("    <testcase classname=\"", f);
        put(f, run->target->name);
        putc('.', f);
        put(f, t->suite->name);
        fputs("\" name=\"", f);
        put(f, t->variant->name);
        fprintf(f, "%s\" time=\"%.3f\">\n", t->random ? ", random cases" : "", t->tally.seconds);
        if (t->missing) {
            fputs("      <skipped message=\"", f);
            put(f, t->missing);
            fputs("\"/>\n", f);
        } else if (t->tally.failures) {
            put_failure(f, r, i);
        }
        fputs("    </testcase>\n", f);
    }
    fputs("  </testsuite>\n</testsuites>\n", f);
}
