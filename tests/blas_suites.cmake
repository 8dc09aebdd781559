# SPDX-License-Identifier: MIT
#
# Suites that others wrote, from Debian's packages, with libisobit_blas between them and the BLAS
# that they were made for. A suite that is not installed is skipped. Once is enough: not with other
# compilers, not with sanitizers, whose runtimes want to be the first library of a process.
if(NOT TARGET isobit_blas_shared OR ISOBIT_SANITIZE OR NOT CMAKE_C_COMPILER_ID STREQUAL "GNU")
  return()
endif()
set(suites ${CMAKE_CURRENT_SOURCE_DIR}/blas)

if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|aarch64")
  return()
endif()
set(sets)
foreach(layer IN LISTS ISOBIT_KERNEL_OBJECTS)
  string(REPLACE isobit_kernels_ "" set ${layer})
  if(set MATCHES "_") # a level, which has these kernels from its set
    continue()
  endif()
  list(PREPEND sets ${set}) # best first
endforeach()

foreach(set IN LISTS sets)
  isobit_test(blas.netlib.${set} sh ${suites}/netlib.sh $<TARGET_FILE:isobit_blas_shared>
              ${CMAKE_CROSSCOMPILING_EMULATOR})
  set_tests_properties(blas.netlib.${set} PROPERTIES ENVIRONMENT ISOBIT_ISA=${set})
endforeach()

if(NOT CMAKE_CROSSCOMPILING)
  isobit_test(blas.lapack sh ${suites}/lapack.sh $<TARGET_FILE:isobit_blas_shared> ${sets})
  isobit_test(blas.names sh ${suites}/names.sh $<TARGET_FILE:isobit_blas_shared>)
  isobit_test(blas.numpy sh ${suites}/numpy.sh $<TARGET_FILE:isobit_blas_shared> ${sets})
  isobit_test(blas.wheels sh ${suites}/numpy.sh $<TARGET_FILE:isobit_blas_shared> ${sets})
  set_tests_properties(blas.wheels PROPERTIES
    ENVIRONMENT "ISOBIT_WHEELS=${PROJECT_SOURCE_DIR}/build/wheels")

  # The suites can fail.
  add_library(blas_broken SHARED blas/broken.c)
  target_link_libraries(blas_broken PRIVATE isobit_flags ${CMAKE_DL_LIBS})
  set_target_properties(blas_broken PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
  isobit_test(blas.suites_self_test sh ${suites}/self_test.sh $<TARGET_FILE:blas_broken>)
endif()
