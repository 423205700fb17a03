#pragma once

// A counter in shared memory on which other threads and processes wait, and which can be cancelled.
//
// One owner counts it up. Any number of peers, which may map it read-only, wait until it reaches a
// value. Any process that can write it may cancel it: every wait, running or later, then ends at once
// with Outcome::cancelled. A waiter spins for a few microseconds and then sleeps on a futex.
//
//   auto* word = new (memory.writable().data()) SignalWord;          // the owner
//   word->count_up();                                                // "block 1 is complete"
//   word->wait_until(1, Deadline::after(std::chrono::seconds(30)));  // a peer
//
// Bit 0 of the word is the cancelled flag; the other 31 bits are the count. Counts are compared with
// wrap-around, so waiter and counter must stay within 2^30 of each other. Memory of zeros is a valid
// new SignalWord.

#include <atomic>
#include <cstdint>

#include "holdfast/base/deadline.h"

namespace holdfast {

class SignalWord {
 public:
  // Owner only. Release order: a peer that waited for the count sees what the owner wrote before.
  void count_up();
  // Ends every wait, now and later. It cannot be undone. Any thread or process with a writable mapping.
  void cancel();

  // How often count_up() was called, modulo 2^31.
  std::uint32_t count() const { return word_.load(std::memory_order_acquire) >> 1; }
  // Whether the count is at least `target`; ignores the cancelled flag.
  bool has_reached(std::uint32_t target) const;
  // Whether cancel() was called.
  bool is_cancelled() const { return (word_.load(std::memory_order_acquire) & 1U) != 0; }

  // How a wait ended.
  enum class Outcome {
    reached,          // the count is at least the target
    cancelled,        // cancel() was called, whatever the count
    deadline_passed,  // neither happened in time
  };
  // Blocks until the count is at least `target`, the word is cancelled, or the deadline passes.
  // Cancellation wins over a count that was reached: a generation that ended must not go on by luck.
  [[nodiscard]] Outcome wait_until(std::uint32_t target, Deadline deadline) const;

 private:
  void wake_all() const;

  std::atomic<std::uint32_t> word_{0};
};

static_assert(sizeof(SignalWord) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace holdfast
