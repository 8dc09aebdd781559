# SPDX-License-Identifier: MIT
#
# ISOBIT_WITH_SENTENCEPIECE: whether the model layer has SentencePiece, which needs Debian's
# libsentencepiece-dev and a C++ compiler for one file.
set(ISOBIT_WITH_SENTENCEPIECE OFF)
if(NOT ISOBIT_SENTENCEPIECE)
  return()
endif()
if(ISOBIT_SENTENCEPIECE STREQUAL "AUTO")
  include(CheckLanguage)
  check_language(CXX)
  pkg_check_modules(SENTENCEPIECE QUIET sentencepiece)
  find_library(ISOBIT_SENTENCEPIECE_LIBRARY sentencepiece HINTS ${SENTENCEPIECE_LIBRARY_DIRS})
  if(NOT CMAKE_CXX_COMPILER OR NOT SENTENCEPIECE_FOUND OR NOT ISOBIT_SENTENCEPIECE_LIBRARY)
    message(STATUS "SentencePiece: not found, the model layer does without")
    return()
  endif()
else()
  pkg_check_modules(SENTENCEPIECE REQUIRED sentencepiece)
  find_library(ISOBIT_SENTENCEPIECE_LIBRARY sentencepiece HINTS ${SENTENCEPIECE_LIBRARY_DIRS}
               REQUIRED)
endif()
enable_language(CXX)
set(CMAKE_CXX_STANDARD 17) # its header asks for std::string_view; clang 14 begins at C++14
set(ISOBIT_WITH_SENTENCEPIECE ON)
# The library for processing only: the .pc file names the one for training, too.
set(ISOBIT_SENTENCEPIECE_LINK $<BUILD_INTERFACE:${ISOBIT_SENTENCEPIECE_LIBRARY}>
    $<INSTALL_INTERFACE:sentencepiece> stdc++)
set(ISOBIT_PC_SENTENCEPIECE " -lsentencepiece -lstdc++")
