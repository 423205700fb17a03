// The CPU's operations, run through the pretended memory, which records and repeats them as a device does.

#include "pretended_backend.h"

#include <fmt/format.h>
#include <functional>
#include <utility>

#include "pretended_kernels.h"

namespace holdfast {
namespace {

using namespace compute;

template <class Operation>
class OnDevice : public Operation {
 public:
  OnDevice(std::unique_ptr<Operation> on_host, PretendedMemory& memory)
      : on_host_(std::move(on_host)), memory_(memory) {}

 protected:
  // `call` gets the operation of the host.
  void queue(std::function<void(Operation&)> call) {
    memory_.queue([operation = on_host_, call = std::move(call)] { call(*operation); });
  }

 private:
  const std::shared_ptr<Operation> on_host_;
  PretendedMemory& memory_;
};

// Dense and convolution have the same passes.
template <class Operation>
class KernelOnDevice final : public OnDevice<Operation> {
 public:
  using OnDevice<Operation>::OnDevice;
  void forward(const float* input, const float* kernel, const float* bias, float* output) override {
    this->queue([=](auto& operation) { operation.forward(input, kernel, bias, output); });
  }
  void backward_input(const float* kernel, const float* output_gradient, float* input_gradient) override {
    this->queue([=](auto& operation) { operation.backward_input(kernel, output_gradient, input_gradient); });
  }
  void backward_weights(const float* input, const float* output_gradient, float* kernel_gradient,
                        float* bias_gradient) override {
    this->queue(
        [=](auto& operation) { operation.backward_weights(input, output_gradient, kernel_gradient, bias_gradient); });
  }
};

// Pooling and dropout have the same passes.
template <class Operation>
class TwoPassesOnDevice final : public OnDevice<Operation> {
 public:
  using OnDevice<Operation>::OnDevice;
  void forward(const float* input, float* output) override {
    this->queue([=](auto& operation) { operation.forward(input, output); });
  }
  void backward(const float* output_gradient, float* input_gradient) override {
    this->queue([=](auto& operation) { operation.backward(output_gradient, input_gradient); });
  }
};

class ActivationOnDevice final : public OnDevice<ActivationOperation> {
 public:
  using OnDevice::OnDevice;
  void forward(const float* input, float* output) override {
    this->queue([=](auto& operation) { operation.forward(input, output); });
  }
  void backward(const float* kept, const float* output_gradient, float* input_gradient) override {
    this->queue([=](auto& operation) { operation.backward(kept, output_gradient, input_gradient); });
  }
};

class BatchNormalizationOnDevice final : public OnDevice<BatchNormalizationOperation> {
 public:
  using OnDevice::OnDevice;
  void forward_training(const float* input, const float* gamma, const float* beta, float* output) override {
    this->queue([=](auto& operation) { operation.forward_training(input, gamma, beta, output); });
  }
  void forward_inference(const float* input, const float* gamma, const float* beta, const float* mean,
                         const float* variance, float* output) override {
    this->queue([=](auto& operation) { operation.forward_inference(input, gamma, beta, mean, variance, output); });
  }
  void backward(const float* input, const float* gamma, const float* output_gradient, float* input_gradient,
                float* gamma_gradient, float* beta_gradient) override {
    this->queue([=](auto& operation) {
      operation.backward(input, gamma, output_gradient, input_gradient, gamma_gradient, beta_gradient);
    });
  }
  void contribute(float* contributions) override {
    this->queue([=](auto& operation) { operation.contribute(contributions); });
  }
};

class BatchedProductOnDevice final : public OnDevice<BatchedProductOperation> {
 public:
  using OnDevice::OnDevice;
  void run(const float* left, const float* right, float* result) override {
    this->queue([=](auto& operation) { operation.run(left, right, result); });
  }
};

class ArrayKernelsOnDevice final : public compute::ArrayKernels {
 public:
  ArrayKernelsOnDevice(PretendedMemory& memory, compute::ArrayKernels& kernels) : memory_(memory), kernels_(kernels) {}

