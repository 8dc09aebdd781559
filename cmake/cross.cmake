# SPDX-License-Identifier: MIT
#
# What the cross builds have in common: Debian's gcc for another architecture. The libraries come
# from a private sysroot that `./run` unpacks from Debian's packages. A toolchain file sets
#   ISOBIT_ARCHITECTURE   as Debian calls it (the name of the sysroot)
#   ISOBIT_COMPILER       the prefix of the compiler, which is the name of its C library's folder too
#   ISOBIT_MULTIARCH      the folder of the architecture in /usr/lib
#   ISOBIT_CROSS_ISA      the instruction set that the library is expected to choose
# and then includes this file.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${ISOBIT_COMPILER}-gcc)
set(CMAKE_CXX_COMPILER ${ISOBIT_COMPILER}-g++)

get_filename_component(ISOBIT_SYSROOT
  ${CMAKE_CURRENT_LIST_DIR}/../build/sysroot-${ISOBIT_ARCHITECTURE} ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH ${ISOBIT_SYSROOT} /usr/${ISOBIT_COMPILER})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ISOBIT_LIBRARIES ${ISOBIT_SYSROOT}/usr/lib/${ISOBIT_MULTIARCH})
set(ENV{PKG_CONFIG_LIBDIR} ${ISOBIT_LIBRARIES}/pkgconfig:${ISOBIT_SYSROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${ISOBIT_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE ${ISOBIT_MULTIARCH})
set(CMAKE_EXE_LINKER_FLAGS_INIT
    "-Wl,-rpath-link,${ISOBIT_LIBRARIES} -Wl,-rpath-link,${ISOBIT_SYSROOT}/lib/${ISOBIT_MULTIARCH}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "${CMAKE_EXE_LINKER_FLAGS_INIT}")

# Where the C library and the other shared libraries are found when a program runs.
set(ISOBIT_LIBRARY_PATH ${ISOBIT_LIBRARIES}:/usr/${ISOBIT_COMPILER}/lib)
