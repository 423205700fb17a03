# Tests of the CUDA back end. Those of label gpu need a device. The others run its operations on the host: kernels are
# compiled for it, a block's threads run one after the other, and fakes stand for CUDA's libraries. To compile kernels for
# devices and for the host takes minutes, so all but one have label extra.
if(NOT HOLDFAST_BUILDS_CUDA)
  return()
endif()

set(gpu_support gpu/support/gpu_test.cpp gpu/support/device_under_test.cpp)
set(cuda_includes ${sdk_sources} ${HOLDFAST_CUDNN_INCLUDE})

# Through the shared library, as a program uses it.
foreach(folder kernels layers)
  holdfast_test(gpu_${folder} gpu/${folder} LABELS gpu LIBRARIES Holdfast::sdk PROGRAMS holdfast_cuda
                INCLUDES ${sdk_sources})
  target_sources(gpu_${folder} PRIVATE ${gpu_support})
endforeach()
# Whole trainings of one process, and an application's own kernel.
add_library(holdfast_test_kernels STATIC gpu/trainer/support/running_sum_kernel.cu)
target_include_directories(holdfast_test_kernels PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(holdfast_test_kernels PRIVATE CUDA::cudart_static)
holdfast_test(gpu_trainer gpu/trainer LABELS gpu LIBRARIES Holdfast::sdk Holdfast::format holdfast_test_kernels
              PROGRAMS holdfast_cuda INCLUDES ${sdk_sources})
target_sources(gpu_trainer PRIVATE unit/train/support/small_training.cpp)
# Cases from Keras, which unit_nn runs on the host.
set(reference_support unit/nn/support/reference_case.cpp unit/nn/support/loss_case.cpp)
target_sources(gpu_layers PRIVATE ${reference_support})
# Parts that the shared library hides.
holdfast_test(gpu_parts gpu/parts LABELS gpu LIBRARIES holdfast_cuda_objects Holdfast::sdk PROGRAMS holdfast_cuda
              INCLUDES ${cuda_includes})
target_sources(gpu_parts PRIVATE ${gpu_support} gpu/layers/support/layer_test.cpp)
# Collectives. The process of the second program must not use CUDA itself: its children do.
foreach(folder collective nccl_ranks)
  holdfast_test(gpu_${folder} gpu/${folder} LABELS gpu LIBRARIES holdfast_cuda_objects Holdfast::sdk
                INCLUDES ${sdk_sources})
endforeach()

# Modules of LibTorch. scripts/gpu-test runs the example as well (gpu/torch_commands.txt).
if(HOLDFAST_BUILDS_TORCH_CUDA)
  add_subdirectory(gpu/torch)
  if(TARGET libtorch)
    add_dependencies(gpu_tests libtorch)
  endif()
else()
  add_test(NAME gpu_torch COMMAND sh -c "echo 'gpu_torch: SKIPPED: the LibTorch of the build has no part for CUDA (docs/torch.md)' >&2; exit 77")
  set_tests_properties(gpu_torch PROPERTIES LABELS extra SKIP_RETURN_CODE 77)
endif()

file(GLOB emulation_sources CONFIGURE_DEPENDS emulation/*.cpp)
add_library(holdfast_emulated_cuda STATIC ${emulation_sources} gpu/support/gpu_test.cpp)
# Source by source, as the library that it stands for.
set_target_properties(holdfast_emulated_cuda PROPERTIES UNITY_BUILD OFF)
target_include_directories(holdfast_emulated_cuda PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}
                                                         ${CMAKE_CURRENT_SOURCE_DIR}/emulation ${cuda_includes}
                                                         ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(holdfast_emulated_cuda PUBLIC holdfast_options Holdfast::sdk GTest::gtest)
foreach(source
    products/bfloat16_arrays.cu products/columns_convolution.cpp products/cuda_convolution.cpp products/cuda_batched_product.cpp products/cuda_dense.cpp
    products/cudnn_convolution.cpp products/cudnn_descriptor.cpp products/direct_convolution.cu products/image_columns.cu products/matrix_product.cpp
    products/transposed_arrays.cu
    kernels/columns.cu kernels/cuda_activation.cu kernels/cuda_array_kernels.cu kernels/cuda_row_kernels.cu kernels/cuda_batch_normalization.cu
    kernels/cuda_attention_scores.cu kernels/cuda_dropout.cu kernels/cuda_recurrent_cells.cu
    kernels/cuda_gradient_norms.cu kernels/cuda_losses.cu kernels/cuda_metrics.cu kernels/cuda_optimizers.cu
    kernels/cuda_pooling.cu
    runtime/cuda_arrays.cu runtime/cuda_digester.cu runtime/cuda_launch.cpp runtime/small_copies.cu
    backend/cuda_kernels.cpp)
  emulate_kernels(holdfast_emulated_cuda compute/cuda/${source})
endforeach()
emulate_kernels(holdfast_emulated_cuda collective/nccl/cuda_collective_stream.cu)
target_sources(holdfast_emulated_cuda PRIVATE ${sdk_sources}/collective/nccl/ordered_sum_program.cpp)

holdfast_test(unit_compute_cuda_products unit/compute/cuda/products OPTIMISED LABELS unit extra
              LIBRARIES holdfast_emulated_cuda)
holdfast_test(unit_compute_cuda_kernels unit/compute/cuda/kernels OPTIMISED LABELS unit extra
              LIBRARIES holdfast_emulated_cuda)
# Most tests of kernels that a device runs.
file(GLOB kernel_tests CONFIGURE_DEPENDS gpu/kernels/*_test.cpp)
target_sources(unit_compute_cuda_kernels PRIVATE
               ${kernel_tests} gpu/collective/cuda_collective_stream_test.cpp gpu/layers/activation_test.cpp
               gpu/layers/array_kernels_test.cpp gpu/layers/batched_product_test.cpp
               gpu/layers/batch_normalization_test.cpp gpu/layers/convolution_test.cpp gpu/layers/dense_test.cpp
               gpu/layers/pooling_test.cpp gpu/layers/reference_cases_test.cpp gpu/layers/support/layer_test.cpp
               ${reference_support})
# Large samples would take minutes, one thread of a block after the other.
set(too_large *50257 *1100_1031 *10000_37 *64_1024 *2048_10 *OfAResidualNetwork*
              *DeviceConvolution.GivesTheSameBits* *DeviceDense.GivesTheSameBits* *DeviceDense.*ForLargeMatrices*)
list(JOIN too_large ":" too_large)
set_property(TEST unit_compute_cuda_kernels APPEND PROPERTY ENVIRONMENT "GTEST_FILTER=-${too_large}")

# What needs no kernel.
holdfast_test(unit_compute_cuda unit/compute/cuda LABELS unit extra LIBRARIES holdfast_cuda_objects
              INCLUDES ${cuda_includes})
# On a CUDA runtime that only pretends to have a device.
holdfast_test(unit_compute_cuda_memory unit/compute/cuda/memory LABELS unit extra LIBRARIES Holdfast::sdk
              INCLUDES ${cuda_includes} ${CUDAToolkit_INCLUDE_DIRS})
foreach(source array_holder cuda_context cuda_error cuda_memory_space cuda_row_feed device_sentences graph_cache
               staging_ring)
  target_sources(unit_compute_cuda_memory PRIVATE ${sdk_sources}/compute/cuda/runtime/${source}.cpp)
endforeach()

add_test(NAME cuda_library_symbols COMMAND ${CMAKE_COMMAND} -D NM=${CMAKE_NM} -D LIBRARY=$<TARGET_FILE:holdfast_cuda>
                                           -P ${CMAKE_CURRENT_SOURCE_DIR}/cuda_library_symbols.cmake)
set_tests_properties(cuda_library_symbols PROPERTIES LABELS "unit;extra")

# The machine code that nvcc made of the kernels.
add_test(NAME device_code COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/device_code/run ${CMAKE_BINARY_DIR})
set_tests_properties(device_code PROPERTIES LABELS "interop;extra" TIMEOUT 900 SKIP_RETURN_CODE 77)
