// The ordered all-reduce over the fake NCCL, compared bit for bit with the host's communicator on one rank.

#include "collective/nccl/nccl_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <future>
#include <limits>
#include <vector>

#include "collective/shard_accumulator.h"
#include "holdfast/base/error.h"
#include "holdfast/core/random.h"
#include "support/comes_true.h"
#include "unit/collective/nccl/support/nccl_test.h"
#include "unit/collective/support/bits.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

using Bits = std::vector<std::uint32_t>;

void fill_shard(int round, int shard, std::span<float> values) {
  Random random(static_cast<std::uint64_t>(round), Purpose::user, 0, static_cast<std::uint64_t>(shard));
  for (float& value : values) value = random.normal() * std::exp2(static_cast<float>(random.below(24)));
}

NcclExchangeShape shape_of(int rank, const ShardAssignment& assignment, std::size_t floats) {
  return {.rank = rank,
          .size = assignment.ranks(),
          .assignment = assignment,
          .slots = assignment.shards(),
          .float_count = floats};
}

// A random assignment of `shards`.
ShardAssignment drawn_assignment(int shards, Random& random) {
  std::vector<int> counts(1 + random.below(static_cast<std::uint64_t>(std::min(shards, 4))), 1);
  for (int shard = static_cast<int>(counts.size()); shard < shards; ++shard) ++counts[random.below(counts.size())];
  return ShardAssignment(counts);
}

// Adds this rank's shards of a round in its slots.
template <class Rank>
std::vector<int> compute(Rank& rank, int round, const ShardAssignment& assignment, int number, FloatRange range) {
  const ShardRange local = assignment.of(number);
  ShardAccumulator accumulator(ShardTree(assignment.shards()), local, rank.slots());
  for (int shard = local.begin; shard < local.end; ++shard) {
    fill_shard(round, shard, accumulator.acquire(shard).gradients);
    accumulator.complete(shard, range);
  }
  accumulator.finish(pass_alone);
  return accumulator.covering_slots();
}

// The expected result: by the host's communicator, on one rank.
Bits expected_bits(int shards, std::size_t floats, FloatRange range, int round) {
  ThreadGroup group(1);
  const ShardAssignment assignment = ShardAssignment::even(shards, 1);
  const auto communicator =
      group.connect({.rank = 0, .size = 1, .assignment = assignment, .slots = shards, .float_count = floats});
  const std::vector<int> slots = compute(*communicator, round, assignment, 0, range);
  const auto sum = communicator->reduce(slots, range, Deadline::after(30s)).gradients;
  return bits(sum.subspan(range.begin, range.end - range.begin));
}

}  // namespace

class NcclExchangeTest : public NcclTest {
 protected:
  // One rank with everything that it needs.
  struct Rank {
    Rank(NcclExchangeTest& test, ThreadGroup& group, const NcclExchangeShape& shape)
        : control(connect_control(group, shape.rank, shape.size)),
          exchange(shape, shape.size > 1 ? test.library() : nullptr, stream, *control,
                   std::make_shared<float[]>(shape.block_floats()), soon()) {}

    std::vector<Slot> slots() {
      std::vector<Slot> slots;
      for (const std::span<float> slot : exchange.slots()) slots.push_back({.gradients = slot, .tail = {}});
      return slots;
    }

    std::unique_ptr<MemoryCommunicator> control;
    std::shared_ptr<FakeCollectiveStream> stream = std::make_shared<FakeCollectiveStream>();
    NcclExchange exchange;
  };

  using Body = std::function<void(Rank& rank, int number)>;
  void run(const std::function<NcclExchangeShape(int)>& shape, const Body& body) {
    const int ranks = shape(0).size;
    library();
    ThreadGroup group(ranks);
    run_ranks(ranks, group, [&](int number) {
      Rank rank(*this, group, shape(number));
      body(rank, number);
      rank.control->barrier(soon());
    });
  }

