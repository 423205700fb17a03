// Processes that start one after the other, on hosts that take turns.

#include "watchdog/intended_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace holdfast::recovery {
namespace {

class IntendedRanksTest : public ::testing::Test {
 protected:
  // Two processes share each device slot of two hosts.
  IntendedRank start(int id, int host) {
    state_.members.push_back({.id = id, .device_slot = host, .host = host});
    return ranks_.choose(state_, id);
  }
  Member& member(int id) {
    return *std::find_if(state_.members.begin(), state_.members.end(), [id](const Member& m) { return m.id == id; });
  }

  State state_;
  IntendedRanks ranks_;
};

TEST_F(IntendedRanksTest, AreDistinctInTheRunAndOnEachHost) {
  for (int id = 0; id < 6; ++id) {
    const IntendedRank chosen = start(id, id % 2);

    EXPECT_EQ(chosen.rank, id);
    EXPECT_EQ(chosen.local, id / 2);
    EXPECT_EQ(ranks_.rank_of(id), id);
  }
}

TEST_F(IntendedRanksTest, AreThoseOfAProcessThatIsLost) {
  for (int id = 0; id < 6; ++id) start(id, id % 2);

  for (const Stage lost : {Stage::failed, Stage::leaving, Stage::unreachable}) {
    member(2).stage = lost;
    const IntendedRank successor = start(6, 0);

    EXPECT_EQ(successor.rank, 2);
    EXPECT_EQ(successor.local, 1);
    state_.members.pop_back();
  }
}

// A survivor has the rank of its generation, and the local rank that its environment says.
TEST_F(IntendedRanksTest, ObeyGenerationsAndEnvironments) {
  for (int id = 0; id < 4; ++id) start(id, id % 2);
  std::erase_if(state_.members, [](const Member& one) { return one.id == 0; });
  for (int id = 1; id < 4; ++id) member(id).rank = id - 1;

  const IntendedRank successor = start(4, 0);

  EXPECT_EQ(successor.rank, 3);
  EXPECT_EQ(successor.local, 0);
}

TEST_F(IntendedRanksTest, AreForgottenWithTheirMembers) {
  start(0, 0);
  start(1, 0);
  std::erase_if(state_.members, [](const Member& one) { return one.id == 0; });

  ranks_.forget_gone(state_);

  EXPECT_EQ(ranks_.rank_of(0), std::nullopt);
  EXPECT_EQ(ranks_.rank_of(1), 1);
}

}  // namespace
}  // namespace holdfast::recovery
