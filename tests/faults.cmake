# SPDX-License-Identifier: MIT
#
# Memory, system calls and files that fail.
if(NOT ISOBIT_MODEL)
  return()
endif()
isobit_test_program(test_faults test_faults.c faults/allocations.c faults/dense.c
  faults/files.c faults/models.c)
target_link_libraries(test_faults PRIVATE PkgConfig::JANSSON)
# 64-bit file offsets give some calls another name.
target_link_options(test_faults PRIVATE
  LINKER:--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc
  LINKER:--wrap=open,--wrap=open64,--wrap=fstat,--wrap=fstat64,--wrap=pread,--wrap=pread64
  LINKER:--wrap=mmap,--wrap=mmap64,--wrap=munmap,--wrap=json_loadb)
isobit_test(faults test_faults)

# Output that cannot be written.
if(TARGET isobit_cli)
  isobit_test(cli_writers sh ${CMAKE_CURRENT_SOURCE_DIR}/test_writers.sh ${PROJECT_SOURCE_DIR}
              ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:isobit_cli>)
endif()
