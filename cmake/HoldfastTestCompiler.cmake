# Compiles what this folder declares, the tests, with clang where it is found: without optimisation it takes 0.6 times as
# long as g++, and most of the time of scripts/test goes there. The libraries are g++'s. Both compilers have one binary
# interface. HOLDFAST_TESTS_WITH_CLANG=OFF leaves the tests to the compiler of the libraries.
#
# CMake chooses a compiler for each project, and reads these variables in each folder.

# How clang takes headers that were precompiled, in the same words whatever the compiler of the libraries is. The compiler
# cache serves an object to a build that asks for it in the same words.
macro(holdfast_precompile_with_clang)
  set(CMAKE_PCH_EXTENSION .pch)
  set(CMAKE_PCH_PROLOGUE "#pragma clang system_header")
  set(CMAKE_CXX_COMPILE_OPTIONS_INVALID_PCH)
  set(CMAKE_CXX_COMPILE_OPTIONS_INSTANTIATE_TEMPLATES_PCH -fpch-instantiate-templates)
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -include-pch -Xclang <PCH_FILE>)
  set(CMAKE_CXX_COMPILE_OPTIONS_CREATE_PCH -Xclang -emit-pch -Xclang -include -Xclang <PCH_HEADER> -x c++-header)
endmacro()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  holdfast_precompile_with_clang()
endif()

set(HOLDFAST_LIBRARY_COMPILER ${CMAKE_CXX_COMPILER})
set(HOLDFAST_LIBRARY_COMPILER_ID ${CMAKE_CXX_COMPILER_ID})
option(HOLDFAST_TESTS_WITH_CLANG "Compile the tests with clang where it is found" ON)
find_program(HOLDFAST_CLANG clang++)
if(NOT HOLDFAST_TESTS_WITH_CLANG OR NOT HOLDFAST_CLANG OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR
   CMAKE_CROSSCOMPILING OR HOLDFAST_SANITIZE)
  return()
endif()
# One that is too old, or does not find the headers of g++'s library, is not taken.
if(NOT DEFINED HOLDFAST_CLANG_WORKS)
  file(WRITE ${CMAKE_BINARY_DIR}/clang_works.cpp "#include <span>\n#include <string>\nint main() { std::string text; return std::span(text).empty() ? 0 : 1; }\n")
  execute_process(COMMAND ${HOLDFAST_CLANG} -std=c++20 ${CMAKE_BINARY_DIR}/clang_works.cpp -o ${CMAKE_BINARY_DIR}/clang_works
                  RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  set(works OFF)
  if(result EQUAL 0)
    set(works ON)
  endif()
  set(HOLDFAST_CLANG_WORKS ${works} CACHE INTERNAL "Whether clang compiles a program of C++20")
endif()
if(NOT HOLDFAST_CLANG_WORKS)
  message(STATUS "Holdfast: tests are compiled with g++, since ${HOLDFAST_CLANG} cannot compile C++20 here")
  return()
endif()

set(CMAKE_CXX_COMPILER ${HOLDFAST_CLANG})
set(CMAKE_CXX_COMPILER_ID Clang)
holdfast_precompile_with_clang()
