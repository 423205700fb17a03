#pragma once

// Carries a device's state into memory that outlives this process, while training goes on: it waits for the copy,
// compares what arrived with what the device held, and only then lets it count; and not where it is not finite, though
// it should be, which the log is told.

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "holdfast/core/memory_space.h"
#include "train/context/place.h"

namespace holdfast {

// For the training thread.
class MemorySnapshotKeeper {
 public:
  using Clock = std::chrono::steady_clock;

  using Now = std::function<Clock::time_point()>;  // any thread

  explicit MemorySnapshotKeeper(Supervision& supervision, Now now = Clock::now)
      : supervision_(supervision), now_(std::move(now)) {}
  // Waits for the last one, whatever becomes of it.
  ~MemorySnapshotKeeper();
  MemorySnapshotKeeper(const MemorySnapshotKeeper&) = delete;
  MemorySnapshotKeeper& operator=(const MemorySnapshotKeeper&) = delete;

  struct State {
    std::int64_t step = 0;
    std::string header;                          // of its StateImage
    std::vector<std::span<const float>> arrays;  // likewise
    std::vector<bool> must_be_finite{};          // by array; empty: none
    std::shared_ptr<HeldArrays> held;            // of these
  };
  // Begins with a state, before anything changes its arrays, which lie in `memory`. Does nothing where there is no
  // memory that outlives the process. Returns how much of its time went into finding that memory and telling the device
  // of it, which later states find done.
  Clock::duration keep(State state, MemorySpace& memory);

  bool is_busy() const;
  struct Times {
    Clock::time_point begin;
    Clock::time_point end;
  };
  // Of one that is done since the last call. Rethrows its failure: Error{diverged} where the host got another state
  // than the device held.
  std::optional<Times> take_finished();
  // Blocks until the last one is done: as long as the memory space takes for a copy at most, and what reading it takes.
  // Rethrows its failure.
  void finish();

 private:
  void pin(const OutlivingMemory& target, MemorySpace& memory);
  void unpin() noexcept;

  Supervision& supervision_;
  const Now now_;
  // What the device knows of, until unpin().
  std::shared_ptr<void> pinned_mapping_;
  std::span<std::byte> pinned_;
  MemorySpace* pinned_in_ = nullptr;
  std::future<Times> work_;
};

}  // namespace holdfast