  // Connected ranks; the test makes their calls itself.
  std::vector<std::unique_ptr<Rank>> connect(ThreadGroup& group, const ShardAssignment& assignment) {
    library();
    std::vector<std::unique_ptr<Rank>> ranks(static_cast<std::size_t>(assignment.ranks()));
    run_ranks(assignment.ranks(), group, [&](int number) {
      ranks[static_cast<std::size_t>(number)] = std::make_unique<Rank>(*this, group, shape_of(number, assignment, 64));
    });
    return ranks;
  }

  // The sums of each round on every rank.
  std::vector<std::vector<Bits>> reduce_on(const std::function<NcclExchangeShape(int)>& shape, FloatRange range,
                                           int rounds) {
    std::vector<std::vector<Bits>> results(static_cast<std::size_t>(shape(0).size));
    run(shape, [&](Rank& rank, int number) {
      for (int round = 0; round < rounds; ++round) {
        const std::vector<int> slots = compute(rank, round, shape(number).assignment, number, range);
        const auto sum = rank.exchange.reduce(slots, range, soon());
        results[static_cast<std::size_t>(number)].push_back(bits(sum.subspan(range.begin, range.end - range.begin)));
        rank.control->barrier(soon());
      }
    });
    return results;
  }

  void expect_the_hosts_bits(const std::function<NcclExchangeShape(int)>& shape, FloatRange range) {
    const ShardAssignment assignment = shape(0).assignment;
    const auto results = reduce_on(shape, range, 2);
    for (int round = 0; round < 2; ++round) {
      const Bits expected = expected_bits(assignment.shards(), shape(0).float_count, range, round);
      for (const std::vector<Bits>& of_rank : results) {
        EXPECT_EQ(of_rank[static_cast<std::size_t>(round)] == expected, true)
            << assignment.shards() << " shards on " << assignment.ranks() << " ranks, floats " << range.begin << " to "
            << range.end;
      }
    }
  }
};

TEST_F(NcclExchangeTest, GivesTheHostsBitsForAnyAssignmentOfShards) {
  constexpr std::size_t kFloats = 208;
  Random random(5, Purpose::user, 0, 0);
  for (int trial = 0; trial < 25; ++trial) {
    const ShardAssignment assignment = drawn_assignment(1 + static_cast<int>(random.below(16)), random);
    expect_the_hosts_bits([&](int rank) { return shape_of(rank, assignment, kFloats); }, {0, kFloats});
  }
}

// Ranges that divide evenly among the ranks or not, with fewer cache lines than ranks, and an empty one.
TEST_F(NcclExchangeTest, GivesTheHostsBitsForAnyRange) {
  const ShardAssignment assignment = ShardAssignment::even(5, 3);
  for (const FloatRange range : {FloatRange{0, 96}, {16, 128}, {32, 37}, {3, 100}, {64, 64}}) {
    expect_the_hosts_bits([&](int rank) { return shape_of(rank, assignment, 128); }, range);
  }
}

TEST_F(NcclExchangeTest, GivesTheHostsBitsInBuckets) {
  const ShardAssignment assignment({1, 3});
  const auto shape = [&](int rank) {
    NcclExchangeShape made = shape_of(rank, assignment, 1024);
    made.most_received = 96;
    return made;
  };

  expect_the_hosts_bits(shape, {0, 1024});

  // Room for 32 floats of each of three leaves makes buckets of 64 floats: 16 in a reduction, and one when connecting.
  EXPECT_EQ(fake_nccl_calls("ncclAllGather", 0), 2 * 16 + 1);
}

