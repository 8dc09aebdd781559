/* SPDX-License-Identifier: MIT */
#ifndef ISOBIT_Q_H
#define ISOBIT_Q_H

#include <isobit/ops.h>

/* The type as kernels number it (kernels.h); -1: there is no such format. */
int iso_q_type(const iso_q_format *format);

#endif
