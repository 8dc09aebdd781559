# SPDX-License-Identifier: MIT
#
# Malformed model files, each with the error that it must give; mutations of good ones.
if(NOT ISOBIT_MODEL)
  return()
endif()
isobit_test_program(test_corpus test_corpus.c)
# Calls the header parser by its internal name too.
target_include_directories(test_corpus PRIVATE ${PROJECT_SOURCE_DIR}/model)
isobit_test(corpus test_corpus)
if(CMAKE_CROSSCOMPILING)
  set_tests_properties(corpus PROPERTIES ENVIRONMENT ISOBIT_EMULATED=1)
endif()
