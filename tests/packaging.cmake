# SPDX-License-Identifier: MIT
#
# The library as others meet it: programs with older and newer headers, exported symbols, and the
# installed files. Packages of Debian have a test of their own, packaging/test-install.sh.

# Headers, as a later version may have them: each struct that begins with its size has one member
# more. With them a library, and programs that are older and newer than a library.
set(grown ${CMAKE_CURRENT_BINARY_DIR}/grown)
foreach(header isobit ops generate model text)
  file(READ ${PROJECT_SOURCE_DIR}/include/isobit/${header}.h text)
  string(REGEX REPLACE "(\n} (iso_[a-z]+_options|iso_context|iso_profile);)"
         "\n    const void *grown;\\1" text "${text}")
  file(CONFIGURE OUTPUT ${grown}/isobit/${header}.h CONTENT "${text}" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY
    CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/isobit/${header}.h)
endforeach()

# isobit_age_test(name library headers): older_header.c with these headers and this library.
set(older)
if(ISOBIT_MODEL)
  set(older ${PROJECT_SOURCE_DIR}/models/g2p-en)
endif()
function(isobit_age_test name library headers)
  add_executable(consumer_${name} consumers/older_header.c)
  target_include_directories(consumer_${name} BEFORE PRIVATE ${headers})
  target_compile_definitions(consumer_${name} PRIVATE _GNU_SOURCE ${ARGN}
    $<$<BOOL:${ISOBIT_MODEL}>:OLDER_WITH_MODEL>)
  target_link_libraries(consumer_${name} PRIVATE isobit_flags ${library})
  set_target_properties(consumer_${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
  isobit_test(consumer_${name} consumer_${name} ${older})
endfunction()
set(now isobit $<TARGET_NAME_IF_EXISTS:isobit_model>)
isobit_age_test(first_header "${now}" ${PROJECT_SOURCE_DIR}/include)
isobit_age_test(newer_header "${now}" ${grown} NEWER)

if(ISOBIT_MODEL)
  isobit_test_program(test_options test_options.c)
  target_include_directories(test_options BEFORE PRIVATE ${grown} ${PROJECT_SOURCE_DIR}/model)
  isobit_test(options test_options)
endif()

# A second library takes a while to build, and what it is asked depends on the size of a pointer alone:
# once for each, and under the sanitizer that sees a struct read beyond its end.
set(build_grown ON)
if(ISOBIT_SANITIZE)
  if(NOT ISOBIT_SANITIZE MATCHES "address")
    set(build_grown OFF)
  endif()
elseif(CMAKE_C_COMPILER_ID MATCHES "Clang" OR (CMAKE_CROSSCOMPILING AND CMAKE_SIZEOF_VOID_P EQUAL 8))
  set(build_grown OFF)
endif()
if(build_grown)
  set(layers isobit_dispatch)
  if(ISOBIT_MODEL)
    list(APPEND layers isobit_model_objects)
  endif()
  set(sources)
  foreach(layer IN LISTS layers)
    get_target_property(directory ${layer} SOURCE_DIR)
    get_target_property(names ${layer} SOURCES)
    list(TRANSFORM names PREPEND ${directory}/)
    list(APPEND sources ${names})
  endforeach()
  set(objects)
  foreach(object IN LISTS ISOBIT_KERNEL_OBJECTS)
    list(APPEND objects $<TARGET_OBJECTS:${object}>)
  endforeach()
  add_library(isobit_grown STATIC ${sources} ${objects})
  target_include_directories(isobit_grown BEFORE PUBLIC ${grown})
  target_include_directories(isobit_grown PRIVATE ${PROJECT_SOURCE_DIR}/kernels
    ${PROJECT_SOURCE_DIR}/model ${PROJECT_SOURCE_DIR}/model/text)
  target_include_directories(isobit_grown SYSTEM PRIVATE ${CPUID_INCLUDE_DIRS} ${JANSSON_INCLUDE_DIRS}
    ${UTF8PROC_INCLUDE_DIRS})
  target_compile_definitions(isobit_grown PRIVATE ISOBIT_SLEEF_VERSION="${SLEEF_VERSION}")
  target_compile_options(isobit_grown PRIVATE -O1) # soon compiled, seldom run
  target_link_libraries(isobit_grown PRIVATE isobit_flags PkgConfig::SLEEF
    $<TARGET_NAME_IF_EXISTS:PkgConfig::CPUID> $<TARGET_NAME_IF_EXISTS:PkgConfig::JANSSON>
    $<TARGET_NAME_IF_EXISTS:PkgConfig::UTF8PROC>
    ${ISOBIT_SENTENCEPIECE_LINK} Threads::Threads m)
  isobit_age_test(older_header isobit_grown ${PROJECT_SOURCE_DIR}/include)
  # What is told of a call knows the options, too.
  isobit_test(consumer_older_header_verbose consumer_older_header)
  set_tests_properties(consumer_older_header_verbose PROPERTIES ENVIRONMENT ISOBIT_VERBOSE=1
    PASS_REGULAR_EXPRESSION "gemm_f32[^\n]*:bias")
endif()

set(components core)
foreach(layer model blas check)
  if(TARGET isobit_${layer})
    list(APPEND components ${layer})
  endif()
endforeach()

# What the shared libraries export. Those of 32 bits have no ILP64.
if(NOT ISOBIT_SANITIZE AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(libraries $<TARGET_FILE:isobit_shared>)
  foreach(layer model blas check)
    if(TARGET isobit_${layer}_shared)
      list(APPEND libraries $<TARGET_FILE:isobit_${layer}_shared>)
    endif()
  endforeach()
  isobit_test(abi_symbols sh ${CMAKE_CURRENT_SOURCE_DIR}/abi_symbols.sh
              ${PROJECT_SOURCE_DIR}/packaging/debian ${libraries})
endif()

# The library inside of other projects, and installed; once is enough.
if(NOT CMAKE_CROSSCOMPILING AND NOT ISOBIT_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  set(consumers ${CMAKE_CURRENT_SOURCE_DIR}/consumers)
  set(consumer ${CMAKE_CURRENT_BINARY_DIR}/consumer_fetched)
  isobit_test(consumer_fetched ${CMAKE_CTEST_COMMAND}
              --build-and-test ${consumers}/subdirectory ${consumer}
              --build-generator ${CMAKE_GENERATOR} --build-noclean
              --build-options -DISOBIT_SOURCE=${PROJECT_SOURCE_DIR} -DCMAKE_BUILD_TYPE=Debug
              -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER} -DCONSUMER_FETCHES=ON
              --test-command ${consumer}/consumer)
  isobit_test(consumer_fetched_nan ${consumer}/consumer_shared)
  set_tests_properties(consumer_fetched_nan PROPERTIES DEPENDS consumer_fetched)
  isobit_test(consumer_subdirectory ${CMAKE_COMMAND} -S ${consumers}/subdirectory
              -B ${CMAKE_CURRENT_BINARY_DIR}/consumer_subdirectory
              -DISOBIT_SOURCE=${PROJECT_SOURCE_DIR} -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER})
  isobit_test(consumer_core_alone sh ${consumers}/core_alone.sh ${PROJECT_SOURCE_DIR}
              ${CMAKE_C_COMPILER})
  isobit_test(consumer_installed sh ${consumers}/installed.sh ${PROJECT_SOURCE_DIR}
              ${PROJECT_BINARY_DIR} ${CMAKE_C_COMPILER} ${components})
  if(TARGET isobit_cli)
    isobit_test(consumer_check sh ${consumers}/check.sh ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}
                ${CMAKE_C_COMPILER})
  endif()
  if(TARGET isobit_blas)
    isobit_test(blas_command sh ${consumers}/blas_command.sh ${PROJECT_BINARY_DIR})
  endif()
endif()
# The harness as it is installed, on another architecture.
if(CMAKE_CROSSCOMPILING_EMULATOR AND ISOBIT_CROSS_ISA STREQUAL "neon" AND TARGET isobit_cli
    AND TARGET isobit_check)
  isobit_test(consumer_check sh ${CMAKE_CURRENT_SOURCE_DIR}/consumers/check.sh ${PROJECT_SOURCE_DIR}
              ${PROJECT_BINARY_DIR} ${CMAKE_C_COMPILER} ${CMAKE_CROSSCOMPILING_EMULATOR})
endif()
