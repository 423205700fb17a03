// Convolution by kernels in which a thread sums one element, for shapes with groups, dilation or a depth that cuDNN has
// no engine for. A thread of the kernel's gradient sums some rows of windows, and those sums are then added in one
// order. See docs/decisions/convolution.md.

#include <algorithm>

#include "compute/arithmetic/direct_convolution.h"
#include "compute/cuda/kernels/columns.h"
#include "compute/cuda/products/cuda_convolution.h"
#include "compute/cuda/runtime/array_alignment.h"
#include "compute/cuda/runtime/cuda_elements.cuh"

namespace holdfast::compute {
namespace {

// Enough threads for any device, and an upper limit of the partial sums' memory.
constexpr std::int64_t kPartialSums = std::int64_t{1} << 20;

__global__ void __launch_bounds__(kElementThreads)
    direct_outputs(DirectConvolution plan, std::int64_t count, const float* input, const float* kernel, float* output) {
  const std::int64_t index = first_element<1>();
  if (index < count) output[index] = direct_output(plan, index, input, kernel);
}

__global__ void __launch_bounds__(kElementThreads)
    direct_input_gradients(DirectConvolution plan, std::int64_t count, const float* kernel,
                           const float* output_gradient, float* input_gradient) {
  const std::int64_t index = first_element<1>();
  if (index < count) input_gradient[index] = direct_input_gradient(plan, index, kernel, output_gradient);
}

// partial_sums[part, element]: a part is `part_lines` rows of windows.
__global__ void __launch_bounds__(kElementThreads)
    direct_kernel_gradients(DirectConvolution plan, std::int64_t count, std::int64_t part_lines, const float* input,
                            const float* output_gradient, float* partial_sums) {
  const std::int64_t index = first_element<1>();
  if (index >= count) return;
  const std::int64_t first = index / plan.kernel_elements() * part_lines;
  // The last part may be shorter.
  const std::int64_t end = first + part_lines < plan.lines() ? first + part_lines : plan.lines();
  partial_sums[index] =
      direct_kernel_gradient(plan, index % plan.kernel_elements(), first, end, input, output_gradient);
}

class DirectCudaConvolution final : public ConvolutionOperation {
 public:
  DirectCudaConvolution(CudaContext& context, const ConvolutionShape& shape, const ConvolutionPasses& passes)
      : context_(context),
        plan_(shape),
        has_bias_(shape.has_bias),
        operation_(describe_convolution("a pass", shape)),
        part_lines_(lines_of_part(plan_)) {
    // The other passes write their results at once and need no memory in between.
    if (passes.backward_weights) {
      context.reserve_workspace(partial_bytes() +
                                // The sums for kernel and bias follow each other, so they use the same memory.
                                std::max(column_sums_bytes(partial_sums()), column_sums_bytes(outputs())));
    }
  }

  void forward(const float* input, const float* kernel, const float* bias, float* output) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    const std::int64_t count = outputs().rows * outputs().columns;
    start(direct_outputs, count, input, kernel, output);
    if (has_bias_) add_to_columns(context_.stream(), operation_, outputs(), bias, output);
  }

  void backward_input(const float* kernel, const float* output_gradient, float* input_gradient) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    start(direct_input_gradients, plan_.inputs(), kernel, output_gradient, input_gradient);
  }

  void backward_weights(const float* input, const float* output_gradient, float* kernel_gradient,
                        float* bias_gradient) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    float* const partial = reinterpret_cast<float*>(context_.workspace());
    std::byte* const rest = context_.workspace() + partial_bytes();
    const MatrixExtent extent = partial_sums();
    start(direct_kernel_gradients, extent.rows * extent.columns, part_lines_, input, output_gradient, partial);
    // The parts are rows of a matrix, so their sum has the order that sums of columns have.
    sum_columns(context_.stream(), operation_, extent, partial, rest, kernel_gradient);
    if (has_bias_) sum_columns(context_.stream(), operation_, outputs(), output_gradient, rest, bias_gradient);
  }

 private:
  static std::int64_t lines_of_part(const DirectConvolution& plan) {
    // A small kernel has few elements. Without parts most of the device would be idle.
    const std::int64_t parts = std::clamp(kPartialSums / plan.kernel_elements(), std::int64_t{1}, plan.lines());
    return (plan.lines() + parts - 1) / parts;
  }

  MatrixExtent partial_sums() const {
    return {(plan_.lines() + part_lines_ - 1) / part_lines_, plan_.kernel_elements()};
  }
  MatrixExtent outputs() const { return {plan_.windows(), plan_.filters}; }
  std::size_t partial_bytes() const {
    return round_to_block(static_cast<std::size_t>(partial_sums().rows * partial_sums().columns) * sizeof(float));
  }

  template <class Kernel, class... Arguments>
  void start(const Kernel& kernel, std::int64_t elements, const Arguments&... arguments) const {
    launch(kernel, block_count(elements, kElementThreads), kElementThreads, context_.stream(), plan_, elements,
           arguments...);
    check_launch(operation_.c_str(), {{"elements", elements}});
  }

  CudaContext& context_;
  const DirectConvolution plan_;
  const bool has_bias_;
  const std::string operation_;
  const std::int64_t part_lines_;
};

}  // namespace

std::unique_ptr<ConvolutionOperation> make_direct_convolution(CudaContext& context, const ConvolutionShape& shape,
                                                              const ConvolutionPasses& passes) {
  return std::make_unique<DirectCudaConvolution>(context, shape, passes);
}

}  // namespace holdfast::compute
