#pragma once

// The shard tree's order in the form that a kernel follows, and the additions themselves. Host and device compile the
// same source. For each element the additions are those of add_in_order() in ordered_add.h, so both give the
// same bits.

#include <cstddef>
#include <cstdint>
#include <span>

#include "collective/shard_tree.h"

#ifndef HOLDFAST_HOST_DEVICE
#ifdef __CUDACC__
#define HOLDFAST_HOST_DEVICE __host__ __device__
#else
#define HOLDFAST_HOST_DEVICE
#endif
#endif

namespace holdfast {

constexpr int kMostSumLeaves = 256;

// Passed by value in a kernel's parameters, of which it takes 2.2 KB of 4 KB.
struct OrderedSumProgram {
  int instructions = 0;
  int depth = 0;                              // the most entries that the stack ever has
  std::uint32_t adds[kMostSumLeaves / 16]{};  // bit i is set if instruction i adds, and not set if it pushes
  const float* leaves[kMostSumLeaves]{};

  HOLDFAST_HOST_DEVICE bool is_add(int instruction) const {
    return (adds[instruction / 32] >> (instruction % 32) & 1U) != 0;
  }
};

// Throws Error{unsupported} for more leaves than a kernel takes.
OrderedSumProgram ordered_sum_program(std::span<const SumInstruction> program, std::span<const float* const> leaves);

// Several floats that are loaded and stored in one access.
template <int kWidth>
struct alignas(sizeof(float) * kWidth) FloatPack {
  float values[kWidth];
};

// The sum of pack `index` of all leaves. A push moves the whole stack up by one, so all indices into it are known to
// the compiler and it lies in registers. kDepth must be at least program.depth.
template <int kDepth, int kWidth>
HOLDFAST_HOST_DEVICE inline FloatPack<kWidth> ordered_sum_at(const OrderedSumProgram& program, std::size_t index) {
  FloatPack<kWidth> stack[kDepth] = {};  // the top is at 0
  int next_leaf = 0;
  for (int instruction = 0; instruction < program.instructions; ++instruction) {
    if (program.is_add(instruction)) {
      for (int i = 0; i < kWidth; ++i) stack[0].values[i] = stack[1].values[i] + stack[0].values[i];
      for (int place = 1; place + 1 < kDepth; ++place) stack[place] = stack[place + 1];
    } else {
      for (int place = kDepth - 1; place > 0; --place) stack[place] = stack[place - 1];
      stack[0] = reinterpret_cast<const FloatPack<kWidth>*>(program.leaves[next_leaf])[index];
      ++next_leaf;
    }
  }
  return stack[0];
}

// In NaN and infinity all bits of the exponent are ones.
HOLDFAST_HOST_DEVICE inline bool is_finite_bits(std::uint32_t bits) {
  return (bits & 0x7FFF'FFFFU) < 0x7F80'0000U;
}

}  // namespace holdfast
