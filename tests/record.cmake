# SPDX-License-Identifier: MIT
#
# isobit check --record and --compare.
isobit_test_program(test_record test_record.c record/compare.c record/measure.c
  $<TARGET_OBJECTS:isobit_check_objects>)
isobit_test(record test_record)
if(NOT CMAKE_CROSSCOMPILING AND NOT ISOBIT_SANITIZE)
  add_library(record_plugin MODULE record_plugin.c)
  target_link_libraries(record_plugin PRIVATE isobit_flags)
  set_target_properties(record_plugin PROPERTIES PREFIX ""
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
  target_include_directories(record_plugin PRIVATE ${PROJECT_SOURCE_DIR}/include)
  isobit_test(record.command sh ${CMAKE_CURRENT_SOURCE_DIR}/test_record.sh
    $<TARGET_FILE:test_record> $<TARGET_FILE:record_plugin> $<TARGET_FILE:test_kernels>)
endif()
if(CMAKE_CROSSCOMPILING_EMULATOR)
  isobit_test(record.emulated sh ${CMAKE_CURRENT_SOURCE_DIR}/test_record_emulated.sh
    ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:test_kernels>)
endif()
# With one compiler; emulators and sanitizers compare with the file too: kernels.cmake.
if(TARGET record_plugin AND NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
  isobit_test(record.cross sh ${CMAKE_CURRENT_SOURCE_DIR}/test_cross.sh ${PROJECT_SOURCE_DIR}
    $<TARGET_FILE:record_plugin> ${CMAKE_CURRENT_SOURCE_DIR}/record_plugin.c
    $<TARGET_FILE:test_kernels>)
  isobit_test(record.committed test_kernels
    --compare ${CMAKE_CURRENT_SOURCE_DIR}/data/quick.record)
endif()
