# SPDX-License-Identifier: MIT
#
# Cross build for 64-bit Arm with Debian's gcc. The libraries come from a private sysroot that
# `./run` unpacks from Debian's arm64 packages; the programs run under qemu-aarch64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

get_filename_component(ISOBIT_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build/sysroot-arm64 ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH ${ISOBIT_SYSROOT} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR}
    ${ISOBIT_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${ISOBIT_SYSROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${ISOBIT_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_EXE_LINKER_FLAGS_INIT
    "-Wl,-rpath-link,${ISOBIT_SYSROOT}/usr/lib/aarch64-linux-gnu -Wl,-rpath-link,${ISOBIT_SYSROOT}/lib/aarch64-linux-gnu")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "${CMAKE_EXE_LINKER_FLAGS_INIT}")

# qemu-user finds the C library and the other shared libraries here.
set(CMAKE_CROSSCOMPILING_EMULATOR
    qemu-aarch64 -cpu cortex-a72 -L /usr/aarch64-linux-gnu
    -E LD_LIBRARY_PATH=${ISOBIT_SYSROOT}/usr/lib/aarch64-linux-gnu:/usr/aarch64-linux-gnu/lib)
