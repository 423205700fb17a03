// Ranks are threads on pretended hosts (HostGroup), with the shared memory and the sockets of processes. Sums must have
// the bits of MemoryCommunicator for every assignment of shards to hosts and ranks.

#include "collective/hosts/hosts_communicator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "holdfast/base/error.h"
#include "support/passes.h"
#include "unit/collective/hosts/support/faulty_link.h"
#include "unit/collective/hosts/support/summed.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kFloats = 208;
constexpr int kMostShards = 16;

HostLayout even_layout(int hosts, int ranks_each) {
  return HostLayout(std::vector<int>(static_cast<std::size_t>(hosts), ranks_each));
}

std::string text_of(const HostLayout& layout, const ShardAssignment& assignment) {
  std::string text;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    text += layout.local_rank(rank) == 0 ? " | " : " ";
    text += std::to_string(assignment.of(rank).count());
  }
  return text;
}

// Two sums of all floats and one of some of them, on every rank of a new group.
void expect_the_bits_of_one_host(const HostLayout& layout, const ShardAssignment& assignment,
                                 HostGroup::Connect connect = unix_pair) {
  static std::map<int, std::vector<std::vector<std::uint32_t>>> expected_of;
  const std::vector<FloatRange> ranges = {{0, kFloats}, {0, kFloats}, {40, 101}};
  auto& expected = expected_of[assignment.shards()];
  for (std::size_t round = expected.size(); round < ranges.size(); ++round) {
    expected.push_back(expected_bits(assignment.shards(), kFloats, ranges[round], static_cast<int>(round)));
  }
  HostGroup group(layout, std::move(connect));
  group.set_piece_floats(16);  // so that a part has several pieces
  std::atomic<int> wrong = 0;

  run_host_ranks(group, [&](int rank) {
    const auto communicator = group.connect(shape_for(rank, assignment, kFloats));
    communicator->set_passes(pass_in_pieces);
    for (std::size_t round = 0; round < ranges.size(); ++round) {
      const auto sum = summed_bits(*communicator, assignment, ranges[round], static_cast<int>(round));
      if (sum != expected[round]) ++wrong;
    }
  });

  EXPECT_EQ(wrong, 0) << assignment.shards() << " shards:" << text_of(layout, assignment);
}

ShardAssignment drawn_assignment_to(int ranks, int shards, Random& random) {
  std::vector<int> counts(static_cast<std::size_t>(ranks), 1);
  for (int shard = ranks; shard < shards; ++shard) ++counts[random.below(counts.size())];
  return ShardAssignment(counts);
}

// Every way to give `shards` shards to so many ranks, at least one to each.
void for_each_assignment_to(int ranks, int shards, const std::function<void(const ShardAssignment&)>& use) {
  std::vector<int> counts;
  const std::function<void(int)> give = [&](int left) {
    const int missing = ranks - static_cast<int>(counts.size());
    for (int count = missing == 1 ? left : 1; count <= left - (missing - 1); ++count) {
      counts.push_back(count);
      missing == 1 ? use(ShardAssignment(counts)) : give(left - count);
      counts.pop_back();
    }
  };
  give(shards);
}

bool is_every_assignment_asked_for() {
  const char* const value = std::getenv("HOLDFAST_EVERY_ASSIGNMENT");
  return value != nullptr && std::string(value) == "1";
}

std::vector<std::byte> numbered(std::size_t count, int start) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(start));
  return bytes;
}

}  // namespace

// With HOLDFAST_EVERY_ASSIGNMENT=1 these are all 47,162 assignments, otherwise the even one and three that are drawn.
TEST(HostsCommunicator, GivesTheBitsOfOneHostForAssignmentsOfOneToSixteenShards) {
  Random random(11, Purpose::user, 0, 0);
  int assignments = 0;
  for (int hosts = 1; hosts <= 4; ++hosts) {
    for (int each = 1; each <= 3; ++each) {
      const HostLayout layout = even_layout(hosts, each);
      for (int shards = layout.ranks(); shards <= kMostShards; ++shards) {
        const auto check = [&](const ShardAssignment& assignment) {
          expect_the_bits_of_one_host(layout, assignment);
          ++assignments;
        };
        if (is_every_assignment_asked_for()) {
          for_each_assignment_to(layout.ranks(), shards, check);
          continue;
        }
        check(ShardAssignment::even(shards, layout.ranks()));
        for (int draw = 0; draw < 3; ++draw) check(drawn_assignment_to(layout.ranks(), shards, random));
      }
    }
  }
  RecordProperty("assignments", assignments);
}

