#pragma once

// Runs a kernel's grid on the host, one block after another. Each thread of a block runs until it waits for others.
// Concurrent work thus happens in one order, and races between threads are not seen; races/fiber_grid.cpp, which can be
// linked instead, sees them. What a kernel computes, reads and writes, and which threads wait for which, is as on a
// device.

#include <cstdint>
#include <cstring>
#include <functional>

namespace holdfast::emulation {

struct Index {
  unsigned x = 0;
};

// The indexes of the running thread.
extern Index thread_index;
extern Index block_index;
extern Index block_size;
extern Index grid_size;

inline constexpr unsigned kWarp = 32;

// Whether the current device is that of the streams. If not, sets the runtime's last error.
bool can_launch();

// Runs the grid. Ends the process with a message if threads wait for others that never come.
void run_grid(unsigned blocks, unsigned threads, std::function<void()> kernel);

// Waits until all threads of the block are here.
void wait_for_block();

// The other operations that order memory: __threadfence(), and an atomic operation on `place` after it. They only
// matter in races/fiber_grid.cpp.
void fence();
void order_atomic(const void* place);

// Returns the `value` of the lane, after all lanes of the mask have given theirs. Ends the process if the lane is not
// in the mask.
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
