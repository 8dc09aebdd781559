# SPDX-License-Identifier: MIT
#
# libisobit_blas by itself. What others wrote to test a BLAS is in blas_suites.cmake.
if(NOT TARGET isobit_blas)
  return()
endif()
isobit_test_program(test_blas test_blas.c blas/errors.c blas/products.c blas/threads.c
  blas/vectors.c)
target_link_libraries(test_blas PRIVATE isobit_blas ${CMAKE_DL_LIBS})
target_link_options(test_blas PRIVATE -Wl,--wrap=malloc,--wrap=aligned_alloc)
set(plan)
if(CMAKE_CROSSCOMPILING_EMULATOR OR ISOBIT_SANITIZE)
  set(plan --quick)
endif()
if(NOT ISOBIT_SANITIZE) # what they load needs their runtime
  add_library(fake_openmp SHARED blas/fake_openmp.c)
  target_link_libraries(fake_openmp PRIVATE isobit_flags Threads::Threads)
  set_target_properties(fake_openmp PROPERTIES OUTPUT_NAME gomp SUFFIX .so.fake
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
  add_dependencies(test_blas fake_openmp)
  target_compile_definitions(test_blas PRIVATE ISOBIT_FAKE_OPENMP="$<TARGET_FILE:fake_openmp>")
  if(NOT CMAKE_CROSSCOMPILING)
    target_compile_definitions(test_blas PRIVATE
      ISOBIT_BLAS_SHARED="$<TARGET_FILE:isobit_blas_shared>")
    add_dependencies(test_blas isobit_blas_shared)
  endif()
endif()
isobit_test(blas test_blas ${plan})
if(CMAKE_CROSSCOMPILING OR ISOBIT_SANITIZE MATCHES "thread") # no threads in a forked child
  set_tests_properties(blas PROPERTIES ENVIRONMENT ISOBIT_EMULATED=1)
endif()
isobit_test(blas.environment sh ${CMAKE_CURRENT_SOURCE_DIR}/blas/environment.sh
  ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:test_blas>)
# The bits on older CPUs.
find_program(ISOBIT_QEMU_X86_64 qemu-x86_64)
if(ISOBIT_QEMU_X86_64 AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT ISOBIT_SANITIZE)
  foreach(cpu Nehalem Haswell)
    isobit_test(blas.${cpu} ${ISOBIT_QEMU_X86_64} -cpu ${cpu} $<TARGET_FILE:test_blas> --quick)
    set_tests_properties(blas.${cpu} PROPERTIES ENVIRONMENT ISOBIT_EMULATED=1)
  endforeach()
endif()
