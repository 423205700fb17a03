# Races between the threads of a kernel, found by clang's thread sanitizer: kernels are compiled for the host. Of CUDA
# this needs the headers alone.
if(NOT (HOLDFAST_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang"))
  return()
endif()

find_package(CUDAToolkit QUIET)
foreach(header cuda_runtime_api.h cublasLt.h cudnn_graph.h)
  string(MAKE_C_IDENTIFIER "HOLDFAST_RACES_${header}" variable)
  find_path(${variable} ${header} PATHS ${CUDAToolkit_INCLUDE_DIRS} /usr/local/cuda/include)
  if(${variable})
    list(APPEND races_includes ${${variable}})
  else()
    list(APPEND races_missing ${header})
  endif()
endforeach()
if(races_missing)
  list(JOIN races_missing ", " races_missing)
  add_test(NAME kernel_races
           COMMAND ${CMAKE_COMMAND} -E echo "kernel_races: SKIPPED: headers of CUDA are missing: ${races_missing}")
  set_tests_properties(kernel_races PROPERTIES LABELS threads SKIP_REGULAR_EXPRESSION "SKIPPED")
  return()
endif()

add_executable(kernel_races races/kernel_races_test.cpp races/fiber_grid.cpp
                            emulation/cuda_context.cpp emulation/cuda_runtime.cpp
                            ${sdk_sources}/compute/cuda/runtime/cuda_launch.cpp
                            ${sdk_sources}/collective/nccl/ordered_sum_program.cpp)
# To the sanitizer the threads of a block are one thread, so they would share one call stack.
set(races_options -mllvm -tsan-instrument-func-entry-exit=0 -Wno-unused-const-variable)
foreach(source
    kernels/columns kernels/cuda_activation kernels/cuda_array_kernels kernels/cuda_attention_scores
    kernels/cuda_batch_normalization kernels/cuda_gradient_norms kernels/cuda_losses kernels/cuda_metrics
    kernels/cuda_recurrent_cells kernels/cuda_row_kernels
    runtime/cuda_arrays runtime/cuda_digester runtime/small_copies
    products/transposed_arrays)
  emulate_kernels(kernel_races compute/cuda/${source}.cu ${races_options})
endforeach()
emulate_kernels(kernel_races collective/nccl/cuda_collective_stream.cu ${races_options})
set_source_files_properties(races/fiber_grid.cpp PROPERTIES
                            COMPILE_OPTIONS -fno-sanitize=thread SKIP_UNITY_BUILD_INCLUSION ON)
set_target_properties(kernel_races PROPERTIES UNITY_BUILD OFF)
target_include_directories(kernel_races PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/emulation
                                                ${sdk_sources})
target_include_directories(kernel_races SYSTEM PRIVATE ${races_includes})
target_link_libraries(kernel_races PRIVATE holdfast_options Holdfast::sdk GTest::gtest_main)
add_dependencies(threads_tests kernel_races)
# Two processes, since the sanitizer reports a pair of code places only once.
add_test(NAME kernel_races COMMAND kernel_races --gtest_filter=All/*)
add_test(NAME kernel_races_are_seen COMMAND kernel_races --gtest_filter=Seen/*)
set_tests_properties(kernel_races kernel_races_are_seen PROPERTIES LABELS threads TIMEOUT 300)
# The second process expects its reports; looking up names in the sources would take most of its time.
set_property(TEST kernel_races_are_seen PROPERTY ENVIRONMENT "TSAN_OPTIONS=symbolize=0")
