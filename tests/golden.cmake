# SPDX-License-Identifier: MIT
#
# What the committed hashes see: constants of math.h that are wrong in their last place
# (mutate/constants.py), and operations that are (flip.c). On this machine and with gcc alone: they
# ask what the tests see, not what a compiler does.
if(CMAKE_CROSSCOMPILING_EMULATOR OR ISOBIT_SANITIZE OR CMAKE_C_COMPILER_ID MATCHES "Clang")
  return()
endif()
isobit_test_program(constants_probe mutate/constants_probe.c ${ISOBIT_HARNESS})
target_include_directories(constants_probe PRIVATE ${PROJECT_SOURCE_DIR}/check)
target_link_libraries(constants_probe PRIVATE ${CMAKE_DL_LIBS})

# The kernels with the last bit of one operation flipped now and then (flip.c). Arithmetic in plain
# C, which no macro can catch, is wrapped in copies of the sources; lines stay where they are.
# flip_copy(FILE [OLD NEW]...)
set(flip ${CMAKE_CURRENT_BINARY_DIR}/flip)
function(flip_copy file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/${file})
  file(READ ${PROJECT_SOURCE_DIR}/kernels/${file} text)
  set(i 1)
  while(i LESS ARGC)
    math(EXPR next "${i} + 1")
    string(REPLACE "${ARGV${i}}" "${ARGV${next}}" changed "${text}")
    if(changed STREQUAL text)
      message(FATAL_ERROR "tests/golden.cmake: kernels/${file} has no ${ARGV${i}} any more")
    endif()
    set(text "${changed}")
    math(EXPR i "${i} + 2")
  endwhile()
  if(EXISTS ${flip}/${file})
    file(READ ${flip}/${file} before)
  endif()
  if(NOT before STREQUAL text)
    file(WRITE ${flip}/${file} "${text}")
  endif()
endfunction()
foreach(file instantiate.h kernels.h kernels.def scalar/vec.h templates/attention_columns.h templates/gemm.h templates/gemm_along.h
    templates/gemm_bt.h templates/gemm_direct.h templates/gemm_linear.h templates/gemm_strip.h
    templates/gemv.h templates/lanes.h templates/math.h)
  flip_copy(${file})
endforeach()
flip_copy(scalar/gemm_tile.h
  "c[i * ldc + j] + t[i][j]" "FLIP(c[i * ldc + j] + t[i][j], \"plain add\")")
flip_copy(templates/softmax.h "1.0f / lanes_tree(t)" "FLIP(1.0f / lanes_tree(t), \"plain div\")")
flip_copy(templates/attention.h
  "1.0f / l" "FLIP(1.0f / l, \"plain div\")"
  "o[c] + a" "FLIP(o[c] + a, \"plain add\")"
  "sum[r] += s[j + r]" "sum[r] = FLIP(sum[r] + s[j + r], \"plain add\")"
  "(sum[0] + sum[2]) + (sum[1] + sum[3])"
  "FLIP(FLIP(sum[0] + sum[2], \"plain add 0\") + FLIP(sum[1] + sum[3], \"plain add 1\"), \"plain add\")")
flip_copy(templates/norm.h
  "(g->x[q * g->ldx] + g->residual[q * g->ldr])"
  "FLIP(g->x[q * g->ldx] + g->residual[q * g->ldr], \"first\")"
  "-(g->t[q * g->ldt] + lanes_tree(acc[q]) / (float)n)"
  "-FLIP(g->t[q * g->ldt] + FLIP(lanes_tree(acc[q]) / (float)n, \"plain div\"), \"plain add\")"
  "1.0f / __builtin_sqrtf(lanes_tree(acc[q]) / (float)n + o->eps)"
  "FLIP(1.0f / FLIP(__builtin_sqrtf(FLIP(FLIP(lanes_tree(acc[q]) / (float)n, \"plain div 0\") + o->eps, \"plain add\")), \"sqrt\"), \"plain div\")")
flip_copy(templates/eltwise.h
  "Sleef_cinz_powd1_u10purec(10000.0, exponent)"
  "FLIP_DOUBLE(Sleef_cinz_powd1_u10purec(10000.0, exponent), \"pow\")"
  "(double)(first + t) / f" "FLIP_DOUBLE((double)(first + t) / f, \"plain div\")"
  "Sleef_cinz_sind1_u10purec(angle)" "FLIP_DOUBLE(Sleef_cinz_sind1_u10purec(angle), \"sin\")"
  "Sleef_cinz_cosd1_u10purec(angle)" "FLIP_DOUBLE(Sleef_cinz_cosd1_u10purec(angle), \"cos\")")
flip_copy(templates/rope.h
  "(double)(first + t) * (double)inv_freq[i]"
  "FLIP_DOUBLE((double)(first + t) * (double)inv_freq[i], \"plain mul\")"
  "sine_cosine.y * (double)scaling" "FLIP_DOUBLE(sine_cosine.y * (double)scaling, \"cos\")"
  "sine_cosine.x * (double)scaling" "FLIP_DOUBLE(sine_cosine.x * (double)scaling, \"sin\")")
isobit_test_program(flip flip.c flip_kernels.c ${ISOBIT_HARNESS})
set_property(SOURCE flip_kernels.c APPEND PROPERTY COMPILE_OPTIONS -O1) # soon compiled, seldom run
target_include_directories(flip PRIVATE ${PROJECT_SOURCE_DIR}/check)
target_include_directories(flip BEFORE PRIVATE ${flip}) # the copies in place of the sources
target_include_directories(flip SYSTEM PRIVATE ${ISOBIT_SLEEF_INCLUDE_DIR})
# The whole campaign: bin/tests/flip; docs/testing.md has its figures.
isobit_test(golden.flip flip --quick --rate 1)
