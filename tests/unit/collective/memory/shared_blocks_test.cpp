#include "collective/memory/shared_blocks.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "holdfast/base/error.h"
#include "support/rank_threads.h"

namespace holdfast {
namespace {

// Ranks 3 and 4 of a generation of six, on one host.
CommunicatorShape shape_of_six(int rank) {
  return {.rank = rank, .size = 6, .assignment = ShardAssignment({1, 1, 1, 2, 3, 1}), .slots = 3, .float_count = 64};
}

SharedBlocks blocks_of(ThreadGroup& group, int rank) {
  CommunicatorShape local = shape_of_six(rank);
  local.rank = rank - 3;
  local.size = 2;
  return SharedBlocks(shape_of_six(rank), {.first = 3, .count = 2}, group.memory_for(local));
}

Deadline long_wait() {
  return Deadline::after(std::chrono::seconds(60));
}

}  // namespace

// The system knows how many pages of a memory file exist.
TEST(SharedBlocks, TouchNoSlotThatIsNotUsed) {
  constexpr std::size_t kBlockBytes = std::size_t{64} * 1024;
  const CommunicatorShape shape{.rank = 0,
                                .size = 2,
                                .assignment = ShardAssignment::even(8, 2),
                                .slots = 8,
                                .float_count = kBlockBytes / sizeof(float)};
  SharedMemory blocks = SharedMemory::create("blocks", SharedBlocks::blocks_bytes(shape));

  SharedBlocks::touch(shape, blocks.writable(), 3);

  struct stat status {};
  ASSERT_EQ(::fstat(blocks.descriptor(), &status), 0);
  // Three slots, a segment of half a block, and the result.
  EXPECT_EQ(static_cast<std::size_t>(status.st_blocks) * 512, 4 * kBlockBytes + kBlockBytes / 2);
}

TEST(SharedBlocks, CountTheRanksOfTheHostAlone) {
  ThreadGroup group(2);
  const SharedBlocks blocks = blocks_of(group, 4);

  EXPECT_EQ(blocks.ranks(), 2);
  EXPECT_EQ(blocks.rank(), 1);
}

// Rank 3 has shards 3 and 4, which are two nodes, and rank 4 has shards 5 to 7, which are two as well.
TEST(SharedBlocks, ShowTheCoveringNodesOfAllRanksOfTheHost) {
  ThreadGroup group(2);
  SharedBlocks first = blocks_of(group, 3);
  SharedBlocks second = blocks_of(group, 4);
  std::thread peer([&] {
    second.show_covering_slots(std::vector<int>{1, 2});
    second.barrier(long_wait());
  });
  first.show_covering_slots(std::vector<int>{2, 0});
  first.barrier(long_wait());
  peer.join();

  const std::vector<const float*> leaves = first.leaves();

  EXPECT_EQ(leaves,
            (std::vector<const float*>{first.slot(0, 2), first.slot(0, 0), first.slot(1, 1), first.slot(1, 2)}));
}

TEST(SharedBlocks, NameRanksAsTheGenerationDoes) {
  ThreadGroup group(2);
  SharedBlocks blocks = blocks_of(group, 3);

  try {
    blocks.barrier(Deadline::after(std::chrono::milliseconds(5)));
    FAIL() << "the barrier was passed alone";
  } catch (const Error& failure) {
    EXPECT_NE(std::string(failure.what()).find("rank 3 reached its deadline while waiting for rank 4"),
              std::string::npos)
        << failure.what();
  }
  EXPECT_FALSE(blocks.has_arrived(1));
  EXPECT_TRUE(blocks.has_arrived(0));
}

TEST(SharedBlocks, AlternateBetweenTwoPiecesOfTheSlots) {
  ThreadGroup group(2);
  SharedBlocks blocks = blocks_of(group, 3);

  EXPECT_EQ(2 * blocks.piece_bytes(), blocks.slots_bytes());
  EXPECT_EQ(blocks.own_piece(0).data(), blocks.own_piece(2).data());
  EXPECT_EQ(blocks.own_piece(0).data() + blocks.piece_bytes(), blocks.own_piece(1).data());
  EXPECT_EQ(blocks.piece(0, 1).data(), blocks.own_piece(1).data());
}

}  // namespace holdfast
