# SPDX-License-Identifier: MIT
#
# The harness with plug-ins: good ones, broken ones, and files that are none.
foreach(plugin defects bad empty)
  add_library(check_${plugin} MODULE check/${plugin}.c)
  target_include_directories(check_${plugin} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(check_${plugin} PRIVATE isobit_flags m)
  set_target_properties(check_${plugin} PROPERTIES PREFIX ""
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
endforeach()
target_sources(check_defects PRIVATE check/operations.c)
isobit_test(check.plugin sh ${CMAKE_CURRENT_SOURCE_DIR}/check/plugin.sh
  $<TARGET_FILE:check_defects> $<TARGET_FILE:check_bad> $<TARGET_FILE:check_empty>
  ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:test_kernels>)
if(CMAKE_CROSSCOMPILING_EMULATOR)
  set_tests_properties(check.plugin PROPERTIES ENVIRONMENT ISOBIT_EMULATED=1)
elseif(ISOBIT_SANITIZE)
  set_tests_properties(check.plugin PROPERTIES ENVIRONMENT ISOBIT_SANITIZED=1)
endif()
