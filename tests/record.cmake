# SPDX-License-Identifier: MIT
#
# isobit check --record and --compare.
isobit_test_program(test_record test_record.c record_corpus.c model_files.c
  $<TARGET_OBJECTS:isobit_check_objects>)
isobit_test(record test_record)
if(CMAKE_CROSSCOMPILING)
  set_tests_properties(record PROPERTIES ENVIRONMENT ISOBIT_EMULATED=1)
else()
  add_library(record_plugin MODULE record_plugin.c)
  target_link_libraries(record_plugin PRIVATE isobit_flags)
  set_target_properties(record_plugin PROPERTIES PREFIX ""
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
  target_include_directories(record_plugin PRIVATE ${PROJECT_SOURCE_DIR}/include)
  isobit_test(record.command sh ${CMAKE_CURRENT_SOURCE_DIR}/test_record.sh
    $<TARGET_FILE:test_record> $<TARGET_FILE:record_plugin> $<TARGET_FILE:test_kernels>)
  # Emulators and sanitizers compare with it too: kernels.cmake.
  isobit_test(record.committed test_kernels
    --compare ${CMAKE_CURRENT_SOURCE_DIR}/data/quick.record)
endif()
