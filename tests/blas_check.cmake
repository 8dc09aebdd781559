# SPDX-License-Identifier: MIT
#
# isobit check --blas: a correct naive BLAS and, by BROKEN in the environment, the same one with one
# defect; libisobit_blas on every instruction set; files that are no BLAS.
if(ISOBIT_SANITIZE)
  return()
endif()
add_library(blas_naive SHARED blas_broken/naive.c ${PROJECT_SOURCE_DIR}/check/abi.c
  ${PROJECT_SOURCE_DIR}/check/abi_x86_64.S ${PROJECT_SOURCE_DIR}/check/abi_aarch64.S)
target_link_libraries(blas_naive PRIVATE isobit_flags m)
target_compile_definitions(blas_naive PRIVATE _GNU_SOURCE)
target_include_directories(blas_naive PRIVATE ${PROJECT_SOURCE_DIR}/check
  ${PROJECT_SOURCE_DIR}/include)
set_target_properties(blas_naive PROPERTIES C_VISIBILITY_PRESET hidden
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
