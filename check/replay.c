/* SPDX-License-Identifier: MIT
 *
 * The line that replays a failure.
 */
#include "replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void iso_check_replay_text(char *line, size_t bytes, const struct iso_check_failure *f) {
    char parameters[400];
    iso_check_case_text(parameters, sizeof parameters, f->suite, f->c);
    snprintf(line, bytes, "%s isa=%s at=%s %s kind=%u seed=0x%" PRIx64 " offset=%zu",
             f->suite->name, f->variant->name, f->place, parameters, f->c->flags, f->c->seed,
             f->offset);
}

bool iso_check_number(uint64_t *value, const char *text) {
    char *end = NULL;
    errno = 0;
    *value = strtoull(text, &end, 0);
    return text[0] >= '0' && text[0] <= '9' && !*end && !errno;
}

int iso_check_parameter(const struct iso_check_suite *suite, const char *name, size_t length) {
    const char *p = suite->params;
    for (int i = 0; *p; i++) {
        size_t n = strcspn(p, " ");
        if (n == length && !strncmp(p, name, n))
            return i;
        p += n + strspn(p + n, " ");
    }
    return -1;
}

const char *iso_check_replay_parse(const char *line, const struct iso_check_target *target,
                                   const struct iso_check_suite **suite, struct iso_check_case *c,
                                   size_t *offset) {
    static char token[128];
    *suite = NULL;
    *c = (struct iso_check_case){0};
    *offset = 0;
    for (line += strspn(line, " "); *line;) {
        size_t length = strcspn(line, " ");
        if (length >= sizeof token)
            return "a word that is too long";
        memcpy(token, line, length);
        token[length] = 0;
        line += length + strspn(line + length, " ");
        if (!*suite) {
            *suite = iso_check_suite_named(target, token);
            if (!*suite)
                return token;
            continue;
        }
        char *sign = strrchr(token, '='); /* names may hold a '=' */
        if (!sign)
            return token;
        const char *value = sign + 1;
        size_t name = (size_t)(sign - token);
        int index = iso_check_parameter(*suite, token, name);
        uint64_t n = 0;
        bool good = iso_check_number(&n, value);
        if (index >= 0 && good) {
            c->p[index] = (size_t)n;
        } else if (!strncmp(token, "fill", name)) {
            while (c->fill < ISO_CHECK_FILL_ALL && strcmp(iso_check_fill_name(c->fill), value) != 0)
                c->fill++;
            if (c->fill == ISO_CHECK_FILL_ALL)
                return token;
        } else if (!strncmp(token, "spot", name) && good) {
            c->spot = (size_t)n;
        } else if (!strncmp(token, "kind", name) && good) {
            c->flags = (unsigned)n;
        } else if (!strncmp(token, "seed", name) && good) {
            c->seed = n;
        } else if (!strncmp(token, "offset", name) && good && n < 64) {
            *offset = (size_t)n;
        } else if (strncmp(token, "isa", name) != 0 && strncmp(token, "at", name) != 0) {
            return token;
        }
    }
    return *suite ? NULL : "an empty line";
}
