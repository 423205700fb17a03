#include "holdfast/base/signal_word.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace holdfast {
namespace {

// Long enough for a peer on another core to finish a small reduction. Short enough not to take a core
// away from a peer that needs it.
constexpr int kSpins = 2000;

constexpr std::uint32_t kCancelled = 1;

timespec to_timespec(Deadline::Clock::duration duration) {
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
  return {.tv_sec = nanoseconds / 1'000'000'000, .tv_nsec = nanoseconds % 1'000'000'000};
}

// Counts have 31 bits and wrap around. The shift moves the sign of their difference to the top bit,
// so the answer is right while the two are less than 2^30 apart.
bool is_at_least(std::uint32_t count, std::uint32_t target) {
  return static_cast<std::int32_t>((count - target) << 1) >= 0;
}

}  // namespace

void SignalWord::count_up() {
  // Bit 0 says that the word is cancelled, so a count adds 2 and cannot clear it. Release pairs
  // with the acquire of a waiter: what was written before the count is visible after it.
  word_.fetch_add(2, std::memory_order_release);
  wake_all();
}

bool SignalWord::has_reached(std::uint32_t target) const {
  return is_at_least(count(), target);
}

void SignalWord::cancel() {
  word_.fetch_or(kCancelled, std::memory_order_release);
  wake_all();
}

SignalWord::Outcome SignalWord::wait_until(std::uint32_t target, Deadline deadline) const {
  for (int spins = 0;; ++spins) {
    const std::uint32_t word = word_.load(std::memory_order_acquire);
    // Looked at before the count: no process may go on in a generation that has ended.
    if ((word & kCancelled) != 0) return Outcome::cancelled;
    if (is_at_least(word >> 1, target)) return Outcome::reached;
    if (spins < kSpins) {
      __builtin_ia32_pause();
      continue;
    }
    if (deadline.has_passed()) return Outcome::deadline_passed;
    // The kernel compares the word again before it sleeps, so a change since the load above is not
    // missed. This is not the private variant, because peers are other processes. A read-only mapping is
    // enough for waiting and waking.
    const timespec timeout = to_timespec(deadline.remaining());
    ::syscall(SYS_futex, &word_, FUTEX_WAIT, word, &timeout, nullptr, 0);
  }
}

void SignalWord::wake_all() const {
  ::syscall(SYS_futex, &word_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace holdfast
