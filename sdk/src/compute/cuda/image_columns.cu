#include "compute/cuda/image_columns.h"

#include "compute/cuda/cuda_error.h"
#include "compute/cuda/cuda_launch.cuh"

namespace holdfast::compute {
namespace {

constexpr int kThreads = 256;

__device__ std::int64_t thread_index() {
  return std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
}

__global__ void column_elements(ConvolutionPlan plan, std::int64_t elements, const float* input, float* columns) {
  const std::int64_t index = thread_index();
  if (index < elements) columns[index] = column_element(plan, input, index);
}

__global__ void column_gradients(ConvolutionPlan plan, std::int64_t inputs, const float* column_gradient,
                                 float* input_gradient) {
  const std::int64_t index = thread_index();
  if (index < inputs) input_gradient[index] = gradient_of_columns(plan, column_gradient, index);
}

}  // namespace

void make_columns(cudaStream_t stream, const std::string& operation, const ConvolutionPlan& plan, std::int64_t samples,
                  const float* input, float* columns) {
  const std::int64_t elements = samples * plan.sample_windows() * plan.window_elements();
  launch(column_elements, block_count(elements, kThreads), kThreads, stream, plan, elements, input, columns);
  check_launch(operation);
}

void gather_column_gradients(cudaStream_t stream, const std::string& operation, const ConvolutionPlan& plan,
                             std::int64_t samples, const float* column_gradient, float* input_gradient) {
  const std::int64_t inputs = samples * plan.sample_inputs();
  launch(column_gradients, block_count(inputs, kThreads), kThreads, stream, plan, inputs, column_gradient,
         input_gradient);
  check_launch(operation);
}

}  // namespace holdfast::compute
