# SPDX-License-Identifier: MIT
#
# isobit check --record and --compare.
isobit_test_program(test_record test_record.c record_corpus.c model_files.c
  $<TARGET_OBJECTS:isobit_check_objects>)
isobit_test(record test_record)
if(CMAKE_CROSSCOMPILING)
  set_tests_properties(record PROPERTIES ENVIRONMENT ISOBIT_EMULATED=1)
else()
  isobit_test(record.command sh ${CMAKE_CURRENT_SOURCE_DIR}/test_record.sh
    $<TARGET_FILE:test_record> $<TARGET_FILE:test_kernels>)
endif()
