# SPDX-License-Identifier: MIT
#
# Cross build for s390x, whose bytes are in the other order; the programs run under qemu-s390x.
set(CMAKE_SYSTEM_PROCESSOR s390x)
set(ISOBIT_ARCHITECTURE s390x)
set(ISOBIT_COMPILER s390x-linux-gnu)
set(ISOBIT_MULTIARCH s390x-linux-gnu)
# ISO C lets gcc compute floats in double here: other bits.
set(CMAKE_C_FLAGS_INIT "-fexcess-precision=fast")
set(ISOBIT_CROSS_ISA scalar)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
set(CMAKE_CROSSCOMPILING_EMULATOR
    qemu-s390x -L /usr/s390x-linux-gnu -E LD_LIBRARY_PATH=${ISOBIT_LIBRARY_PATH})
