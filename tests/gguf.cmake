# SPDX-License-Identifier: MIT
#
# GGUF files; memory and reads of them that fail.
if(NOT ISOBIT_MODEL)
  return()
endif()
isobit_test_program(test_gguf test_gguf.c gguf/broken.c gguf/faults.c gguf/models.c gguf/pieces.c
  gguf/places.c gguf/words.c)
# Calls the reader by its internal names.
target_include_directories(test_gguf PRIVATE ${PROJECT_SOURCE_DIR}/model)
target_link_libraries(test_gguf PRIVATE PkgConfig::JANSSON)
# 64-bit file offsets give some calls another name.
target_link_options(test_gguf PRIVATE
  LINKER:--wrap=malloc,--wrap=aligned_alloc,--wrap=pread,--wrap=pread64,--wrap=opendir)
isobit_test(gguf test_gguf)
isobit_test_program(test_gguf_q test_gguf_q.c)
target_include_directories(test_gguf_q PRIVATE ${PROJECT_SOURCE_DIR}/model)
isobit_test(gguf_q test_gguf_q)
isobit_test_program(test_blocks test_blocks.c gguf/blocks.c)
target_include_directories(test_blocks PRIVATE ${PROJECT_SOURCE_DIR}/model)
isobit_test(blocks test_blocks)
if(CMAKE_CROSSCOMPILING_EMULATOR)
  set_tests_properties(blocks PROPERTIES ENVIRONMENT ISOBIT_EMULATED=1)
endif()
