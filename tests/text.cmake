# SPDX-License-Identifier: MIT
#
# Tokenizers, and text through a model.
if(NOT ISOBIT_MODEL)
  return()
endif()

set(tokenizers gpt2 roberta prefix-space llama3 qwen2 bert bert-cased sequence bart nllb nllb-json mbart
  mbart50 mbart50-json t5 t5-bpe pegasus llama llama-json)
if(ISOBIT_WITH_SENTENCEPIECE)
  list(APPEND tokenizers marian m2m_100)
endif()
isobit_test_program(test_text test_text.c)
target_link_libraries(test_text PRIVATE PkgConfig::JANSSON)
isobit_test_program(test_pipeline test_pipeline.c pipeline/decode.c pipeline/merges.c pipeline/pieces.c
  pipeline/refused.c)
isobit_test(text_pipeline test_pipeline)
foreach(name IN LISTS tokenizers)
  isobit_test(text_${name} test_text ${name})
endforeach()
isobit_test_program(test_stop test_stop.c)
target_link_libraries(test_stop PRIVATE PkgConfig::JANSSON)
isobit_test(text_stop test_stop ${tokenizers})
isobit_test(text_gguf test_text gguf gpt2 llama3 qwen2 llama t5 bert bert-cased)
isobit_test_program(test_spm test_spm.c)
target_include_directories(test_spm PRIVATE ${PROJECT_SOURCE_DIR}/model)
isobit_test(text_spm test_spm)
isobit_test_program(test_scan test_scan.c)
target_include_directories(test_scan PRIVATE ${PROJECT_SOURCE_DIR}/model)
target_link_libraries(test_scan PRIVATE PkgConfig::JANSSON)
isobit_test(text_scan test_scan)
isobit_test_program(test_text_families test_text_families.c text_families/pieces.c
  text_families/targets.c)
target_include_directories(test_text_families PRIVATE ${PROJECT_SOURCE_DIR}/model)
target_link_libraries(test_text_families PRIVATE PkgConfig::JANSSON)
if(ISOBIT_WITH_SENTENCEPIECE)
  isobit_test(text_families test_text_families sentencepiece)
else()
  isobit_test(text_families test_text_families)
endif()
isobit_test_program(test_text_faults test_text_faults.c)
target_include_directories(test_text_faults PRIVATE ${PROJECT_SOURCE_DIR}/model
  ${UTF8PROC_INCLUDE_DIRS})
target_link_libraries(test_text_faults PRIVATE PkgConfig::JANSSON)
target_link_options(test_text_faults PRIVATE
  LINKER:--wrap=malloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=free,--wrap=json_loadb
  LINKER:--wrap=utf8proc_map)
# Hundreds of loads and of processes: under an emulator they would take minutes, and say nothing new.
if(CMAKE_CROSSCOMPILING)
  return()
endif()
isobit_test(text_faults test_text_faults ${tokenizers})
if(TARGET isobit_cli)
  isobit_test(cli_marian sh ${CMAKE_CURRENT_SOURCE_DIR}/test_marian.sh ${PROJECT_SOURCE_DIR}
              ${ISOBIT_WITH_SENTENCEPIECE} ${CMAKE_CROSSCOMPILING_EMULATOR}
              $<TARGET_FILE:isobit_cli>)
  isobit_test(cli_languages sh ${CMAKE_CURRENT_SOURCE_DIR}/test_languages.sh ${PROJECT_SOURCE_DIR}
              ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:isobit_cli>)
endif()