// Some ranks declare gradients ready bit by bit, in ranges that do not match the buckets; others all at once, or never.
TEST_F(NcclExchangeTest, GivesTheHostsBitsHoweverGradientsBecomeReady) {
  constexpr std::size_t kFloats = 1024;
  const ShardAssignment assignment({1, 1, 1});
  const auto shape = [&](int rank) {
    NcclExchangeShape made = shape_of(rank, assignment, kFloats);
    made.wanted_bucket_floats = 96;
    return made;
  };
  const std::vector<std::vector<FloatRange>> ready_ranges = {
      {{1000, 1024}, {500, 1000}, {0, 16}, {16, 500}}, {{0, kFloats}}, {}};
  std::atomic<int> wrong{0};

  run(shape, [&](Rank& rank, int number) {
    FakeCollectiveStream::Training training;
    rank.stream->set_training(training);
    for (int round = 0; round < 3; ++round) {
      const std::span<float> own = rank.exchange.slots()[0];
      std::vector<float> values(kFloats);
      fill_shard(round, number, values);
      const int slot = 0;
      // Each rank uses each way once.
      const auto& ranges = ready_ranges[static_cast<std::size_t>((number + round) % 3)];
      if (ranges.empty()) std::copy(values.begin(), values.end(), own.begin());
      for (const FloatRange range : ranges) {
        training.enqueue([&values, own, range] {
          std::copy(values.begin() + static_cast<std::ptrdiff_t>(range.begin),
                    values.begin() + static_cast<std::ptrdiff_t>(range.end), own.subspan(range.begin).begin());
        });
        rank.exchange.mark_ready(range);
      }
      if (!ranges.empty()) rank.exchange.begin_reduce(std::span(&slot, 1), soon());
      const auto sum = rank.exchange.reduce(std::span(&slot, 1), {0, kFloats}, soon());
      if (bits(sum) != expected_bits(3, kFloats, {0, kFloats}, round)) ++wrong;
      rank.control->barrier(soon());
    }
  });

  EXPECT_EQ(wrong, 0);
}

TEST_F(NcclExchangeTest, AddsWhileTheRestIsStillBeingComputed) {
  constexpr std::size_t kFloats = 128;
  const ShardAssignment assignment = ShardAssignment::even(2, 2);
  const auto shape = [&](int rank) {
    NcclExchangeShape made = shape_of(rank, assignment, kFloats);
    made.wanted_bucket_floats = 64;
    return made;
  };
  std::atomic<int> wrong{0};

  run(shape, [&](Rank& rank, int number) {
    std::promise<void> rest;
    FakeCollectiveStream::Training training;
    rank.stream->set_training(training);
    const std::span<float> own = rank.exchange.slots()[0];
    const int slot = 0;
    training.enqueue([&] { std::fill(own.begin() + 64, own.end(), static_cast<float>(1 + number)); });
    rank.exchange.mark_ready({64, kFloats});
    training.enqueue([&, is_due = rest.get_future().share()] {
      is_due.wait();
      std::fill(own.begin(), own.begin() + 64, static_cast<float>(10 + number));
    });
    rank.exchange.mark_ready({0, 64});

    rank.exchange.begin_reduce(std::span(&slot, 1), soon());

    // Two groups of calls when connecting, and two for the bucket of the last floats. The first floats still wait.
    if (!comes_true([&] { return fake_nccl_ended(number) == 2 + 2; })) ++wrong;
    rest.set_value();
    const auto sum = rank.exchange.reduce(std::span(&slot, 1), {0, kFloats}, soon());
    for (std::size_t i = 0; i < kFloats; ++i) wrong += sum[i] == (i < 64 ? 21.0F : 3.0F) ? 0 : 1;
    rank.control->barrier(soon());
  });

  EXPECT_EQ(wrong, 0);
}

TEST_F(NcclExchangeTest, RefusesGradientsThatAreDeclaredReadyTwice) {
  const ShardAssignment assignment = ShardAssignment::even(1, 1);
  ThreadGroup group(1);
  Rank rank(*this, group, shape_of(0, assignment, 64));
  rank.exchange.mark_ready({16, 64});

  const Error error = error_of([&] { rank.exchange.mark_ready({0, 32}); });

  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_NE(std::string(error.what()).find("floats 0 to 32"), std::string::npos) << error.what();
}

TEST_F(NcclExchangeTest, EndsWithTheGenerationIfAPeerDoesNotBegin) {
  const ShardAssignment assignment = ShardAssignment::even(2, 2);
  ThreadGroup group(2);
  const std::vector<std::unique_ptr<Rank>> ranks = connect(group, assignment);
  const int slot = 0;
  ranks[0]->exchange.mark_ready({0, 64});

  const Error late = error_of([&] { ranks[0]->exchange.begin_reduce(std::span(&slot, 1), Deadline::after(20ms)); });
  group.cancel_all();
  const Error ended = error_of([&] { ranks[0]->exchange.reduce(std::span(&slot, 1), {0, 64}, soon()); });

  EXPECT_EQ(late.code(), ErrorCode::deadline_exceeded);
  EXPECT_NE(std::string(late.what()).find("rank 1"), std::string::npos) << late.what();
  EXPECT_EQ(ended.code(), ErrorCode::cancelled) << ended.what();
}

