// The back end for the tests of gpu/kernels and gpu/layers on a machine without a device: the host runs CUDA's kernels,
// and the libraries work in its memory.

#include "compute/cuda/backend/cuda_kernels.h"
#include "compute/cuda/kernels/cuda_array_kernels.h"
#include "compute/cuda/kernels/cuda_dropout.h"
#include "compute/cuda/kernels/cuda_operations.h"
#include "compute/cuda/runtime/cuda_arrays.h"
#include "compute/cuda/runtime/cuda_context.h"
#include "compute/cuda/runtime/cuda_digester.h"
#include "core/held_in_place.h"
#include "gpu/support/gpu_test.h"

namespace holdfast {
namespace {

class EmulatedMemory final : public MemorySpace {
 public:
  std::string device() const override { return "cuda:0"; }
  std::shared_ptr<float[]> allocate(std::size_t floats) override { return host_memory().allocate(floats); }

  void copy_to_host(std::span<const float> from, std::span<float> to) override { copy(from, to); }
  void copy_from_host(std::span<const float> from, std::span<float> to) override { copy(from, to); }
  void copy(std::span<const float> from, std::span<float> to) override { host_memory().copy(from, to); }
  void fill_zero(std::span<float> array) override { host_memory().fill_zero(array); }

  void gather(std::span<const float> from, std::span<const std::int64_t> rows, std::span<float> to) override {
    const std::size_t row_floats = gathered_row_floats(from, rows, to);
    compute::gather_rows(from.data(), row_floats, rows.data(), rows.size(), to.data(), nullptr);
  }
  void add(std::span<const float> summand, std::span<float> sum) override {
    compute::add_arrays(summand.data(), sum.data(), sum.size(), nullptr);
  }
  bool is_finite(std::span<const float> array) override {
    std::uint32_t flag = 0;
    compute::flag_not_finite(array.data(), array.size(), &flag, nullptr);
    return flag == 0;
  }
  Digest digest_of(std::span<const std::span<const float>> arrays) override {
    digester_.queue(arrays, nullptr);
    return digester_.result();
  }

  std::unique_ptr<HeldArrays> hold(std::span<const std::span<const float>> arrays) override {
    return hold_in_place(*this, arrays, "it is the host's");
  }
  std::unique_ptr<RowFeed> feed(std::span<const float>, std::size_t) override { return nullptr; }
  void wait() override {}
  void set_time_limit(std::chrono::milliseconds) override {}
  void pin(std::span<std::byte>) override {}
  void unpin(std::span<std::byte>) override {}

 private:
  compute::CudaDigester digester_;
};

class EmulatedBackend final : public compute::Backend {
 public:
  explicit EmulatedBackend(Precision precision) : precision_(precision) {}

  std::unique_ptr<compute::DenseOperation> dense(const compute::DenseShape& shape, compute::Use use) override {
    return compute::make_cuda_dense(context_, precision_, shape, use);
  }
  std::unique_ptr<compute::ConvolutionOperation> convolution(const compute::ConvolutionShape& shape,
                                                             compute::Use use) override {
    return compute::make_cuda_convolution(context_, precision_, shape, use);
  }
  std::unique_ptr<compute::PoolingOperation> pooling(const compute::PoolingShape& shape, compute::Use use) override {
    return compute::make_cuda_pooling(context_, shape, use);
  }
  std::unique_ptr<compute::ActivationOperation> activation(const compute::ActivationShape& shape,
                                                           compute::Use) override {
    return compute::make_cuda_activation(context_, shape);
  }
  std::unique_ptr<compute::BatchNormalizationOperation> batch_normalization(
      const compute::BatchNormalizationShape& shape, compute::Use use) override {
    return compute::make_cuda_batch_normalization(context_, shape, use);
  }
  std::unique_ptr<compute::BatchedProductOperation> batched_product(
      const compute::BatchedProductShape& shape) override {
    return compute::make_cuda_batched_product(context_, precision_, shape);
  }
  std::unique_ptr<compute::DropoutOperation> dropout(const compute::DropoutShape& shape) override {
    return compute::make_cuda_dropout(shape, draws_, nullptr);
  }

  void set_draws(const compute::RandomKey& draws) override { draws_.set(draws); }
  std::string repeat_obstacle() const override { return {}; }
  MemorySpace& memory() override { return memory_; }
  compute::ArrayKernels& array_kernels() override { return array_kernels_; }
  compute::DeviceKernels* device_kernels() override { return &kernels_; }
  std::string description() const override { return "kernels of a CUDA device on the host"; }
  void queue_on_stream(const std::function<void(void* stream)>& queue) override { queue(nullptr); }

 private:
  const Precision precision_;
  compute::CudaContext context_{0};
  EmulatedMemory memory_;
  compute::CudaKernels kernels_{memory_, nullptr};
  compute::CudaArrayKernels array_kernels_{context_};
  compute::CudaDraws draws_{memory_, nullptr};
};

}  // namespace

std::unique_ptr<compute::Backend> backend_under_test(Precision precision) {
  return std::make_unique<EmulatedBackend>(precision);
}

}  // namespace holdfast
