/* SPDX-License-Identifier: MIT
 *
 * What commands that turn lines into lines have in common: a session, batches of lines, what is
 * said at the end, and that all is closed whatever fails.
 */
#include "cli.h"

static int loop(struct lines *l, const struct lines_command *command) {
    struct progress progress;
    progress_start(&progress);
    int code = 0;
    while (code == 0 && batch_read(&l->batch, &l->input, &l->session, command->parse, &code)) {
        code = command->put(l);
        progress_show(&progress, &l->input);
    }
    progress_end(&progress);
    batch_warn_rest(&l->batch);
    if (code == 0 && l->batch.error[0] != '\0')
        code = fail("%s", l->batch.error);
    if (code == 0 && l->options->digest) {
        const char *native = native_numerics(&l->session.context);
        printf("%016llx%s%s\n", (unsigned long long)digest_value(&l->digest),
               native != NULL ? "  numerics " : "", native != NULL ? native : "");
    }
    return code;
}

int lines_run(const struct options *options, const struct lines_command *command, void *user) {
    struct lines l = {.options = options,
                      .input = {.fd = -1},
                      .batch = {.lacking = options->strict ? LACKING_STRICT : LACKING_WARN},
                      .user = user};
    int code = session_open(&l.session, options, command->needs);
    if (code == 0 && !digest_open(&l.digest))
        code = fail("out of memory");
    if (code == 0)
        code = input_open(&l.input, options);
    if (code == 0 && command->begin != NULL)
        code = command->begin(&l);
    if (code == 0)
        code = loop(&l, command);
    if (code == 0 && command->end != NULL)
        code = command->end(&l);
    digest_close(&l.digest);
    batch_free(&l.batch);
    input_close(&l.input);
    session_close(&l.session);
    return code;
}
