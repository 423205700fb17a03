#include "life_page.h"

#include <cerrno>
#include <chrono>
#include <ctime>
#include <new>
#include <utility>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

constexpr std::chrono::milliseconds kWatchPeriod(100);

timespec monotonic_after(std::chrono::nanoseconds duration) {
  timespec moment{};
  ::clock_gettime(CLOCK_MONOTONIC, &moment);
  const auto nanoseconds = moment.tv_nsec + duration.count();
  return {.tv_sec = moment.tv_sec + nanoseconds / 1'000'000'000, .tv_nsec = nanoseconds % 1'000'000'000};
}

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
    // The page has served its one holder: the mutex stays as it is, since nobody will lock it again.
    if (error_number == EOWNERDEAD) on_death();
    return;
  }
}

}  // namespace

LifePage& LifePage::make(SharedMemory& memory) {
  auto& page = *new (memory.writable().data()) LifePage();
  page.step = -1;
  page.phase = Phase::starting;
  make_robust(page.held);
  return page;
}

LifePage& LifePage::find(SharedMemory& memory) {
  return *std::launder(reinterpret_cast<LifePage*>(memory.writable().data()));
}

void LifePage::enter(Phase next_phase, std::int64_t next_step) {
  phase.store(next_phase, std::memory_order_relaxed);
  step.store(next_step, std::memory_order_relaxed);
  beat();
}

void LifePage::hold() {
  HOLDFAST_ASSERT(::pthread_mutex_trylock(&held) == 0);
}

void LifePage::let_go() {
  ::pthread_mutex_unlock(&held);
}

DeathWatch::DeathWatch(LifePage& page, std::function<void()> on_death)
    : thread_([&page, on_death = std::move(on_death)](const std::stop_token& token) { watch(token, page, on_death); }) {
}

}  // namespace holdfast::recovery
