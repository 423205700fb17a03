// Measures the limits of a GPU with CUDA's own libraries, without Holdfast: copies within the device and over its link,
// and matrix products. Prints JSON.
//
//   gpu_limits [--floats 41157104] [--copies-only] [--small]
//
// Exit code 77: the machine has no GPU.

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int kStateArrays = 3;  // parameters and Adam's two slots
// As in Automake: the test is skipped, which is neither success nor failure.
constexpr int kNoGpu = 77;

struct Arguments {
  std::size_t floats = 41'157'104;
  bool copies_only = false;
  bool is_small = false;
};

void check(cudaError_t status, const std::string& call) {
  if (status != cudaSuccess) throw std::runtime_error(call + ": " + cudaGetErrorString(status));
}

void check(cublasStatus_t status, const std::string& call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(call + ": " + cublasLtGetStatusString(status));
}

// Results are ignored: nothing can be done about them at the end of a measurement.
struct Release {
  void operator()(cudaStream_t stream) const { static_cast<void>(cudaStreamDestroy(stream)); }
  void operator()(cudaEvent_t event) const { static_cast<void>(cudaEventDestroy(event)); }
  void operator()(cublasLtContext* handle) const { static_cast<void>(cublasLtDestroy(handle)); }
  void operator()(cublasLtMatmulDescOpaque_t* desc) const { static_cast<void>(cublasLtMatmulDescDestroy(desc)); }
  void operator()(cublasLtMatrixLayoutOpaque_t* layout) const {
    static_cast<void>(cublasLtMatrixLayoutDestroy(layout));
  }
  void operator()(cublasLtMatmulPreferenceOpaque_t* preference) const {
    static_cast<void>(cublasLtMatmulPreferenceDestroy(preference));
  }
};

template <class Handle>
using Owned = std::unique_ptr<Handle, Release>;

// What `create`, a function called `call`, makes with further arguments.
template <class Handle, class Create, class... Arguments>
Owned<Handle> make(const char* call, const Create& create, const Arguments&... arguments) {
  Handle* made = nullptr;
  check(create(&made, arguments...), call);
  return Owned<Handle>(made);
}

struct FreeDevice {
  void operator()(std::byte* memory) const { static_cast<void>(cudaFree(memory)); }
};
struct FreeHost {
  void operator()(std::byte* memory) const { static_cast<void>(cudaFreeHost(memory)); }
};
using DeviceMemory = std::unique_ptr<std::byte, FreeDevice>;
using HostMemory = std::unique_ptr<std::byte, FreeHost>;

// Numbers of both signs with magnitudes from 0.5 to 1, in f32 or bf16.
std::vector<std::uint32_t> noise() {
  std::vector<std::uint32_t> words(std::size_t{1} << 20);
  std::minstd_rand random;
  for (std::uint32_t& word : words) word = (static_cast<std::uint32_t>(random()) * 5U & 0x807F807FU) | 0x3F003F00U;
  return words;
}

// Filled with noise. Equal numbers take less power, so a device would be faster with them than in any training.
DeviceMemory device_memory(std::size_t bytes) {
  static const std::vector<std::uint32_t> words = noise();
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "cudaMalloc of " + std::to_string(bytes) + " bytes");
  DeviceMemory owned(static_cast<std::byte*>(memory));
  const std::size_t piece = words.size() * sizeof(words.front());
  for (std::size_t at = 0; at < bytes; at += piece) {
    check(cudaMemcpy(owned.get() + at, words.data(), std::min(piece, bytes - at), cudaMemcpyHostToDevice),
          "cudaMemcpy of noise");
  }
  return owned;
}

HostMemory pinned_memory(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, bytes), "cudaMallocHost of " + std::to_string(bytes) + " bytes");
  return HostMemory(static_cast<std::byte*>(memory));
}

class Stopwatch {
 public:
  cudaStream_t stream() const { return stream_.get(); }

  // The seconds of one call, measured over as many calls as take a quarter of a second.
  double seconds_of(const std::function<void()>& queue) const {
    // The first calls load kernels and raise the clock.
    for (int i = 0; i < 2; ++i) queue();
    const double once = time(queue, 1);
    const int repeats = static_cast<int>(std::clamp(0.25 / std::max(once, 1e-6), 3.0, 10'000.0));
    return time(queue, repeats);
  }

 private:
  double time(const std::function<void()>& queue, int repeats) const {
    // Events are timed by the device, so the way of a call to it and back does not count.
    check(cudaEventRecord(begin_.get(), stream()), "cudaEventRecord");
    for (int i = 0; i < repeats; ++i) queue();
    check(cudaEventRecord(end_.get(), stream()), "cudaEventRecord");
    check(cudaEventSynchronize(end_.get()), "cudaEventSynchronize");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()), "cudaEventElapsedTime");
    return milliseconds * 1e-3 / repeats;
  }

