# SPDX-License-Identifier: MIT
#
# Tests of dispatch/: the choice of the instruction set, the pool, and the proof that only the
# kernels hold vector instructions.
isobit_test_program(test_dispatch test_dispatch.c dispatch/cpus.c dispatch/info.c)
isobit_test(dispatch test_dispatch)
isobit_test_program(test_plan test_plan.c)
isobit_test(plan test_plan ${CMAKE_CURRENT_SOURCE_DIR}/data/plans)
isobit_test_program(test_prefetch test_prefetch.c)
isobit_test(prefetch test_prefetch)
isobit_test_program(test_passes test_passes.c)
isobit_test(passes test_passes)
isobit_test_program(test_ways test_ways.c)
isobit_test(ways test_ways)
isobit_test_program(test_parts test_parts.c)
isobit_test(parts test_parts)
isobit_test_program(test_w16 test_w16.c)
isobit_test(w16 test_w16)
isobit_test_program(test_q test_q.c test_q_refused.c)
isobit_test(q test_q)
isobit_test_program(test_kv16 test_kv16.c)
isobit_test(kv16 test_kv16)
isobit_test_program(test_s8 test_s8.c)
isobit_test(s8 test_s8)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  isobit_test_program(test_amx test_amx.c amx_kernel.c)
  set_source_files_properties(amx_kernel.c PROPERTIES COMPILE_OPTIONS
    "-I${PROJECT_SOURCE_DIR}/kernels;-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni;-mavx512bf16;-mfma;-mf16c")
  isobit_test(amx test_amx)
  set_tests_properties(amx PROPERTIES SKIP_RETURN_CODE 77)
endif()
isobit_test_program(test_b16 test_b16.c)
isobit_test(b16 test_b16)
isobit_test(b16.native test_b16 native)
if(CMAKE_CROSSCOMPILING_EMULATOR OR fewer) # as if emulated
  set_tests_properties(ways w16 q kv16 s8 b16 b16.native PROPERTIES ENVIRONMENT ISOBIT_EMULATED=1)
endif()
isobit_test_program(test_threads test_threads.c threads/costs.c threads/fork.c
  threads/semantics.c)
target_link_libraries(test_threads PRIVATE ${CMAKE_DL_LIBS})
isobit_test(threads test_threads)
# It measures CPU time and lets many threads wait for each other.
set_tests_properties(threads PROPERTIES RUN_SERIAL ON)

if(NOT ISOBIT_SANITIZE)
  add_test(NAME prove_objects COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/prove_objects.sh
    ${PROJECT_BINARY_DIR})
  set_tests_properties(prove_objects PROPERTIES
    ENVIRONMENT "NM=${CMAKE_NM};OBJDUMP=${CMAKE_OBJDUMP};READELF=${CMAKE_READELF}")
endif()

# The automatic choice on CPUs that an emulator pretends to be.
if(ISOBIT_QEMU_BEFORE)
  foreach(pair neoverse-n1:neon_dotprod max:neon_bf16)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 cpu)
    list(GET pair 1 isa)
    isobit_test(dispatch_qemu_${cpu} ${ISOBIT_QEMU_BEFORE} ${cpu} ${ISOBIT_QEMU_AFTER}
      $<TARGET_FILE:test_dispatch>)
    set_tests_properties(dispatch_qemu_${cpu} PROPERTIES
      ENVIRONMENT ISOBIT_EXPECT_ISA=${isa})
  endforeach()
endif()
if(CMAKE_CROSSCOMPILING)
  set_tests_properties(dispatch PROPERTIES ENVIRONMENT ISOBIT_EXPECT_ISA=${ISOBIT_CROSS_ISA})
  set_tests_properties(threads PROPERTIES ENVIRONMENT ISOBIT_EMULATED=1)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT ISOBIT_SANITIZE)
  find_program(ISOBIT_QEMU_X86_64 qemu-x86_64)
  if(ISOBIT_QEMU_X86_64)
    foreach(pair Nehalem:scalar SandyBridge:scalar Haswell:avx2)
      string(REPLACE ":" ";" pair ${pair})
      list(GET pair 0 cpu)
      list(GET pair 1 isa)
      isobit_test(dispatch_qemu_${cpu} ${ISOBIT_QEMU_X86_64} -cpu ${cpu}
        $<TARGET_FILE:test_dispatch>)
      set_tests_properties(dispatch_qemu_${cpu} PROPERTIES ENVIRONMENT ISOBIT_EXPECT_ISA=${isa})
    endforeach()
  endif()
endif()
