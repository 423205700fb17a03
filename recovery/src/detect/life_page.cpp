// The page lies in memory that two processes share, and one of them may die at any instruction. So each value is a
// lock-free atomic, and only the robust mutex shows a death. See docs/decisions/recovery.md.

#include "detect/life_page.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <new>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/threads.h"

namespace holdfast::recovery {
namespace {

// A wait for a mutex cannot be interrupted, so the thread looks this often whether it should stop.
constexpr std::chrono::milliseconds kWatchPeriod(100);

// This clock is the same in all processes of the host.
std::int64_t nanoseconds_now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool belongs_to_a_step(Phase phase) {
  return phase == Phase::computing || phase == Phase::waiting_for_peers || phase == Phase::updating;
}

// A clock that is set does not change the wait.
timespec monotonic_after(std::chrono::nanoseconds duration) {
  timespec moment{};
  ::clock_gettime(CLOCK_MONOTONIC, &moment);
  const auto nanoseconds = moment.tv_nsec + duration.count();
  return {.tv_sec = moment.tv_sec + nanoseconds / 1'000'000'000, .tv_nsec = nanoseconds % 1'000'000'000};
}

// The kernel hands a robust mutex on when its owner dies.
void make_robust(pthread_mutex_t& mutex) {
  pthread_mutexattr_t attributes;
  ::pthread_mutexattr_init(&attributes);
  ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  const int error_number = ::pthread_mutex_init(&mutex, &attributes);
  ::pthread_mutexattr_destroy(&attributes);
  if (error_number != 0) throw system_error(error_number, "cannot make a robust mutex");
}

void watch(const std::stop_token& token, LifePage& page, const std::function<void()>& on_death) {
  while (!token.stop_requested()) {
    const timespec until = monotonic_after(kWatchPeriod);
    const int error_number = ::pthread_mutex_clocklock(&page.held, CLOCK_MONOTONIC, &until);
    if (error_number == ETIMEDOUT) continue;
    // The page serves one holder, so no thread will lock the mutex again, and it stays inconsistent.
    if (error_number == EOWNERDEAD) on_death();
    return;
  }
}

}  // namespace

LifePage& LifePage::make(SharedMemory& memory) {
  auto& page = *new (memory.writable().data()) LifePage();
  page.step = -1;
  page.phase = Phase::starting;
  page.entered_nanoseconds = nanoseconds_now();
  make_robust(page.held);
  return page;
}

LifePage& LifePage::find(SharedMemory& memory) {
  return *std::launder(reinterpret_cast<LifePage*>(memory.writable().data()));
}

void LifePage::enter(Phase next_phase, std::int64_t next_step) {
  const std::int64_t now = nanoseconds_now();
  const Phase last_phase = phase.exchange(next_phase, std::memory_order_relaxed);
  const std::int64_t last_step = step.exchange(next_step, std::memory_order_relaxed);
  const std::int64_t elapsed = now - entered_nanoseconds.exchange(now, std::memory_order_relaxed);
  // Two threads that enter at the same time may have read the clock in the other order.
  nanoseconds_in[static_cast<std::size_t>(last_phase)].fetch_add(std::max<std::int64_t>(elapsed, 0),
                                                                 std::memory_order_relaxed);
  if (belongs_to_a_step(last_phase) && last_step >= 0 && next_step > last_step) {
    for (std::size_t of = 0; of < nanoseconds_in.size(); ++of) {
      nanoseconds_in_steps[of].store(nanoseconds_in[of].load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    // Counted last: a watchdog that sees the new count also sees the times that belong to it.
    steps.fetch_add(1, std::memory_order_release);
  }
  beat();
}

void LifePage::enter_background(const BackgroundHeartbeat& heartbeat, std::string_view what) {
  // 0 while the values change, so that in_background() never takes the bytes of one work for those of another.
  background_number.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  const std::size_t characters = std::min(what.size(), background_what.size() - 1);
  for (std::size_t i = 0; i < characters; ++i) background_what[i].store(what[i], std::memory_order_relaxed);
  background_what[characters].store('\0', std::memory_order_relaxed);
  background_bytes.store(heartbeat.bytes, std::memory_order_relaxed);
  is_background_callback.store(heartbeat.is_callback, std::memory_order_relaxed);
  background_number.store(heartbeat.number, std::memory_order_release);
}

// The number is read before and after. Otherwise the few bytes of the next work could shorten the limit of a large one.
BackgroundHeartbeat LifePage::in_background() const {
  const BackgroundHeartbeat heartbeat{.number = background_number.load(std::memory_order_acquire),
                                      .bytes = background_bytes.load(std::memory_order_relaxed),
                                      .is_callback = is_background_callback.load(std::memory_order_relaxed)};
  std::atomic_thread_fence(std::memory_order_acquire);
  return background_number.load(std::memory_order_relaxed) == heartbeat.number ? heartbeat : BackgroundHeartbeat{};
}

std::string LifePage::what_in_background() const {
  std::string what;
  // The worker may write at the same time. A text that is half of another does no harm.
  for (const std::atomic<char>& character : background_what) {
    const char c = character.load(std::memory_order_relaxed);
    if (c == '\0') break;
    what += c;
  }
  return what;
}

std::chrono::nanoseconds LifePage::time_in_steps(Phase of) const {
  return std::chrono::nanoseconds(nanoseconds_in_steps[static_cast<std::size_t>(of)].load(std::memory_order_relaxed));
}

void LifePage::hold() {
  // A page serves one worker, so nobody else can have the mutex.
  HOLDFAST_ASSERT(::pthread_mutex_trylock(&held) == 0);
}

// A mutex that its owner has unlocked reports no death, so an orderly end is not taken for one.
void LifePage::let_go() {
  ::pthread_mutex_unlock(&held);
}

DeathWatch::DeathWatch(LifePage& page, std::function<void()> on_death)
    : thread_(start_thread<std::jthread>(
          "the thread that waits for a replica's death",
          [&page, on_death = std::move(on_death)](const std::stop_token& token) { watch(token, page, on_death); })) {}

}  // namespace holdfast::recovery
