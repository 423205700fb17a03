// The communicator over the fake NCCL, compared with the host's communicator on one rank.

#include "collective/nccl/nccl_communicator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <vector>

#include "collective/shard_accumulator.h"
#include "holdfast/base/error.h"
#include "holdfast/core/random.h"
#include "support/host_threads.h"
#include "unit/collective/nccl/support/nccl_test.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kGradients = 128;
constexpr std::size_t kTail = 16;

void fill(std::span<float> values, int shard, std::uint64_t salt) {
  Random random(salt, Purpose::user, 0, static_cast<std::uint64_t>(shard));
  for (float& value : values) value = random.normal();
}

// Reduces this rank's shards with `communicator`.
std::vector<float> reduce_shards(Communicator& communicator, const ShardAssignment& assignment, FloatRange range) {
  const ShardRange local = assignment.of(communicator.rank());
  ShardAccumulator accumulator(ShardTree(assignment.shards()), local, communicator.slots());
  for (int shard = local.begin; shard < local.end; ++shard) {
    const Slot slot = accumulator.acquire(shard);
    fill(slot.gradients, shard, 1);
    fill(slot.tail, shard, 2);
    accumulator.complete(shard, range);
  }
  accumulator.finish(pass_alone);
  const Sums sums = communicator.reduce(accumulator.covering_slots(), range, Deadline::after(std::chrono::seconds(30)));
  std::vector<float> all(sums.gradients.begin(), sums.gradients.end());
  all.insert(all.end(), sums.tail.begin(), sums.tail.end());
  return all;
}

// The expected result: by the host's communicator, on one rank.
std::vector<float> expected_sums(int shards, FloatRange range) {
  ThreadGroup group(1);
  const ShardAssignment assignment = ShardAssignment::even(shards, 1);
  const auto communicator = group.connect({.rank = 0,
                                           .size = 1,
                                           .assignment = assignment,
                                           .slots = shards,
                                           .float_count = kGradients + kTail,
                                           .tail_floats = kTail});
  return reduce_shards(*communicator, assignment, range);
}

bool have_same_bits(const std::vector<float>& a, const std::vector<float>& b, FloatRange range) {
  return std::memcmp(a.data() + range.begin, b.data() + range.begin, (range.end - range.begin) * sizeof(float)) == 0;
}

}  // namespace

class NcclCommunicatorTest : public NcclTest {
 protected:
  std::unique_ptr<NcclCommunicator> connect(ThreadGroup& group, int rank, const ShardAssignment& assignment) {
    return std::make_unique<NcclCommunicator>(group.connect(shape_of_tails(rank, assignment)), host_memory(),
                                              std::make_shared<FakeCollectiveStream>(), library(),
                                              device_shape(assignment));
  }

  static CommunicatorShape shape_of_tails(int rank, const ShardAssignment& assignment) {
    return {.rank = rank,
            .size = assignment.ranks(),
            .assignment = assignment,
            .slots = assignment.shards() + 1,
            .float_count = kTail,
            .tail_floats = kTail};
  }

  static DeviceCommunicatorShape device_shape(const ShardAssignment& assignment) {
    return {
        .assignment = assignment, .slots = assignment.shards(), .gradient_floats = kGradients, .tail_floats = kTail};
  }

  void run(const ShardAssignment& assignment, const std::function<void(NcclCommunicator&)>& body) {
    library();
    ThreadGroup group(assignment.ranks());
    run_ranks(assignment.ranks(), group, [&](int rank) {
      const auto communicator = connect(group, rank, assignment);
      body(*communicator);
      communicator->barrier(soon());
    });
  }
};

TEST_F(NcclCommunicatorTest, AddsGradientsAndTailsInTheOrderOfTheHost) {
  const ShardAssignment assignment({2, 1, 3});
  const FloatRange whole{0, kGradients + kTail};
  const std::vector<float> expected = expected_sums(6, whole);
  std::atomic<int> wrong{0};

  run(assignment, [&](NcclCommunicator& communicator) {
    for (int round = 0; round < 3; ++round) {
      if (!have_same_bits(reduce_shards(communicator, assignment, whole), expected, whole)) ++wrong;
      if (!communicator.was_finite()) ++wrong;
    }
  });

  EXPECT_EQ(wrong, 0);
}

// The host's part goes over sockets between hosts, and NCCL joins by what travels there.
TEST_F(NcclCommunicatorTest, AddsOverSeveralHostsInTheSameOrder) {
  const ShardAssignment assignment({2, 1, 3});
  const FloatRange whole{0, kGradients + kTail};
  const std::vector<float> expected = expected_sums(6, whole);
  library();
  HostGroup group(HostLayout({2, 1}));
  std::atomic<int> wrong{0};

  run_host_ranks(group, [&](int rank) {
    NcclCommunicator communicator(group.connect(shape_of_tails(rank, assignment)), host_memory(),
                                  std::make_shared<FakeCollectiveStream>(), library(), device_shape(assignment));
    for (int round = 0; round < 3; ++round) {
      if (!have_same_bits(reduce_shards(communicator, assignment, whole), expected, whole)) ++wrong;
      if (!communicator.was_finite()) ++wrong;
    }
    communicator.barrier(soon());
  });

  EXPECT_EQ(wrong, 0);
}

