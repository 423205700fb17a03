// Rates and status from looks at moments that the test chooses; nothing waits.

#include "control/run_status.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;

constexpr Moment kFirstLook{};

State state_of(int members) {
  State state = initial_state({.replicas = members}, 0);
  state.phase = RunPhase::running;
  state.generation = 4;
  for (int id = 0; id < members; ++id) {
    state.members.push_back({.id = id, .device_slot = id, .stage = Stage::training, .rank = id});
  }
  return state;
}

TEST(SampleRate, CountsTheSamplesOfTheWindow) {
  SampleRate rate;
  for (int second = 0; second <= 30; ++second) {
    const int a_second = second <= 10 ? 50 : 200;
    rate.look(second == 0 ? 50U : static_cast<unsigned>(second * a_second), kFirstLook + second * 1s);
  }

  EXPECT_DOUBLE_EQ(rate.per_second(kFirstLook + 30s), 200);
}

TEST(SampleRate, LeavesOutTheTimeBeforeTheFirstStep) {
  SampleRate rate;
  rate.look(0, kFirstLook);
  rate.look(100, kFirstLook + 60s);
  rate.look(200, kFirstLook + 61s);

  EXPECT_DOUBLE_EQ(rate.per_second(kFirstLook + 61s), 100);
}

TEST(SampleRate, HoldsBetweenStepsThatTakeLongerThanTheWindow) {
  SampleRate rate;
  for (int step = 1; step <= 4; ++step) rate.look(static_cast<unsigned>(step) * 60, kFirstLook + step * 30s);

  EXPECT_DOUBLE_EQ(rate.per_second(kFirstLook + 120s), 2);
  EXPECT_DOUBLE_EQ(rate.per_second(kFirstLook + 149s), 2);
}

TEST(SampleRate, FallsWhenStepsStopComing) {
  SampleRate rate;
  rate.look(100, kFirstLook + 1s);
  rate.look(200, kFirstLook + 2s);

  EXPECT_DOUBLE_EQ(rate.per_second(kFirstLook + 12s), 10);
}

TEST(SampleRate, IsZeroWithoutSteps) {
  SampleRate rate;
  rate.look(0, kFirstLook);
  rate.look(64, kFirstLook + 1s);

  EXPECT_EQ(rate.per_second(kFirstLook + 1s), 0);
}

TEST(RunStatus, ShowsWhatSupervisorAndLifePageKnowOfEachProcess) {
  RunStatus status({"cpu:0", "cpu:3"});
  const std::map<int, MemberStatus> member_statuses = {
      {0, {.pid = 10, .step = 5, .phase = Phase::computing, .progress = 3}},
      {1, {.pid = 11, .step = 6, .phase = Phase::updating, .progress = 3}}};
  status.look(member_statuses, kFirstLook);
  const RestartCounts restarts{.all = 3, .by_rank = {{0, 1}, {1, 2}}};

  const nlohmann::json body = status.describe(state_of(2), member_statuses, restarts, kFirstLook + 2s);

  EXPECT_EQ(body.at("phase"), "running");
  EXPECT_EQ(body.at("generation"), 4);
  EXPECT_EQ(body.at("target"), 2);
  EXPECT_EQ(body.at("step"), 6);
  EXPECT_EQ(body.at("restarts"), 3);
  const nlohmann::json& second = body.at("members").at(1);
  EXPECT_EQ(second.at("member"), 1);
  EXPECT_EQ(second.at("rank"), 1);
  EXPECT_EQ(second.at("place"), 1);
  EXPECT_EQ(second.at("device"), "cpu:3");
  EXPECT_EQ(second.at("stage"), "training");
  EXPECT_EQ(second.at("pid"), 11);
  EXPECT_EQ(second.at("step"), 6);
  EXPECT_EQ(second.at("phase"), "updating");
  EXPECT_EQ(second.at("seconds_since_progress"), 2.0);
  EXPECT_EQ(second.at("restarts"), 2);
}

TEST(RunStatus, CountsTheTimeSinceTheProgressOfAProcess) {
  RunStatus status;
  std::map<int, MemberStatus> member_statuses = {{0, {.progress = 1}}};
  status.look(member_statuses, kFirstLook);
  status.look(member_statuses, kFirstLook + 1s);
  member_statuses[0].progress = 2;
  status.look(member_statuses, kFirstLook + 3s);

  const nlohmann::json body = status.describe(state_of(1), member_statuses, {}, kFirstLook + 4s);

  EXPECT_EQ(body.at("members").at(0).at("seconds_since_progress"), 1.0);
}

TEST(RunStatus, ShowsNoRankForAProcessWithoutOne) {
  State state = state_of(1);
  state.members[0].rank = -1;
  RunStatus status;
  const std::map<int, MemberStatus> member_statuses = {{0, {}}};
  status.look(member_statuses, kFirstLook);

  EXPECT_TRUE(status.describe(state, member_statuses, {}, kFirstLook).at("members").at(0).at("rank").is_null());
}

