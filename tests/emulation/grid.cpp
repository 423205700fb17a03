#include "emulation/grid.h"

#include <ucontext.h>

#include <bit>
#include <map>
#include <memory>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast::emulation {

Index thread_index;
Index block_index;
Index block_size;
Index grid_size;

namespace {

constexpr std::size_t kStackBytes = std::size_t{256} * 1024;
// More rounds than any kernel here waits.
constexpr std::uint64_t kMostTurns = 1'000'000;

struct Thread {
  ucontext_t context{};
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStackBytes);
  bool is_done = false;
  std::uint64_t given = 0;  // the value for other lanes of its warp
};

struct Barrier {
  unsigned arrived = 0;
  std::uint64_t openings = 0;
};

ucontext_t scheduler;
std::vector<Thread> threads_of_block;
std::map<std::uint64_t, Barrier> barriers;  // by warp and mask; 0 is the block's
std::function<void()> running_kernel;

Thread& current() {
  return threads_of_block[thread_index.x];
}

void run_thread() {
  running_kernel();
  current().is_done = true;
  swapcontext(&current().context, &scheduler);
}

void wait_at(std::uint64_t key, unsigned count) {
  Barrier& barrier = barriers[key];
  const std::uint64_t openings = barrier.openings;
  if (++barrier.arrived == count) {
    barrier.arrived = 0;
    ++barrier.openings;
    return;
  }
  for (std::uint64_t turn = 0; barrier.openings == openings; ++turn) {
    HOLDFAST_ASSERT(turn < kMostTurns);
    swapcontext(&current().context, &scheduler);
  }
}

void begin_block() {
  barriers.clear();
  for (Thread& thread : threads_of_block) {
    thread.is_done = false;
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.get();
    thread.context.uc_stack.ss_size = kStackBytes;
    thread.context.uc_link = nullptr;
    makecontext(&thread.context, run_thread, 0);
  }
}

void run_block() {
  begin_block();
  std::size_t left = threads_of_block.size();
  while (left > 0) {
    for (thread_index.x = 0; thread_index.x < block_size.x; ++thread_index.x) {
      if (current().is_done) continue;
      swapcontext(&scheduler, &current().context);
      if (current().is_done) --left;
    }
  }
  for (const auto& [key, barrier] : barriers) HOLDFAST_ASSERT(barrier.arrived == 0);
}

}  // namespace

void run_grid(unsigned blocks, unsigned threads, std::function<void()> kernel) {
  running_kernel = std::move(kernel);
  threads_of_block.resize(threads);
  block_size.x = threads;
  grid_size.x = blocks;
  for (block_index.x = 0; block_index.x < blocks; ++block_index.x) run_block();
}

void wait_for_block() {
  wait_at(0, block_size.x);
}

// Threads run one at a time, so nothing has to be done.
void fence() {}
void order_atomic(const void*) {}

std::uint64_t exchange_words(unsigned mask, std::uint64_t value, unsigned lane) {
  const unsigned warp = thread_index.x / kWarp;
  HOLDFAST_ASSERT((mask >> thread_index.x % kWarp & 1) != 0 && (mask >> lane & 1) != 0);
  const std::uint64_t key = static_cast<std::uint64_t>(warp + 1) << 32 | mask;
  const auto lanes = static_cast<unsigned>(std::popcount(mask));
  current().given = value;
  wait_at(key, lanes);
  const std::uint64_t taken = threads_of_block[warp * kWarp + lane].given;
  wait_at(key, lanes);
  return taken;
}

}  // namespace holdfast::emulation
