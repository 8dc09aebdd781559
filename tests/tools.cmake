# SPDX-License-Identifier: MIT
#
# Tests of the command line, and of the headers as their users compile them.
if(TARGET isobit_cli)
  set(cli)
  foreach(part usage model score same options gguf output explain bench quantize)
    isobit_test(cli_${part} sh ${CMAKE_CURRENT_SOURCE_DIR}/cli/${part}.sh ${PROJECT_SOURCE_DIR}
                ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:isobit_cli>)
    list(APPEND cli cli_${part})
  endforeach()
  isobit_test(cli_embed sh ${CMAKE_CURRENT_SOURCE_DIR}/test_embed.sh ${PROJECT_SOURCE_DIR}
              ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:isobit_cli>)
  if(ISOBIT_SANITIZE STREQUAL "thread")
    set_tests_properties(${cli} cli_embed PROPERTIES ENVIRONMENT ISOBIT_EMULATED=1) # as slow
  elseif(ISOBIT_SANITIZE)
    set_tests_properties(cli_bench PROPERTIES ENVIRONMENT ISOBIT_SANITIZED=1)
  endif()

  # What the tool chooses by itself, here and on emulated CPUs, and the bits that follow.
  set(choice sh ${CMAKE_CURRENT_SOURCE_DIR}/test_choice.sh ${PROJECT_SOURCE_DIR})
  if(CMAKE_CROSSCOMPILING)
    isobit_test(cli_choice ${choice} ${ISOBIT_CROSS_ISA} ${CMAKE_CROSSCOMPILING_EMULATOR}
                $<TARGET_FILE:isobit_cli>)
  else()
    isobit_test(cli_choice ${choice} best $<TARGET_FILE:isobit_cli>)
    find_program(ISOBIT_QEMU_X86_64 qemu-x86_64)
    if(ISOBIT_QEMU_X86_64 AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64"
       AND NOT ISOBIT_SANITIZE)
      isobit_test(cli_choice.Nehalem ${choice} scalar ${ISOBIT_QEMU_X86_64} -cpu Nehalem
                  $<TARGET_FILE:isobit_cli>)
      isobit_test(cli_choice.Haswell ${choice} avx2 ${ISOBIT_QEMU_X86_64} -cpu Haswell
                  $<TARGET_FILE:isobit_cli>)
      set_tests_properties(cli_choice.Nehalem cli_choice.Haswell PROPERTIES
        ENVIRONMENT ISOBIT_EMULATED=1)
    endif()
  endif()
endif()

# The example of the README: compiled with warnings, run, and compared with the page.
add_executable(consumer_readme consumers/readme.c)
target_link_libraries(consumer_readme PRIVATE isobit_flags isobit)
set_target_properties(consumer_readme PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
isobit_test(consumer_readme sh ${CMAKE_CURRENT_SOURCE_DIR}/consumers/readme_run.sh
            ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:consumer_readme>)
isobit_test(consumer_readme_page sh ${CMAKE_CURRENT_SOURCE_DIR}/consumers/readme.sh
            ${PROJECT_SOURCE_DIR})

# Each header alone, as C11, C17, C++11 and C++20. The drivers of GCC and LLVM for C take C++ too;
# a cross compiler may lack that half, and would find nothing new. Nor do sanitizers.
if(ISOBIT_SANITIZE)
  return()
endif()
foreach(header isobit ops generate model text cblas check)
  foreach(standard c11 c17 c++11 c++20)
    set(language c)
    if(standard MATCHES "\\+\\+")
      set(language c++)
      if(CMAKE_CROSSCOMPILING)
        continue()
      endif()
    endif()
    isobit_test(header_${header}_${standard} ${CMAKE_C_COMPILER} -x ${language} -std=${standard}
                -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -fsyntax-only
                -I${PROJECT_SOURCE_DIR}/include "-DHEADER=<isobit/${header}.h>"
                ${CMAKE_CURRENT_SOURCE_DIR}/consumers/header.c)
  endforeach()
endforeach()
