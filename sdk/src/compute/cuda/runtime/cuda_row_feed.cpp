// A batch without shuffling is one copy. A shuffled batch has as many runs as rows, and starting a copy takes longer
// than a row does. So a kernel reads such rows through the link, with few blocks, since training's stream needs the
// other multiprocessors. See docs/decisions/device-copies.md.

#include "compute/cuda/runtime/cuda_row_feed.h"

#include <fmt/format.h>

#include "compute/cuda/runtime/cuda_arrays.h"
#include "compute/cuda/runtime/device_sentences.h"

namespace holdfast::compute {
namespace {

// How many rows from `begin` on follow each other in the source.
std::size_t run_length(std::span<const std::int64_t> rows, std::size_t begin) {
  std::size_t end = begin + 1;
  while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
  return end - begin;
}

// Whether the rows form at most `most` runs of rows that follow each other.
bool are_at_most(std::size_t most, std::span<const std::int64_t> rows) {
  std::size_t runs = 0;
  for (std::size_t at = 0; at < rows.size() && runs <= most; at += run_length(rows, at)) ++runs;
  return runs <= most;
}

}  // namespace

CudaRowFeed::CudaRowFeed(CudaContext& context, std::span<const float> from, std::size_t row_floats)
    : context_(context), from_(from), row_floats_(row_floats) {
  HOLDFAST_ASSERT(row_floats > 0 && !from.empty() && from.size() % row_floats == 0);
  const CudaContext::StreamLock lock = context_.lock_stream();
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags for samples");
  stream_.reset(stream);
  read_ = make_event();
  for (Buffer& buffer : buffers_) buffer.filled = make_event();
  ring_ = std::make_unique<StagingRing>(context_, stream);
  void* on_device = nullptr;
  if (cudaHostGetDevicePointer(&on_device, const_cast<float*>(from.data()), 0) == cudaSuccess) {
    from_on_device_ = static_cast<const float*>(on_device);
  } else {
    // Clears the runtime's last error, which the next check would find.
    static_cast<void>(cudaGetLastError());
  }
}

CudaRowFeed::~CudaRowFeed() {
  try {
    for (const Buffer& buffer : buffers_) {
      context_.wait_for(buffer.filled.get(), context_.deadline(), "samples on their way");
    }
  } catch (const Error&) {
    // The device is lost, and this process is about to be replaced.
  }
}

void CudaRowFeed::make_room(Buffer& buffer, std::size_t floats) {
  if (floats <= buffer.room) return;
  buffer.memory.reset();
  buffer.room = 0;
  buffer.memory = context_.allocate(floats * sizeof(float));
  buffer.room = floats;
}

void CudaRowFeed::begin(std::span<const std::int64_t> rows) {
  // One buffer is being filled while the other one is read. A third batch would overwrite one of them.
  HOLDFAST_ASSERT(begun_ - taken_ < buffers_.size());
  const auto row_count = static_cast<std::int64_t>(from_.size() / row_floats_);
  // A kernel reads these rows. It would read other memory of the host without a message.
  for (const std::int64_t row : rows) HOLDFAST_ASSERT(row >= 0 && row < row_count);
  Buffer& buffer = buffers_[begun_++ % buffers_.size()];
  make_room(buffer, rows.size() * row_floats_);
  buffer.floats = rows.size() * row_floats_;
  {
    // All work that read this buffer was queued in the context's stream before.
    const CudaContext::StreamLock lock = context_.lock_stream();
    check_cuda(cudaEventRecord(read_.get(), context_.stream()), "cudaEventRecord after a reader of samples");
    check_cuda(cudaStreamWaitEvent(stream_.get(), read_.get(), 0), "cudaStreamWaitEvent for a reader of samples");
  }
  // Without an address of its own for the host's memory, the device can only copy.
  if (from_on_device_ == nullptr || are_at_most(kMostRuns, rows)) {
    copy_runs(rows, buffer.data());
  } else {
    gather(rows, buffer);
  }
  const CudaContext::StreamLock lock = context_.lock_stream();
  check_cuda(cudaEventRecord(buffer.filled.get(), stream_.get()), "cudaEventRecord after samples");
}

void CudaRowFeed::copy_runs(std::span<const std::int64_t> rows, float* to) {
  const CudaContext::StreamLock lock = context_.lock_stream();
  for (std::size_t at = 0; at < rows.size();) {
    const std::size_t length = run_length(rows, at);
    const std::size_t bytes = length * row_floats_ * sizeof(float);
    check_cuda(cudaMemcpyAsync(to + at * row_floats_, from_.data() + static_cast<std::size_t>(rows[at]) * row_floats_,
                               bytes, cudaMemcpyHostToDevice, stream_.get()),
               fmt::format("cudaMemcpyAsync of {} of samples to {}", in_bytes(bytes), context_.device()));
    at += length;
  }
}

// The buffer's last rows have been taken, and freeing memory waits for the work that reads it. So a smaller list of row
// numbers may be replaced.
void CudaRowFeed::gather(std::span<const std::int64_t> rows, Buffer& buffer) {
  const std::span<const std::byte> numbers = std::as_bytes(rows);
  if (numbers.size() > buffer.row_numbers_bytes) {
    buffer.row_numbers = context_.allocate(numbers.size());
    buffer.row_numbers_bytes = numbers.size();
  }
  ring_->send(numbers, buffer.row_numbers.get());
  const CudaContext::StreamLock lock = context_.lock_stream();
  gather_host_rows(from_on_device_, row_floats_, reinterpret_cast<const std::int64_t*>(buffer.row_numbers.get()),
                   rows.size(), buffer.data(), stream_.get());
}

std::span<const float> CudaRowFeed::take() {
  HOLDFAST_ASSERT(taken_ < begun_);
  const Buffer& buffer = buffers_[taken_++ % buffers_.size()];
  const CudaContext::StreamLock lock = context_.lock_stream();
  // The stream waits, and not this thread: it goes on to queue the step.
  check_cuda(cudaStreamWaitEvent(context_.stream(), buffer.filled.get(), 0), "cudaStreamWaitEvent for samples");
  return {buffer.data(), buffer.floats};
}

}  // namespace holdfast::compute
