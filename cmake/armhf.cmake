# SPDX-License-Identifier: MIT
#
# Cross build for 32-bit Arm; the programs run under qemu-arm.
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(ISOBIT_ARCHITECTURE armhf)
set(ISOBIT_COMPILER arm-linux-gnueabihf)
set(ISOBIT_MULTIARCH arm-linux-gnueabihf)
set(ISOBIT_CROSS_ISA scalar)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
set(CMAKE_CROSSCOMPILING_EMULATOR
    qemu-arm -L /usr/arm-linux-gnueabihf -E LD_LIBRARY_PATH=${ISOBIT_LIBRARY_PATH})
