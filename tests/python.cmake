# SPDX-License-Identifier: MIT
#
# The Python package on the shared libraries of this build; once is enough.
if(ISOBIT_MODEL AND NOT ISOBIT_SANITIZE AND NOT CMAKE_CROSSCOMPILING
   AND CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release")
  if(ISOBIT_PYTHON3 AND TARGET isobit_cli)
    isobit_test(python sh ${PROJECT_SOURCE_DIR}/python/tests/run.sh ${ISOBIT_PYTHON3}
                $<TARGET_FILE_DIR:isobit_shared> $<TARGET_FILE:isobit_cli>)
    set_tests_properties(python PROPERTIES ENVIRONMENT "CC=${CMAKE_C_COMPILER}")
  endif()
endif()
