#pragma once

// The shard tree's order as a kernel follows it, and the additions themselves: the same source on host and device. They
// are those of add_in_order() of the memory communicator, element by element.

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

// By value in a kernel's parameters: 2.2 KB of the 4 KB that there are.
struct OrderedSumProgram {
  int instructions = 0;
  int depth = 0;                              // of the stack, at most
  std::uint32_t adds[kMostSumLeaves / 16]{};  // bit i: instruction i adds, otherwise it pushes
  const float* leaves[kMostSumLeaves]{};

  HOLDFAST_HOST_DEVICE bool is_add(int instruction) const {
    return (adds[instruction / 32] >> (instruction % 32) & 1U) != 0;
  }
};

// Throws Error{unsupported} for more leaves than a kernel takes.
OrderedSumProgram ordered_sum_program(std::span<const SumInstruction> program, std::span<const float* const> leaves);

// Several floats that are loaded and stored at once.
template <int kWidth>
struct alignas(sizeof(float) * kWidth) FloatPack {
  float values[kWidth];
};

// Sum number `index`, in packs. The stack lies in registers, for all its places are known to the compiler: a push moves
// everything up by one. kDepth is at least program.depth.
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

// The exponent of NaN and infinity is all ones.
HOLDFAST_HOST_DEVICE inline bool is_finite_bits(std::uint32_t bits) {
  return (bits & 0x7FFF'FFFFU) < 0x7F80'0000U;
}

}  // namespace holdfast
