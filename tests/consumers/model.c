/* SPDX-License-Identifier: MIT
 *
 * Loads the model of a folder and says what it is; what there is to say where there is none, too.
 */
#include <isobit/model.h>
#include <stdio.h>

int main(int argc, char **argv) {
    iso_model *model = NULL;
    iso_error error;
    if (iso_model_load(&model, argc > 1 ? argv[1] : ".", NULL, NULL, &error)) {
        printf("%s\n", error.message);
        return 1;
    }
    printf("%s, %zu parameters\n", iso_model_get_info(model)->family,
           iso_model_get_info(model)->parameters);
    iso_model_free(model);
}
