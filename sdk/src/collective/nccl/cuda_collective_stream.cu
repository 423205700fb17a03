// The shard-order sum as a kernel, and the events by which collectives follow training. The order of the additions is a
// program in the kernel's parameters. The kernel reads each leaf once and writes each sum once, whatever the tree looks
// like. See docs/decisions/nccl.md.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "collective/nccl/cuda_collective_stream.h"
#include "collective/nccl/ordered_sum_program.h"
#include "compute/cuda/runtime/cuda_error.h"
#include "compute/cuda/runtime/cuda_launch.cuh"
#include "compute/cuda/runtime/small_copies.h"

namespace holdfast {
namespace {

using compute::check_cuda;

constexpr int kThreads = 256;
constexpr int kMostBlocksPerProcessor = 8;
constexpr int kWide = 4;  // a thread loads so many floats at once, 16 bytes
// kMostSumLeaves leaves make a tree of 8 levels, so 16 entries of a stack are enough.
constexpr int kDeepest = 16;

// How many blocks fit into the registers of a multiprocessor, given the size of a thread's stack. A grid has no more
// blocks than fit: the last ones would begin when the others end, and leave most of the device idle.
constexpr int blocks_per_processor(int depth, int width) {
  const int stack_floats = depth * width;
  if (stack_floats <= 8) return kMostBlocksPerProcessor;
  if (stack_floats <= 16) return 6;
  return stack_floats <= 32 ? 4 : 2;
}

// Several threads may set *found. All store the same value, directly into the cache that all multiprocessors share.
template <int kDepth, int kWidth>
__global__ void __launch_bounds__(kThreads, blocks_per_processor(kDepth, kWidth))
    add_in_order_kernel(const __grid_constant__ OrderedSumProgram program, std::size_t packs, float* sum,
                        unsigned* found) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  bool is_finite = true;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < packs; i += stride) {
    const FloatPack<kWidth> pack = ordered_sum_at<kDepth, kWidth>(program, i);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) is_finite = is_finite && is_finite_bits(__float_as_uint(pack.values[k]));
    if (sum != nullptr) reinterpret_cast<FloatPack<kWidth>*>(sum)[i] = pack;
  }
  if (!is_finite) __stcg(found, 1U);
}

struct Launch {
  std::size_t packs = 0;
  float* sum = nullptr;
  unsigned* found = nullptr;
  int most_blocks = 1;  // of the whole device, with kMostBlocksPerProcessor on each multiprocessor
  cudaStream_t stream = nullptr;
};

template <int kDepth, int kWidth>
void launch_as(const OrderedSumProgram& program, const Launch& launch) {
  const std::size_t wanted = (launch.packs + kThreads - 1) / kThreads;
  // Each thread goes on to the next pack that is a whole grid away, so fewer blocks than wanted do all the work.
  const int most = launch.most_blocks / kMostBlocksPerProcessor * blocks_per_processor(kDepth, kWidth);
  const auto blocks = static_cast<unsigned>(std::min(wanted, static_cast<std::size_t>(most)));
  compute::launch(add_in_order_kernel<kDepth, kWidth>, blocks, kThreads, launch.stream, program, launch.packs,
                  launch.sum, launch.found);
}

// A push or add moves the whole stack through registers, so the smallest depth that suffices is the fastest.
template <int kWidth>
void launch(const OrderedSumProgram& program, const Launch& launch) {
  HOLDFAST_ASSERT(program.depth <= kDeepest);
  if (program.depth <= 2) {
    launch_as<2, kWidth>(program, launch);
  } else if (program.depth <= 4) {
    launch_as<4, kWidth>(program, launch);
  } else if (program.depth <= 8) {
    launch_as<8, kWidth>(program, launch);
  } else {
    launch_as<kDeepest, kWidth>(program, launch);
  }
  check_cuda(cudaGetLastError(), "kernel add_in_order over " + std::to_string(launch.packs * kWidth) + " floats");
}

bool is_wide(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % (kWide * sizeof(float)) == 0;
}

bool can_be_wide(const OrderedSum& sum) {
  return is_wide(sum.sum) && std::all_of(sum.leaves.begin(), sum.leaves.end(), is_wide);
}

// The same program for leaves that begin `floats` later.
OrderedSumProgram advanced(OrderedSumProgram program, std::size_t leaves, std::size_t floats) {
  for (std::size_t leaf = 0; leaf < leaves; ++leaf) program.leaves[leaf] += floats;
  return program;
}

}  // namespace

CudaCollectiveStream::CudaCollectiveStream(int device, cudaStream_t training, compute::LostDeviceFlag lost_device)
    : device_(device), training_(training), lost_device_(std::move(lost_device)) {
  try {
    create();
  } catch (...) {
    destroy();
    throw;
  }
}

CudaCollectiveStream::~CudaCollectiveStream() {
  destroy();
}

