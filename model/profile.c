/* SPDX-License-Identifier: MIT
 *
 * Where the time goes, for whoever asks (iso_model_set_profile). Time is dealt out in laps: an
 * operation that ends takes all the time since the one before it ended, so that nothing is lost
 * and one look at the clock for each operation is enough.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* clock_gettime */
#endif
#include "run.h"

#include <time.h>

double model_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void model_profile_lap(model_run *run, iso_profile_kind kind) {
    const double now = model_now();
    run->profile->kind_seconds[kind] += now - run->lap;
    run->lap = now;
}

iso_status iso_model_set_profile(iso_model *model, iso_profile *profile) {
    if (!model)
        return ISOBIT_E_NULL;
    if (profile && !MODEL_SIZE_IS_KNOWN(profile, step_weight_bytes))
        return ISOBIT_E_SIZE;
    model->profile = profile;
    return ISOBIT_OK;
}
