#pragma once

// A page of memory that the watchdog shares with one process of a worker. The worker holds the page's mutex while it
// lives, and writes its progress there. When it dies, the kernel hands the mutex to a waiting thread in about 0.1 ms
// (robust_list(2)). The exit of the process is confirmed later, once its memory is released.

#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "holdfast/base/shared_memory.h"
#include "holdfast/recovery/phase.h"

namespace holdfast::recovery {

// What a worker does in the background while it trains.
struct BackgroundHeartbeat {
  std::uint64_t number = 0;  // different for each piece of work; 0: no work
  std::uint64_t bytes = 0;   // that this piece of work reads or writes
  bool is_callback = false;  // it is a callback of the application
};

// How far a worker is on its way from joining a generation to the steps.
enum class JoinState : std::int32_t { newcomer, joining_again, in_steps };

struct LifePage {
  static constexpr std::size_t kBytes = 4096;  // a crash page follows (crash_page.h)

  // The watchdog makes the page in zero-filled shared memory, and the worker finds it there.
  static LifePage& make(SharedMemory& memory);
  static LifePage& find(SharedMemory& memory);

  // A step has ended when the step's number grows while the worker leaves a phase of a step.
  void enter(Phase next_phase, std::int64_t next_step);
  void beat() { progress.fetch_add(1, std::memory_order_relaxed); }

  // To be called by one thread at a time. `what` is cut to 1023 bytes.
  void enter_background(const BackgroundHeartbeat& heartbeat, std::string_view what);
  BackgroundHeartbeat in_background() const;
  // While the worker changes it, this may be half of one text and half of another.
  std::string what_in_background() const;

  // The time in the phase `of`, at the end of the last step, so that it fits `steps`.
  std::chrono::nanoseconds time_in_steps(Phase of) const;

  // To be called by the same thread. It must live as long as the process, since a thread owns the mutex.
  void hold();
  void let_go();

  pthread_mutex_t held;  // robust, shared between processes
  std::atomic<std::uint64_t> progress;
  std::atomic<std::int64_t> step;
  std::atomic<Phase> phase;
  std::atomic<std::uint64_t> steps;  // how many have ended
  std::atomic<std::int64_t> entered_nanoseconds;
  std::array<std::atomic<std::int64_t>, kPhaseCount> nanoseconds_in;  // by phase
  std::array<std::atomic<std::int64_t>, kPhaseCount> nanoseconds_in_steps;
  std::atomic<std::uint64_t> samples;  // on which this process has trained
  std::atomic<JoinState> join_state;
  std::atomic<std::uint64_t> background_number;  // 0 also while the values below change
  std::atomic<std::uint64_t> background_bytes;
  std::atomic<bool> is_background_callback;
  std::array<std::atomic<char>, 1024> background_what;  // up to the first zero
};

static_assert(sizeof(LifePage) <= LifePage::kBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<Phase>::is_always_lock_free);

// A thread that waits until the holder of the page's mutex dies. The page must outlive it.
class DeathWatch {
 public:
  // The worker must hold the mutex already. `on_death` is called at most once, from the thread. It is not called when
  // the holder unlocks the mutex.
  DeathWatch(LifePage& page, std::function<void()> on_death);

 private:
  std::jthread thread_;  // stops within 0.1 s
};

}  // namespace holdfast::recovery
