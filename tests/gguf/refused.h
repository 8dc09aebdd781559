/* SPDX-License-Identifier: MIT
 *
 * What the tests of GGUF's blocks share.
 */
#ifndef ISOBIT_TESTS_GGUF_REFUSED_H
#define ISOBIT_TESTS_GGUF_REFUSED_H

#include "model_files.h"

#include <isobit/isobit.h>

/* The folder does not load, with and without `widen`, and the message has these words. */
void refused(const files *f, iso_status status, const char *says);

#endif
