// Activations on CUDA devices. Element-wise ones use the formulas of arithmetic/activations.h in one pass over memory.
// A softmax takes a warp or a block for each row and subtracts the row's largest element first, so that no exponential
// overflows. Its sums have an order that depends on the row's length alone. See docs/decisions/device-arithmetic.md.

#include <cmath>

#include "compute/arithmetic/activations.h"
#include "compute/arithmetic/softmax.h"
#include "compute/cuda/kernels/cuda_operations.h"
#include "compute/cuda/kernels/cuda_sums.cuh"
#include "compute/cuda/runtime/cuda_elements.cuh"

namespace holdfast::compute {
namespace {

template <class Formula>
struct ForwardPass {
  const float* input;
  float* output;

  template <int kCount>
  __device__ void run(std::size_t index) const {
    FloatVector<kCount> values = load<kCount>(input, index);
    for (int i = 0; i < kCount; ++i) values.at[i] = Formula::value(values.at[i]);
    store(output, index, values);
  }
};

template <class Formula>
struct BackwardPass {
  const float* kept;
  const float* output_gradient;
  float* input_gradient;

  template <int kCount>
  __device__ void run(std::size_t index) const {
    const FloatVector<kCount> at = load<kCount>(kept, index);
    FloatVector<kCount> gradients = load<kCount>(output_gradient, index);
    // `kept` is the input for GELU and the output for the others (is_differentiated_by_output()).
    for (int i = 0; i < kCount; ++i) gradients.at[i] *= Formula::derivative(at.at[i]);
    store(input_gradient, index, gradients);
  }
};

template <class Formula>
class ElementwiseActivation final : public ActivationOperation {
 public:
  ElementwiseActivation(CudaContext& context, const ActivationShape& shape)
      : context_(context), floats_(static_cast<std::size_t>(shape.rows * shape.channels)) {}

  void forward(const float* input, float* output) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    run_pass("activation, forward", ForwardPass<Formula>{input, output}, floats_, {input, output}, context_.stream());
  }

  void backward(const float* kept, const float* output_gradient, float* input_gradient) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    run_pass("activation, backward", BackwardPass<Formula>{kept, output_gradient, input_gradient}, floats_,
             {kept, output_gradient, input_gradient}, context_.stream());
  }

 private:
  CudaContext& context_;
  const std::size_t floats_;
};

// The row of the thread's group; it may be after the last row.
template <class Group>
__device__ std::int64_t row_of_group() {
  constexpr int kRowsOfBlock = kSumThreads / Group::kThreads;
  return std::int64_t{blockIdx.x} * kRowsOfBlock + threadIdx.x / Group::kThreads;
}

// One group for each row. A thread reads and writes only its own elements, so `output` may be `input`.
template <class Group>
__global__ void __launch_bounds__(kSumThreads)
    softmax(std::int64_t rows, std::int64_t channels, const float* input, float* output) {
  // All threads of a group have one row, so they return together, and none is missed in a sum of the group.
  const std::int64_t row = row_of_group<Group>();
  if (row >= rows) return;
  const float* const from = input + row * channels;
  float* const to = output + row * channels;
  const auto load = [&](std::int64_t i) { return from[i]; };
  float largest = -INFINITY;
  for_each_of_row(Group{}, channels, load, [&](std::int64_t, float value) { largest = fmaxf(largest, value); });
  // In a row of minus infinities alone, the difference of two infinities would be NaN.
  const float shift = softmax_shift(Group::largest(largest));
  float sum = 0;
  for_each_of_row(Group{}, channels, load,
                  [&](std::int64_t, float value) { sum += softmax_exponential(value, shift); });
  const float divisor = softmax_divisor(Group::sum(sum));
  for_each_of_row(Group{}, channels, load,
                  [&](std::int64_t i, float value) { to[i] = softmax_exponential(value, shift) / divisor; });
}

// Both arrays at one place, for a load that fetches them together.
struct OutputAndGradient {
  float output;
  float gradient;
};

// input_gradient = output * (output_gradient - sum of output * output_gradient)
template <class Group>
__global__ void __launch_bounds__(kSumThreads)
    softmax_backward(std::int64_t rows, std::int64_t channels, const float* output, const float* output_gradient,
                     float* input_gradient) {
  const std::int64_t row = row_of_group<Group>();
  if (row >= rows) return;
  const std::int64_t begin = row * channels;
  // Both arrays are loaded together, so that their loads overlap.
  const auto load = [&](std::int64_t i) { return OutputAndGradient{output[begin + i], output_gradient[begin + i]}; };
  float sum = 0;
  for_each_of_row(Group{}, channels, load,
                  [&](std::int64_t, const OutputAndGradient& at) { sum += at.output * at.gradient; });
  sum = Group::sum(sum);
  for_each_of_row(Group{}, channels, load, [&](std::int64_t i, const OutputAndGradient& at) {
    input_gradient[begin + i] = at.output * (at.gradient - sum);
  });
}

class CudaSoftmax final : public ActivationOperation {
 public:
  CudaSoftmax(CudaContext& context, const ActivationShape& shape) : context_(context), shape_(shape) {}

  void forward(const float* input, float* output) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    const auto kernel = is_row_of_warp() ? softmax<WarpOfRow> : softmax<BlockOfRow>;
    launch(kernel, blocks(), kSumThreads, context_.stream(), shape_.rows, shape_.channels, input, output);
    check_launch("softmax", {{"rows", shape_.rows}, {"channels", shape_.channels}});
  }

  void backward(const float* kept, const float* output_gradient, float* input_gradient) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    const auto kernel = is_row_of_warp() ? softmax_backward<WarpOfRow> : softmax_backward<BlockOfRow>;
    launch(kernel, blocks(), kSumThreads, context_.stream(), shape_.rows, shape_.channels, kept, output_gradient,
           input_gradient);
    check_launch("softmax_backward", {{"rows", shape_.rows}, {"channels", shape_.channels}});
  }

 private:
  // A short row leaves most threads of a block idle. The choice is a part of the order of the sum, so only the shape
  // decides.
  bool is_row_of_warp() const { return shape_.channels <= kWarpRow; }
  unsigned blocks() const { return block_count(shape_.rows, is_row_of_warp() ? kSumThreads / kWarp : 1); }

  CudaContext& context_;
  const ActivationShape shape_;
};

}  // namespace

std::unique_ptr<ActivationOperation> make_cuda_activation(CudaContext& context, const ActivationShape& shape) {
  switch (shape.activation) {
    case Activation::relu:
      return std::make_unique<ElementwiseActivation<Relu>>(context, shape);
    case Activation::tanh:
      return std::make_unique<ElementwiseActivation<Tanh>>(context, shape);
    case Activation::sigmoid:
      return std::make_unique<ElementwiseActivation<Sigmoid>>(context, shape);
    case Activation::gelu:
      return std::make_unique<ElementwiseActivation<Gelu>>(context, shape);
    case Activation::softmax:
    // A linear activation has no operation, so asking for one is a mistake of ours.
    case Activation::linear:
      break;
  }
  HOLDFAST_ASSERT(shape.activation == Activation::softmax);
  return std::make_unique<CudaSoftmax>(context, shape);
}

}  // namespace holdfast::compute
