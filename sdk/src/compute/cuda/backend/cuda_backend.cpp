// Every operation holds the stream lock while it queues work, because the stream, the workspace and the current
// device belong to the thread that queues. A wait does not hold it, so several threads can compute shards on one device
// while one of them waits. See docs/decisions/devices.md.

#include "compute/cuda/backend/cuda_backend.h"

#include <fmt/format.h>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "compute/cuda/backend/locked_kernels.h"
#include "compute/cuda/kernels/cuda_array_kernels.h"
#include "compute/cuda/kernels/cuda_dropout.h"
#include "compute/cuda/kernels/cuda_operations.h"
#include "compute/cuda/runtime/cuda_launch.h"
#include "compute/cuda/runtime/cuda_memory_space.h"
#include "compute/cuda/runtime/graph_cache.h"

namespace holdfast::compute {
namespace {

// Dropout that holds the stream lock while it queues, as the other operations do.
class LockedDropout final : public DropoutOperation {
 public:
  LockedDropout(CudaContext& context, std::unique_ptr<DropoutOperation> dropout)
      : context_(context), dropout_(std::move(dropout)) {}

  void forward(const float* input, float* output) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    dropout_->forward(input, output);
  }

  void backward(const float* output_gradient, float* input_gradient) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    dropout_->backward(output_gradient, input_gradient);
  }

 private:
  CudaContext& context_;
  const std::unique_ptr<DropoutOperation> dropout_;
};

// HOLDFAST_CUDA_GRAPHS=off queues each kernel by itself, which helps to find a fault. The bits are the same.
bool graphs_are_wanted() {
  const char* const wish = std::getenv("HOLDFAST_CUDA_GRAPHS");
  return wish == nullptr || std::string_view(wish) != "off";
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(std::shared_ptr<CudaMemorySpace> memory, Precision precision)
      : memory_(std::move(memory)),
        context_(memory_->context()),
        precision_(precision),
        draws_(*memory_, context_.stream()),
        kernels_(*memory_),
        array_kernels_(context_),
        graphs_(context_, graphs_are_wanted()) {}

  // Making an operation asks libraries and may enlarge the workspace, so it takes the lock, too.
  std::unique_ptr<DenseOperation> dense(const DenseShape& shape, Use use) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    return make_cuda_dense(context_, precision_, shape, use);
  }

  std::unique_ptr<ConvolutionOperation> convolution(const ConvolutionShape& shape, Use use) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    return make_cuda_convolution(context_, precision_, shape, use);
  }

  std::unique_ptr<PoolingOperation> pooling(const PoolingShape& shape, Use use) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    return make_cuda_pooling(context_, shape, use);
  }

  std::unique_ptr<ActivationOperation> activation(const ActivationShape& shape, Use) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    return make_cuda_activation(context_, shape);
  }

  std::unique_ptr<BatchNormalizationOperation> batch_normalization(const BatchNormalizationShape& shape,
                                                                   Use use) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    return make_cuda_batch_normalization(context_, shape, use);
  }

  std::unique_ptr<BatchedProductOperation> batched_product(const BatchedProductShape& shape) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    return make_cuda_batched_product(context_, precision_, shape);
  }

  std::unique_ptr<DropoutOperation> dropout(const DropoutShape& shape) override {
    // Only dropout reads the draws, so models without it do not queue the kernel that sets them.
    has_dropout_ = true;
    // The step may have set its draws before this operation was made.
    set_draws(last_draws_);
    return std::make_unique<LockedDropout>(context_, make_cuda_dropout(shape, draws_, context_.stream()));
  }

  void set_draws(const RandomKey& draws) override {
    last_draws_ = draws;
    if (!has_dropout_) return;
    const CudaContext::StreamLock lock = context_.lock_stream();
    draws_.set(draws);
  }

  // Otherwise this overload would hide the one for a single part.
  using Backend::repeat;
  void repeat(std::span<const std::uint64_t> key, std::span<const std::function<void()>> parts,
              const std::function<void(std::size_t)>& after_part) override {
    graphs_.run(key, parts, after_part);
  }
  std::string repeat_obstacle() const override { return graphs_.obstacle(); }

  MemorySpace& memory() override { return *memory_; }
  ArrayKernels& array_kernels() override { return array_kernels_; }
  DeviceKernels* device_kernels() override { return &kernels_; }

  // All on which bits depend: the libraries and the device, our own kernels, and the precision.
  std::string description() const override {
    return fmt::format("{}, kernels {}, {}", context_.description(), kKernelsVersion, name(precision_));
  }

  void queue_on_stream(const std::function<void(void* stream)>& queue) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    queue(context_.stream());
    // A launch that failed is found here, and not at the next kernel of ours, which would be blamed.
    check_launch("an operation of the application", {});
  }

 private:
  const std::shared_ptr<CudaMemorySpace> memory_;
  CudaContext& context_;
  const Precision precision_;
  CudaDraws draws_;
  RandomKey last_draws_;
  bool has_dropout_ = false;  // only dropout reads draws_
  LockedKernels kernels_;
  CudaArrayKernels array_kernels_;
  GraphCache graphs_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(int device, Precision precision) {
  std::shared_ptr<CudaMemorySpace> memory = CudaMemorySpace::of_device(device);
  // The back end's constructor queues work: it clears the word for bad labels.
  const CudaContext::StreamLock lock = memory->context().lock_stream();
  return std::make_unique<CudaBackend>(memory, precision);
}

}  // namespace holdfast::compute
