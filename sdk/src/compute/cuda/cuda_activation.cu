#include <cmath>

#include "compute/arithmetic/activations.h"
#include "compute/cuda/cuda_elements.cuh"
#include "compute/cuda/cuda_operations.h"

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
    const CudaContext::Turn turn = context_.take_turn();
    run_pass("activation, forward", ForwardPass<Formula>{input, output}, floats_, {input, output}, context_.stream());
  }

  void backward(const float* kept, const float* output_gradient, float* input_gradient) override {
    const CudaContext::Turn turn = context_.take_turn();
    run_pass("activation, backward", BackwardPass<Formula>{kept, output_gradient, input_gradient}, floats_,
             {kept, output_gradient, input_gradient}, context_.stream());
  }

 private:
  CudaContext& context_;
  const std::size_t floats_;
};

constexpr int kWarpThreads = 32;
constexpr int kWarpsPerBlock = 8;
constexpr unsigned kWholeWarp = 0xFFFFFFFF;

// The sum of all lanes' values, in a fixed tree, for each of them.
__device__ float warp_sum(float value) {
  for (int distance = kWarpThreads / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kWholeWarp, value, distance);
  }
  return value;
}

__device__ float warp_maximum(float value) {
  for (int distance = kWarpThreads / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, distance));
  }
  return value;
}

// One warp a row. Each lane reads and writes its own elements only, so that `output` may be `input`.
__global__ void softmax(std::int64_t rows, std::int64_t channels, const float* input, float* output) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarpsPerBlock + threadIdx.y;
  if (row >= rows) return;
  const float* const from = input + row * channels;
  float* const to = output + row * channels;
  float largest = -INFINITY;
  for (std::int64_t i = threadIdx.x; i < channels; i += kWarpThreads) largest = fmaxf(largest, from[i]);
  largest = warp_maximum(largest);
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < channels; i += kWarpThreads) sum += expf(from[i] - largest);
  sum = warp_sum(sum);
  for (std::int64_t i = threadIdx.x; i < channels; i += kWarpThreads) to[i] = expf(from[i] - largest) / sum;
}

// input_gradient = output * (output_gradient - sum of output * output_gradient)
__global__ void softmax_backward(std::int64_t rows, std::int64_t channels, const float* output,
                                 const float* output_gradient, float* input_gradient) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarpsPerBlock + threadIdx.y;
  if (row >= rows) return;
  const std::int64_t begin = row * channels;
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < channels; i += kWarpThreads) {
    sum += output[begin + i] * output_gradient[begin + i];
  }
  sum = warp_sum(sum);
  for (std::int64_t i = threadIdx.x; i < channels; i += kWarpThreads) {
    input_gradient[begin + i] = output[begin + i] * (output_gradient[begin + i] - sum);
  }
}

class CudaSoftmax final : public ActivationOperation {
 public:
  CudaSoftmax(CudaContext& context, const ActivationShape& shape) : context_(context), shape_(shape) {}

  void forward(const float* input, float* output) override {
    const CudaContext::Turn turn = context_.take_turn();
    softmax<<<blocks(), threads(), 0, context_.stream()>>>(shape_.rows, shape_.channels, input, output);
    check_launch("softmax", {{"rows", shape_.rows}, {"channels", shape_.channels}});
  }

  void backward(const float* kept, const float* output_gradient, float* input_gradient) override {
    const CudaContext::Turn turn = context_.take_turn();
    softmax_backward<<<blocks(), threads(), 0, context_.stream()>>>(shape_.rows, shape_.channels, kept, output_gradient,
                                                                    input_gradient);
    check_launch("softmax_backward", {{"rows", shape_.rows}, {"channels", shape_.channels}});
  }

 private:
  unsigned blocks() const { return block_count(shape_.rows, kWarpsPerBlock); }
  static dim3 threads() { return {kWarpThreads, kWarpsPerBlock}; }

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
    case Activation::linear:
      break;
  }
  HOLDFAST_ASSERT(shape.activation == Activation::softmax);
  return std::make_unique<CudaSoftmax>(context, shape);
}

}  // namespace holdfast::compute