// All 120 combinations of 1 to 4 hosts with 1 to 3 ranks each. The host with the fewest ranks says how many lanes there
// are; the other ranks have none.
TEST(HostsCommunicator, GivesTheBitsOfOneHostWhereHostsHaveDifferentNumbersOfRanks) {
  Random random(12, Purpose::user, 0, 0);
  int layouts = 0;
  const std::function<void(std::vector<int>)> check = [&](const std::vector<int>& counts) {
    if (!counts.empty()) {
      const HostLayout layout(counts);
      const int shards = layout.ranks() + static_cast<int>(random.below(5));
      expect_the_bits_of_one_host(layout, drawn_assignment_to(layout.ranks(), shards, random));
      ++layouts;
    }
    if (counts.size() == 4) return;
    for (int each = 1; each <= 3; ++each) {
      std::vector<int> more = counts;
      more.push_back(each);
      check(more);
    }
  };

  check({});

  EXPECT_EQ(layouts, 120);
}

TEST(HostsCommunicator, GivesTheBitsOfOneHostOverTcp) {
  Random random(13, Purpose::user, 0, 0);
  for (const HostLayout& layout : {even_layout(2, 1), even_layout(2, 2), even_layout(4, 1), HostLayout({1, 3})}) {
    for (const int shards : {8, 13}) {
      expect_the_bits_of_one_host(layout, drawn_assignment_to(layout.ranks(), shards, random),
                                  [] { return tcp_pair(); });
    }
  }
}

// Ranks may also take more than one sum from a block that is larger than a piece and than the buffers of sockets.
TEST(HostsCommunicator, AddsBlocksThatAreLargerThanTheBuffersOfSockets) {
  constexpr std::size_t kMany = std::size_t{1} << 18;
  const HostLayout layout({2, 1, 1});
  const ShardAssignment assignment({1, 2, 3, 1});
  const auto expected = expected_bits(7, kMany, {0, kMany}, 1);
  HostGroup group(layout);
  std::atomic<int> wrong = 0;

  run_host_ranks(group, [&](int rank) {
    const auto communicator = group.connect(shape_for(rank, assignment, kMany));
    for (int turn = 0; turn < 2; ++turn) {
      if (summed_bits(*communicator, assignment, {0, kMany}, 1) != expected) ++wrong;
    }
  });

  EXPECT_EQ(wrong, 0);
}

// One byte at a time, and any other number up to more than a frame.
TEST(HostsCommunicator, AddsOverLinksThatMoveFewBytesAtATime) {
  const HostLayout layout({2, 1});
  const ShardAssignment assignment({2, 1, 3});
  const auto expected = expected_bits(6, kFloats, {0, kFloats}, 0);
  for (const std::size_t most : {1U, 2U, 3U, 5U, 31U, 32U, 33U, 64U, 100U}) {
    HostGroup group(layout);
    group.set_piece_floats(32);
    group.wrap_links([&](std::unique_ptr<Link> link, int, int) -> std::unique_ptr<Link> {
      return std::make_unique<ShortLink>(std::move(link), most);
    });
    std::atomic<int> wrong = 0;

    run_host_ranks(group, [&](int rank) {
      const auto communicator = group.connect(shape_for(rank, assignment, kFloats));
      if (summed_bits(*communicator, assignment, {0, kFloats}, 0) != expected) ++wrong;
      std::vector<std::byte> bytes = rank == 2 ? numbered(3000, 1) : std::vector<std::byte>(3000);
      communicator->broadcast(bytes, 2, true, long_enough());
      if (bytes != numbered(3000, 1)) ++wrong;
    });

    EXPECT_EQ(wrong, 0) << most << " bytes at a time";
  }
}

// The gradients become fewer, as when the layers that are trained change.
TEST(HostsCommunicator, AddsAfterTheGradientsHaveBecomeFewer) {
  const HostLayout layout({1, 2});
  const ShardAssignment assignment({2, 1, 2});
  const auto expected = expected_bits(5, 96, {0, 96}, 3);
  HostGroup group(layout);
  std::atomic<int> wrong = 0;

  run_host_ranks(group, [&](int rank) {
    const auto communicator = group.connect(shape_for(rank, assignment, kFloats));
    summed_bits(*communicator, assignment, {0, kFloats}, 3);
    communicator->barrier(long_enough());
    communicator->set_gradient_floats(96);
    if (summed_bits(*communicator, assignment, {0, 96}, 3) != expected) ++wrong;
  });

  EXPECT_EQ(wrong, 0);
}

