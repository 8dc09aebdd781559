# SPDX-License-Identifier: MIT
#
# Shards, and files of torch.save; memory and reads of them that fail.
if(NOT ISOBIT_MODEL)
  return()
endif()
isobit_test_program(test_checkpoints test_checkpoints.c checkpoints/elements.c
  checkpoints/index.c checkpoints/loader.c checkpoints/pickles.c)
# Calls the readers by their internal names.
target_include_directories(test_checkpoints PRIVATE ${PROJECT_SOURCE_DIR}/model)
# 64-bit file offsets give some calls another name.
target_link_options(test_checkpoints PRIVATE
  LINKER:--wrap=aligned_alloc,--wrap=pread,--wrap=pread64)
isobit_test(checkpoints test_checkpoints)
if(CMAKE_CROSSCOMPILING)
  set_tests_properties(checkpoints PROPERTIES ENVIRONMENT ISOBIT_EMULATED=1)
endif()
