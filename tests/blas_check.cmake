# SPDX-License-Identifier: MIT
#
# isobit check --blas: a correct naive BLAS and, by BROKEN in the environment, the same one with one
# defect; libisobit_blas on every instruction set; files that are no BLAS.
if(ISOBIT_SANITIZE)
  return()
endif()
foreach(naive blas_naive blas_naive_blis) # the second one presents itself as a BLIS
  add_library(${naive} SHARED blas_broken/naive.c spoil_x86_64.S spoil_aarch64.S)
  target_link_libraries(${naive} PRIVATE isobit_flags m)
  target_compile_definitions(${naive} PRIVATE _GNU_SOURCE)
  target_include_directories(${naive} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  set_target_properties(${naive} PROPERTIES C_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
endforeach()
target_compile_definitions(blas_naive_blis PRIVATE AS_BLIS)
set(plan --quick)
set(emulated)
if(CMAKE_CROSSCOMPILING_EMULATOR)
  set(emulated ISOBIT_EMULATED=1)
  list(APPEND plan --threads 2)
endif()
# With gcc alone: a correct BLAS that clang compiles may compute both sides of a select, and so raise
# flags; and it takes some of the defects apart. Some defects are in assembly.
if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|aarch64")
  isobit_test(check_blas.broken sh ${CMAKE_CURRENT_SOURCE_DIR}/blas_broken.sh
    ${CMAKE_SYSTEM_PROCESSOR} $<TARGET_FILE:blas_naive> $<TARGET_FILE:blas_naive_blis>
    ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:test_kernels>)
  set_tests_properties(check_blas.broken PROPERTIES ENVIRONMENT "${emulated}")
  if(NOT CMAKE_CROSSCOMPILING)
    isobit_test(check_blas.usage sh ${CMAKE_CURRENT_SOURCE_DIR}/blas_usage.sh
      $<TARGET_FILE:blas_naive> $<TARGET_FILE:isobit_shared> $<TARGET_FILE:test_kernels>)
  endif()
endif()
# Ours: everything holds, on each instruction set.
if(TARGET isobit_blas_shared)
  foreach(layer IN LISTS ISOBIT_KERNEL_OBJECTS)
    string(REPLACE isobit_kernels_ "" set ${layer})
    if(set MATCHES "_") # a level, which has these kernels from its set
      continue()
    endif()
    isobit_test(check_blas.${set} test_kernels --blas $<TARGET_FILE:isobit_blas_shared> ${plan})
    set_tests_properties(check_blas.${set} PROPERTIES ENVIRONMENT ISOBIT_ISA=${set})
  endforeach()
endif()
