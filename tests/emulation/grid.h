#pragma once

// A grid of a kernel's threads on the host, one block after the other, its threads in turns: each runs until it waits
// for others. What a device does at once happens in one order here, so that a race between threads is not seen (unless
// races/fiber_grid.cpp is linked instead). But what a kernel computes, which threads wait for which, and what it reads
// and writes are as on a device.

#include <cstdint>
#include <cstring>
#include <functional>

namespace holdfast::emulation {

struct Index {
  unsigned x = 0;
};

// Of the running thread.
extern Index thread_index;
extern Index block_index;
extern Index block_size;
extern Index grid_size;

inline constexpr unsigned kWarp = 32;

// Whether the current device is that of the streams; else the runtime's last error says so.
bool can_launch();

// Ends the process, saying why, where threads wait for others that never come.
void run_grid(unsigned blocks, unsigned threads, std::function<void()> kernel);

// Until all threads of the block are here.
void wait_for_block();

// What else orders memory for a device: __threadfence(), and an atomic operation at `place` after one. They matter only
// where races are looked for (races/fiber_grid.cpp).
void fence();
void order_atomic(const void* place);

// `value` of the lane, after all lanes of the mask have given theirs. Ends the process where that lane is none of them.
std::uint64_t exchange_words(unsigned mask, std::uint64_t value, unsigned lane);

template <class Value>
Value exchange(unsigned mask, Value value, unsigned lane) {
  static_assert(sizeof(Value) <= sizeof(std::uint64_t));
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(value));
  word = exchange_words(mask, word, lane);
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

}  // namespace holdfast::emulation