void CudaCollectiveStream::create() {
  make_current();
  int least = 0;
  int greatest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  // Non-blocking: it must not wait for the legacy default stream, on which an application may queue. The greatest
  // priority lets a collective begin while kernels of training still wait for processors.
  check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest),
             "cudaStreamCreateWithPriority for collectives of " + this->device());
  // Without timing, an event costs less to record and to wait for.
  check_cuda(cudaEventCreateWithFlags(&training_done_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  check_cuda(cudaEventCreateWithFlags(&mark_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  check_cuda(cudaMalloc(reinterpret_cast<void**>(&found_), sizeof *found_), "cudaMalloc of 4 bytes");
  check_cuda(cudaMallocHost(reinterpret_cast<void**>(&found_on_host_), sizeof *found_on_host_),
             "cudaMallocHost of 4 bytes");
  *found_on_host_ = 0;
  int processors = 0;
  check_cuda(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device_), "cudaDeviceGetAttribute");
  most_blocks_ = processors * kMostBlocksPerProcessor;
  char place[32] = {};
  check_cuda(cudaDeviceGetPCIBusId(place, sizeof place, device_), "cudaDeviceGetPCIBusId");
  identity_ = place;
  begin_sums();
}

// Results are ignored: nothing can be freed on a lost device, and the process that lost it ends.
void CudaCollectiveStream::destroy() noexcept {
  if (lost_device_.is_set()) return;
  cudaSetDevice(device_);
  if (found_on_host_ != nullptr) cudaFreeHost(found_on_host_);
  if (found_ != nullptr) cudaFree(found_);
  if (mark_ != nullptr) cudaEventDestroy(mark_);
  if (training_done_ != nullptr) cudaEventDestroy(training_done_);
  for (const cudaEvent_t mark : training_marks_) cudaEventDestroy(mark);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

void CudaCollectiveStream::make_current() {
  check_cuda(cudaSetDevice(device_), "cudaSetDevice(" + std::to_string(device_) + ")");
}

// Each function that queues makes the device current itself. Between two of them a callback or a model of the
// application may have made another device current.
void CudaCollectiveStream::follow_training() {
  make_current();
  check_cuda(cudaEventRecord(training_done_, training_), "cudaEventRecord after training on " + device());
  follow(training_done_, "training");
}

void CudaCollectiveStream::follow(cudaEvent_t training, const char* what) {
  check_cuda(cudaStreamWaitEvent(stream_, training, 0),
             std::string("cudaStreamWaitEvent for ") + what + " on " + device());
  followed_ = training;
}

void CudaCollectiveStream::mark_training(std::size_t mark) {
  make_current();
  while (training_marks_.size() <= mark) {
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    training_marks_.push_back(event);
  }
  check_cuda(cudaEventRecord(training_marks_[mark], training_),
             "cudaEventRecord of gradients that are complete on " + device());
}

void CudaCollectiveStream::follow_training(std::size_t mark) {
  HOLDFAST_ASSERT(mark < training_marks_.size());
  make_current();
  follow(training_marks_[mark], "complete gradients");
}

bool CudaCollectiveStream::has_training_passed() {
  return followed_ == nullptr || lost_device_.is_set() || has_passed(followed_, "training");
}

void CudaCollectiveStream::begin_sums() {
  make_current();
  check_cuda(cudaMemsetAsync(found_, 0, sizeof *found_, stream_), "cudaMemsetAsync of 4 bytes on " + device());
}

void CudaCollectiveStream::add_in_order(const OrderedSum& sum) {
  make_current();
  const OrderedSumProgram program = ordered_sum_program(sum.program, sum.leaves);
  // What does not fill a pack of 16 bytes is added one float at a time, by the same program.
  const std::size_t wide = can_be_wide(sum) ? sum.floats / kWide * kWide : 0;
  if (wide > 0) launch<kWide>(program, {wide / kWide, sum.sum, found_, most_blocks_, stream_});
  if (wide == sum.floats) return;
  float* const rest = sum.sum == nullptr ? nullptr : sum.sum + wide;
  launch<1>(advanced(program, sum.leaves.size(), wide), {sum.floats - wide, rest, found_, most_blocks_, stream_});
}

void CudaCollectiveStream::mark() {
  make_current();
  // The word comes to the host before the mark passes, so a look at it after that needs no wait.
  compute::copy_small_to_host(found_, found_on_host_, sizeof *found_, stream_);
  check_cuda(cudaEventRecord(mark_, stream_), "cudaEventRecord of collectives on " + device());
}

bool CudaCollectiveStream::has_passed_mark() {
  return has_passed(mark_, "collectives");
}

bool CudaCollectiveStream::has_passed(cudaEvent_t event, const char* what) {
  make_current();
  const cudaError_t status = cudaEventQuery(event);
  if (status == cudaErrorNotReady) {
    // The runtime stores "not ready" as its last error, which the check of the next launch would find.
    (void)cudaGetLastError();
    return false;
  }
  check_cuda(status, std::string("cudaEventQuery of ") + what + " on " + device());
  return true;
}

}  // namespace holdfast
