# SPDX-License-Identifier: MIT
#
# Fuzz targets. With ISOBIT_FUZZ (clang) they are linked with libFuzzer, and everything is compiled
# with its instrumentation and the sanitizers: ./run fuzz. Else they are programs that replay
# files, and the tests run them over their seeds.
option(ISOBIT_FUZZ "Link the fuzz targets with libFuzzer (needs clang)" OFF)
if(NOT ISOBIT_MODEL)
  return()
endif()

set(fuzz ${CMAKE_CURRENT_SOURCE_DIR}/fuzz)
set(engine ${fuzz}/replay.c)
if(ISOBIT_FUZZ)
  set(engine)
  target_compile_options(isobit_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(isobit_flags INTERFACE -fsanitize=address,undefined)
  add_custom_target(isobit_fuzz)
endif()

isobit_test_program(fuzz_seeds fuzz/seeds.c fuzz/fuzz_base.c fuzz/files.c bin_files.c gguf_files.c corpus.c
  model_files.c record_corpus.c)
set(programs fuzz_seeds)
set(targets safetensors bin gguf config model tokenizer spm family pipeline ops record)
foreach(name IN LISTS targets)
  set(program fuzz_${name})
  set(sources ${fuzz}/${program}.c ${fuzz}/files.c ${engine})
  if(name STREQUAL "model")
    list(APPEND sources ${fuzz}/fuzz_base.c model_files.c)
  elseif(name STREQUAL "bin")
    list(APPEND sources bin_files.c model_files.c)
  elseif(name MATCHES "family|pipeline")
    list(APPEND sources ${fuzz}/fuzz_text.c)
  elseif(name STREQUAL "record")
    list(APPEND sources record_corpus.c model_files.c ${PROJECT_SOURCE_DIR}/check/record.c)
  endif()
  isobit_test_program(${program} ${sources})
  target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/model)
  if(name STREQUAL "pipeline")
    target_link_libraries(${program} PRIVATE PkgConfig::JANSSON)
  endif()
  list(APPEND programs ${program})
  if(ISOBIT_FUZZ)
    target_link_options(${program} PRIVATE -fsanitize=fuzzer)
    add_dependencies(isobit_fuzz ${program})
  endif()
endforeach()
foreach(program IN LISTS programs)
  # Files in memory; 64-bit file offsets give some calls another name.
  target_link_options(${program} PRIVATE
    LINKER:--wrap=open,--wrap=open64,--wrap=fstat,--wrap=fstat64,--wrap=pread,--wrap=pread64
    LINKER:--wrap=close)
endforeach()

if(ISOBIT_FUZZ)
  add_dependencies(isobit_fuzz fuzz_seeds)
  return()
endif()
set(seeds ${CMAKE_CURRENT_BINARY_DIR}/fuzz_seeds)
isobit_test(fuzz_seeds fuzz_seeds ${seeds})
set_tests_properties(fuzz_seeds PROPERTIES FIXTURES_SETUP fuzz_seeds)
foreach(name IN LISTS targets)
  isobit_test(fuzz_${name} fuzz_${name} ${seeds}/fuzz_${name})
  set_tests_properties(fuzz_${name} PROPERTIES FIXTURES_REQUIRED fuzz_seeds)
endforeach()
