/* SPDX-License-Identifier: MIT
 *
 * The results as a table of Markdown, and the failures below it.
 */
#include "report.h"

#include <inttypes.h>

#include "abi.h"

/* Inside a table: no line breaks, and '|' is escaped. */
static void cell(FILE *f, const char *text) {
    for (; *text; text++) {
        if (*text == '|')
            putc('\\', f);
        putc((unsigned char)*text < ' ' ? ' ' : *text, f);
    }
}

static void put_row(FILE *f, const struct iso_check_row *r) {
    const struct iso_check_tally *t = &r->tally;
    fprintf(f, "| %s | %s%s | ", r->suite->name, r->variant->name, r->random ? ", random" : "");
    if (r->missing) {
        fputs("| | | | | skipped: ", f);
        cell(f, r->missing);
        fputs(" |\n", f);
        return;
    }
    fprintf(f, "%zu | %zu | %.4f | %.3f | ", t->cases, t->calls, t->worst, t->ulp);
    if (t->hashed)
        fprintf(f, "`%016" PRIx64 "`", t->bits);
    if (t->failures)
        fprintf(f, " | **FAIL** (%zu) |\n", t->failures);
    else
        fprintf(f, " | pass |\n");
}

void iso_check_report_markdown(FILE *f, const struct iso_check_report *r,
                               const struct iso_check_run *run) {
    fprintf(f, "# isobit check: %s\n\n%s: %zu failures, isobit %s", run->target->name,
            run->failures ? "FAIL" : "PASS", run->failures, iso_check_version);
    if (r->seed)
        fprintf(f, ", `--seed %" PRIu64 "`", r->seed);
    if (*iso_check_abi_missing())
        fprintf(f, "; not checked on this machine: %s", iso_check_abi_missing());
    fprintf(f, "\n\n| operation | variant | cases | calls | error / bound | ULP | hash of the bits "
               "| result |\n|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < r->row_count; i++)
        put_row(f, &r->rows[i]);
    for (size_t i = 0; i < r->finding_count; i++) {
        const struct iso_check_finding *e = &r->findings[i];
        fprintf(f, "%s\n- %s %s: ", i ? "" : "\n## Failures\n", e->name, e->variant);
        cell(f, e->reason);
        fputs("\n", f);
        if (e->replay[0])
            fprintf(f, "\n      %s --replay '%s'\n", r->command, e->replay);
    }
}
