# SPDX-License-Identifier: MIT
#
# cmake --install: libraries, headers, the tool and its man pages, and what pkg-config and
# find_package read. Nothing of it knows the prefix, so that the installed tree may be moved.
#
# The components of find_package(isobit CONFIG COMPONENTS ...) are core, model, blas and check.

# The names of the installed targets, in the source tree too.
set(isobit_core_targets isobit isobit_shared)
set(isobit_model_targets isobit_model isobit_model_shared)
set(isobit_blas_targets isobit_blas isobit_blas_shared)
set(isobit_check_targets isobit_check isobit_check_shared)
foreach(target IN LISTS isobit_core_targets isobit_model_targets isobit_blas_targets
        isobit_check_targets)
  if(TARGET ${target} AND NOT TARGET isobit::${target})
    add_library(isobit::${target} ALIAS ${target})
  endif()
endforeach()

# The command beside the tool; it finds build/lib as it finds PREFIX/lib.
if(TARGET isobit_blas)
  configure_file(tools/isobit-blas.sh bin/isobit-blas @ONLY FILE_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endif()

if(NOT ISOBIT_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)

# From the folder of the .pc files to the prefix; an absolute libdir has nothing to do with it.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(ISOBIT_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
else()
  file(RELATIVE_PATH ISOBIT_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  string(REGEX REPLACE "/$" "" ISOBIT_PC_PREFIX "\${pcfiledir}/${ISOBIT_PC_PREFIX}")
endif()
foreach(dir LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
    set(ISOBIT_PC_${dir} ${CMAKE_INSTALL_${dir}})
  else()
    set(ISOBIT_PC_${dir} "\${prefix}/${CMAKE_INSTALL_${dir}}")
  endif()
endforeach()
if(ISOBIT_CPUID)
  set(ISOBIT_PC_CPUID " libcpuid")
endif()

set(isobit_core_headers isobit ops)
set(isobit_model_headers generate model text)
set(isobit_blas_headers cblas)
set(isobit_check_headers check)
set(isobit_core_pc isobit)
set(isobit_model_pc isobit_model)
set(isobit_blas_pc isobit_blas)
set(isobit_check_pc isobit_check)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/isobit)
foreach(component core model blas check)
  list(GET isobit_${component}_targets 0 target)
  if(NOT TARGET ${target})
    continue()
  endif()
  install(TARGETS ${isobit_${component}_targets} EXPORT isobit-${component}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT isobit-${component} NAMESPACE isobit:: FILE isobit-${component}.cmake
          DESTINATION ${package_dir})
  foreach(header IN LISTS isobit_${component}_headers)
    install(FILES include/isobit/${header}.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/isobit)
  endforeach()
  set(pc ${isobit_${component}_pc}.pc)
  configure_file(cmake/${pc}.in ${pc} @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${pc} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

configure_package_config_file(cmake/isobitConfig.cmake.in isobitConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# A minor version may still change what programs see, while the major one is 0.
write_basic_package_version_file(isobitConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/isobitConfig.cmake
              ${PROJECT_BINARY_DIR}/isobitConfigVersion.cmake DESTINATION ${package_dir})

if(TARGET isobit_cli)
  install(TARGETS isobit_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES packaging/man/isobit.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
if(TARGET isobit_blas)
  install(PROGRAMS ${PROJECT_BINARY_DIR}/bin/isobit-blas DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES packaging/man/isobit-blas.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
