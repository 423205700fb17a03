// Ranks are threads here (ThreadGroup), with the same shared memory as processes. Sums must have the bits of a single
// rank for every assignment of shards.

#include "collective/memory/memory_communicator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "collective/shard_accumulator.h"
#include "holdfast/base/error.h"
#include "holdfast/core/random.h"
#include "support/passes.h"
#include "support/rank_threads.h"
#include "unit/collective/support/bits.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

Deadline soon() {
  return Deadline::after(30s);
}

void fill_shard(int round, int shard, std::span<float> values) {
  Random random(static_cast<std::uint64_t>(round), Purpose::user, 0, static_cast<std::uint64_t>(shard));
  for (float& value : values) value = random.normal() * std::exp2(static_cast<float>(random.below(24)));
}

CommunicatorShape shape_of(int rank, const ShardAssignment& assignment, std::size_t floats) {
  return {.rank = rank,
          .size = assignment.ranks(),
          .assignment = assignment,
          .slots = assignment.shards(),
          .float_count = floats};
}

CommunicatorShape shape_of(int rank, int ranks, int shards, std::size_t floats) {
  return shape_of(rank, ShardAssignment::even(shards, ranks), floats);
}

// The results of `rounds` reductions of random shards on each rank.
std::vector<std::vector<std::uint32_t>> reduce_on(const ShardAssignment& assignment, std::size_t floats,
                                                  FloatRange range, int rounds) {
  const int ranks = assignment.ranks();
  ThreadGroup group(ranks);
  std::vector<std::vector<std::uint32_t>> results(static_cast<std::size_t>(ranks));
  run_ranks(ranks, group, [&](int rank) {
    const auto communicator = group.connect(shape_of(rank, assignment, floats));
    const ShardRange local = assignment.of(rank);
    ShardAccumulator accumulator(ShardTree(assignment.shards()), local, communicator->slots());
    // A rank with one shard has one thread, another may have several.
    communicator->set_passes(local.count() == 1 ? pass_alone : pass_in_pieces);
    for (int round = 0; round < rounds; ++round) {
      accumulator.reset();
      for (int shard = local.begin; shard < local.end; ++shard) {
        fill_shard(round, shard, accumulator.acquire(shard).gradients);
        accumulator.complete(shard, range);
      }
      accumulator.finish(pass_alone);
      const std::span<const float> sum = communicator->reduce(accumulator.covering_slots(), range, soon()).gradients;
      const auto part = bits(sum.subspan(range.begin, range.end - range.begin));
      auto& result = results[static_cast<std::size_t>(rank)];
      result.insert(result.end(), part.begin(), part.end());
    }
  });
  return results;
}

std::vector<std::vector<std::uint32_t>> reduce_on(int ranks, int shards, std::size_t floats, FloatRange range,
                                                  int rounds) {
  return reduce_on(ShardAssignment::even(shards, ranks), floats, range, rounds);
}

// A random assignment of `shards`.
ShardAssignment drawn_assignment(int shards, Random& random) {
  std::vector<int> counts(1 + random.below(static_cast<std::uint64_t>(std::min(shards, 5))), 1);
  for (int shard = static_cast<int>(counts.size()); shard < shards; ++shard) ++counts[random.below(counts.size())];
  return ShardAssignment(counts);
}

}  // namespace

TEST(MemoryCommunicator, GivesTheSameBitsForAnyAssignmentOfShards) {
  constexpr std::size_t kFloats = 208;
  Random random(5, Purpose::user, 0, 0);
  for (int trial = 0; trial < 60; ++trial) {
    const int shards = 1 + static_cast<int>(random.below(24));
    const ShardAssignment assignment = drawn_assignment(shards, random);
    const auto expected = reduce_on(1, shards, kFloats, {0, kFloats}, 2)[0];

    for (const auto& result : reduce_on(assignment, kFloats, {0, kFloats}, 2)) {
      EXPECT_EQ(result == expected, true) << "trial " << trial << ": " << shards << " shards on " << assignment.ranks();
    }
  }
}

TEST(MemoryCommunicator, GivesTheSameBitsOnAnyNumberOfRanks) {
  constexpr std::size_t kFloats = 5000 / 16 * 16;
  for (const int shards : {1, 2, 3, 4, 7}) {
    const auto expected = reduce_on(1, shards, kFloats, {0, kFloats}, 3)[0];
    for (int ranks = 2; ranks <= shards; ++ranks) {
      for (const auto& result : reduce_on(ranks, shards, kFloats, {0, kFloats}, 3)) {
        EXPECT_EQ(result == expected, true) << shards << " shards on " << ranks << " ranks";
      }
    }
  }
}

