# SPDX-License-Identifier: MIT
#
# The shims of integrations/ in small programs of ours that call them as the programs do for which
# they are made, built as integrations/README.md says: global functions are not put inline, and
# those that the shim replaces are made weak in the program's object.
# Not with the thread sanitizer, which has threads of its own where they are counted.
if(CMAKE_OBJCOPY AND NOT ISOBIT_SANITIZE STREQUAL "thread")
  # isobit_integration(name SOURCE program.c SHIM shim.c FUNCTIONS f... [OPENMP])
  function(isobit_integration name)
    cmake_parse_arguments(ARG "OPENMP" "SOURCE;SHIM" "FUNCTIONS" ${ARGN})
    set(program integration_${name}_program)
    add_library(${program} OBJECT ${ARG_SOURCE})
    target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/include)
    target_compile_definitions(${program} PRIVATE _DEFAULT_SOURCE)
    target_link_libraries(${program} PRIVATE isobit_flags Threads::Threads)
    set_target_properties(${program} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_options(${program} PRIVATE -fsemantic-interposition)

    set(weak ${CMAKE_CURRENT_BINARY_DIR}/${program}.o)
    list(TRANSFORM ARG_FUNCTIONS PREPEND --weaken-symbol= OUTPUT_VARIABLE options)
    add_custom_command(OUTPUT ${weak}
      COMMAND ${CMAKE_OBJCOPY} ${options} $<TARGET_OBJECTS:${program}> ${weak}
      DEPENDS ${program} $<TARGET_OBJECTS:${program}>)
    set_source_files_properties(${weak} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    add_executable(integration_${name} ${weak} ${PROJECT_SOURCE_DIR}/integrations/${ARG_SHIM})
    target_link_libraries(integration_${name} PRIVATE isobit_flags isobit Threads::Threads m)
    set_target_properties(integration_${name} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
    if(ARG_OPENMP)
      target_link_libraries(${program} PRIVATE OpenMP::OpenMP_C)
      target_link_libraries(integration_${name} PRIVATE OpenMP::OpenMP_C)
    endif()
    string(REPLACE ";" " " functions "${ARG_FUNCTIONS}")
    isobit_test(integration_${name} sh ${CMAKE_CURRENT_SOURCE_DIR}/integrations/run.sh
      ${functions} ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:integration_${name}>)
  endfunction()

  isobit_integration(llmc SOURCE integrations/gpt2.c SHIM llmc/isobit_llmc.c
    FUNCTIONS encoder_forward layernorm_forward matmul_forward matmul_backward attention_forward
              attention_backward gelu_forward residual_forward softmax_forward)
  isobit_integration(llama2c SOURCE integrations/llama2.c SHIM llama2c/isobit_llama2c.c
    FUNCTIONS matmul softmax rmsnorm)
  if(NOT ISOBIT_SANITIZE)
    find_package(OpenMP COMPONENTS C QUIET)
  endif()
  if(OpenMP_C_FOUND)
    isobit_integration(llama2c_openmp SOURCE integrations/llama2.c SHIM llama2c/isobit_llama2c.c
      FUNCTIONS matmul softmax rmsnorm OPENMP)
  endif()
endif()
isobit_test(integration_measure sh ${CMAKE_CURRENT_SOURCE_DIR}/integrations/measure.sh
            ${PROJECT_SOURCE_DIR})
