# SPDX-License-Identifier: MIT
#
# GGUF files; memory and reads of them that fail.
if(NOT ISOBIT_MODEL)
  return()
endif()
isobit_test_program(test_gguf test_gguf.c gguf_files.c model_files.c)
# Calls the reader by its internal names.
target_include_directories(test_gguf PRIVATE ${PROJECT_SOURCE_DIR}/model)
target_link_libraries(test_gguf PRIVATE PkgConfig::JANSSON)
# 64-bit file offsets give some calls another name.
target_link_options(test_gguf PRIVATE
  LINKER:--wrap=malloc,--wrap=aligned_alloc,--wrap=pread,--wrap=pread64,--wrap=opendir)
isobit_test(gguf test_gguf)
