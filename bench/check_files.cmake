# SPDX-License-Identifier: MIT
#
# cmake -DJSON=FILE -DSVG=FILE -P check_files.cmake: whether what isobit_bench wrote is what others
# can read. CMake parses JSON; for XML xmllint, where there is one.
cmake_minimum_required(VERSION 3.25)

file(READ "${JSON}" json)
string(JSON count ERROR_VARIABLE error LENGTH "${json}" benchmarks)
if(error OR count LESS 1)
  message(FATAL_ERROR "${JSON}: no benchmarks: ${error}")
endif()
foreach(member name real_time cpu_time checksum pct_peak GFLOP/s)
  string(JSON value ERROR_VARIABLE error GET "${json}" benchmarks 0 "${member}")
  if(error)
    message(FATAL_ERROR "${JSON}: ${error}")
  endif()
endforeach()

file(READ "${SVG}" svg)
string(REGEX MATCHALL "<circle " points "${svg}")
list(LENGTH points count)
if(count LESS 1 OR NOT svg MATCHES "FMA [0-9.]+ GFLOP/s" OR NOT svg MATCHES "</svg>")
  message(FATAL_ERROR "${SVG}: no points, no roof, or no end")
endif()
if(svg MATCHES "nan|inf[^o]")
  message(FATAL_ERROR "${SVG}: a coordinate is no number")
endif()
find_program(xmllint xmllint)
if(xmllint)
  execute_process(COMMAND ${xmllint} --noout "${SVG}" RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${SVG}: not well-formed")
  endif()
endif()
