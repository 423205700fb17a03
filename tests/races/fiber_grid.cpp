// Compiled without the sanitizer, so that it sees only the kernels and what this file reports to it.

#include "races/fiber_grid.h"

#include <sched.h>
#include <ucontext.h>

#include <atomic>
#include <bit>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "emulation/grid.h"
#include "holdfast/base/error.h"

extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* place);
void __tsan_release(void* place);
}

static std::atomic<int> report_count = 0;

// The sanitizer calls this for each race that it reports. A report takes milliseconds, so tests that make races stop
// after some.
extern "C" void __tsan_on_report(void*) {
  constexpr int kEnough = 10;
  if (++report_count % kEnough != 0) return;
  holdfast::emulation::race_settings().are_barriers_ordered = true;
  holdfast::emulation::race_settings().are_fences_ordered = true;
}

namespace holdfast::emulation {

// The indexes of the grid's only running thread.
Index thread_index;
Index block_index;
Index block_size;
Index grid_size;

namespace {

constexpr std::size_t kStackBytes = std::size_t{64} * 1024;
// More rounds than any kernel here waits.
constexpr std::uint64_t kMostTurns = 1'000'000;
constexpr unsigned kOrdersNothing = 1;  // the flag of a switch that does not order memory

struct Thread {
  ucontext_t context{};
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStackBytes);
  void* fiber = nullptr;
  bool is_done = false;
  bool has_fenced = false;
  std::uint64_t given = 0;  // the value for other lanes of its warp
};

struct Barrier {
  unsigned arrived = 0;
  std::uint64_t openings = 0;
};

struct Block {
  ucontext_t scheduler{};
  void* own_fiber = nullptr;
  std::vector<std::unique_ptr<Thread>> threads;
  std::map<std::uint64_t, Barrier> barriers;  // by warp and mask; 0 is the block's
  // The memory order of a barrier. Two alternate, because a thread that arrives at the next barrier has passed the one
  // before the last.
  char barrier_orders[2]{};
  char end_orders = 0;
};

std::function<void()> running_kernel;
Block* running_block = nullptr;

Thread& current() {
  return *running_block->threads[thread_index.x];
}

bool is_by_thread() {
  return race_settings().granularity == Granularity::threads;
}

void go_to(Thread& thread) {
  if (is_by_thread()) __tsan_switch_to_fiber(thread.fiber, kOrdersNothing);
  swapcontext(&running_block->scheduler, &thread.context);
}

void go_back() {
  if (is_by_thread()) __tsan_switch_to_fiber(running_block->own_fiber, kOrdersNothing);
  swapcontext(&current().context, &running_block->scheduler);
}

void run_thread() {
  running_kernel();
  __tsan_release(&running_block->end_orders);
  current().is_done = true;
  go_back();
}

void wait_at(std::uint64_t key, unsigned count) {
  Barrier& barrier = running_block->barriers[key];
  const std::uint64_t openings = barrier.openings;
  if (++barrier.arrived == count) {
    barrier.arrived = 0;
    ++barrier.openings;
    return;
  }
  for (std::uint64_t turn = 0; barrier.openings == openings; ++turn) {
    HOLDFAST_ASSERT(turn < kMostTurns);
    go_back();
  }
}

void make_threads(Block& block) {
  block.own_fiber = __tsan_get_current_fiber();
  for (unsigned i = 0; i < block_size.x; ++i) {
    auto thread = std::make_unique<Thread>();
    getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = thread->stack.get();
    thread->context.uc_stack.ss_size = kStackBytes;
    thread->context.uc_link = nullptr;
    makecontext(&thread->context, run_thread, 0);
    // This comes after the allocation of the stack, which counts as a store.
    if (is_by_thread()) thread->fiber = __tsan_create_fiber(0);
    block.threads.push_back(std::move(thread));
  }
}

void run_block() {
  Block block;
  running_block = &block;
  make_threads(block);
  for (std::size_t left = block_size.x; left > 0;) {
    for (thread_index.x = 0; thread_index.x < block_size.x; ++thread_index.x) {
      if (current().is_done) continue;
      go_to(current());
      if (current().is_done) --left;
    }
  }
  for (const auto& [key, barrier] : block.barriers) HOLDFAST_ASSERT(barrier.arrived == 0);
  __tsan_acquire(&block.end_orders);
  for (const auto& thread : block.threads) {
    if (thread->fiber != nullptr) __tsan_destroy_fiber(thread->fiber);
  }
}

}  // namespace

RaceSettings& race_settings() {
  static RaceSettings settings;
  return settings;
}

int reported_races() {
  return report_count;
}

// As in a stream, the sanitizer sees everything before the grid as earlier, and everything after it as later.
void run_grid(unsigned blocks, unsigned threads, std::function<void()> kernel) {
  running_kernel = std::move(kernel);
  block_size.x = threads;
  grid_size.x = blocks;
  std::atomic<unsigned> turn = 0;  // the sanitizer does not see this
  std::vector<std::thread> hosts;
  for (unsigned block = 0; block < blocks; ++block) {
    hosts.emplace_back([block, &turn] {
      while (turn != block) sched_yield();
      block_index.x = block;
      run_block();
      turn = block + 1;
    });
  }
  for (std::thread& host : hosts) host.join();
}

void wait_for_block() {
  const bool is_ordered = race_settings().are_barriers_ordered;
  char* const orders = &running_block->barrier_orders[running_block->barriers[0].openings % 2];
  if (is_ordered) __tsan_release(orders);
  wait_at(0, block_size.x);
  if (is_ordered) __tsan_acquire(orders);
}

void fence() {
  current().has_fenced = true;
}

// A thread that sees an atomic operation also sees what was stored before the fence that precedes it.
void order_atomic(const void* place) {
  if (!race_settings().are_fences_ordered) return;
  __tsan_acquire(const_cast<void*>(place));
  if (current().has_fenced) __tsan_release(const_cast<void*>(place));
}

std::uint64_t exchange_words(unsigned mask, std::uint64_t value, unsigned lane) {
  const unsigned warp = thread_index.x / kWarp;
  HOLDFAST_ASSERT((mask >> thread_index.x % kWarp & 1) != 0 && (mask >> lane & 1) != 0);
  const std::uint64_t key = static_cast<std::uint64_t>(warp + 1) << 32 | mask;
  const auto lanes = static_cast<unsigned>(std::popcount(mask));
  current().given = value;
  wait_at(key, lanes);
  const std::uint64_t taken = running_block->threads[warp * kWarp + lane]->given;
  wait_at(key, lanes);
  return taken;
}

}  // namespace holdfast::emulation
