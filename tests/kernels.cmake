# SPDX-License-Identifier: MIT
#
# The kernels against the oracle (test_kernels, isobit check) and the public operations (test_ops).
set(ISOBIT_SUITES suites/gemm.c suites/gemm_direct.c suites/gemv.c suites/w16.c suites/attention_w16.c suites/q.c suites/q_s8.c suites/s8.c suites/b16.c suites/peaks.c suites/rows.c
  suites/norms.c suites/attention.c suites/key_panels.c suites/eltwise.c suites/gate.c
  suites/embed.c suites/rope.c suites/functions.c suites/more.c)
enable_language(ASM)
# The harness is linked by the command line too.
add_library(isobit_harness OBJECT kernel_target.c check_self.c check_self/more.c
  check_self/b16.c check_self/places.c check_self/promises.c check_self/s8.c check_self/worse.c oracle_kernels.c
  spoil_x86_64.S spoil_aarch64.S committed.S ${ISOBIT_SUITES})
set(data ${CMAKE_CURRENT_SOURCE_DIR}/data)
set_source_files_properties(committed.S PROPERTIES COMPILE_OPTIONS "-I${data}"
  OBJECT_DEPENDS "${data}/golden.txt;${data}/errors.txt")
isobit_test_settings(isobit_harness)
target_link_libraries(isobit_harness PRIVATE isobit_flags isobit PkgConfig::XXHASH)
set(ISOBIT_HARNESS $<TARGET_OBJECTS:isobit_harness> $<TARGET_OBJECTS:isobit_check_objects>
  $<TARGET_OBJECTS:isobit_check_blas_objects>)
isobit_test_program(test_kernels test_kernels.c ${ISOBIT_HARNESS})
# The first call of a function of a shared library is not to be seen on the stack of a kernel.
target_link_options(test_kernels PRIVATE -Wl,-z,now ${ISOBIT_CHECK_EXPORTS})
target_link_libraries(test_kernels PRIVATE ${CMAKE_DL_LIBS})

# Emulators and sanitizers run the quick plan: fewer cases, the same committed hashes.
set(plan)
if(CMAKE_CROSSCOMPILING_EMULATOR OR ISOBIT_SANITIZE)
  set(plan --quick)
endif()
if(plan) # in which every single case must give what an x86-64 machine recorded
  set(places)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "s390x") # is there for its order of bytes
    set(places --once --part 1/3)
  endif()
  isobit_test(kernels test_kernels ${places} --compare ${CMAKE_CURRENT_SOURCE_DIR}/data/quick.record)
elseif(fewer) # in one place: kernels.tool and kernels.random have the others
  isobit_test(kernels test_kernels --once --compare ${CMAKE_CURRENT_SOURCE_DIR}/data/quick.record)
else()
  isobit_test(kernels test_kernels)
endif()
isobit_test(kernels.self_test test_kernels --self-test)
# Random cases with a seed that stays, and of the plan, which ran above, one case of each kernel; more
# of them, with others: isobit check --time-box 3600.
set(iters 24000)
if(plan)
  set(iters 600)
endif()
isobit_test(kernels.random test_kernels --quick --part 1/100000 --seed 1
  --iters ${iters})
isobit_test(kernels.replay sh ${CMAKE_CURRENT_SOURCE_DIR}/test_check.sh
  ${CMAKE_CURRENT_SOURCE_DIR}/data/golden.txt ${CMAKE_CROSSCOMPILING_EMULATOR}
  $<TARGET_FILE:test_kernels>)
if(TARGET isobit_cli)
  set(some --quick) # it is the same program otherwise
  if(plan)
    set(some --op softmax)
  endif()
  isobit_test(kernels.tool isobit_cli check --digest ${some})
endif()

if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/test_ops.c)
  isobit_test_program(test_ops test_ops.c ops/gemm.c ops/rows.c ops/attention.c ops/embed.c
    ops/refusals.c ops/refusals_attention.c ops/workspace.c)
  # Counts allocations, to prove that a workspace is enough.
  target_link_options(test_ops PRIVATE -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
    -Wl,--wrap=aligned_alloc,--wrap=posix_memalign)
  # The whole plan once, with gcc: it looks at the ways of dispatch/, not at what a compiler does.
  if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    isobit_test(ops test_ops --quick)
  elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "s390x") # each operation, whose order of bytes it would be
    isobit_test(ops test_ops --quick *_every_way)
  else()
    isobit_test(ops test_ops ${plan})
  endif()
  if(CMAKE_CROSSCOMPILING_EMULATOR)
    set_tests_properties(ops PROPERTIES ENVIRONMENT ISOBIT_EMULATED=1)
  endif()
endif()

