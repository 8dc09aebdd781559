# SPDX-License-Identifier: MIT
#
# libisobit_blas called in the ways of programs that take a BLAS: each in a program of ours, in the
# forms and shapes that the real one calls. The real ones are measured by integrations/measure.
if(NOT TARGET isobit_blas)
  return()
endif()
foreach(program ggml torch)
  isobit_test_program(pattern_${program} blas/pattern_${program}.c)
  target_link_libraries(pattern_${program} PRIVATE isobit_blas)
  isobit_test(blas.pattern_${program} pattern_${program})
endforeach()

# In programs with OpenMP. Emulators and the thread sanitizer cannot start a thread in the child of a
# process that has threads.
if(NOT ISOBIT_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  isobit_test_program(blas_openmp_fake blas/openmp.c)
  target_link_libraries(blas_openmp_fake PRIVATE isobit_blas ${CMAKE_DL_LIBS})
  target_compile_definitions(blas_openmp_fake PRIVATE
    ISOBIT_FAKE_OPENMP="$<TARGET_FILE:fake_openmp>")
  add_dependencies(blas_openmp_fake fake_openmp)
  isobit_test(blas.openmp_fake blas_openmp_fake)
  find_package(OpenMP COMPONENTS C QUIET)
  if(OpenMP_C_FOUND)
    isobit_test_program(blas_openmp blas/openmp.c)
    target_link_libraries(blas_openmp PRIVATE isobit_blas OpenMP::OpenMP_C)
    isobit_test(blas.openmp blas_openmp)
  endif()
endif()

# Not under an emulator, nor where a sanitizer's library has to be the first one that is loaded.
if(NOT ISOBIT_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  add_executable(integration_replay ${PROJECT_SOURCE_DIR}/integrations/calls/replay.c)
  target_include_directories(integration_replay PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(integration_replay PRIVATE isobit_flags ${CMAKE_DL_LIBS})
  set_target_properties(integration_replay PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
  isobit_test(integration_calls sh ${CMAKE_CURRENT_SOURCE_DIR}/integrations/calls.sh
    $<TARGET_FILE:integration_replay> $<TARGET_FILE:isobit_blas_shared>
    $<TARGET_FILE:pattern_torch>)
endif()
