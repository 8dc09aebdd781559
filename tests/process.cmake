# SPDX-License-Identifier: MIT
#
# The library among processes, system calls, signals and limits.
isobit_test_program(test_pure test_pure.c ${ISOBIT_HARNESS})
# The first call of a function of a shared library may make system calls.
target_link_options(test_pure PRIVATE -Wl,-z,now)
# All cases once, with gcc: they see what a kernel does, and little of a compiler.
set(plan)
if(ISOBIT_SANITIZE OR CMAKE_C_COMPILER_ID MATCHES "Clang")
  set(plan --quick)
endif()
isobit_test(pure test_pure ${plan})
if(CMAKE_CROSSCOMPILING)
  set_tests_properties(pure PROPERTIES ENVIRONMENT ISOBIT_EMULATED=1)
endif()

# Loads the shared libraries itself, so it is linked to neither of them. Not with sanitizers: their
# runtimes change the process when a library is loaded, and cannot follow it through fork. Nor under
# an emulator, which shares the process.
if(NOT ISOBIT_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  add_executable(test_load test_load.c)
  target_include_directories(test_load PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_compile_definitions(test_load PRIVATE _GNU_SOURCE)
  target_link_libraries(test_load PRIVATE isobit_flags PkgConfig::CMOCKA Threads::Threads m
    ${CMAKE_DL_LIBS})
  set_target_properties(test_load PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
  isobit_test(load test_load $<TARGET_FILE:isobit_shared>
    $<$<BOOL:${ISOBIT_MODEL}>:$<TARGET_FILE:isobit_model_shared>>)
endif()

isobit_test_program(test_process test_process.c)
isobit_test(process test_process)
# Many threads and processes; other tests would only wait for it.
set_tests_properties(process PROPERTIES RUN_SERIAL ON)
if(CMAKE_CROSSCOMPILING)
  set_tests_properties(process PROPERTIES ENVIRONMENT ISOBIT_EMULATED=1)
endif()

# The order of locks, and races that the thread sanitizer has no eye for. Left out where valgrind is
# not installed, and with sanitizers. One thread runs at a time there: unless they take turns, one
# that keeps a pool busy until another says stop may keep that one waiting for ever.
find_program(ISOBIT_VALGRIND valgrind)
if(ISOBIT_VALGRIND AND NOT ISOBIT_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  isobit_test(helgrind.threads ${ISOBIT_VALGRIND} --tool=helgrind --fair-sched=yes --quiet --error-exitcode=9
    --suppressions=${CMAKE_CURRENT_SOURCE_DIR}/valgrind.supp $<TARGET_FILE:test_threads>)
  set_tests_properties(helgrind.threads PROPERTIES ENVIRONMENT ISOBIT_EMULATED=1 RUN_SERIAL ON TIMEOUT 300)
endif()
