# What every target of ours is compiled with, and how libraries and test programs are declared.

add_library(holdfast_options INTERFACE)
target_compile_options(holdfast_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  # Contraction into fused multiply-add is a choice of the compiler's version: bits must not depend on it.
  -ffp-contract=off
  # Nobody reads errno after a square root, and g++ vectorises none that might set it.
  -fno-math-errno
  # Objects name sources as seen from the root of the tree: those of one clone are good for every other one.
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
target_compile_options(holdfast_options INTERFACE
  # g++ 12 takes "a" + std::string for a memcpy over itself (its bug 105651), at -O3.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  # By default g++ collects its garbage from 128 MiB on, again and again: a tenth of the time to compile a batch of tests,
  # which takes a quarter more memory without.
  $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1000000>
  # A source that is compiled in a batch looks like a header to g++, where a member of an unnamed namespace's type would be a mistake.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
if(HOLDFAST_WARNINGS_AS_ERRORS)
  target_compile_options(holdfast_options INTERFACE -Werror)
endif()

# For code that decides, waits and prints, and never computes with samples: to optimise it at -O3 takes about two thirds of
# the time to compile it. With a sanitizer, -O1 takes twice as long as -O0.
add_library(holdfast_little_optimisation INTERFACE)
target_compile_options(holdfast_little_optimisation INTERFACE $<$<CONFIG:Release,RelWithDebInfo>:-O1> $<$<CONFIG:Sanitize>:-O0>)

# Whether sources of this folder are instrumented.
set(HOLDFAST_INSTRUMENTED OFF)
if(HOLDFAST_SANITIZE)
  set(HOLDFAST_INSTRUMENTED ON)
  # Little optimisation and line numbers alone: a sanitizer build is compiled far more often than it is debugged.
  set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1 -DNDEBUG" CACHE STRING "Flags of build type Sanitize" FORCE)
  add_compile_options(-fsanitize=${HOLDFAST_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${HOLDFAST_SANITIZE})
  if(HOLDFAST_FUZZ)
    # libFuzzer steers by which branches an input reaches.
    add_compile_options(-fsanitize=fuzzer-no-link)
    add_link_options(-fsanitize=fuzzer-no-link)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 warns falsely of uninitialized and dangling memory in instrumented standard headers.
    target_compile_options(holdfast_options INTERFACE -Wno-maybe-uninitialized -Wno-tsan)
  else()
    # clang says so of each loop that asks for vectors, which it makes at -O2 only.
    add_compile_options(-Wno-pass-failed)
    # NVIDIA's libraries are called by declarations of ours.
    add_compile_options(-fno-sanitize=function)
  endif()
endif()

# The same where nvcc compiles too. Sums and products of kernels are what the source says, as on the host.
add_library(holdfast_cuda_options INTERFACE)
target_compile_options(holdfast_cuda_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:$<TARGET_PROPERTY:holdfast_options,INTERFACE_COMPILE_OPTIONS>>
  $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false -Xcompiler=-Wall,-Wextra,-Wshadow,-ffp-contract=off $<$<BOOL:${HOLDFAST_WARNINGS_AS_ERRORS}>:-Werror=all-warnings>>)

# holdfast_library(NAME [HEADERS]): target holdfast_NAME, alias Holdfast::NAME, from src/ and include/ below the current
# folder, with the precompiled headers HEADERS (cmake/HoldfastPrecompiled.cmake).
function(holdfast_library name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS src/*.cpp)
  list(FILTER sources EXCLUDE REGEX "src/(compute/cuda|collective/nccl)/")
  add_library(holdfast_${name} STATIC ${sources})
  add_library(Holdfast::${name} ALIAS holdfast_${name})
  # Most of the time to compile a source goes into headers that all of them include.
  set_target_properties(holdfast_${name} PROPERTIES EXPORT_NAME ${name} UNITY_BUILD ON)
  target_compile_features(holdfast_${name} PUBLIC cxx_std_20)
  target_include_directories(holdfast_${name}
    PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
  target_link_libraries(holdfast_${name} PRIVATE $<BUILD_INTERFACE:holdfast_options> fmt::fmt)
  if(ARGC GREATER 1)
    holdfast_use_precompiled(holdfast_${name} ${ARGV1})
  endif()
endfunction()

# holdfast_prefer_optimised_functions(TARGET LIBRARY...): of an inline function, the linker takes the copy in the first
# object that it reads. By default that is the one in TARGET's objects, which are neither optimised nor instrumented. This
# puts the static libraries among LIBRARY before these objects. Tests run several times as fast, and to compile them at -O1
# takes half as long again.
function(holdfast_prefer_optimised_functions target)
  foreach(library IN LISTS ARGN)
    if(NOT TARGET ${library} OR NOT library MATCHES "^Holdfast::" OR HOLDFAST_INSTRUMENTED)
      continue()
    endif()
    get_target_property(type ${library} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      target_link_options(${target} PRIVATE
        "LINKER:--push-state,--whole-archive,$<TARGET_FILE:${library}>,--pop-state")
    endif()
  endforeach()
endfunction()

# holdfast_test(NAME FOLDER LABELS ... [ROOMS] [OPTIMISED] [PARTS N] [LIBRARIES ...] [INCLUDES ...] [PROGRAMS ...]): one
# GoogleTest program from all *_test.cpp in FOLDER and what supports them in FOLDER/support; with ROOMS, from the folders
# below FOLDER too. OPTIMISED is for programs that compile kernels of their own. CTest runs it as N tests, NAME, NAME_2 and
# so on, of which each takes every Nth test of the program: those wait for most of their time. PROGRAMS are targets that
# the tests run; they are built first. Labels unit, threads and gpu add the program to unit_tests, threads_tests and
# gpu_tests. It belongs to host_tests unless it has label extra, which gpu includes.
function(holdfast_test name folder)
  cmake_parse_arguments(argument "ROOMS;OPTIMISED" "PARTS" "LIBRARIES;INCLUDES;LABELS;PROGRAMS" ${ARGN})
  set(glob GLOB)
  if(argument_ROOMS)
    set(glob GLOB_RECURSE)
  endif()
  file(${glob} sources CONFIGURE_DEPENDS ${folder}/*_test.cpp ${folder}/support/*.cpp)
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE ${argument_INCLUDES} ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE holdfast_options holdfast_test_main holdfast_test_support ${argument_LIBRARIES}
                                        nlohmann_json::nlohmann_json GTest::gtest GTest::gmock)
  set(level -O0)
  if(argument_OPTIMISED AND NOT HOLDFAST_INSTRUMENTED)
    set(level -O1)
  endif()
  target_compile_options(${name} PRIVATE ${level})
  holdfast_prefer_optimised_functions(${name} ${argument_LIBRARIES})
  if(argument_PROGRAMS)
    add_dependencies(${name} ${argument_PROGRAMS})
  endif()
  foreach(label unit threads gpu)
    if(label IN_LIST argument_LABELS)
      add_dependencies(${label}_tests ${name})
    endif()
  endforeach()
  if(gpu IN_LIST argument_LABELS)
    list(APPEND argument_LABELS extra)
  endif()
  if(NOT extra IN_LIST argument_LABELS)
    if(NOT argument_OPTIMISED)
      holdfast_use_precompiled(${name} tests)
    endif()
    add_dependencies(host_tests ${name})
  endif()
  if(NOT argument_PARTS)
    set(argument_PARTS 1)
  endif()
  foreach(part RANGE 1 ${argument_PARTS})
    set(test ${name})
    if(part GREATER 1)
      set(test ${name}_${part})
    endif()
    add_test(NAME ${test} COMMAND ${name})
    set(environment "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/tsan.supp")
    if(argument_PARTS GREATER 1)
      math(EXPR index "${part} - 1")
      list(APPEND environment GTEST_TOTAL_SHARDS=${argument_PARTS} GTEST_SHARD_INDEX=${index} HOLDFAST_TEST_NAME=${test})
    endif()
    set_tests_properties(${test} PROPERTIES LABELS "${argument_LABELS}" TIMEOUT 900 ENVIRONMENT "${environment}")
  endforeach()
endfunction()
