#include "memory/fence.h"

#include <atomic>
#include <ctime>
#include <new>
#include <utility>

namespace holdfast::recovery {
namespace {

using Word = std::atomic<std::int64_t>;  // nanoseconds of CLOCK_BOOTTIME

// Any other atomic takes a lock in the memory of its own process, which protects nothing between two processes.
static_assert(Word::is_always_lock_free);

const Word& word_in(const SharedMemory& memory) {
  return *std::launder(reinterpret_cast<const Word*>(memory.readable().data()));
}

BootTime time_in(const SharedMemory& memory) {
  // No other memory depends on it: a reader that comes a moment too early reads the fence as it was then.
  return BootTime(word_in(memory).load(std::memory_order_relaxed));
}

}  // namespace

BootTime boot_time_now() {
  timespec now{};
  // CLOCK_MONOTONIC stands still while the machine is suspended. By that clock, the fence of a suspended host would run
  // out too late.
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

Fence::Fence() : memory_(SharedMemory::create("holdfast-fence", sizeof(Word))) {
  // Zero lies in the past: before the head has acknowledged a beat, no process of this host may change anything.
  new (memory_.writable().data()) Word(0);
}

void Fence::set(BootTime until) {
  std::launder(reinterpret_cast<Word*>(memory_.writable().data()))->store(until.count(), std::memory_order_relaxed);
}

BootTime Fence::until() const {
  return time_in(memory_);
}

FenceView::FenceView(FileDescriptor memory) : memory_(SharedMemory::map_read_only(std::move(memory), sizeof(Word))) {}

bool FenceView::has_run_out() const {
  return boot_time_now() >= time_in(memory_);
}

}  // namespace holdfast::recovery
