// Pinned host memory is copied directly, so that a large state travels as fast as the link allows. If memory cannot be
// pinned, copies go through the staging ring: slower, but with a deadline, which CUDA's own copies of such memory do
// not have. See docs/decisions/device-copies.md.

#include "compute/cuda/runtime/cuda_memory_space.h"

#include <fmt/format.h>
#include <map>
#include <mutex>

#include "compute/cuda/runtime/cuda_arrays.h"
#include "compute/cuda/runtime/cuda_row_feed.h"
#include "compute/cuda/runtime/device_sentences.h"
#include "core/held_in_place.h"
#include "holdfast/base/log.h"

namespace holdfast::compute {

std::shared_ptr<CudaMemorySpace> CudaMemorySpace::of_device(int device) {
  // The callers own the memory spaces; this map only finds the living ones.
  static std::mutex mutex;
  // One for each device, since stream, workspace and pinned memory belong to it and not to a back end.
  static std::map<int, std::weak_ptr<CudaMemorySpace>> spaces;
  const std::lock_guard lock(mutex);
  std::shared_ptr<CudaMemorySpace> space = spaces[device].lock();
  if (space == nullptr) {
    space = std::make_shared<CudaMemorySpace>(device);
    spaces[device] = space;
  }
  return space;
}

std::shared_ptr<float[]> CudaMemorySpace::allocate(std::size_t floats) {
  HOLDFAST_ASSERT(floats <= SIZE_MAX / sizeof(float));
  const std::size_t bytes = floats * sizeof(float);
  std::shared_ptr<std::byte[]> memory = context_.allocate(bytes);
  const CudaContext::StreamLock lock = context_.lock_stream();
  // Zeros, as on the host: padding between arrays must add nothing to a norm or a digest.
  check_cuda(cudaMemsetAsync(memory.get(), 0, bytes, context_.stream()), "cudaMemsetAsync of " + in_bytes(bytes));
  auto* const floats_of_it = reinterpret_cast<float*>(memory.get());
  allocated_.add({memory.get(), bytes});
  // The list of allocations forgets it first. Else a run of ArrayHolder could reach into memory that is freed.
  return {floats_of_it, [this, bytes, memory = std::move(memory)](float*) { forget({memory.get(), bytes}); }};
}

// If the lock fails, the device is lost and the process is about to end.
void CudaMemorySpace::forget(std::span<const std::byte> memory) noexcept {
  try {
    const CudaContext::StreamLock lock = context_.lock_stream();
    allocated_.remove(memory);
  } catch (const Error&) {
  }
}

std::unique_ptr<HeldArrays> CudaMemorySpace::hold(std::span<const std::span<const float>> arrays) {
  if (std::unique_ptr<HeldArrays> held = holder_.hold(arrays)) return held;
  return hold_in_place(*this, arrays, holder_.obstacle());
}

// Copies directly from or to pinned memory, which the host may use again on return.
void CudaMemorySpace::copy_and_wait(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  {
    const CudaContext::StreamLock lock = context_.lock_stream();
    check_cuda(cudaMemcpyAsync(to, from, bytes, kind, context_.stream()), "cudaMemcpyAsync of " + in_bytes(bytes));
  }
  context_.wait();
}

void CudaMemorySpace::copy_to_host(std::span<const float> from, std::span<float> to) {
  HOLDFAST_ASSERT(from.size() == to.size());
  if (to.empty()) return;
  const std::span<std::byte> bytes = std::as_writable_bytes(to);
  if (pinned_.contain(bytes)) return copy_and_wait(to.data(), from.data(), bytes.size(), cudaMemcpyDeviceToHost);
  staging_.fetch(std::as_bytes(from).data(), bytes);
}

void CudaMemorySpace::copy_from_host(std::span<const float> from, std::span<float> to) {
  HOLDFAST_ASSERT(from.size() == to.size());
  if (from.empty()) return;
  const std::span<const std::byte> bytes = std::as_bytes(from);
  if (pinned_.contain(bytes)) return copy_and_wait(to.data(), from.data(), bytes.size(), cudaMemcpyHostToDevice);
  staging_.send(bytes, std::as_writable_bytes(to).data());
}

void CudaMemorySpace::copy(std::span<const float> from, std::span<float> to) {
  HOLDFAST_ASSERT(from.size() == to.size());
  if (from.empty()) return;
  const CudaContext::StreamLock lock = context_.lock_stream();
  check_cuda(cudaMemcpyAsync(to.data(), from.data(), from.size_bytes(), cudaMemcpyDeviceToDevice, context_.stream()),
             fmt::format("cudaMemcpyAsync of {} within {}", in_bytes(from.size_bytes()), device()));
}

void CudaMemorySpace::gather(std::span<const float> from, std::span<const std::int64_t> rows, std::span<float> to) {
  const std::size_t row_floats = gathered_row_floats(from, rows, to);
  if (row_floats == 0) return;
  const std::span<const std::byte> numbers = std::as_bytes(rows);
  // Memory that is too small is freed, which waits for the device. It happens only until the largest batch came.
  if (numbers.size() > row_numbers_bytes_) {
    row_numbers_ = context_.allocate(numbers.size());
    row_numbers_bytes_ = numbers.size();
  }
  staging_.send(numbers, row_numbers_.get());
  const CudaContext::StreamLock lock = context_.lock_stream();
  gather_rows(from.data(), row_floats, reinterpret_cast<const std::int64_t*>(row_numbers_.get()), rows.size(),
              to.data(), context_.stream());
}

void CudaMemorySpace::add(std::span<const float> summand, std::span<float> sum) {
  HOLDFAST_ASSERT(summand.size() == sum.size());
  if (sum.empty()) return;
  const CudaContext::StreamLock lock = context_.lock_stream();
  add_arrays(summand.data(), sum.data(), sum.size(), context_.stream());
}

void CudaMemorySpace::fill_zero(std::span<float> array) {
  if (array.empty()) return;
  const CudaContext::StreamLock lock = context_.lock_stream();
  check_cuda(cudaMemsetAsync(array.data(), 0, array.size_bytes(), context_.stream()),
             "cudaMemsetAsync of " + in_bytes(array.size_bytes()));
}

bool CudaMemorySpace::is_finite(std::span<const float> array) {
  if (array.empty()) return true;
  if (flag_ == nullptr) flag_ = allocate(1);
  fill_zero({flag_.get(), 1});
  {
    const CudaContext::StreamLock lock = context_.lock_stream();
    flag_not_finite(array.data(), array.size(), reinterpret_cast<std::uint32_t*>(flag_.get()), context_.stream());
  }
  std::uint32_t is_flagged = 0;
  staging_.fetch(reinterpret_cast<const std::byte*>(flag_.get()), std::as_writable_bytes(std::span(&is_flagged, 1)));
  return is_flagged == 0;
}

Digest CudaMemorySpace::digest_of(std::span<const std::span<const float>> arrays) {
  {
    const CudaContext::StreamLock lock = context_.lock_stream();
    if (!digester_) digester_.emplace(context_.lost_device());
    digester_->queue(arrays, context_.stream());
  }
  context_.wait();
  return digester_->result();
}

std::unique_ptr<RowFeed> CudaMemorySpace::feed(std::span<const float> from, std::size_t row_floats) {
  // Without pinned memory a feed would have to wait for each copy, and a plain copy is as good.
  if (from.empty() || row_floats == 0 || !pinned_.contain(std::as_bytes(from))) return nullptr;
  return std::make_unique<CudaRowFeed>(context_, from, row_floats);
}

// A failure is only a warning: the memory may be mapped in a way that the device cannot use, or the system's limit may
// be reached. Copies then go through the staging ring.
void CudaMemorySpace::pin(std::span<std::byte> memory) {
  if (memory.empty()) return;
  const CudaContext::StreamLock lock = context_.lock_stream();
  // Two trainers of a process may read the same data set, for example.
  if (pinned_.share(memory)) return;
  const cudaError_t status =
      cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable | cudaHostRegisterMapped);
  static_cast<void>(cudaGetLastError());
  // This is not about the memory: the device has failed, and going on without pinning would hide it.
  if (ends_use_of_device(status)) check_cuda(status, fmt::format("cudaHostRegister of {}", in_bytes(memory.size())));
  if (status == cudaSuccess) {
    pinned_.add(memory);
  } else {
    log(LogLevel::warning,
        fmt::format("{} of the host's memory cannot be pinned for {} ({}), so copies from and to it are slower; the "
                    "memory may be mapped read-only, share a page with pinned memory, or exceed what the memory limit "
                    "of the process's control group allows to pin",
                    in_bytes(memory.size()), device(), cudaGetErrorString(status)));
  }
}

void CudaMemorySpace::unpin(std::span<std::byte> memory) {
  if (!pinned_.remove(memory) || context_.lost_device().is_set()) return;
  // cudaHostUnregister() waits for the device without a deadline, so a wait with a deadline comes first.
  context_.wait();
  const CudaContext::StreamLock lock = context_.lock_stream();
  check_cuda(cudaHostUnregister(memory.data()), fmt::format("cudaHostUnregister of {}", in_bytes(memory.size())));
}

}  // namespace holdfast::compute
