# SPDX-License-Identifier: MIT
if(NOT ISOBIT_MODEL)
  return()
endif()

set(loader_parts loader/characters.c loader/config.c loader/files.c loader/header.c loader/int8.c loader/tensors.c)
set(model_parts model/arguments.c model/bits.c model/cache.c model/costs.c model/int8.c model/native.c model/search.c model/wide.c)
set(families_parts families/decoders.c families/defaults.c families/dense.c families/encoders.c families/gemma.c families/llama.c families/phi3.c
  families/t5.c)
set(sample_parts sample/generation.c sample/stops.c sample/warp.c)
if(ISOBIT_SANITIZE STREQUAL "thread") # what has threads, of models
  set(model_only "*thread*")
endif()
foreach(name loader model families sample parallel_load)
  isobit_test_program(test_${name} test_${name}.c ${${name}_parts})
  target_link_libraries(test_${name} PRIVATE PkgConfig::JANSSON)
  isobit_test(${name} test_${name} ${${name}_only})
endforeach()
# They call by internal names: the parser of headers, buckets of distances, the parts of sampling,
# the weights of a model.
foreach(name loader families sample parallel_load)
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/model)
endforeach()
isobit_test_program(test_attention test_attention.c)
target_link_libraries(test_attention PRIVATE PkgConfig::JANSSON)
isobit_test(attention test_attention)
isobit_test_program(test_tiny_gpt2 test_tiny_gpt2.c)
target_link_libraries(test_tiny_gpt2 PRIVATE PkgConfig::JANSSON)
isobit_test(tiny_gpt2 test_tiny_gpt2)
# One step of the search; the test includes the file.
isobit_test_program(test_search test_search.c)
target_include_directories(test_search PRIVATE ${PROJECT_SOURCE_DIR}/model)
isobit_test(search test_search)
# Continuous batches; it includes the file, to spoil what must not be read.
isobit_test_program(test_batch test_batch.c)
target_include_directories(test_batch PRIVATE ${PROJECT_SOURCE_DIR}/model)
target_link_options(test_batch PRIVATE LINKER:--wrap=aligned_alloc)
isobit_test(batch test_batch)
# Texts that go through a decoder in parts, and the memory that they take.
isobit_test_program(test_long test_long.c)
target_link_libraries(test_long PRIVATE PkgConfig::JANSSON)
target_include_directories(test_long PRIVATE ${PROJECT_SOURCE_DIR}/model)
target_link_options(test_long PRIVATE LINKER:--wrap=aligned_alloc,--wrap=free)
isobit_test(long test_long)
# The model tests count allocations, and make each of them fail once.
target_link_options(test_model PRIVATE
  LINKER:--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc)
if(CMAKE_CROSSCOMPILING)
  set_tests_properties(loader model long batch parallel_load PROPERTIES ENVIRONMENT ISOBIT_EMULATED=1)
elseif(fewer) # as if emulated
  set_tests_properties(model long batch parallel_load PROPERTIES ENVIRONMENT ISOBIT_EMULATED=1)
endif()
