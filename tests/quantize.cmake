# SPDX-License-Identifier: MIT
#
# Models that are written with fewer bits.
if(NOT ISOBIT_MODEL)
  return()
endif()
isobit_test_program(test_quantize test_quantize.c quantize/files.c quantize/groups.c
  quantize/groups_files.c quantize/integers.c quantize/refusals.c quantize/stored.c)
target_link_libraries(test_quantize PRIVATE PkgConfig::JANSSON)
# 64-bit file offsets give some calls another name.
set(wrapped malloc aligned_alloc pread pread64 read pwrite pwrite64 fsync rename mkdir mkdirat openat
  openat64 close readdir readdir64)
list(TRANSFORM wrapped PREPEND "--wrap=")
list(JOIN wrapped "," wrapped)
target_link_options(test_quantize PRIVATE LINKER:${wrapped})
isobit_test(quantize test_quantize)
if(CMAKE_CROSSCOMPILING_EMULATOR OR ISOBIT_SANITIZE) # as slow
  set_tests_properties(quantize PROPERTIES ENVIRONMENT ISOBIT_EMULATED=1)
endif()