TEST(HostsCommunicator, DividesTheSumIntoGradientsAndTail) {
  const HostLayout layout({1, 1});
  HostGroup group(layout);
  std::atomic<int> wrong = 0;

  run_host_ranks(group, [&](int rank) {
    CommunicatorShape shape = shape_for(rank, ShardAssignment::even(2, 2), 48);
    shape.tail_floats = 16;
    const auto communicator = group.connect(shape);
    const Slot slot = communicator->slots()[0];
    std::fill(slot.gradients.begin(), slot.gradients.end(), 1.0F);
    std::fill(slot.tail.begin(), slot.tail.end(), 5.0F);
    const int first = 0;
    const Sums sums = communicator->reduce(std::span(&first, 1), {0, 48}, long_enough());
    if (sums.gradients.size() != 32 || sums.tail.size() != 16) ++wrong;
    if (sums.gradients[31] != 2.0F || sums.tail[0] != 10.0F) ++wrong;
  });

  EXPECT_EQ(wrong, 0);
}

// The value may be in any part of the block, and on any rank.
TEST(HostsCommunicator, TellsEveryRankWhetherAllSumsAreFinite) {
  const HostLayout layout({2, 1, 2});
  const ShardAssignment assignment = ShardAssignment::even(5, 5);
  for (const int where : {0, 2, 4}) {
    for (const std::size_t place : {std::size_t{0}, kFloats / 3, kFloats / 2, kFloats - 1}) {
      HostGroup group(layout);
      group.set_piece_floats(16);
      std::atomic<int> mistaken = 0;

      run_host_ranks(group, [&](int rank) {
        const auto communicator = group.connect(shape_for(rank, assignment, kFloats));
        const int slot = 0;
        for (const bool is_wrong : {false, true, false}) {
          const std::span<float> own = communicator->slots()[0].gradients;
          std::fill(own.begin(), own.end(), 1.0F);
          if (is_wrong && rank == where) own[place] = std::numeric_limits<float>::quiet_NaN();
          communicator->reduce(std::span(&slot, 1), {0, kFloats}, long_enough());
          if (communicator->was_finite() == is_wrong) ++mistaken;
        }
      });

      EXPECT_EQ(mistaken, 0) << "rank " << where << ", float " << place;
    }
  }
}

TEST(HostsCommunicator, BroadcastsFromAnyRankToThoseThatTake) {
  constexpr std::size_t kBytes = 10'001;
  const HostLayout layout({2, 3, 1});
  const ShardAssignment assignment = ShardAssignment::even(6, 6);
  for (int root = 0; root < 6; ++root) {
    // The ranks that take are the bits of a number: nobody, everybody, one rank, the ranks of some hosts.
    for (const unsigned takers : {0U, 63U, 1U, 4U, 8U, 32U, 36U, 27U}) {
      HostGroup group(layout);
      std::atomic<int> wrong = 0;

      run_host_ranks(group, [&](int rank) {
        const auto communicator = group.connect(shape_for(rank, assignment, kFloats));
        const bool takes = (takers >> rank & 1U) != 0;
        std::vector<std::byte> bytes = numbered(kBytes, rank);
        communicator->broadcast(bytes, root, takes, long_enough());
        if (bytes != numbered(kBytes, takes ? root : rank)) ++wrong;
        communicator->barrier(long_enough());
      });

      EXPECT_EQ(wrong, 0) << "root " << root << ", takers " << takers;
    }
  }
}

// Hosts with more cores have more slots, and so room for larger pieces.
TEST(HostsCommunicator, BroadcastsPartsBetweenHostsWithDifferentNumbersOfSlots) {
  const std::vector<std::size_t> sizes = {0, 100, 1, 0, 4096, 33, 0};
  HostGroup group(HostLayout({1, 2}));
  std::atomic<int> wrong = 0;

  run_host_ranks(group, [&](int rank) {
    CommunicatorShape shape = shape_for(rank, ShardAssignment::even(3, 3), 64);
    shape.slots = rank == 0 ? 9 : 3;
    const auto communicator = group.connect(shape);
    std::vector<std::vector<std::byte>> arrays;
    std::vector<std::span<std::byte>> parts;
    for (const std::size_t size : sizes) arrays.push_back(numbered(size, rank));
    for (std::vector<std::byte>& array : arrays) parts.emplace_back(array);
    communicator->broadcast(parts, 1, true, long_enough());
    for (std::size_t i = 0; i < sizes.size(); ++i) wrong += arrays[i] == numbered(sizes[i], 1) ? 0 : 1;
  });

  EXPECT_EQ(wrong, 0);
}

