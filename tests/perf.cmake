# SPDX-License-Identifier: MIT
#
# isobit-perf: one ctest entry per file. Without Debian's SciPy and pytest they are skipped.
if(NOT ISOBIT_SANITIZE AND NOT CMAKE_CROSSCOMPILING AND CMAKE_C_COMPILER_ID STREQUAL "GNU"
   AND CMAKE_BUILD_TYPE STREQUAL "Release")
  if(ISOBIT_PYTHON3)
    file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/perf/test_*.py)
    foreach(file ${files})
      string(REGEX REPLACE ".*/test_(.*)\\.py" "\\1" module ${file})
      isobit_test(perf.${module} sh ${CMAKE_CURRENT_SOURCE_DIR}/perf/run.sh ${ISOBIT_PYTHON3}
                  ${file})
      set_tests_properties(perf.${module} PROPERTIES
        ENVIRONMENT "CC=${CMAKE_C_COMPILER};ISOBIT_BUILD=${PROJECT_BINARY_DIR}")
    endforeach()
    isobit_test(consumer_perf sh ${CMAKE_CURRENT_SOURCE_DIR}/consumers/perf.sh
                ${PROJECT_SOURCE_DIR} ${ISOBIT_PYTHON3})
  endif()
endif()
