#pragma once

// Sums of random shards over ranks on hosts, and the bits that they must have.

#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "collective/shard_accumulator.h"
#include "holdfast/core/random.h"
#include "support/host_threads.h"
#include "support/rank_threads.h"
#include "unit/collective/support/bits.h"

namespace holdfast {

inline Deadline long_enough() {
  return Deadline::after(std::chrono::seconds(60));
}

// Values of very different sizes, so that another order of additions gives other bits.
inline void fill_host_shard(int round, int shard, std::span<float> values) {
  Random random(static_cast<std::uint64_t>(round), Purpose::user, 0, static_cast<std::uint64_t>(shard));
  for (float& value : values) value = random.normal() * std::exp2(static_cast<float>(random.below(24)));
}

inline CommunicatorShape shape_for(int rank, const ShardAssignment& assignment, std::size_t floats) {
  return {.rank = rank,
          .size = assignment.ranks(),
          .assignment = assignment,
          .slots = assignment.shards(),
          .float_count = floats};
}

// The bits of the sum of `range` of one round, as this rank gets them.
inline std::vector<std::uint32_t> summed_bits(Communicator& communicator, const ShardAssignment& assignment,
                                              FloatRange range, int round, Deadline deadline = long_enough()) {
  const ShardRange local = assignment.of(communicator.rank());
  ShardAccumulator accumulator(ShardTree(assignment.shards()), local, communicator.slots());
  for (int shard = local.begin; shard < local.end; ++shard) {
    fill_host_shard(round, shard, accumulator.acquire(shard).gradients);
    accumulator.complete(shard, range);
  }
  accumulator.finish(pass_alone);
  const std::span<const float> sum = communicator.reduce(accumulator.covering_slots(), range, deadline).gradients;
  return bits(sum.subspan(range.begin, range.end - range.begin));
}

// What MemoryCommunicator gives, with one rank.
inline std::vector<std::uint32_t> expected_bits(int shards, std::size_t floats, FloatRange range, int round) {
  const ShardAssignment assignment = ShardAssignment::even(shards, 1);
  ThreadGroup group(1);
  const auto communicator = group.connect(shape_for(0, assignment, floats));
  return summed_bits(*communicator, assignment, range, round);
}

}  // namespace holdfast