TEST_F(NcclExchangeTest, NeedsRoomForItsSlotsAndTheSumAndWhatIsReceived) {
  NcclExchangeShape shape = shape_of(0, ShardAssignment::even(4, 2), 1024);
  shape.slots = 3;

  EXPECT_EQ(shape.block_floats(), (3 + 1) * 1024 + 4 * 1024);
  shape.most_received = 160;
  EXPECT_EQ(shape.block_floats(), (3 + 1) * 1024 + 160);
  shape.most_received = 16;
  EXPECT_EQ(shape.block_floats(), (3 + 1) * 1024 + 4 * 16);
}

TEST_F(NcclExchangeTest, AddsInTheLibrarysOrderWhereThatIsAskedFor) {
  constexpr std::size_t kFloats = 64;
  const ShardAssignment assignment({3, 2});
  const auto shape = [&](int rank) {
    NcclExchangeShape made = shape_of(rank, assignment, kFloats);
    made.library_order = true;
    return made;
  };
  std::atomic<int> wrong{0};

  run(shape, [&](Rank& rank, int) {
    for (const std::span<float> slot : rank.exchange.slots()) std::fill(slot.begin(), slot.end(), 1.0F);
    // There are five shards. The first three have two covering nodes, and the last two have two as well.
    const std::vector<int> slots = {0, 1};
    const auto sum = rank.exchange.reduce(slots, {16, 48}, soon());
    for (const float value : sum.subspan(16, 32)) wrong += value == 4.0F ? 0 : 1;
  });

  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(fake_nccl_calls("ncclAllReduce", 0), 2);
  EXPECT_EQ(fake_nccl_calls("ncclSend", -1), 0);
}

// The value may be anywhere; the rank that adds its segment finds it.
TEST_F(NcclExchangeTest, FindsWhatIsNotFinite) {
  constexpr std::size_t kFloats = 96;
  for (const int ranks : {1, 2, 3}) {
    for (const bool library_order : {false, true}) {
      for (const std::size_t place : {std::size_t{0}, kFloats / 2, kFloats - 1}) {
        const ShardAssignment assignment = ShardAssignment::even(ranks, ranks);
        const auto shape = [&](int rank) {
          NcclExchangeShape made = shape_of(rank, assignment, kFloats);
          made.library_order = library_order;
          return made;
        };
        std::vector<std::atomic<int>> found(3);
        run(shape, [&](Rank& rank, int number) {
          const std::span<float> own = rank.exchange.slots()[0];
          const int slot = 0;
          for (const int round : {0, 1, 2}) {
            std::fill(own.begin(), own.end(), 1.0F);
            if (round == 1 && number == ranks - 1) own[place] = std::numeric_limits<float>::infinity();
            rank.exchange.reduce(std::span(&slot, 1), {0, kFloats}, soon());
            if (!rank.exchange.was_finite()) ++found[static_cast<std::size_t>(round)];
            rank.control->barrier(soon());
          }
        });
        EXPECT_EQ(found[0], 0);
        EXPECT_GE(found[1], 1) << ranks << " ranks, at " << place;
        EXPECT_EQ(found[2], 0);
      }
    }
  }
}

TEST_F(NcclExchangeTest, NeedsNoNcclForASingleRank) {
  const ShardAssignment assignment = ShardAssignment::even(3, 1);

  expect_the_hosts_bits([&](int rank) { return shape_of(rank, assignment, 64); }, {0, 64});

  EXPECT_EQ(fake_nccl_calls("ncclGetUniqueId", -1), 0);
}

