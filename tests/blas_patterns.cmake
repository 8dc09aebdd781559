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
