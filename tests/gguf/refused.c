/* SPDX-License-Identifier: MIT
 *
 * See refused.h.
 */
#include "gguf/refused.h"

#include <isobit/model.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

void refused(const files *f, iso_status status, const char *says) {
    for (size_t widen = 0; widen < 2; widen++) {
        const iso_load_options options = {.size = sizeof options, .widen = widen};
        iso_error error = {0};
        iso_model *model = NULL;
        assert_int_equal(iso_model_load(&model, f->directory, &options, NULL, &error), status);
        assert_null(model);
        if (!strstr(error.message, says))
            fail_msg("\"%s\" does not say \"%s\"", error.message, says);
    }
}