# The sanitizer sees kernels: a float too few, which is the end of a vector, all of it, and freed memory.
if(ISOBIT_SANITIZE MATCHES "address")
  isobit_test_program(test_asan_calls test_asan_calls.c)
  foreach(layer IN LISTS ISOBIT_KERNEL_OBJECTS)
    string(REPLACE isobit_kernels_ "" isa ${layer})
    foreach(bytes 4 0)
      if(bytes)
        set(words "heap-buffer-overflow|unknown-crash") # by what its first bytes are
      else()
        set(words heap-use-after-free)
      endif()
      if(NOT isa MATCHES "_") # a level, which has these kernels from its set
        isobit_test(asan_calls.${isa}.${bytes} test_asan_calls ${isa} ${bytes})
        set_tests_properties(asan_calls.${isa}.${bytes} PROPERTIES PASS_REGULAR_EXPRESSION ${words})
      endif()
    endforeach()
  endforeach()
endif()

# The sets that older CPUs have, on emulated older CPUs: also proves that none of their
# instructions is used where it should not be.
find_program(ISOBIT_QEMU_X86_64 qemu-x86_64)
if(ISOBIT_QEMU_X86_64 AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT ISOBIT_SANITIZE)
  # SandyBridge has the same set as Nehalem; dispatch.cmake has that it is chosen.
  foreach(cpu Nehalem Haswell)
    foreach(program kernels ops)
      if(TARGET test_${program})
        # A third of the cases, in one place; each operation. All the others run natively.
        if(program STREQUAL "kernels")
          set(some --once --part 1/3 --compare ${data}/quick.record)
        else()
          set(some --quick *_every_way)
        endif()
        if(cpu STREQUAL "Haswell")
          list(APPEND some --isa avx2) # scalar ran as Nehalem
        endif()
        add_test(NAME ${program}.${cpu} COMMAND ${ISOBIT_QEMU_X86_64} -cpu ${cpu}
          $<TARGET_FILE:test_${program}> ${some})
        set_tests_properties(${program}.${cpu} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1200
          ENVIRONMENT ISOBIT_EMULATED=1)
      endif()
    endforeach()
  endforeach()
endif()

# The levels that the Cortex-A72 lacks, as which the tests above run on Arm.
if(ISOBIT_QEMU_BEFORE)
  foreach(level neon_dotprod neon_i8mm neon_bf16)
    isobit_test(kernels.max.${level} ${ISOBIT_QEMU_BEFORE} max ${ISOBIT_QEMU_AFTER}
      $<TARGET_FILE:test_kernels> --isa ${level} --compare ${data}/quick.record)
  endforeach()
endif()

# The functions of math.h on Arm, over the 2^22 inputs of the full plan: those whose hash over all 2^32
# is committed for the machines that can afford it.
if(CMAKE_CROSSCOMPILING_EMULATOR AND ISOBIT_CROSS_ISA STREQUAL "neon")
  file(STRINGS ${data}/golden.txt functions REGEX "^[a-z_]+/exhaustive ")
  list(TRANSFORM functions REPLACE "/.*" "")
  foreach(function IN LISTS functions)
    isobit_test(kernels.full.${function} test_kernels --op ${function} --isa neon)
  endforeach()
endif()

# The bits depend neither on how hard the compiler tries nor on what it may assume of the CPU: the
# kernels once more, at other levels, linked with the same harness. -O3 is what all tests run, and -O1
# is what clang's sanitizers run; a build takes minutes, so each of the others has its place.
if(NOT ISOBIT_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "Release")
  if(CMAKE_CROSSCOMPILING)
    set(builds "O1")
  elseif(DEFINED ENV{ISOBIT_LONG})
    set(builds "O1" "O2,march=native")
  elseif(CMAKE_C_COMPILER_ID MATCHES "Clang")
    set(builds)
  else()
    set(builds "O2,march=native")
  endif()
  foreach(build IN LISTS builds)
    string(MAKE_C_IDENTIFIER "test_digest_${build}" program)
    string(REPLACE "," ";-" flags "-${build}")
    isobit_test_program(${program} test_kernels.c ${ISOBIT_HARNESS}
      $<TARGET_OBJECTS:isobit_dispatch>)
    target_link_options(${program} PRIVATE -Wl,-z,now)
    foreach(layer IN LISTS ISOBIT_KERNEL_OBJECTS)
      string(REPLACE isobit_kernels_ "" isa ${layer})
      isobit_layer(${layer}_${program} ${PROJECT_SOURCE_DIR}/kernels/${isa}/${isa}.c)
      target_include_directories(${layer}_${program} PRIVATE ${PROJECT_SOURCE_DIR}/kernels)
      target_include_directories(${layer}_${program} SYSTEM PRIVATE ${ISOBIT_SLEEF_INCLUDE_DIR})
      # At -O1 gcc leaves the upper halves of vectors as they are unless it is asked to clean them.
      target_compile_options(${layer}_${program} PRIVATE
        $<TARGET_PROPERTY:${layer},COMPILE_OPTIONS> ${flags}
        $<$<C_COMPILER_ID:GNU>:-fexpensive-optimizations>)
      target_sources(${program} PRIVATE $<TARGET_OBJECTS:${layer}_${program}>)
    endforeach()
    if(CMAKE_CROSSCOMPILING) # where the oracle takes its time: a third of the cases
      isobit_test(digest.${build} ${program} --once --part 1/3 --compare ${data}/quick.record)
    else()
      isobit_test(digest.${build} ${program} --quick --once)
    endif()
  endforeach()
endif()