TEST_F(NcclCommunicatorTest, AddsBucketsInTheSameOrder) {
  const ShardAssignment assignment({2, 1, 3});
  const FloatRange whole{0, kGradients + kTail};
  const std::vector<float> expected = expected_sums(6, whole);
  std::atomic<int> wrong{0};

  run(assignment, [&](NcclCommunicator& communicator) {
    const ShardRange local = assignment.of(communicator.rank());
    for (int round = 0; round < 2; ++round) {
      ShardAccumulator accumulator(ShardTree(6), local, communicator.slots());
      for (int shard = local.begin; shard < local.end; ++shard) {
        const Slot slot = accumulator.acquire(shard);
        fill(slot.gradients, shard, 1);
        fill(slot.tail, shard, 2);
        if (shard + 1 < local.end) accumulator.complete(shard, whole);
      }
      std::vector<int> slots;
      for (const FloatRange range : {FloatRange{80, kGradients}, {0, 80}}) {
        slots = accumulator.add_ahead(local.end - 1, range);
        communicator.mark_ready(slots, range);
      }
      communicator.begin_reduce(slots, soon());
      accumulator.complete(local.end - 1, {kGradients, kGradients + kTail});
      accumulator.finish(pass_alone);
      const Sums sums = communicator.reduce(slots, whole, soon());
      std::vector<float> all(sums.gradients.begin(), sums.gradients.end());
      all.insert(all.end(), sums.tail.begin(), sums.tail.end());
      if (!have_same_bits(all, expected, whole) || !communicator.was_finite()) ++wrong;
    }
  });

  EXPECT_EQ(wrong, 0);
}

// An evaluation reduces only the tail.
TEST_F(NcclCommunicatorTest, LeavesTheDeviceAloneForTheTail) {
  const ShardAssignment assignment({1, 2});
  const FloatRange tail{kGradients, kGradients + kTail};
  const std::vector<float> expected = expected_sums(3, tail);
  const std::vector<float> expected_tail(expected.begin() + kGradients, expected.end());
  std::atomic<int> wrong{0};

  run(assignment, [&](NcclCommunicator& communicator) {
    const int before = fake_nccl_calls("ncclGroupEnd", communicator.rank());
    // The result has no gradients.
    if (reduce_shards(communicator, assignment, tail) != expected_tail) ++wrong;
    if (fake_nccl_calls("ncclGroupEnd", communicator.rank()) != before) ++wrong;
  });

  EXPECT_EQ(wrong, 0);
}

TEST_F(NcclCommunicatorTest, TellsEveryRankWhetherAllSumsAreFinite) {
  const ShardAssignment assignment = ShardAssignment::even(3, 3);
  for (const bool in_tail : {false, true}) {
    std::atomic<int> wrong{0};
    run(assignment, [&](NcclCommunicator& communicator) {
      const int slot = 0;
      for (const bool is_wrong : {false, true, false}) {
        const Slot own = communicator.slots()[0];
        std::fill(own.gradients.begin(), own.gradients.end(), 1.0F);
        std::fill(own.tail.begin(), own.tail.end(), 1.0F);
        const std::span<float> part = in_tail ? own.tail : own.gradients;
        if (is_wrong && communicator.rank() == 1) part[3] = std::numeric_limits<float>::quiet_NaN();
        communicator.reduce(std::span(&slot, 1), {0, kGradients + kTail}, soon());
        if (communicator.was_finite() == is_wrong) ++wrong;
      }
    });
    EXPECT_EQ(wrong, 0) << (in_tail ? "in the tail" : "in the gradients");
  }
}

TEST_F(NcclCommunicatorTest, BroadcastsArraysByNcclAndBytesByTheHost) {
  const ShardAssignment assignment = ShardAssignment::even(2, 2);
  std::atomic<int> wrong{0};

  run(assignment, [&](NcclCommunicator& communicator) {
    const auto value = static_cast<float>(communicator.rank() + 1);
    std::vector<float> first(10, value);
    std::vector<float> second(1000, value);
    std::vector<std::byte> bytes(100, static_cast<std::byte>(communicator.rank() + 1));
    const std::vector<std::span<float>> arrays = {first, {}, second};
    communicator.broadcast_arrays(arrays, 1, true, soon());
    communicator.broadcast(bytes, 0, true, soon());
    if (first != std::vector<float>(10, 2.0F) || second != std::vector<float>(1000, 2.0F)) ++wrong;
    if (bytes != std::vector<std::byte>(100, std::byte{1})) ++wrong;
  });

  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(fake_nccl_calls("ncclBroadcast", 0), 2);
}

// A rank that applies a sum must know that the others have it too.
TEST_F(NcclCommunicatorTest, EndsAReductionForAllWhereOneRankDidNotGetIt) {
  const ShardAssignment assignment = ShardAssignment::even(2, 2);
  library();
  ThreadGroup group(2);
  std::atomic<int> applied{0};
  std::atomic<int> failed{0};

  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto communicator = connect(group, rank, assignment);
        communicator->barrier(soon());
        if (rank == 1) obey("async=1@1");
        communicator->barrier(soon());
        const int slot = 0;
        communicator->reduce(std::span(&slot, 1), {0, kGradients + kTail}, soon());
        ++applied;
      } catch (const Error& failure) {
        ++failed;
        // The watchdog does this when it sees that a rank has failed.
        group.cancel_all();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(applied, 0);
  EXPECT_EQ(failed, 2);
}

}  // namespace holdfast