  static Owned<CUevent_st> make_event() {
    return make<CUevent_st>("cudaEventCreateWithFlags", cudaEventCreateWithFlags, cudaEventDefault);
  }

  Owned<CUstream_st> stream_ =
      make<CUstream_st>("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags, cudaStreamNonBlocking);
  Owned<CUevent_st> begin_ = make_event();
  Owned<CUevent_st> end_ = make_event();
};

void measure_copies(const Stopwatch& watch, std::size_t floats, nlohmann::json& measured) {
  const std::size_t bytes = kStateArrays * floats * sizeof(float);
  // As large as a model's whole state, so that no cache of the device helps.
  const DeviceMemory from = device_memory(bytes);
  const DeviceMemory to = device_memory(bytes);
  const HostMemory host = pinned_memory(bytes);
  const auto seconds = [&](std::byte* target, const std::byte* source, cudaMemcpyKind kind) {
    return watch.seconds_of(
        [&] { check(cudaMemcpyAsync(target, source, bytes, kind, watch.stream()), "cudaMemcpyAsync"); });
  };
  const double within = seconds(to.get(), from.get(), cudaMemcpyDeviceToDevice);
  const auto gigabytes = static_cast<double>(bytes) / 1e9;
  // A copy within the device reads and writes its memory, so the bytes count twice. Over the link they count once.
  measured["copy_gb_s"] = 2 * gigabytes / within;
  measured["state_copy_seconds"] = within;
  measured["device_to_host_gb_s"] = gigabytes / seconds(host.get(), from.get(), cudaMemcpyDeviceToHost);
  measured["host_to_device_gb_s"] = gigabytes / seconds(to.get(), host.get(), cudaMemcpyHostToDevice);
}

struct Precision {
  const char* name;
  cudaDataType_t type;
  cublasComputeType_t compute;
  std::size_t bytes;
};

// The layouts of the factors, by rows. The forward pass of a layer reads samples and weights. The gradient with respect
// to the input reads gradients and weights. Both read along the sum, which is fastest for most kernels. The gradient
// with respect to the weights reads samples and gradients.
struct Layout {
  const char* name;
  cublasOperation_t left;  // cuBLASLt counts by columns, so its left factor is our second one
  cublasOperation_t right;
};

constexpr Layout kAlongTheSum = {"input_gradient", CUBLAS_OP_T, CUBLAS_OP_N};
constexpr std::array kLayouts = {Layout{"forward", CUBLAS_OP_N, CUBLAS_OP_N}, kAlongTheSum,
                                 Layout{"weight_gradient", CUBLAS_OP_N, CUBLAS_OP_T}};

// Square matrices, and their product with the algorithms that cuBLASLt proposes.
class Product {
 public:
  Product(const Precision& precision, const Layout& how, std::int64_t size)
      : size_(size),
        handle_(make<cublasLtContext>("cublasLtCreate", cublasLtCreate)),
        desc_(make<cublasLtMatmulDescOpaque_t>("cublasLtMatmulDescCreate", cublasLtMatmulDescCreate, precision.compute,
                                               CUDA_R_32F)),
        layout_(make<cublasLtMatrixLayoutOpaque_t>("cublasLtMatrixLayoutCreate", cublasLtMatrixLayoutCreate,
                                                   precision.type, static_cast<std::uint64_t>(size),
                                                   static_cast<std::uint64_t>(size), size)) {
    check(cublasLtMatmulDescSetAttribute(desc_.get(), CUBLASLT_MATMUL_DESC_TRANSA, &how.left, sizeof(how.left)),
          "cublasLtMatmulDescSetAttribute");
    check(cublasLtMatmulDescSetAttribute(desc_.get(), CUBLASLT_MATMUL_DESC_TRANSB, &how.right, sizeof(how.right)),
          "cublasLtMatmulDescSetAttribute");
    const std::size_t bytes = static_cast<std::size_t>(size) * static_cast<std::size_t>(size) * precision.bytes;
    for (DeviceMemory* const matrix : {&left_, &right_, &result_}) *matrix = device_memory(bytes);
    workspace_ = device_memory(kWorkspaceBytes);
  }

