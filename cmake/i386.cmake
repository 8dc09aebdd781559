# SPDX-License-Identifier: MIT
#
# Cross build for 32-bit x86. Most x86-64 machines run its programs by themselves, through the
# loader, since the C library does not lie where programs look for it. The others have qemu-i386.
set(CMAKE_SYSTEM_PROCESSOR i686)
set(ISOBIT_ARCHITECTURE i386)
set(ISOBIT_COMPILER i686-linux-gnu)
set(ISOBIT_MULTIARCH i386-linux-gnu)
# The x87 keeps more bits than the source says: no promise about bits can be kept with it.
set(CMAKE_C_FLAGS_INIT "-msse2 -mfpmath=sse")
set(ISOBIT_CROSS_ISA scalar)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
set(ISOBIT_LOADER /usr/i686-linux-gnu/lib/ld-linux.so.2)
execute_process(COMMAND ${ISOBIT_LOADER} --version RESULT_VARIABLE ISOBIT_LOADER_RESULT
                OUTPUT_QUIET ERROR_QUIET)
if(ISOBIT_LOADER_RESULT EQUAL 0)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${ISOBIT_LOADER} --library-path ${ISOBIT_LIBRARY_PATH})
else()
  set(CMAKE_CROSSCOMPILING_EMULATOR
      qemu-i386 -L /usr/i686-linux-gnu -E LD_LIBRARY_PATH=${ISOBIT_LIBRARY_PATH})
endif()
