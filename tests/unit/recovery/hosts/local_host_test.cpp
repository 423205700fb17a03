// Which messages the agent of a host answers itself, and which it hands on to the head. Its processes are played.

#include "hosts/local_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "channel/messages.h"
#include "holdfast/base/deadline.h"
#include "holdfast/base/error.h"
#include "holdfast/base/signal_word.h"
#include "unit/recovery/support/link_ends.h"
#include "unit/recovery/support/played_processes.h"

namespace holdfast::recovery {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OwnHost : public ::testing::Test {
 protected:
  explicit OwnHost(bool is_plain_program = false) {
    auto starter = std::make_unique<PlayedStarter>();
    starter_ = starter.get();
    host_ = local_host(io_, std::move(starter), {.is_plain_program = is_plain_program});
    for (const int id : {4, 7}) start(id);
  }

  void start(int id) {
    processes_[id] = host_->start({.executable = "a", .member = id},
                                  {.on_message = [this](Message& message) { handed_on_.push_back(message.body); },
                                   .on_bad_message = [this](const std::string& what) { bad_.push_back(what); },
                                   .on_failure = [this](const std::string& what, bool) { failed_.push_back(what); }});
  }

  void say(int id, nlohmann::json body) { starter_->played.at(id).say(std::move(body)); }

  void ask_for_arena(int id, int generation, int number = 0) {
    say(id, arena_message(kArenaRequest, {.generation = generation, .number = number}, sizeof(SignalWord)));
  }

  Played& played(int id) { return starter_->played.at(id); }

  boost::asio::io_context io_;
  PlayedStarter* starter_ = nullptr;
  std::unique_ptr<HostAgent> host_;
  std::map<int, std::shared_ptr<ReplicaProcess>> processes_;
  std::vector<nlohmann::json> handed_on_;
  std::vector<std::string> bad_;
  std::vector<std::string> failed_;
};

TEST_F(OwnHost, TellsEachMemberItsRank) {
  host_->open_generation({.number = 3, .members = {7, 4}, .shards = {2, 1}});

  ASSERT_EQ(played(7).sent.size(), 1U);
  EXPECT_EQ(played(7).sent[0],
            (nlohmann::json{{"kind", "welcome"}, {"generation", 3}, {"rank", 0}, {"size", 2}, {"shards", {2, 1}}}));
  EXPECT_EQ(played(4).sent[0].at("rank"), 1);
}

TEST_F(OwnHost, GivesArenasOnceAllMembersHaveAsked) {
  host_->open_generation({.number = 3, .members = {4, 7}});

  ask_for_arena(4, 3);
  EXPECT_EQ(played(4).sent.size(), 1U);
  ask_for_arena(7, 3);

  EXPECT_EQ(played(4).sent.back().at("kind"), "arena");
  EXPECT_EQ(played(7).descriptors.back(), 2U);
  EXPECT_THAT(handed_on_, IsEmpty());
  EXPECT_EQ(host_->arrivals(4), 0U);
}

TEST_F(OwnHost, RefusesArenasOfAnotherGenerationAndOfMembersThatHaveLeft) {
  host_->open_generation({.number = 3, .members = {4, 7}});

  ask_for_arena(4, 2);
  say(7, {{"kind", kCheckedIn}, {"generation", 3}, {"step", 8}});
  ask_for_arena(7, 3);

  EXPECT_EQ(played(4).sent.back().at("error"), "generation 2 was ended");
  EXPECT_EQ(played(7).sent.back().at("error"), "generation 3 was ended");
  EXPECT_EQ(handed_on_.size(), 1U);
}

TEST_F(OwnHost, TellsThoseThatWaitForAnArenaThatTheirGenerationWasEnded) {
  host_->open_generation({.number = 3, .members = {4, 7}});
  ask_for_arena(4, 3);

  host_->cancel_generation();

  EXPECT_EQ(played(4).sent.back().at("error"), "generation 3 was ended");
  EXPECT_EQ(played(7).sent.size(), 1U);
}

TEST_F(OwnHost, GivesMemoryForASnapshot) {
  say(4, {{"kind", kSnapshotRequest}, {"bytes", 4096}});

  EXPECT_EQ(played(4).sent.back().at("kind"), "snapshot_memory");
  EXPECT_EQ(played(4).descriptors.back(), 1U);
  EXPECT_FALSE(host_->newest_snapshot().has_value());
  EXPECT_THAT(handed_on_, IsEmpty());
}

TEST_F(OwnHost, GivesSnapshotsToRankZeroWhereTheyMayBeUsed) {
  say(4, {{"kind", kSnapshotRequest}, {"bytes", 4096}});

  host_->open_generation({.number = 3, .members = {7, 4}});
  EXPECT_EQ(played(7).descriptors.back(), 1U);
  EXPECT_EQ(played(4).descriptors.back(), 0U);
  host_->open_generation({.number = 4, .members = {7, 4}, .may_use_snapshots = false});

  EXPECT_EQ(played(7).descriptors.back(), 0U);
}

TEST_F(OwnHost, SaysThatMemoryForASnapshotWasRefused) {
  say(4, {{"kind", kSnapshotRequest}, {"bytes", std::size_t{1} << 60U}});

  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_THAT(handed_on_, IsEmpty());
}

TEST_F(OwnHost, HandsAllOtherMessagesOn) {
  for (const char* kind : {kJoined, kReady, kEvent, kWork, kFailure, kFinished, "unknown"}) say(4, {{"kind", kind}});

  EXPECT_EQ(handed_on_.size(), 7U);
  EXPECT_THAT(played(4).sent, IsEmpty());
}

TEST_F(OwnHost, TakesAMessageThatCannotBeSentForAFailureOfItsProcess) {
  played(4).failure = Error(ErrorCode::deadline_exceeded, "it does not read");
  played(7).failure = Error(ErrorCode::unavailable, "it is gone");

  host_->open_generation({.number = 3, .members = {4, 7}});

  EXPECT_THAT(bad_, ElementsAre("it does not read"));
}

TEST_F(OwnHost, SendsNothingToAProcessThatTheHeadHasDropped) {
  processes_.erase(7);

  host_->open_generation({.number = 3, .members = {4, 7}});

  EXPECT_THAT(played(7).sent, IsEmpty());
}

constexpr int kPortOfNobody = 1;

// Another host of the generation is played by connections that the test makes.
class OneOfTwoHosts : public OwnHost {
 protected:
  explicit OneOfTwoHosts(std::chrono::milliseconds reach_time = std::chrono::minutes(1)) {
    auto starter = std::make_unique<PlayedStarter>();
    starter_ = starter.get();
    processes_.clear();
    host_ = local_host(io_, std::move(starter), {.links = &links_, .reach_time = reach_time});
    for (const int id : {4, 7}) start(id);
  }