TEST(HostsCommunicator, BroadcastsArrays) {
  HostGroup group(HostLayout({1, 1}));
  std::vector<float> received(40);

  run_host_ranks(group, [&](int rank) {
    const auto communicator = group.connect(shape_for(rank, ShardAssignment::even(2, 2), 16));
    std::vector<float> values(40, rank == 0 ? 2.5F : 0.0F);
    const std::span<float> array(values);
    communicator->broadcast_arrays(std::span(&array, 1), 0, true, long_enough());
    if (rank == 1) received = values;
  });

  EXPECT_EQ(received, std::vector<float>(40, 2.5F));
}

// Also more than the slots hold together, which are small here.
TEST(HostsCommunicator, GathersEveryRanksBytesInOrder) {
  for (const HostLayout& layout : {HostLayout({1, 1}), HostLayout({3, 1, 2}), even_layout(4, 3)}) {
    const int ranks = layout.ranks();
    HostGroup group(layout);
    std::atomic<int> wrong = 0;

    run_host_ranks(group, [&](int rank) {
      CommunicatorShape shape = shape_for(rank, ShardAssignment::even(ranks, ranks), 16);
      shape.slots = 1;
      const auto communicator = group.connect(shape);
      for (int round = 0; round < 50; ++round) {
        const std::vector<std::byte> own = numbered(40, rank + round);
        std::vector<std::byte> all(own.size() * static_cast<std::size_t>(ranks));
        communicator->gather_all(own, all, long_enough());
        for (int peer = 0; peer < ranks; ++peer) {
          const auto begin = all.begin() + peer * static_cast<std::ptrdiff_t>(own.size());
          wrong += std::equal(begin, begin + 40, numbered(40, peer + round).begin()) ? 0 : 1;
        }
      }
    });

    EXPECT_EQ(wrong, 0) << ranks << " ranks";
  }
}

// Nobody passes before all are there, with sums of nothing, too: a communicator of devices relies on it.
TEST(HostsCommunicator, HoldsEveryRankUntilAllAreThere) {
  const HostLayout layout({2, 1, 2});
  HostGroup group(layout);
  std::atomic<int> arrived = 0;
  std::atomic<int> early = 0;

  run_host_ranks(group, [&](int rank) {
    const auto communicator = group.connect(shape_for(rank, ShardAssignment::even(5, 5), 16));
    const int slot = 0;
    for (int round = 1; round <= 200; ++round) {
      ++arrived;
      round % 2 == 0 ? communicator->barrier(long_enough())
                     : static_cast<void>(communicator->reduce(std::span(&slot, 1), {8, 8}, long_enough()));
      if (arrived < 5 * round) ++early;
    }
  });

  EXPECT_EQ(early, 0);
}

// Different calls directly after one another must not touch what a slower rank still reads.
TEST(HostsCommunicator, KeepsCallsApart) {
  const HostLayout layout({2, 2});
  const ShardAssignment assignment = ShardAssignment::even(4, 4);
  HostGroup group(layout);
  std::atomic<int> wrong = 0;

  run_host_ranks(group, [&](int rank) {
    const auto communicator = group.connect(shape_for(rank, assignment, 1024));
    const int slot = 0;
    for (int round = 0; round < 100; ++round) {
      const std::span<float> own = communicator->slots()[0].gradients;
      std::fill(own.begin(), own.end(), static_cast<float>(round));
      const auto sum = communicator->reduce(std::span(&slot, 1), {0, 1024}, long_enough()).gradients;
      wrong +=
          std::all_of(sum.begin(), sum.end(), [&](float x) { return x == 4.0F * static_cast<float>(round); }) ? 0 : 1;
      std::vector<std::byte> bytes(8000, static_cast<std::byte>(rank));
      communicator->broadcast(bytes, round % 4, true, long_enough());
      wrong += bytes.back() == static_cast<std::byte>(round % 4) ? 0 : 1;
      std::vector<int> all(4);
      communicator->gather_all(std::as_bytes(std::span(&rank, 1)), std::as_writable_bytes(std::span(all)),
                               long_enough());
      wrong += all == std::vector<int>{0, 1, 2, 3} ? 0 : 1;
    }
  });

  EXPECT_EQ(wrong, 0);
}