TEST(MemoryCommunicator, ReducesARangeSmallerThanItsRanks) {
  const FloatRange range{32, 40};

  const auto expected = reduce_on(1, 4, 64, range, 2)[0];

  for (const auto& result : reduce_on(4, 4, 64, range, 2)) EXPECT_EQ(result, expected);
}

TEST(MemoryCommunicator, BroadcastsMoreThanAnArenaHolds) {
  constexpr int kRanks = 3;
  ThreadGroup group(kRanks);
  std::vector<std::vector<std::byte>> received(kRanks);

  run_ranks(kRanks, group, [&](int rank) {
    const auto communicator = group.connect(shape_of(rank, kRanks, kRanks, 16));
    std::vector<std::byte> bytes(10'001);
    if (rank == 1) {
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
    }
    communicator->broadcast(bytes, 1, true, soon());
    received[static_cast<std::size_t>(rank)] = bytes;
  });

  EXPECT_EQ(received[0] == received[1], true);
  EXPECT_EQ(received[2] == received[1], true);
  EXPECT_EQ(received[0][10'000], static_cast<std::byte>((10'000 * 7) & 255));
}

TEST(MemoryCommunicator, BroadcastsPartsAsIfTheyWereOne) {
  const std::vector<std::size_t> sizes = {0, 100, 1, 0, 4096, 33, 0};
  ThreadGroup group(2);
  std::vector<std::vector<std::byte>> received;

  run_ranks(2, group, [&](int rank) {
    const auto communicator = group.connect(shape_of(rank, 2, 2, 16));
    std::vector<std::vector<std::byte>> arrays;
    std::vector<std::span<std::byte>> parts;
    for (const std::size_t size : sizes) arrays.emplace_back(size, static_cast<std::byte>(rank == 0 ? size + 1 : 0));
    for (std::vector<std::byte>& array : arrays) parts.emplace_back(array);
    communicator->broadcast(parts, 0, true, soon());
    if (rank == 1) received = std::move(arrays);
  });

  ASSERT_EQ(received.size(), sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(received[i] == std::vector<std::byte>(sizes[i], static_cast<std::byte>(sizes[i] + 1)), true) << i;
  }
}

// The blocks still have the content of the last generation.
TEST(MemoryCommunicator, ReducesInMemoryThatWasUsedBefore) {
  constexpr std::size_t kFloats = 256;
  ThreadGroup group(2);
  std::atomic<int> wrong{0};

  run_ranks(2, group, [&](int rank) {
    for (int generation = 1; generation <= 3; ++generation) {
      const auto communicator = group.connect(shape_of(rank, 2, 2, kFloats));
      std::fill(communicator->slots()[0].gradients.begin(), communicator->slots()[0].gradients.end(),
                static_cast<float>(generation));
      const int slot = 0;
      const std::span<const float> sum = communicator->reduce(std::span(&slot, 1), {0, kFloats}, soon()).gradients;
      for (const float value : sum) wrong += value == 2.0F * static_cast<float>(generation) ? 0 : 1;
      communicator->barrier(soon());
    }
  });

  EXPECT_EQ(wrong, 0);
}

TEST(MemoryCommunicator, LeavesWhatARankDoesNotTake) {
  ThreadGroup group(2);
  std::vector<std::byte> kept(1000, std::byte{7});

  run_ranks(2, group, [&](int rank) {
    const auto communicator = group.connect(shape_of(rank, 2, 2, 16));
    std::vector<std::byte> sent(1000, std::byte{9});
    communicator->broadcast(rank == 0 ? sent : kept, 0, false, soon());
  });

  EXPECT_EQ(kept == std::vector<std::byte>(1000, std::byte{7}), true);
}

TEST(MemoryCommunicator, GathersEveryRanksBytesInOrder) {
  constexpr int kRanks = 3;
  ThreadGroup group(kRanks);
  std::vector<std::vector<int>> gathered(kRanks, std::vector<int>(kRanks));

  run_ranks(kRanks, group, [&](int rank) {
    const auto communicator = group.connect(shape_of(rank, kRanks, kRanks, 16));
    for (int round = 0; round < 100; ++round) {
      const int own = 100 * round + rank;
      communicator->gather_all(std::as_bytes(std::span(&own, 1)),
                               std::as_writable_bytes(std::span(gathered[static_cast<std::size_t>(rank)])), soon());
    }
  });

  for (const std::vector<int>& all : gathered) EXPECT_EQ(all, (std::vector<int>{9900, 9901, 9902}));
}

