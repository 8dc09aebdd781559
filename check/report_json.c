/* SPDX-License-Identifier: MIT
 *
 * The results as one JSON object.
 */
#include "report.h"

#include <inttypes.h>

#include "abi.h"
#include "recording.h"

static void print_string(FILE *f, const char *text) {
    putc('"', f);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', f);
        if ((unsigned char)*text >= ' ')
            putc(*text, f);
    }
    putc('"', f);
}

void iso_check_report_json(FILE *f, const struct iso_check_report *k,
                           const struct iso_check_run *run) {
    uint64_t all = 0;
    fprintf(f,
            "{\"target\": \"%s\", \"version\": \"%s\", \"numerics\": %d, \"seed\": %" PRIu64
            ", \"seconds\": %.2f,\n",
            run->target->name, iso_check_version, run->numerics, k->seed,
            iso_check_run_seconds(run));
    fprintf(f, " \"not_checked\": ");
    print_string(f, iso_check_abi_missing());
    fprintf(f, ",\n \"digest\": ");
    if (iso_check_report_whole(k, run, false, &all))
        fprintf(f, "\"%016" PRIx64 "\"", all);
    else
        fprintf(f, "null");
    fprintf(f, ",\n \"results\": [");
    for (size_t i = 0; i < k->row_count; i++) {
        const struct iso_check_row *r = &k->rows[i];
        const struct iso_check_tally *t = &r->tally;
        fprintf(f, "%s\n  {\"kernel\": \"%s\", \"isa\": \"%s\", \"plan\": \"%s\", ", i ? "," : "",
                r->suite->name, r->variant->name, r->random ? "random" : "fixed");
        if (r->missing) {
            fprintf(f, "\"result\": \"SKIPPED\", \"why\": ");
            print_string(f, r->missing);
            fprintf(f, "}");
            continue;
        }
        fprintf(f,
                "\"cases\": %zu, \"calls\": %zu, \"error_of_bound\": %.6g, \"error_ulp\": %.6g, "
                "\"stack_bytes\": %zu, \"hash\": ",
                t->cases, t->calls, t->worst, t->ulp, t->stack);
        if (t->hashed)
            fprintf(f, "\"%016" PRIx64 "\"", t->bits);
        else
            fprintf(f, "null");
        fprintf(f, ", \"groups\": [");
        for (size_t j = 0, n = 0; j < t->group_count; j++) {
            const struct iso_check_errors *e = &t->groups[j];
            if (e->elements)
                fprintf(f,
                        "%s{\"name\": \"%s\", \"elements\": %zu, \"rms\": %.6g, \"q999\": %.6g, "
                        "\"bias\": %.6g, \"worst\": %.6g, \"ulp\": %.6g}",
                        n++ ? ", " : "", e->name, e->elements, e->rms, e->q999, e->bias, e->worst,
                        e->ulp);
        }
        fprintf(f, "], \"failures\": %zu, \"result\": \"%s\"}", t->failures,
                iso_check_row_result(r));
    }
    fprintf(f, "\n ],\n \"failures\": [");
    for (size_t i = 0; i < k->finding_count; i++) {
        const struct iso_check_finding *e = &k->findings[i];
        fprintf(f, "%s\n  {\"kernel\": \"%s\", \"isa\": \"%s\", \"reason\": ", i ? "," : "",
                e->name, e->variant);
        print_string(f, e->reason);
        fprintf(f, ", \"replay\": ");
        print_string(f, e->replay);
        fprintf(f, "}");
    }
    fprintf(f, "\n ],\n \"compared\": ");
    iso_recording_json(k->recording, f);
    fprintf(f, ",\n \"result\": \"%s\"}\n", run->failures ? "FAIL" : "PASS");
}
