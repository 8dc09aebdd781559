# SPDX-License-Identifier: MIT
if(NOT ISOBIT_MODEL)
  return()
endif()

foreach(name loader model families sample)
  isobit_test_program(test_${name} test_${name}.c model_files.c)
  target_link_libraries(test_${name} PRIVATE PkgConfig::JANSSON)
  isobit_test(${name} test_${name})
endforeach()
# The loader tests call the header parser by its internal name, those of sampling its parts.
target_include_directories(test_loader PRIVATE ${PROJECT_SOURCE_DIR}/model)
target_include_directories(test_sample PRIVATE ${PROJECT_SOURCE_DIR}/model)
# One step of the search; the test includes the file.
isobit_test_program(test_search test_search.c)
target_include_directories(test_search PRIVATE ${PROJECT_SOURCE_DIR}/model)
isobit_test(search test_search)
# The model tests count allocations, and make each of them fail once.
target_link_options(test_model PRIVATE
  LINKER:--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc)
if(CMAKE_CROSSCOMPILING)
  set_tests_properties(model PROPERTIES ENVIRONMENT ISOBIT_EMULATED=1)
endif()