// A rank that was cut off knows as much as the peer that got through, because it may be the only survivor.
TEST(MemoryCommunicator, GathersForARankThatIsCutOffAfterAllHaveArrived) {
  constexpr int kRanks = 3;
  ThreadGroup group(kRanks);
  std::vector<std::unique_ptr<MemoryCommunicator>> communicators;
  for (int rank = 0; rank < kRanks; ++rank) communicators.push_back(group.connect(shape_of(rank, kRanks, kRanks, 16)));
  group.cancel_all();

  std::vector<std::vector<int>> gathered(kRanks, std::vector<int>(kRanks, -1));
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    EXPECT_THROW(communicators[index]->gather_all(std::as_bytes(std::span(&rank, 1)),
                                                  std::as_writable_bytes(std::span(gathered[index])), soon()),
                 GenerationEnded);
  }

  EXPECT_EQ(gathered[1], std::vector<int>(kRanks, -1));
  EXPECT_EQ(gathered[2], (std::vector<int>{0, 1, 2}));
}

// The value may be anywhere, in any rank's segment, also with a single rank. It counts only for its own reduction.
TEST(MemoryCommunicator, TellsEveryRankWhetherAllSumsAreFinite) {
  constexpr std::size_t kFloats = 4096;
  for (const int ranks : {1, 2, 3}) {
    for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      for (const std::size_t place : {std::size_t{0}, kFloats / 2, kFloats - 1}) {
        ThreadGroup group(ranks);
        std::atomic<int> mistaken{0};

        run_ranks(ranks, group, [&](int rank) {
          const auto communicator = group.connect(shape_of(rank, ranks, ranks, kFloats));
          const int slot = 0;
          for (const bool is_wrong : {false, true, false}) {
            const std::span<float> own = communicator->slots()[0].gradients;
            std::fill(own.begin(), own.end(), 1.0F);
            if (is_wrong && rank == ranks - 1) own[place] = wrong;
            communicator->reduce(std::span(&slot, 1), {0, kFloats}, soon());
            if (communicator->was_finite() == is_wrong) ++mistaken;
          }
        });

        EXPECT_EQ(mistaken, 0) << ranks << " ranks, " << wrong << " at " << place;
      }
    }
  }
}

// A broadcast directly after a reduction must not overwrite a segment that a slower peer still copies.
TEST(MemoryCommunicator, KeepsReductionAndBroadcastApart) {
  constexpr int kRanks = 3;
  constexpr std::size_t kFloats = 4096;
  ThreadGroup group(kRanks);
  std::atomic<int> wrong{0};

  run_ranks(kRanks, group, [&](int rank) {
    const auto communicator = group.connect(shape_of(rank, kRanks, kRanks, kFloats));
    for (int round = 0; round < 200; ++round) {
      std::fill(communicator->slots()[0].gradients.begin(), communicator->slots()[0].gradients.end(),
                static_cast<float>(round));
      const int slot = 0;
      const std::span<const float> sum = communicator->reduce(std::span(&slot, 1), {0, kFloats}, soon()).gradients;
      if (std::any_of(sum.begin(), sum.end(), [&](float value) { return value != 3.0F * static_cast<float>(round); }))
        ++wrong;
      std::vector<std::byte> bytes(kFloats * 8, static_cast<std::byte>(rank));
      communicator->broadcast(bytes, round % kRanks, true, soon());
      if (bytes.back() != static_cast<std::byte>(round % kRanks)) ++wrong;
    }
  });

  EXPECT_EQ(wrong, 0);
}

TEST(MemoryCommunicator, EndsAWaitAtItsDeadlineAndNamesTheRank) {
  ThreadGroup group(2);
  const auto communicator = group.connect(shape_of(0, 2, 2, 16));

  try {
    communicator->barrier(Deadline::after(10ms));
    FAIL() << "the barrier was passed alone";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.code(), ErrorCode::deadline_exceeded);
    EXPECT_NE(std::string(failure.what()).find("rank 1"), std::string::npos) << failure.what();
  }
}

TEST(MemoryCommunicator, EndsAWaitAtOnceWhenTheGenerationIsCancelled) {
  ThreadGroup group(2);
  std::atomic<bool> is_waiting{false};
  std::thread waiter([&] {
    const auto communicator = group.connect(shape_of(0, 2, 2, 16));
    is_waiting = true;
    try {
      communicator->barrier(Deadline::after(10min));
      ADD_FAILURE() << "the barrier was passed alone";
    } catch (const Error& failure) {
      EXPECT_EQ(failure.code(), ErrorCode::cancelled);
    }
  });
  while (!is_waiting) std::this_thread::yield();

  group.cancel_all();

  waiter.join();
}

TEST(MemoryCommunicator, StaysCancelled) {
  ThreadGroup group(1);
  const auto communicator = group.connect(shape_of(0, 1, 1, 16));

  EXPECT_FALSE(communicator->is_cancelled());
  communicator->cancel();

  EXPECT_TRUE(communicator->is_cancelled());
  const int slot = 0;
  EXPECT_THROW(communicator->reduce(std::span(&slot, 1), {0, 16}, soon()), Error);
  EXPECT_THROW(communicator->barrier(soon()), Error);
}

}  // namespace holdfast
