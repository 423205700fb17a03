// A snapshot or savepoint needs the state of one moment, but the next update changes it. Copying within the device is
// faster than to the host by far, so training waits only for that. The second copy is allocated once, and only if a
// sixteenth of the device's memory stays free. Otherwise training waits for the copy to the host. The digest is that of
// the copy and not of the state: the copy is what is kept, so it is what replicas must compare.
// See docs/decisions/device-copies.md.

#include "compute/cuda/runtime/array_holder.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <optional>

#include "compute/cuda/runtime/device_sentences.h"

namespace holdfast::compute {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kLargestGap = 1024;
// A sixteenth of the device's memory stays free for what training allocates later.
constexpr std::size_t kShareLeftFree = 16;
// In seconds per GiB; any working link is far faster.
constexpr std::size_t kSlowestLink = 4;

std::size_t round_up(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

// Owns the use of the second copy until it is destroyed.
class ArrayHolder::Held final : public HeldArrays {
 public:
  Held(ArrayHolder& holder, std::vector<std::span<const float>> places) : holder_(holder), places_(std::move(places)) {
    ++holder_.held_;
  }
  // The thread that copies uses this object. It ends by its deadline.
  ~Held() override {
    if (copying_.valid()) copying_.wait();
    --holder_.held_;
  }

  Digest digest() override;
  void begin_copy(std::span<const std::span<float>> to) override;
  void finish_copy() override { copying_.get(); }

 private:
  struct Target {
    std::span<std::byte> bytes;
    bool is_registered = false;
  };

  std::size_t total_bytes() const;
  void copy(const std::vector<Target>& targets, Deadline deadline);

  ArrayHolder& holder_;
  const std::vector<std::span<const float>> places_;
  std::optional<Digest> digest_;  // set once it was waited for
  std::shared_future<void> copying_;
};

std::unique_ptr<HeldArrays> ArrayHolder::hold(std::span<const std::span<const float>> arrays) {
  await_last();
  // In the order of the arrays. Neighbours become one run, since many small copies take longer than the bytes do.
  const Layout layout = lay_out(arrays);
  // The caller then holds the arrays in place, and training waits for the copy.
  if (!make_room(layout.bytes)) return nullptr;
  begin_use();
  std::vector<std::span<const float>> places;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    places.emplace_back(reinterpret_cast<const float*>(place_.get() + layout.places[i]), arrays[i].size());
  }
  queue(layout, places);
  return std::make_unique<Held>(*this, std::move(places));
}

// The last copy to the host must be over, and also its digest, which is still under way if nothing asked for it.
void ArrayHolder::await_last() {
  if (copying_.valid()) copying_.wait();
  copying_ = {};
  if (is_digest_queued_) context_.wait_for(digested_.get(), context_.deadline(), "a digest of " + context_.device());
  is_digest_queued_ = false;
}

ArrayHolder::Layout ArrayHolder::lay_out(std::span<const std::span<const float>> arrays) const {
  const CudaContext::StreamLock lock = context_.lock_stream();
  Layout layout;
  for (const std::span<const float> array : arrays) {
    const std::span<const std::byte> bytes = std::as_bytes(array);
    if (bytes.empty()) {
      layout.places.push_back(0);
      continue;
    }
    if (layout.runs.empty() || !can_join(layout.runs.back(), bytes)) {
      layout.runs.push_back({.from = bytes.data(), .bytes = 0, .place = round_up(layout.bytes)});
    }
    Run& run = layout.runs.back();
    const auto offset = static_cast<std::size_t>(bytes.data() - run.from);
    // The padding before this array travels along.
    run.bytes = offset + bytes.size();
    layout.places.push_back(run.place + offset);
    layout.bytes = run.place + run.bytes;
  }
  return layout;
}

bool ArrayHolder::can_join(const Run& run, std::span<const std::byte> next) const {
  const std::byte* const end = run.from + run.bytes;
  if (next.data() < end || next.data() > end + kLargestGap) return false;
  // Two neighbours may belong to different allocations. A copy across their border is an error of the runtime.
  return allocated_.contain({run.from, next.data() + next.size()});
}

bool ArrayHolder::make_room(std::size_t bytes) {
  if (place_ != nullptr && bytes <= place_bytes_) return true;
  // What did not fit once will not fit later, because training frees nothing.
  if (!obstacle_.empty()) return false;
  // Given back first: the old copy counts as used memory until then.
  place_.reset();
  place_bytes_ = 0;
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  {
    const CudaContext::StreamLock lock = context_.lock_stream();
    check_cuda(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  }
  const std::size_t left_free = total_bytes / kShareLeftFree;
  try {
    // Another program may take the memory between the question and the answer, so allocate() may still fail.
    if (free_bytes >= bytes + left_free) place_ = context_.allocate(bytes);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
  }
  if (place_ != nullptr) {
    place_bytes_ = bytes;
    return true;
  }
  obstacle_ =
      fmt::format("{} has {} of its {} free, too little for a second copy of {} with {} to spare", context_.device(),
                  in_bytes(free_bytes), in_bytes(total_bytes), in_bytes(bytes), in_bytes(left_free));
  return false;
}

// Does not wait for a copy or a digest. They need the stream lock, which the thread that allocates may hold. Freeing
// the memory waits for the device, as every allocation on a full device must.
bool ArrayHolder::give_back_idle() {
  // A state may still be on its way from there.
  if (place_ == nullptr || held_ > 0) return false;
  if (is_digest_queued_ && cudaEventQuery(digested_.get()) != cudaSuccess) {
    // The runtime stores "not ready" as its last error.
    static_cast<void>(cudaGetLastError());
    return false;
  }
  is_digest_queued_ = false;
  place_.reset();
  obstacle_ = fmt::format("{} has no room for a second copy any more: training needed its {}", context_.device(),
                          in_bytes(place_bytes_));
  place_bytes_ = 0;
  return true;
}

void ArrayHolder::begin_use() {
  if (stream_ != nullptr) return;
  const CudaContext::StreamLock lock = context_.lock_stream();
  taken_ = make_event();
  digested_ = make_event();
  copied_ = make_event();
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags for copies");
  stream_.reset(stream);
  ring_ = std::make_unique<StagingRing>(context_, stream);
  digester_ = std::make_unique<CudaDigester>(context_.lost_device());
}

void ArrayHolder::queue(const Layout& layout, std::span<const std::span<const float>> places) {
  const CudaContext::StreamLock lock = context_.lock_stream();
  for (const Run& run : layout.runs) {
    check_cuda(
        cudaMemcpyAsync(place_.get() + run.place, run.from, run.bytes, cudaMemcpyDeviceToDevice, context_.stream()),
        fmt::format("cudaMemcpyAsync of {} within {}", in_bytes(run.bytes), context_.device()));
  }
  check_cuda(cudaEventRecord(taken_.get(), context_.stream()), "cudaEventRecord after a copy");
  // The copies within the device are in training's stream, before its next update. All else follows in the other
  // stream.
  check_cuda(cudaStreamWaitEvent(stream_.get(), taken_.get(), 0), "cudaStreamWaitEvent for a copy");
  digester_->queue(places, stream_.get());
  check_cuda(cudaEventRecord(digested_.get(), stream_.get()), "cudaEventRecord after a digest");
  is_digest_queued_ = true;
}

Digest ArrayHolder::Held::digest() {
  // Fetched once: the digester is used again by the next hold().
  if (!digest_) {
    holder_.context_.wait_for(holder_.digested_.get(), holder_.context_.deadline(),
                              "a digest of " + holder_.context_.device());
    digest_ = holder_.digester_->result();
  }
  return *digest_;
}

std::size_t ArrayHolder::Held::total_bytes() const {
  std::size_t bytes = 0;
  for (const std::span<const float> place : places_) bytes += place.size_bytes();
  return bytes;
}

void ArrayHolder::Held::begin_copy(std::span<const std::span<float>> to) {
  HOLDFAST_ASSERT(to.size() == places_.size() && !copying_.valid());
  std::vector<Target> targets;
  for (std::size_t i = 0; i < to.size(); ++i) {
    HOLDFAST_ASSERT(to[i].size() == places_[i].size());
    const std::span<std::byte> bytes = std::as_writable_bytes(to[i]);
    targets.push_back({bytes, !bytes.empty() && holder_.registered_.contain(bytes)});
  }
  // A large state takes longer than the limit of a step, even over a link that works.
  const auto slowest = std::chrono::seconds((total_bytes() >> 30U) * kSlowestLink);
  const Deadline deadline = Deadline::at(holder_.context_.deadline().moment() + slowest);
  copying_ =
      std::async(std::launch::async, [this, targets = std::move(targets), deadline] { copy(targets, deadline); });
  // The next hold() waits for it, even if this object is gone by then.
  holder_.copying_ = copying_;
}

// Runs on a thread of its own. After it the second copy may be overwritten, so the digest is fetched too.
void ArrayHolder::Held::copy(const std::vector<Target>& targets, Deadline deadline) {
  const cudaStream_t stream = holder_.stream_.get();
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!targets[i].is_registered) continue;
    const CudaContext::StreamLock lock = holder_.context_.lock_stream();
    check_cuda(
        cudaMemcpyAsync(targets[i].bytes.data(), places_[i].data(), targets[i].bytes.size(), cudaMemcpyDeviceToHost,
                        stream),
        fmt::format("cudaMemcpyAsync of {} from {}", in_bytes(targets[i].bytes.size()), holder_.context_.device()));
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].is_registered) continue;
    holder_.ring_->fetch(std::as_bytes(places_[i]).data(), targets[i].bytes, deadline);
  }
  {
    const CudaContext::StreamLock lock = holder_.context_.lock_stream();
    check_cuda(cudaEventRecord(holder_.copied_.get(), stream), "cudaEventRecord after copies");
  }
  holder_.context_.wait_for(holder_.copied_.get(), deadline, "a copy of the state from " + holder_.context_.device());
  digest();
}

}  // namespace holdfast::compute
