// Which messages the agent of a host answers itself, and which it hands on to the head. Its processes are played.

#include "hosts/local_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "channel/messages.h"
#include "holdfast/base/error.h"
#include "holdfast/base/signal_word.h"

namespace holdfast::recovery {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What was sent to a process, and how sending fails.
struct Played {
  std::vector<nlohmann::json> sent;
  std::vector<std::size_t> descriptors;
  std::optional<Error> failure;
};

class PlayedProcess final : public ReplicaProcess {
 public:
  explicit PlayedProcess(Played& played) : played_(played) {}

  void watch_for_death() override {}
  void send(const Message& message) const override {
    if (played_.failure) throw Error(*played_.failure);
    played_.sent.push_back(message.body);
    played_.descriptors.push_back(message.descriptors.size());
  }
  void ask_to_leave(int /*signal*/) override {}
  void kill() override {}
  bool has_joined() const override { return true; }
  int pid() const override { return 1; }
  std::time_t started() const override { return 0; }
  std::int64_t step() const override { return 0; }
  JoinState join_state() const override { return JoinState::in_steps; }
  std::uint64_t samples() const override { return 0; }
  Pulse pulse(int /*member*/, std::uint64_t /*arrivals*/) const override { return {}; }
  Load load(int /*member*/, int /*shards*/, int /*at_once*/) const override { return {}; }
  std::string what_in_background() const override { return ""; }
  bool is_stopped() const override { return false; }
  std::chrono::nanoseconds cpu_demand() const override { return {}; }
  std::optional<Crash> crash() const override { return std::nullopt; }

 private:
  Played& played_;
};

class PlayedStarter final : public ReplicaStarter {
 public:
  std::map<int, Played> played;
  std::map<int, Handlers> handlers;

  std::shared_ptr<ReplicaProcess> start(const Program& program, Handlers given) override {
    handlers[program.member] = std::move(given);
    return std::make_shared<PlayedProcess>(played[program.member]);
  }
};

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

  void say(int id, nlohmann::json body) {
    Message message{.body = std::move(body)};
    starter_->handlers.at(id).on_message(message);
  }

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
