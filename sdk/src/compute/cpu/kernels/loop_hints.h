#pragma once

// What loops tell compilers and processors. No bit depends on it. See vector_kernels.h.

#include <cstdint>

// For lambdas. One that is called would take its vectors from memory.
#define HOLDFAST_INLINED __attribute__((always_inline))

namespace holdfast::compute {
namespace {

constexpr std::int64_t kLineFloats = 16;  // of a line of the cache

// Floats of a vector of the instruction set, for loops that name their vectors.
#ifdef __AVX512F__
constexpr int kHostVectorFloats = 16;
#elif defined(__AVX2__)
constexpr int kHostVectorFloats = 8;
#else
constexpr int kHostVectorFloats = 4;
#endif

// Compilers move divisions to where their operands are known, next to one another, where each waits for the one before.
// They move nothing over this.
[[gnu::always_inline]] inline void keep_order() {
  asm volatile("");
}

// Asks for the line of the cache of an address, which may lie after the end of an array.
[[gnu::always_inline]] inline void ask(const float* address) {
  __builtin_prefetch(address);
}

// Asks for the line of the cache that comes a while after an address, and may lie after the end of an array.
//
// Processors find such lines themselves where a loop does little else. Loops with many instructions for each number
// reach few lines ahead of those that they wait for. Numbers that they keep on the stack are stores, too, and wait
// after those that wait for memory. So outputs are asked for like inputs. On an Intel Xeon of 2026-11-27, tanh on
// AVX-512 took 0.78 times as long with it.
[[gnu::always_inline]] inline void ask_ahead(const float* address) {
  constexpr std::uintptr_t kAhead = 2048;
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(address) + kAhead));
}

// Where a number of an array lies, or would lie after its end.
[[gnu::always_inline]] inline std::uintptr_t address_of(const float* array, std::int64_t number) {
  return reinterpret_cast<std::uintptr_t>(array) + static_cast<std::uintptr_t>(number) * sizeof(float);
}

// Asks for a line that is used long after, and so need not be in the first-level cache.
[[gnu::always_inline]] inline void ask_second_cache(std::uintptr_t address) {
  constexpr int kToRead = 0;
  constexpr int kSecondLevel = 2;
  __builtin_prefetch(reinterpret_cast<const void*>(address), kToRead, kSecondLevel);
}

}  // namespace
}  // namespace holdfast::compute