  // The seconds of the fastest of `algorithms` proposed algorithms.
  double best_seconds(const Stopwatch& watch, int algorithms) {
    const auto preference =
        make<cublasLtMatmulPreferenceOpaque_t>("cublasLtMatmulPreferenceCreate", cublasLtMatmulPreferenceCreate);
    check(cublasLtMatmulPreferenceSetAttribute(preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &kWorkspaceBytes, sizeof(kWorkspaceBytes)),
          "cublasLtMatmulPreferenceSetAttribute");
    std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(algorithms));
    int count = 0;
    check(cublasLtMatmulAlgoGetHeuristic(handle_.get(), desc_.get(), layout_.get(), layout_.get(), layout_.get(),
                                         layout_.get(), preference.get(), algorithms, found.data(), &count),
          "cublasLtMatmulAlgoGetHeuristic");
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < count; ++i) {
      // Proposals may fail on this device.
      const cublasLtMatmulHeuristicResult_t& proposed = found.at(static_cast<std::size_t>(i));
      if (proposed.state != CUBLAS_STATUS_SUCCESS) continue;
      best = std::min(best, watch.seconds_of([&] { queue(proposed.algo, watch.stream()); }));
    }
    if (std::isinf(best)) {
      throw std::runtime_error("cuBLASLt proposes no algorithm for matrices of " + std::to_string(size_));
    }
    return best;
  }

 private:
  // The limit that proposals are asked for, and the size of the memory that they get: an algorithm may use all of it.
  static constexpr std::uint64_t kWorkspaceBytes = std::uint64_t{64} << 20;

  void queue(const cublasLtMatmulAlgo_t& algorithm, cudaStream_t stream) {
    const float alpha = 1;
    const float beta = 0;
    check(cublasLtMatmul(handle_.get(), desc_.get(), &alpha, left_.get(), layout_.get(), right_.get(), layout_.get(),
                         &beta, result_.get(), layout_.get(), result_.get(), layout_.get(), &algorithm,
                         workspace_.get(), kWorkspaceBytes, stream),
          "cublasLtMatmul of " + std::to_string(size_));
  }

  const std::int64_t size_;
  Owned<cublasLtContext> handle_;
  Owned<cublasLtMatmulDescOpaque_t> desc_;
  Owned<cublasLtMatrixLayoutOpaque_t> layout_;
  DeviceMemory left_, right_, result_, workspace_;
};

void measure_products(const Stopwatch& watch, std::int64_t size, nlohmann::json& measured) {
  constexpr std::array kPrecisions = {Precision{"bf16", CUDA_R_16BF, CUBLAS_COMPUTE_32F, 2},
                                      Precision{"tf32", CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 4},
                                      Precision{"f32", CUDA_R_32F, CUBLAS_COMPUTE_32F, 4}};
  constexpr int kAlgorithms = 8;
  // A multiplication and an addition for each term.
  const double flops = 2.0 * static_cast<double>(size) * static_cast<double>(size) * static_cast<double>(size);
  for (const Precision& precision : kPrecisions) {
    const auto rate = [&](const Layout& how, int algorithms) {
      return flops / Product(precision, how, size).best_seconds(watch, algorithms) / 1e12;
    };
    measured["matrix_tflop_s"][precision.name] = rate(kAlongTheSum, kAlgorithms);
    // Holdfast takes the first proposed algorithm.
    for (const Layout& how : kLayouts) measured["layer_tflop_s"][precision.name][how.name] = rate(how, 1);
  }
}

// Why there is no GPU to measure; empty when there is one.
std::string why_there_is_no_gpu() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) return std::string("cudaGetDeviceCount says: ") + cudaGetErrorString(status);
  return count == 0 ? "cudaGetDeviceCount found none" : "";
}

nlohmann::json measure(const Arguments& arguments) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  nlohmann::json measured = {{"device", properties.name}};
  const Stopwatch watch;
  measure_copies(watch, arguments.floats, measured);
  if (!arguments.copies_only) measure_products(watch, arguments.is_small ? 512 : 8192, measured);
  return measured;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Measures the limits of a GPU; for bench/gpu/runs.py.");
  app.add_option("--floats", arguments.floats, "number of floats of an array of the state")
      ->check(CLI::Range(16, 1 << 30));
  app.add_flag("--copies-only", arguments.copies_only, "no matrix products");
  app.add_flag("--small", arguments.is_small, "use small matrices, for trials");
  CLI11_PARSE(app, argc, argv);
  if (const std::string why = why_there_is_no_gpu(); !why.empty()) {
    std::fprintf(stderr, "gpu_limits: there is no GPU to measure: %s\n", why.c_str());
    return kNoGpu;
  }
  try {
    std::puts(measure(arguments).dump().c_str());
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "gpu_limits: %s\n", failure.what());
    return 1;
  }
}