  // The host uses the listeners, which are members of this class.
  ~OneOfTwoHosts() override {
    processes_.clear();
    host_.reset();
  }

  // Host 0 has rank 0, and this one ranks 1 and 2. This one, with the higher number, dials.
  void open(int number) {
    host_->open_generation({.number = number,
                            .members = {3, 4, 7},
                            .hosts = {0, 1, 1},
                            .host = 1,
                            .peers = {{.host = 0, .address = {"127.0.0.2", other_links_.port()}, .key = key_}}});
  }

  void expect_there(std::uint32_t exchange) {
    other_links_.expect({.key = key_, .exchange = exchange, .lane = 0},
                        [this](FileDescriptor socket) { there_.push_back(std::move(socket)); });
  }

  void run_until(const std::function<bool()>& is_true) {
    const Deadline deadline = Deadline::after(std::chrono::seconds(20));
    while (!is_true() && !deadline.has_passed()) {
      io_.restart();
      io_.run_one_until(deadline.moment());
    }
    ASSERT_TRUE(is_true());
  }

  LinkListener links_{io_};
  LinkListener other_links_{io_};
  const LinkKey key_ = new_link_key();
  std::vector<FileDescriptor> there_;
};

TEST_F(OneOfTwoHosts, TellsItsMembersWhichRanksEachHostHas) {
  open(3);

  EXPECT_EQ(played(4).sent.at(0).at("rank"), 1);
  EXPECT_EQ(played(7).sent.at(0).at("rank"), 2);
  EXPECT_EQ(played(7).sent.at(0).at("size"), 3);
  EXPECT_EQ(played(7).sent.at(0).at("host_ranks"), (std::vector<int>{1, 2}));
}

TEST_F(OneOfTwoHosts, GivesArenasOfItsOwnRanksWithTheConnectionsOfTheirLane) {
  open(3);
  ask_for_arena(4, 3);
  ask_for_arena(7, 3);
  EXPECT_EQ(played(4).sent.size(), 1U);

  expect_there(0);
  run_until([&] { return played(7).sent.size() == 2; });

  // The arenas of two ranks, and on the one lane a connection.
  EXPECT_EQ(played(4).descriptors.back(), 3U);
  EXPECT_EQ(played(4).sent.back().at("links"), 1);
  EXPECT_EQ(played(7).descriptors.back(), 2U);
  EXPECT_FALSE(played(7).sent.back().contains("links"));
  EXPECT_EQ(there_.size(), 1U);
}

TEST_F(OneOfTwoHosts, EndsConnectionsWithTheGeneration) {
  open(3);
  ask_for_arena(4, 3);
  ask_for_arena(7, 3);
  expect_there(0);
  run_until([&] { return played(7).sent.size() == 2; });

  host_->cancel_generation();

  run_until([&] { return has_ended(there_.at(0)); });
}

TEST_F(OneOfTwoHosts, TellsThoseThatWaitForConnectionsThatTheirGenerationWasEnded) {
  open(3);
  ask_for_arena(4, 3);
  ask_for_arena(7, 3);

  host_->cancel_generation();

  EXPECT_EQ(played(4).sent.back().at("error"), "generation 3 was ended");
  EXPECT_EQ(played(7).sent.back().at("error"), "generation 3 was ended");
}

// Both hosts may open the next generation before they have answered for the one before.
TEST_F(OneOfTwoHosts, MakesNewConnectionsForTheNextGeneration) {
  open(3);
  ask_for_arena(4, 3);
  ask_for_arena(7, 3);
  open(4);
  ask_for_arena(4, 4);
  ask_for_arena(7, 4);

  expect_there(0);
  run_until([&] { return played(7).sent.back().at("kind") == kArena; });

  EXPECT_EQ(played(7).sent.back().at("generation"), 4);
}

class OneOfTwoHostsThatIsAlone : public OneOfTwoHosts {
 protected:
  OneOfTwoHostsThatIsAlone() : OneOfTwoHosts(std::chrono::milliseconds(20)) {}
};

TEST_F(OneOfTwoHostsThatIsAlone, SaysSoAndLeavesItsMembersWaiting) {
  std::vector<std::string> unreached;
  host_->when_unreached([&](int generation, int peer, const std::string& why) {
    unreached.push_back(std::to_string(generation) + " " + std::to_string(peer) + " " + why);
  });
  host_->open_generation({.number = 3,
                          .members = {3, 4, 7},
                          .hosts = {0, 1, 1},
                          .host = 1,
                          .peers = {{.host = 0, .address = {"127.0.0.2", kPortOfNobody}, .key = key_}}});
  ask_for_arena(4, 3);
  ask_for_arena(7, 3);

  run_until([&] { return !unreached.empty(); });

  ASSERT_EQ(unreached.size(), 1U);
  EXPECT_THAT(unreached[0], testing::StartsWith("3 0 127.0.0.2:1 cannot be reached"));
  EXPECT_EQ(played(4).sent.size(), 1U) << "only its rank";
  host_->cancel_generation();
  EXPECT_EQ(played(4).sent.back().at("error"), "generation 3 was ended");
}

TEST_F(OneOfTwoHosts, NeedsNoConnectionWhereAllRanksAreOnThisHost) {
  host_->open_generation({.number = 3, .members = {4, 7}, .hosts = {1, 1}, .host = 1});
  ask_for_arena(4, 3);
  ask_for_arena(7, 3);

  EXPECT_EQ(played(7).descriptors.back(), 2U);
  EXPECT_EQ(played(7).sent.at(0).at("host_ranks"), std::vector<int>{2});
}

class OwnHostOfAPlainProgram : public OwnHost {
 protected:
  OwnHostOfAPlainProgram() : OwnHost(true) {}
};

TEST_F(OwnHostOfAPlainProgram, SendsNothing) {
  host_->open_generation({.number = 3, .members = {4, 7}});

  EXPECT_THAT(played(4).sent, IsEmpty());
}

}  // namespace
}  // namespace holdfast::recovery
