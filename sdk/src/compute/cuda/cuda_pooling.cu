#include "compute/arithmetic/pooling.h"
#include "compute/cuda/cuda_launch.h"
#include "compute/cuda/cuda_operations.h"

namespace holdfast::compute {
namespace {

constexpr int kThreads = 256;

__device__ std::int64_t thread_index() {
  return std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
}

// `positions` is null where no backward pass will ask for them.
__global__ void pool_maximum(PoolingPlan plan, std::int64_t outputs, const float* input, float* output,
                             std::int32_t* positions) {
  const std::int64_t index = thread_index();
  if (index >= outputs) return;
  const Maximum maximum = maximum_of_window(plan, input, index);
  output[index] = maximum.value;
  if (positions != nullptr) positions[index] = maximum.position;
}

__global__ void pool_maximum_backward(PoolingPlan plan, std::int64_t inputs, const float* output_gradient,
                                      const std::int32_t* positions, float* input_gradient) {
  const std::int64_t index = thread_index();
  if (index < inputs) input_gradient[index] = gradient_of_maximum(plan, output_gradient, positions, index);
}

__global__ void pool_average(PoolingPlan plan, std::int64_t outputs, const float* input, float* output) {
  const std::int64_t index = thread_index();
  if (index < outputs) output[index] = average_of_window(plan, input, index);
}

__global__ void pool_average_backward(PoolingPlan plan, std::int64_t inputs, const float* output_gradient,
                                      float* input_gradient) {
  const std::int64_t index = thread_index();
  if (index < inputs) input_gradient[index] = gradient_of_average(plan, output_gradient, index);
}

std::string describe(const PoolingShape& shape) {
  return std::string(shape.kind == PoolingKind::maximum ? "maximum" : "average") + " pooling of [" +
         std::to_string(shape.samples) + ", " + std::to_string(shape.height) + ", " + std::to_string(shape.width) +
         ", " + std::to_string(shape.channels) + "], windows [" + std::to_string(shape.pool_height) + ", " +
         std::to_string(shape.pool_width) + "]";
}

class CudaPooling final : public PoolingOperation {
 public:
  CudaPooling(CudaContext& context, const PoolingShape& shape, Use use)
      : context_(context), kind_(shape.kind), plan_(shape), operation_(describe(shape)) {
    if (use.input_gradient && kind_ == PoolingKind::maximum) {
      position_memory_ = context.allocate(static_cast<std::size_t>(plan_.output_elements()) * sizeof(std::int32_t));
    }
  }

  void forward(const float* input, float* output) override {
    const CudaContext::Turn turn = context_.take_turn();
    const std::int64_t outputs = plan_.output_elements();
    const unsigned blocks = block_count(outputs, kThreads);
    if (kind_ == PoolingKind::maximum) {
      pool_maximum<<<blocks, kThreads, 0, context_.stream()>>>(plan_, outputs, input, output, positions());
    } else {
      pool_average<<<blocks, kThreads, 0, context_.stream()>>>(plan_, outputs, input, output);
    }
    check_launch(operation_);
  }

  void backward(const float* output_gradient, float* input_gradient) override {
    const CudaContext::Turn turn = context_.take_turn();
    const std::int64_t inputs = plan_.input_elements();
    const unsigned blocks = block_count(inputs, kThreads);
    if (kind_ == PoolingKind::maximum) {
      pool_maximum_backward<<<blocks, kThreads, 0, context_.stream()>>>(plan_, inputs, output_gradient, positions(),
                                                                        input_gradient);
    } else {
      pool_average_backward<<<blocks, kThreads, 0, context_.stream()>>>(plan_, inputs, output_gradient, input_gradient);
    }
    check_launch(operation_);
  }

 private:
  std::int32_t* positions() const { return reinterpret_cast<std::int32_t*>(position_memory_.get()); }

  CudaContext& context_;
  const PoolingKind kind_;
  const PoolingPlan plan_;
  const std::string operation_;
  std::shared_ptr<std::byte[]> position_memory_;  // [sample, row, column, channel], i32: where each maximum was found
};

}  // namespace

std::unique_ptr<PoolingOperation> make_cuda_pooling(CudaContext& context, const PoolingShape& shape, Use use) {
  return std::make_unique<CudaPooling>(context, shape, use);
}

}  // namespace holdfast::compute