TEST(RunStatus, ForgetsProcessesThatAreGone) {
  RunStatus status;
  status.look({{0, {.progress = 1}}}, kFirstLook);
  status.look({}, kFirstLook + 1s);
  const std::map<int, MemberStatus> member_statuses = {{0, {.progress = 1}}};
  status.look(member_statuses, kFirstLook + 5s);

  const nlohmann::json body = status.describe(state_of(1), member_statuses, {}, kFirstLook + 5s);

  EXPECT_EQ(body.at("members").at(0).at("seconds_since_progress"), 0.0);
}

TEST(RunStatus, ShowsHowManyShardsAProcessReports) {
  RunStatus status;
  const std::map<int, MemberStatus> member_statuses = {{0, {.shards = 4}}, {1, {}}};
  status.look(member_statuses, kFirstLook);

  const nlohmann::json body = status.describe(state_of(2), member_statuses, {}, kFirstLook);

  EXPECT_EQ(body.at("members").at(0).at("shards"), 4);
  EXPECT_TRUE(body.at("members").at(1).at("shards").is_null());
}

TEST(RunStatus, ShowsDeviceSlotsThatAreLeftOutOrTried) {
  State state = state_of(2);
  state.device_slots.resize(3);
  state.device_slots[1] = {.times_left_out = 2, .rest_ends = kFirstLook + 1s, .why = "it is worn", .first_on_trial = 1};
  state.device_slots[2] = {.times_left_out = 1, .rest_ends = kFirstLook + 90s, .why = "no memory", .first_on_trial = 2};

  const nlohmann::json rests = RunStatus().describe(state, {}, {}, kFirstLook + 30s).at("rests");

  ASSERT_EQ(rests.size(), 2U);
  EXPECT_EQ(rests[0].at("place"), 1);
  EXPECT_TRUE(rests[0].at("device").is_null());
  EXPECT_EQ(rests[0].at("why"), "it is worn");
  EXPECT_EQ(rests[0].at("times_left_out"), 2);
  EXPECT_EQ(rests[0].at("seconds_left"), 0);
  EXPECT_EQ(rests[0].at("tried_by"), 1);
  EXPECT_EQ(rests[1].at("place"), 2);
  EXPECT_EQ(rests[1].at("seconds_left"), 60);
  EXPECT_TRUE(rests[1].at("tried_by").is_null());
}

TEST(RunStatus, NamesNoHostOfARunOnASingleOne) {
  RunStatus status;
  const std::map<int, MemberStatus> member_statuses = {{0, {}}};
  status.look(member_statuses, kFirstLook);

  const nlohmann::json body = status.describe(state_of(1), member_statuses, {}, kFirstLook);

  EXPECT_FALSE(body.contains("hosts"));
  EXPECT_FALSE(body.at("members").at(0).contains("host"));
}

TEST(RunStatus, NamesTheHostOfEachProcess) {
  State state = state_of(2);
  state.hosts.resize(2);
  state.members[1].host = 1;
  RunStatus status;
  const std::map<int, MemberStatus> member_statuses = {{0, {.pid = ::getpid()}}, {1, {.pid = ::getpid()}}};
  status.look(member_statuses, kFirstLook);

  const nlohmann::json members = status.describe(state, member_statuses, {}, kFirstLook).at("members");

  EXPECT_EQ(members.at(0).at("host"), 0);
  EXPECT_EQ(members.at(1).at("host"), 1);
  EXPECT_GT(members.at(0).at("resident_bytes"), 0);
  // The number is that of a process of this host, whose memory says nothing about one of another host.
  EXPECT_TRUE(members.at(1).at("resident_bytes").is_null());
}

TEST(RunStatus, ShowsWhichHostsAreAwayAndWhy) {
  State state = state_of(1);
  state.hosts.resize(4);
  state.hosts[0].stage = Host::Stage::there;
  state.hosts[2] = {.stage = Host::Stage::lost, .away_since = kFirstLook + 1s, .why_away = "it did not answer"};
  state.hosts[3] = {.stage = Host::Stage::leaving, .was_asked_to_leave = true, .away_since = kFirstLook + 4s};

  const nlohmann::json hosts = RunStatus().describe(state, {}, {}, kFirstLook + 5s).at("hosts");

  ASSERT_EQ(hosts.size(), 4U);
  EXPECT_EQ(hosts[0].at("stage"), "there");
  EXPECT_TRUE(hosts[0].at("seconds_away").is_null());
  EXPECT_EQ(hosts[1].at("stage"), "awaited");
  EXPECT_TRUE(hosts[1].at("seconds_away").is_null());
  EXPECT_EQ(hosts[2].at("host"), 2);
  EXPECT_EQ(hosts[2].at("stage"), "lost");
  EXPECT_EQ(hosts[2].at("seconds_away"), 4.0);
  EXPECT_EQ(hosts[2].at("why_away"), "it did not answer");
  EXPECT_EQ(hosts[2].at("was_asked_to_leave"), false);
  EXPECT_EQ(hosts[3].at("stage"), "leaving");
  EXPECT_EQ(hosts[3].at("was_asked_to_leave"), true);
}

TEST(ResidentBytes, AreThoseOfALiveProcess) {
  EXPECT_GT(resident_bytes(::getpid()), 100'000U);
  EXPECT_EQ(resident_bytes(-1), 0U);
}

}  // namespace
}  // namespace holdfast::recovery
