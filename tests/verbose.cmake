# SPDX-License-Identifier: MIT
#
# What ISOBIT_VERBOSE writes about calls.
isobit_test_program(test_verbose test_verbose.c verbose/calls.c verbose/files.c
  verbose/small.c)
isobit_test(verbose test_verbose)
