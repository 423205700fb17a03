// The back end for CPUs: it makes the operations on one oneDNN engine. Sums depend on the number of threads, so
// oneDNN's primitives are made and run under the thread count of the back end. description() names the library, its
// instruction set, the version of our own kernels and the threads, which a resume compares. Our own kernels give the
// same bits on all instruction sets. docs/decisions/runs.md

#include <fmt/format.h>
#include <omp.h>

#include "compute/cpu/cpu_array_kernels.h"
#include "compute/cpu/kernels/vector_kernels.h"
#include "compute/cpu/operations.h"
#include "compute/cpu/thread_count.h"
#include "holdfast/base/error.h"

namespace holdfast::compute {

static std::string_view isa_name(dnnl::cpu_isa isa) {
  switch (isa) {
    case dnnl::cpu_isa::sse41:
      return "sse41";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx2_vnni:
      return "avx2_vnni";
    case dnnl::cpu_isa::avx512_core:
      return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "avx512_core_amx";
    // A set that this list does not know still counts as one set. Two of these would not be told apart.
    default:
      return "other";
  }
}

namespace {

class CpuBackend : public Backend {
 public:
  CpuBackend(int threads, Precision precision) : context_(threads, precision) {}

  std::unique_ptr<DenseOperation> dense(const DenseShape& shape, Use use) override {
    const ThreadCount threads(context_.threads());
    return make_cpu_dense(context_, shape, use);
  }

  std::unique_ptr<ConvolutionOperation> convolution(const ConvolutionShape& shape, Use use) override {
    const ThreadCount threads(context_.threads());
    return make_cpu_convolution(context_, shape, use);
  }

  std::unique_ptr<PoolingOperation> pooling(const PoolingShape& shape, Use use) override {
    const ThreadCount threads(context_.threads());
    return make_cpu_pooling(context_, shape, use);
  }

  // Loops of ours get the number of threads with each pass, so operations made of them need none here.
  std::unique_ptr<ActivationOperation> activation(const ActivationShape& shape, Use) override {
    return make_cpu_activation(context_, shape);
  }

  std::unique_ptr<BatchNormalizationOperation> batch_normalization(const BatchNormalizationShape& shape,
                                                                   Use use) override {
    return make_cpu_batch_normalization(context_, shape, use);
  }

  std::unique_ptr<BatchedProductOperation> batched_product(const BatchedProductShape& shape) override {
    const ThreadCount threads(context_.threads());
    return make_cpu_batched_product(context_, shape);
  }

  std::unique_ptr<RepeatedProductOperation> repeated_product(const RepeatedProductShape& shape) override {
    const ThreadCount threads(context_.threads());
    std::unique_ptr<RepeatedProductOperation> packed = make_cpu_packed_product(context_, shape);
    // Null where nothing packs this product. Then a dense layer computes it.
    return packed ? std::move(packed) : repeated_dense(*this, shape);
  }
  std::string repeated_product_arithmetic() const override {
    return packs_products(context_) ? "packed recurrent kernels" : "";
  }

  std::unique_ptr<DropoutOperation> dropout(const DropoutShape& shape) override {
    return make_cpu_dropout(context_, shape, draws_);
  }

  void set_draws(const RandomKey& draws) override { draws_ = draws; }
  void defer_products(DeferredProducts* deferred) override { context_.set_deferred(deferred); }
  // Nothing is recorded on CPUs, so nothing can stand in the way of it.
  std::string repeat_obstacle() const override { return {}; }
  MemorySpace& memory() override { return host_memory(); }
  ArrayKernels& array_kernels() override { return array_kernels_; }
  // Losses, metrics and optimizers run their own loops on the host.
  DeviceKernels* device_kernels() override { return nullptr; }

  std::size_t workspace_bytes() const override { return context_.workspace_bytes(); }

  std::string description() const override {
    const dnnl_version_t& version = *dnnl::version();
    const int threads = context_.threads();
    // The effective instruction set, because ONEDNN_MAX_CPU_ISA may forbid a part of what the processor has.
    return fmt::format("oneDNN {}.{}.{}, isa {}, kernels {}, {} {} per shard{}", version.major, version.minor,
                       version.patch, isa_name(dnnl::get_effective_cpu_isa()), kKernelsVersion, threads,
                       threads == 1 ? "thread" : "threads", context_.is_bf16() ? ", bf16" : "");
  }

  // The host has no stream.
  void queue_on_stream(const std::function<void(void* stream)>&) override { HOLDFAST_ASSERT(false); }

 private:
  CpuContext context_;
  RandomKey draws_;
  CpuArrayKernels array_kernels_;
};

}  // namespace

void check_cpu_precision(Precision precision) {
  if (precision == Precision::f32) return;
  if (precision != Precision::bf16) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("precision {} was asked for on CPUs, which compute in f32 or bf16; ask for CUDA devices, or "
                    "for one of these two",
                    name(precision)));
  }
  const auto refuse = [](const std::string& what) {
    throw Error(
        ErrorCode::unavailable,
        fmt::format("precision bf16 was asked for on a CPU, and {}; train in f32, or on a machine whose CPU has "
                    "avx512_bf16 or amx_bf16",
                    what));
  };
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  // Sets contain others, bit by bit. oneDNN has slower ways for smaller sets: docs/decisions/device-arithmetic.md
  const auto bits = [](dnnl::cpu_isa set) { return static_cast<unsigned>(set); };
  const unsigned needed = bits(dnnl::cpu_isa::avx512_core_bf16);
  if ((bits(isa) & needed) != needed) {
    refuse(fmt::format("oneDNN finds no instructions for it here: isa {}, as far as ONEDNN_MAX_CPU_ISA allows",
                       isa_name(isa)));
  }
  const InstructionSet loops = vector_kernels().set;
  if (loops != InstructionSet::avx512) {
    refuse(fmt::format("the loops of instruction set {} are forced here", name_of(loops)));
  }
}

std::unique_ptr<Backend> make_cpu_backend(int threads, Precision precision) {
  if (threads < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("arithmetic needs at least 1 thread, not {} threads", threads));
  }
  check_cpu_precision(precision);
  return std::make_unique<CpuBackend>(threads, precision);
}

int default_threads() {
  // Follows OMP_NUM_THREADS and the cores that this process may use.
  return omp_get_max_threads();
}

}  // namespace holdfast::compute