  void elements(const compute::ElementProgram& program, const compute::ElementShape& shape,
                std::span<const float* const> inputs, std::span<float* const> outputs) override {
    memory_.queue([this, program, shape, from = std::vector(inputs.begin(), inputs.end()),
                   to = std::vector(outputs.begin(), outputs.end())] { kernels_.elements(program, shape, from, to); });
  }
  void copy(const compute::StridedCopy& copy, const float* from, float* to) override {
    memory_.queue([=, this] { kernels_.copy(copy, from, to); });
  }
  void reduce(const compute::RowReduction& reduction, const float* from, float* to) override {
    memory_.queue([=, this] { kernels_.reduce(reduction, from, to); });
  }
  void convert(const compute::RowConversion& conversion, const float* from, float* to) override {
    memory_.queue([=, this] { kernels_.convert(conversion, from, to); });
  }
  void gather(const compute::RowGather& gather, const float* table, const float* ids, float* to) override {
    memory_.queue([=, this] { kernels_.gather(gather, table, ids, to); });
  }
  void scatter_sum(const compute::RowGather& gather, const float* from, const float* ids, float* table) override {
    memory_.queue([=, this] { kernels_.scatter_sum(gather, from, ids, table); });
  }
  void attention_shares(const AttentionScores& scores, const float* from, const float* mask, float* shares) override {
    memory_.queue([=, this] { kernels_.attention_shares(scores, from, mask, shares); });
  }
  void attention_shares_backward(const AttentionScores& scores, const float* shares, const float* shares_gradient,
                                 float* scores_gradient) override {
    memory_.queue([=, this] { kernels_.attention_shares_backward(scores, shares, shares_gradient, scores_gradient); });
  }
  void cells_forward(const RecurrentCells& cells, const CellsForward& arrays) override {
    memory_.queue([=, this] { kernels_.cells_forward(cells, arrays); });
  }
  void cells_backward(const RecurrentCells& cells, const CellsBackward& arrays) override {
    memory_.queue([=, this] { kernels_.cells_backward(cells, arrays); });
  }

 private:
  PretendedMemory& memory_;
  compute::ArrayKernels& kernels_;
};

class PretendedBackend final : public Backend {
 public:
  PretendedBackend(PretendedMemory& memory, Precision precision)
      : memory_(memory),
        precision_(precision),
        kernels_(memory),
        on_host_(make_cpu_backend(1)),
        array_kernels_(memory, on_host_->array_kernels()) {}

  std::unique_ptr<DenseOperation> dense(const DenseShape& shape, Use use) override {
    return wrapped<KernelOnDevice<DenseOperation>>(on_host_->dense(shape, use));
  }
  std::unique_ptr<ConvolutionOperation> convolution(const ConvolutionShape& shape, Use use) override {
    return wrapped<KernelOnDevice<ConvolutionOperation>>(on_host_->convolution(shape, use));
  }
  std::unique_ptr<PoolingOperation> pooling(const PoolingShape& shape, Use use) override {
    return wrapped<TwoPassesOnDevice<PoolingOperation>>(on_host_->pooling(shape, use));
  }
  std::unique_ptr<ActivationOperation> activation(const ActivationShape& shape, Use use) override {
    return wrapped<ActivationOnDevice>(on_host_->activation(shape, use));
  }
  std::unique_ptr<BatchNormalizationOperation> batch_normalization(const BatchNormalizationShape& shape,
                                                                   Use use) override {
    return wrapped<BatchNormalizationOnDevice>(on_host_->batch_normalization(shape, use));
  }
  std::unique_ptr<DropoutOperation> dropout(const DropoutShape& shape) override {
    return wrapped<TwoPassesOnDevice<DropoutOperation>>(on_host_->dropout(shape));
  }
  std::unique_ptr<BatchedProductOperation> batched_product(const BatchedProductShape& shape) override {
    return wrapped<BatchedProductOnDevice>(on_host_->batched_product(shape));
  }
  // Repeated work uses the draws that are set when it runs.
  void set_draws(const RandomKey& draws) override {
    memory_.require_no_recording();
    on_host_->set_draws(draws);
  }
  using Backend::repeat;
  void repeat(std::span<const std::uint64_t> key, std::span<const std::function<void()>> parts,
              const std::function<void(std::size_t)>& after_part) override {
    memory_.repeat(key, parts, after_part);
  }
  std::string repeat_obstacle() const override { return {}; }
  MemorySpace& memory() override { return memory_; }
  ArrayKernels& array_kernels() override { return array_kernels_; }
  DeviceKernels* device_kernels() override { return &kernels_; }
  std::string description() const override {
    return fmt::format("pretended device, {}, {}", on_host_->description(), name(precision_));
  }
  void queue_on_stream(const std::function<void(void* stream)>& queue) override {
    memory_.queue([queue] { queue(nullptr); });
  }

 private:
  template <class Wrapper, class Operation>
  std::unique_ptr<Operation> wrapped(std::unique_ptr<Operation> operation) {
    return std::make_unique<Wrapper>(std::move(operation), memory_);
  }

  PretendedMemory& memory_;
  const Precision precision_;
  PretendedKernels kernels_;
  std::unique_ptr<Backend> on_host_;
  ArrayKernelsOnDevice array_kernels_;
};

}  // namespace

std::unique_ptr<Backend> make_pretended_backend(PretendedMemory& memory, Precision precision) {
  return std::make_unique<PretendedBackend>(memory, precision);
}

}  // namespace holdfast
