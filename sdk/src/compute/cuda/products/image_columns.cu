#include "compute/cuda/products/image_columns.h"

#include "compute/cuda/runtime/cuda_elements.cuh"

namespace holdfast::compute {
namespace {

template <int kCount>
__global__ void __launch_bounds__(kElementThreads)
    column_elements(ConvolutionPlan plan, std::int64_t elements, const float* input, float* columns) {
  const std::int64_t index = first_element<kCount>();
  if (index >= elements) return;
  const std::int64_t from = input_of_column_element(plan, index);
  FloatVector<kCount> values = {};
  // Padding counts as zero, which adds nothing to a product.
  if (from != kPadding) values = load<kCount>(input, from);
  store(columns, index, values);
}

template <int kCount>
__global__ void __launch_bounds__(kElementThreads)
    column_gradients(ConvolutionPlan plan, std::int64_t inputs, const float* column_gradient, float* input_gradient) {
  const std::int64_t index = first_element<kCount>();
  if (index >= inputs) return;
  FloatVector<kCount> sums = {};
  // Gathered and not scattered: each input has one thread, and its sum one order.
  for_each_column_element(plan, index, [&](std::int64_t at) {
    const auto gradients = load<kCount>(column_gradient, at);
    for (int i = 0; i < kCount; ++i) sums.at[i] += gradients.at[i];
  });
  store(input_gradient, index, sums);
}

bool can_take_vectors(const ConvolutionPlan& plan, std::initializer_list<const float*> arrays) {
  // Then a vector never reaches into another place of the image.
  return plan.channels % kVectorFloats == 0 && is_aligned_for_vectors(arrays);
}

}  // namespace

void make_columns(cudaStream_t stream, const std::string& operation, const ConvolutionPlan& plan, std::int64_t samples,
                  const float* input, float* columns) {
  const std::int64_t elements = samples * plan.sample_windows() * plan.window_elements();
  const bool takes_vectors = can_take_vectors(plan, {input, columns});
  const auto kernel = takes_vectors ? column_elements<kVectorFloats> : column_elements<1>;
  launch(kernel, block_count(elements, takes_vectors ? kElementThreads * kVectorFloats : kElementThreads),
         kElementThreads, stream, plan, elements, input, columns);
  check_launch(operation.c_str(), {{"elements", elements}});
}

void gather_column_gradients(cudaStream_t stream, const std::string& operation, const ConvolutionPlan& plan,
                             std::int64_t samples, const float* column_gradient, float* input_gradient) {
  const std::int64_t inputs = samples * plan.sample_inputs();
  const bool takes_vectors = can_take_vectors(plan, {column_gradient, input_gradient});
  const auto kernel = takes_vectors ? column_gradients<kVectorFloats> : column_gradients<1>;
  launch(kernel, block_count(inputs, takes_vectors ? kElementThreads * kVectorFloats : kElementThreads),
         kElementThreads, stream, plan, inputs, column_gradient, input_gradient);
  check_launch(operation.c_str(), {{"inputs", inputs}});
}

}  // namespace holdfast::compute
