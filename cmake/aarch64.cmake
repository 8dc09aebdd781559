# SPDX-License-Identifier: MIT
#
# Cross build for 64-bit Arm; the programs run under qemu-aarch64.
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(ISOBIT_ARCHITECTURE arm64)
set(ISOBIT_COMPILER aarch64-linux-gnu)
set(ISOBIT_MULTIARCH aarch64-linux-gnu)
set(ISOBIT_CROSS_ISA neon)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
set(ISOBIT_QEMU_BEFORE qemu-aarch64 -cpu)
set(ISOBIT_QEMU_AFTER -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=${ISOBIT_LIBRARY_PATH})
set(CMAKE_CROSSCOMPILING_EMULATOR ${ISOBIT_QEMU_BEFORE} cortex-a72 ${ISOBIT_QEMU_AFTER})
