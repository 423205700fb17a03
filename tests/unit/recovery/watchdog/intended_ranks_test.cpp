// Processes that start one after the other, on hosts that take turns.

#include "watchdog/intended_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

  State state_ = initial_state({.replicas = 6, .device_slots = 2, .hosts = 2, .slot_hosts = {0, 1}}, 0);
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

// Its local rank was that of a replica, where the failed one had another host's number.
TEST_F(IntendedRanksTest, AreThoseOfASpareWhereASpareHasTakenThePlaceOfTheLostOne) {
  state_.target = 2;
  for (int id = 0; id < 3; ++id) start(id, id % 2);
  member(0).stage = Stage::failed;
  member(1).rank = 0;
  member(2).rank = 1;

  const IntendedRank successor = start(3, 0);

  EXPECT_EQ(successor.rank, 2);
  EXPECT_EQ(successor.local, 2) << "1 is in the environment of the spare that is a replica";
}

// A host loses all its devices, and its replica starts on the other one.
TEST_F(IntendedRanksTest, AreAboveThePlannedOnesForAReplicaOfAnotherHost) {
  state_.target = 2;
  state_.hosts[1].stage = Host::Stage::there;
  start(0, 0);

  const IntendedRank taken_over = start(1, 0);

  EXPECT_EQ(taken_over.rank, 1);
  EXPECT_EQ(taken_over.local, 1);
}

// A spare of host 0 took the rank of a replica, and host 1, which joined later, had a spare with local rank 0.
TEST(IntendedRanksOfARun, AreThoseOfReplicasOnAHostThatJoinsLateWhereSpareOnesStartedBefore) {
  struct Case {
    int replicas = 0;
    int spares = 0;
    std::string at_once{};
    std::string later{};
  };
  // Each process is rank/local rank.
  for (const Case& one : {Case{2, 1, "0/0 2/1", "1/0"}, Case{2, 2, "0/0 2/1", "1/0 3/1"},
                          Case{3, 1, "0/0 1/1", "2/0 3/1"}, Case{4, 2, "0/0 1/1 4/2", "2/0 3/1 5/2"}}) {
    State state = initial_state({.recovery = {.spares = one.spares},
                                 .replicas = one.replicas,
                                 .device_slots = 2,
                                 .hosts = 2,
                                 .slot_hosts = {0, 1}},
                                0);
    IntendedRanks ranks;
    const auto started_after = [&](const Event& event) {
      const Decision decision = decide(state, event, Moment());
      state = decision.state;
      std::vector<std::string> started;
      for (const Action& action : decision.actions) {
        if (action.kind != ActionKind::start_process) continue;
        const IntendedRank chosen = ranks.choose(state, action.member);
        started.push_back(fmt::format("{}/{}", chosen.rank, chosen.local));
      }
      return fmt::format("{}", fmt::join(started, " "));
    };

    EXPECT_EQ(started_after({.kind = EventKind::start}), one.at_once);
    EXPECT_EQ(started_after({.kind = EventKind::host_joined, .host = 1}), one.later);
  }
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