TEST_F(NcclExchangeTest, WaitsForWhatTrainingHasQueued) {
  const ShardAssignment assignment = ShardAssignment::even(2, 2);
  std::atomic<int> missing{0};

  run([&](int rank) { return shape_of(rank, assignment, 64); },
      [&](Rank& rank, int) {
        const int slot = 0;
        const int before = rank.stream->followed();
        rank.exchange.reduce(std::span(&slot, 1), {0, 64}, soon());
        if (rank.stream->followed() != before + 1) ++missing;
        rank.control->barrier(soon());
        rank.exchange.broadcast(rank.exchange.slots()[0], 0, true, soon());
        if (rank.stream->followed() != before + 2) ++missing;
      });

  EXPECT_EQ(missing, 0);
}

TEST_F(NcclExchangeTest, BroadcastsToRanksThatTake) {
  const ShardAssignment assignment = ShardAssignment::even(3, 3);
  const std::vector<std::vector<bool>> takers = {{true, true, true}, {true, false, false}, {false, true, false}};
  for (const std::vector<bool>& takes : takers) {
    std::atomic<int> wrong{0};
    run([&](int rank) { return shape_of(rank, assignment, 64); },
        [&](Rank& rank, int number) {
          std::vector<float> array(100, static_cast<float>(number));
          const bool own_takes = takes[static_cast<std::size_t>(number)];
          rank.exchange.broadcast(array, 1, own_takes, soon());
          const float expected = own_takes ? 1.0F : static_cast<float>(number);
          if (array != std::vector<float>(100, expected)) ++wrong;
        });
    EXPECT_EQ(wrong, 0);
  }
}

// The wait is on the host. A kernel that waits for a slow peer would block the device, and could not name the peer.
TEST_F(NcclExchangeTest, NamesTheRankThatDoesNotCome) {
  const ShardAssignment assignment = ShardAssignment::even(2, 2);
  ThreadGroup group(2);
  const std::vector<std::unique_ptr<Rank>> ranks = connect(group, assignment);

  const int slot = 0;
  const Error error = error_of([&] { ranks[0]->exchange.reduce(std::span(&slot, 1), {0, 64}, Deadline::after(20ms)); });

  EXPECT_EQ(error.code(), ErrorCode::deadline_exceeded);
  EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos) << error.what();
}

// The peer dies within a reduction: it has passed the barrier, but sends nothing.
TEST_F(NcclExchangeTest, EndsWithTheGenerationWhenAPeerDiesInAReduction) {
  const ShardAssignment assignment = ShardAssignment::even(2, 2);
  ThreadGroup group(2);
  const std::vector<std::unique_ptr<Rank>> ranks = connect(group, assignment);
  std::thread peer([&] {
    ranks[1]->control->barrier(soon());
    group.cancel_all();
  });

  const int slot = 0;
  const Error error = error_of([&] { ranks[0]->exchange.reduce(std::span(&slot, 1), {0, 64}, soon()); });
  peer.join();

  EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.what();
  EXPECT_FALSE(library()->is_poisoned());
}

// The next generation of the same processes uses the memory of the last one.
TEST_F(NcclExchangeTest, GoesOnInTheNextGenerationWithTheSameMemory) {
  const ShardAssignment assignment = ShardAssignment::even(2, 2);
  std::vector<std::shared_ptr<float[]>> blocks;
  for (int rank = 0; rank < 2; ++rank) {
    blocks.push_back(std::make_shared<float[]>(shape_of(rank, assignment, 64).block_floats()));
  }
  library();
  for (int generation = 1; generation <= 3; ++generation) {
    ThreadGroup group(2);
    std::atomic<int> wrong{0};
    run_ranks(2, group, [&](int number) {
      const auto control = connect_control(group, number, 2);
      NcclExchange exchange(shape_of(number, assignment, 64), library(), std::make_shared<FakeCollectiveStream>(),
                            *control, blocks[static_cast<std::size_t>(number)], soon());
      const std::span<float> own = exchange.slots()[0];
      std::fill(own.begin(), own.end(), static_cast<float>(generation));
      const int slot = 0;
      const auto sum = exchange.reduce(std::span(&slot, 1), {0, 64}, soon());
      for (const float value : sum) wrong += value == 2.0F * static_cast<float>(generation) ? 0 : 1;
      control->barrier(soon());
    });
    EXPECT_EQ(wrong, 0) << "generation " << generation;
  }
}

}  // namespace holdfast
