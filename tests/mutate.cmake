# SPDX-License-Identifier: MIT
#
# tests/mutate, by ./run mutate, takes hours. Here: that its lists of files have all sources.
if(ISOBIT_PYTHON3 AND NOT CMAKE_CROSSCOMPILING AND NOT ISOBIT_SANITIZE)
  isobit_test(mutate.lists ${ISOBIT_PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/mutate/mutate.py --lists)
endif()
