#pragma once

// A page of memory that the watchdog shares with one incarnation of a worker: the worker holds its mutex as long as it
// lives, and writes down how far it is. The kernel gives the mutex of a dead process to the next who waits for it, in
// about 0.1 ms (robust_list(2)); the confirmation of its exit takes until its memory is torn down.

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

#include "detect/background_pulse.h"
#include "holdfast/base/shared_memory.h"
#include "holdfast/recovery/phase.h"

namespace holdfast::recovery {

// Where a worker stands between joining a generation and its steps.
enum class Standing : std::int32_t { newcomer, joining_again, in_steps };

struct LifePage {
  static constexpr std::size_t kBytes = 4096;  // a crash page follows it (crash_page.h)

  // The watchdog's side makes the page in zero-filled shared memory; the worker's side finds it there.
  static LifePage& make(SharedMemory& memory);
  static LifePage& find(SharedMemory& memory);

  // A step has ended when its number grows out of one of a step's phases.
  void enter(Phase next_phase, std::int64_t next_step);
  void beat() { progress.fetch_add(1, std::memory_order_relaxed); }

  // By one thread at a time.
  void enter_background(const BackgroundPulse& pulse, std::string_view what);
  BackgroundPulse in_background() const;
  // While the worker goes on, perhaps half of one and half of another.
  std::string what_in_background() const;

  // In the phase `of` until the worker last left it.
  std::chrono::nanoseconds time_in(Phase of) const;
  // The same as it was when the last step ended, so that it belongs to `steps`.
  std::chrono::nanoseconds time_in_steps(Phase of) const;

  // By the same thread, which must live as long as the process does: it is a thread that owns a mutex.
  void hold();
  void let_go();

  pthread_mutex_t held;  // robust, shared between processes
  std::atomic<std::uint64_t> progress;
  std::atomic<std::int64_t> step;
  std::atomic<Phase> phase;
  std::atomic<std::uint64_t> steps;  // that ended
  std::atomic<std::int64_t> entered_nanoseconds;
  std::array<std::atomic<std::int64_t>, kPhaseCount> nanoseconds_in;  // by phase
  std::array<std::atomic<std::int64_t>, kPhaseCount> nanoseconds_in_steps;
  std::atomic<std::uint64_t> samples;  // that this process has trained on
  std::atomic<Standing> standing;
  std::atomic<std::uint64_t> background_number;  // 0 also while the others below change
  std::atomic<std::uint64_t> background_bytes;
  std::atomic<bool> is_background_callback;
  std::array<std::atomic<char>, 1024> background_what;  // up to the first zero
};

static_assert(sizeof(LifePage) <= LifePage::kBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<Phase>::is_always_lock_free);

// A thread that waits for the death of the page's holder. The page must outlive it.
class DeathWatch {
 public:
  // The worker must hold the page already. `on_death` is called at most once, from the thread, and not when the holder
  // lets go.
  DeathWatch(LifePage& page, std::function<void()> on_death);

 private:
  std::jthread thread_;  // stops within 0.1 s
};

}  // namespace holdfast::recovery
