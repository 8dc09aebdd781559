# SPDX-License-Identifier: MIT
#
# tests/mutate, by ./run mutate, takes hours. Here: that its lists of files have all sources.
find_program(ISOBIT_PYTHON3 python3 PATHS /usr/bin NO_DEFAULT_PATH) # as perf.cmake does
find_program(ISOBIT_PYTHON3 python3)
if(ISOBIT_PYTHON3 AND NOT CMAKE_CROSSCOMPILING AND NOT ISOBIT_SANITIZE)
  isobit_test(mutate.lists ${ISOBIT_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/mutate/mutate.py --lists)
endif()
