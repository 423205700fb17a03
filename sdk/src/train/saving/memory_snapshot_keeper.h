#pragma once

// Copies a device's state into memory that outlives this process, while training goes on. A copy counts only after it
// has arrived and is the same as what the device held. A copy that should be finite and is not is dropped, with a
// warning. docs/decisions/device-copies.md

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "holdfast/core/memory_space.h"
#include "train/context/replica_context.h"
#include "train/state/snapshot.h"

namespace holdfast {

// Only the training thread uses it.
class MemorySnapshotKeeper {
 public:
  using Clock = std::chrono::steady_clock;

  using Now = std::function<Clock::time_point()>;  // any thread

  explicit MemorySnapshotKeeper(Supervision& supervision, Now now = Clock::now)
      : supervision_(supervision), now_(std::move(now)) {}
  // Waits for the copy under way, and ignores its failure.
  ~MemorySnapshotKeeper();
  MemorySnapshotKeeper(const MemorySnapshotKeeper&) = delete;
  MemorySnapshotKeeper& operator=(const MemorySnapshotKeeper&) = delete;

  struct State {
    std::int64_t step = 0;
    StateImage image;
    std::vector<bool> must_be_finite{};  // by array of the image; empty: no array must be
    std::shared_ptr<HeldArrays> held;    // holds these arrays
  };
  // Begins to copy a state before anything changes its arrays. First waits for the copy under
  // way, as finish() does. Does nothing if no memory outlives the process. Returns the time that it took to find that
  // memory and to register it with the device; later states need not do this again.
  Clock::duration keep(State state);

  bool is_busy() const;
  struct Times {
    Clock::time_point begin;
    Clock::time_point end;
  };
  // The times of a copy that has ended since the last call. Rethrows its failure: Error{diverged} if the host got
  // another state than the device held.
  std::optional<Times> take_finished();
  // Blocks until the copy under way has ended: at most as long as the memory space waits for a copy, and as reading it
  // takes. Rethrows its failure.
  void finish();

 private:
  void pin(const OutlivingMemory& target, MemorySpace& memory);
  void unpin() noexcept;

  Supervision& supervision_;
  const Now now_;
  // Registered with the device, until unpin().
  std::shared_ptr<void> pinned_mapping_;
  std::span<std::byte> pinned_;
  MemorySpace* pinned_in_ = nullptr;
  std::future<Times> work_;
};

}  // namespace holdfast