// Rank 0 returns, and the generation ends. The other rank of its host knows as much, although it is cut off.
TEST(HostsCommunicator, GathersForARankThatIsCutOffAfterItsHostKnows) {
  HostGroup group(HostLayout({2, 1}));
  std::vector<std::vector<int>> gathered(3, std::vector<int>(3, -1));
  std::atomic<bool> may_go_on = false;

  const auto thrown = run_each_rank(3, [&](int rank) {
    const auto communicator = group.connect(shape_for(rank, ShardAssignment::even(3, 3), 16));
    const auto gather = [&] {
      auto& all = gathered[static_cast<std::size_t>(rank)];
      communicator->gather_all(std::as_bytes(std::span(&rank, 1)), std::as_writable_bytes(std::span(all)),
                               long_enough());
    };
    gather();
    if (rank == 0) group.cancel_words();
    if (rank == 0) may_go_on = true;
    while (!may_go_on) std::this_thread::yield();
    gather();
  });

  const std::vector<int> whole = {0, 1, 2};
  EXPECT_EQ(gathered[0], whole);
  EXPECT_EQ(gathered[1], whole);
  // On the other host all may be missing, but never a part.
  EXPECT_TRUE(gathered[2] == whole || gathered[2] == std::vector<int>(3, -1));
  for (const std::exception_ptr& failure : thrown) EXPECT_THROW(std::rethrow_exception(failure), GenerationEnded);
}

TEST(HostsCommunicator, NamesTheRankThatIsLate) {
  HostGroup group(HostLayout({1, 1}));
  const auto communicator = group.connect(shape_for(0, ShardAssignment::even(2, 2), 16));

  try {
    communicator->barrier(Deadline::after(10ms));
    FAIL() << "the barrier was passed alone";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.code(), ErrorCode::deadline_exceeded);
    EXPECT_NE(std::string(failure.what()).find("rank 1 on host 1"), std::string::npos) << failure.what();
  }
}

// Its peers learn it from the communicator alone, on its own host and on others, whether they have a lane or not.
TEST(HostsCommunicator, TakesAllRanksOutWhenOneReachesItsDeadline) {
  HostGroup group(HostLayout({3, 2}));
  std::atomic<int> inside = 0;

  const auto thrown = run_each_rank(5, [&](int rank) {
    const auto communicator = group.connect(shape_for(rank, ShardAssignment::even(5, 5), 16));
    if (rank == 4) {
      // Does not come, and so learns nothing.
      while (inside < 4) std::this_thread::yield();
      return;
    }
    ++inside;
    communicator->barrier(rank == 3 ? Deadline::after(20ms) : Deadline::after(10min));
  });

  for (const int rank : {0, 1, 2}) EXPECT_THROW(std::rethrow_exception(thrown[rank]), GenerationEnded) << rank;
  EXPECT_THROW(std::rethrow_exception(thrown[3]), Error);
}

TEST(HostsCommunicator, StaysCancelled) {
  HostGroup group(HostLayout({1, 1}));
  const auto communicator = group.connect(shape_for(0, ShardAssignment::even(2, 2), 16));
  const int slot = 0;
  std::vector<std::byte> bytes(10);

  EXPECT_FALSE(communicator->is_cancelled());
  communicator->cancel();

  EXPECT_TRUE(communicator->is_cancelled());
  EXPECT_THROW(communicator->reduce(std::span(&slot, 1), {0, 16}, long_enough()), GenerationEnded);
  EXPECT_THROW(communicator->barrier(long_enough()), GenerationEnded);
  EXPECT_THROW(communicator->broadcast(bytes, 1, true, long_enough()), GenerationEnded);
  EXPECT_THROW(communicator->gather_all(std::span(bytes).first(5), bytes, long_enough()), GenerationEnded);
}

TEST(HostsCommunicator, RefusesALayoutOfAnotherNumberOfRanks) {
  const CommunicatorShape shape = shape_for(0, ShardAssignment::even(2, 2), 16);

  EXPECT_THROW(HostsCommunicator(shape, {.layout = HostLayout({1, 2})}), Error);
}

}  // namespace holdfast
