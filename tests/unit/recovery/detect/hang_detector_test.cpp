// The hang detector's limits, one by one, with heartbeats and a clock that the test moves. hang_detector_run_test.cpp
// has whole runs.

#include "detect/hang_detector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Looks every 100 ms, like the watchdog. Members sleep unless a test lets them run.
class HangDetectorTest : public testing::Test {
 protected:
  explicit HangDetectorTest(const HangLimits& limits = {})
      : detector_(limits, {.is_stopped = [this](int member) { return stopped_.contains(member); },
                           .cpu_demand = [this](int member) { return demand_[member]; },
                           .in_background = [this](int member) { return in_background_[member]; }}) {}

  std::optional<Hang> look_for(std::chrono::milliseconds duration, const std::vector<Heartbeat>& heartbeats) {
    std::optional<Hang> hang = detector_.look(heartbeats, now_);
    for (const Moment end = now_ + duration; now_ < end && !hang;) hang = look_after(100ms, heartbeats);
    return hang;
  }

  std::optional<Hang> look_after(std::chrono::milliseconds duration, const std::vector<Heartbeat>& heartbeats) {
    now_ += duration;
    for (const auto& [member, share] : running_) demand_[member] += duration * share / 100;
    return detector_.look(heartbeats, now_);
  }

  // Ends steps of 200 ms each, so that the limit of a step is 0.8 s + 3 * 0.2 s.
  void train(int steps) {
    for (int step = 0; step < steps; ++step) {
      const Heartbeat heartbeat{.member = 0,
                                .progress = static_cast<std::uint64_t>(step),
                                .phase = Phase::computing,
                                .step = step,
                                .steps = static_cast<std::uint64_t>(step),
                                .step_time = step * 200ms};
      ASSERT_FALSE(look_after(200ms, {heartbeat}).has_value());
    }
  }

  std::set<int> stopped_;
  std::map<int, int> running_;  // percent of the time, by member
  std::map<int, std::chrono::nanoseconds> demand_;
  std::map<int, std::string> in_background_;
  HangDetector detector_;
  Moment now_;
};

class CappedHangDetectorTest : public HangDetectorTest {
 protected:
  CappedHangDetectorTest() : HangDetectorTest({.hang_after = 10s}) {}
};

class CallbackTimeoutTest : public HangDetectorTest {
 protected:
  CallbackTimeoutTest() : HangDetectorTest({.hang_after = 2s, .callback_timeout = 5min}) {}
};

class NamesOfTheCommandLineTest : public HangDetectorTest {
 protected:
  NamesOfTheCommandLineTest()
      : HangDetectorTest({.names = {.hang_after = "--hang-after",
                                    .callback_timeout = "--callback-timeout",
                                    .start_timeout = "--start-timeout"}}) {}
};

class PatientHangDetectorTest : public HangDetectorTest {
 protected:
  PatientHangDetectorTest() : HangDetectorTest({.hang_after = 5min}) {}
};

// The heartbeat of a process that has made steps before.
Heartbeat at(Phase phase, int member = 0, std::int64_t step = 12) {
  return {.member = member, .progress = 1000, .phase = phase, .step = step, .steps = 100};
}

TEST_F(HangDetectorTest, NamesTheReplicaThatMakesNoProgress) {
  train(20);

  const std::optional<Hang> hang = look_for(1400ms, {at(Phase::waiting_for_peers, 0), at(Phase::computing, 1)});

  ASSERT_TRUE(hang.has_value());
  EXPECT_EQ(hang->member, 1);
  EXPECT_EQ(hang->what,
            "no progress for 1.4 s in phase computing at step 12; if this may take longer, set a longer hang_after");
}

TEST_F(HangDetectorTest, GrantsThreeTimesTheStepTimeAndAMargin) {
  train(20);

  EXPECT_FALSE(look_for(1300ms, {at(Phase::computing)}).has_value());
  EXPECT_TRUE(look_for(100ms, {at(Phase::computing)}).has_value());
}

TEST_F(HangDetectorTest, GrantsMoreTimeUntilTheFirstStepsOfTheRunAreTimed) {
  train(8);

  EXPECT_FALSE(look_for(59'900ms, {at(Phase::computing)}).has_value());
  EXPECT_TRUE(look_for(100ms, {at(Phase::computing)}).has_value());
}

TEST_F(HangDetectorTest, GrantsMoreTimeToTheFirstStepOfAProcess) {
  train(20);
  const std::vector<Heartbeat> heartbeats{{.member = 7, .phase = Phase::computing, .step = 20}};

  EXPECT_FALSE(look_for(59'900ms, heartbeats).has_value());
  EXPECT_TRUE(look_for(100ms, heartbeats).has_value());
}

TEST_F(HangDetectorTest, DoesNotTimeTheFirstStepOfAProcess) {
  train(20);
  look_for(100ms, {{.member = 7, .phase = Phase::computing}});
  look_for(100ms, {{.member = 7, .progress = 1, .phase = Phase::computing, .steps = 1, .step_time = 50s}});

  EXPECT_TRUE(look_for(1500ms, {at(Phase::computing)}).has_value());
}

TEST_F(HangDetectorTest, TimesShortStepsOfWhichItSawTheFirstOneTooLate) {
  Heartbeat heartbeat{.member = 0, .progress = 1, .phase = Phase::computing};
  ASSERT_FALSE(look_after(100ms, {heartbeat}).has_value());
  // The first one took 80 ms, and the others 2 ms each: 12 ms on average.
  heartbeat.progress = 9;
  heartbeat.step = 8;
  heartbeat.steps = 8;
  heartbeat.step_time = 96ms;

  EXPECT_FALSE(look_for(800ms, {heartbeat}).has_value());
  EXPECT_TRUE(look_for(100ms, {heartbeat}).has_value());
}

TEST_F(HangDetectorTest, TimesNoFirstStepsThatAreFew) {
  Heartbeat heartbeat{.member = 0, .progress = 1, .phase = Phase::computing};
  ASSERT_FALSE(look_after(100ms, {heartbeat}).has_value());
  heartbeat.progress = 8;
  heartbeat.step = 7;
  heartbeat.steps = 7;
  heartbeat.step_time = 94ms;

  EXPECT_FALSE(look_for(59'900ms, {heartbeat}).has_value());
  EXPECT_TRUE(look_for(100ms, {heartbeat}).has_value());
}

TEST_F(HangDetectorTest, GrantsWhatThePhaseNeeds) {
  train(20);
  for (const auto& [phase, limit] :
       {std::pair(Phase::starting, 120s), std::pair(Phase::evaluating, 30s), std::pair(Phase::saving, 30s),
        std::pair(Phase::callbacks, 600s), std::pair(Phase::reading_data, 30s), std::pair(Phase::regrouping, 60s)}) {
    Heartbeat heartbeat = at(phase);
    heartbeat.progress += static_cast<std::uint64_t>(phase);
    EXPECT_FALSE(look_for(limit - 100ms, {heartbeat}).has_value()) << to_string(phase);
    EXPECT_TRUE(look_for(100ms, {heartbeat}).has_value()) << to_string(phase);
  }
}

TEST_F(HangDetectorTest, StartsAgainWithEveryProgress) {
  for (std::uint64_t progress = 1; progress < 10; ++progress) {
    EXPECT_FALSE(look_for(29s, {{.progress = progress, .phase = Phase::saving}}).has_value());
  }
}

TEST_F(HangDetectorTest, ForgetsMembersThatAreNotAmongThePulses) {
  look_for(29s, {at(Phase::saving, 0), at(Phase::saving, 1)});
  look_for(100ms, {at(Phase::saving, 1)});

  const std::optional<Hang> hang = look_for(29s, {at(Phase::saving, 0)});

  EXPECT_FALSE(hang.has_value());
}

TEST_F(HangDetectorTest, NamesAStoppedReplicaEvenWhenItWaitsForPeers) {
  train(20);
  stopped_ = {1};

  const std::optional<Hang> hang = look_for(1400ms, {at(Phase::waiting_for_peers, 0), at(Phase::waiting_for_peers, 1)});

  ASSERT_TRUE(hang.has_value());
  EXPECT_EQ(hang->member, 1);
  EXPECT_THAT(hang->what, HasSubstr("stopped by a signal"));
}

TEST_F(HangDetectorTest, GrantsAStoppedReplicaNoAllowanceOfItsPhase) {
  train(20);
  stopped_ = {0};

  EXPECT_FALSE(look_for(1300ms, {at(Phase::saving)}).has_value());
  EXPECT_TRUE(look_for(100ms, {at(Phase::saving)}).has_value());
}

TEST_F(HangDetectorTest, ForgivesAShortStop) {
  train(20);
  look_for(10s, {at(Phase::saving)});
  stopped_ = {0};
  EXPECT_FALSE(look_for(1300ms, {at(Phase::saving)}).has_value());
  stopped_ = {};

  EXPECT_FALSE(look_for(10s, {at(Phase::saving)}).has_value());
}

TEST_F(HangDetectorTest, GrantsMoreTimeToAReplicaThatRuns) {
  train(20);
  running_ = {{0, 60}};

  EXPECT_FALSE(look_for(29'900ms, {at(Phase::computing)}).has_value());
  const std::optional<Hang> hang = look_for(100ms, {at(Phase::computing)});

  ASSERT_TRUE(hang.has_value());
  EXPECT_THAT(hang->what, HasSubstr("was running all the time"));
}

TEST_F(HangDetectorTest, GrantsARunningReplicaTenTimesTheLimitOfItsPhase) {
  running_ = {{0, 100}};

  EXPECT_FALSE(look_for(299'900ms, {at(Phase::evaluating)}).has_value());
  EXPECT_TRUE(look_for(100ms, {at(Phase::evaluating)}).has_value());
}

TEST_F(HangDetectorTest, DoesNotGrantMoreTimeToAReplicaThatRunsNowAndThen) {
  train(20);
  running_ = {{0, 40}};

  EXPECT_TRUE(look_for(1400ms, {at(Phase::computing)}).has_value());
}

TEST_F(HangDetectorTest, NoticesAReplicaThatFallsAsleepAfterItRan) {
  train(20);
  running_ = {{0, 100}};
  ASSERT_FALSE(look_for(10s, {at(Phase::computing)}).has_value());
  running_ = {};

  EXPECT_TRUE(look_for(1400ms, {at(Phase::computing)}).has_value());
}

TEST_F(HangDetectorTest, AsksNothingAboutReplicasThatMakeProgress) {
  int questions = 0;
  HangDetector detector({}, {.is_stopped = [&](int) { return ++questions > 0; },
                             .cpu_demand = [&](int) { return std::chrono::seconds(++questions); }});

  for (std::uint64_t progress = 0; progress < 100; ++progress) {
    now_ += 100ms;
    detector.look(std::vector<Heartbeat>{{.progress = progress / 2, .phase = Phase::computing}}, now_);
  }

  EXPECT_EQ(questions, 0);
}

TEST_F(HangDetectorTest, NamesTheReplicaThatHasComeLeastFarInACollective) {
  train(20);
  std::vector<Heartbeat> heartbeats{at(Phase::waiting_for_peers, 0), at(Phase::waiting_for_peers, 1),
                                    at(Phase::waiting_for_peers, 2)};
  heartbeats[0].arrivals = 9;
  heartbeats[1].arrivals = 8;
  heartbeats[2].arrivals = 9;

  EXPECT_FALSE(look_for(1300ms, heartbeats).has_value());
  const std::optional<Hang> hang = look_for(100ms, heartbeats);

  ASSERT_TRUE(hang.has_value());
  EXPECT_EQ(hang->member, 1);
  EXPECT_THAT(hang->what, HasSubstr("all replicas wait for each other"));
}

TEST_F(HangDetectorTest, DoesNotNameAReplicaWhosePeersArrivedAMomentAgo) {
  train(20);
  std::vector<Heartbeat> heartbeats{at(Phase::saving, 0), at(Phase::waiting_for_peers, 1)};
  heartbeats[1].arrivals = 1;
  look_for(20s, heartbeats);

  heartbeats[0] = at(Phase::waiting_for_peers, 0);
  heartbeats[0].arrivals = 2;
  ++heartbeats[0].progress;

  EXPECT_FALSE(look_after(100ms, heartbeats).has_value());
}

TEST_F(HangDetectorTest, NamesAnyReplicaWhenAllWaitEquallyFarForAMinute) {
  train(20);
  const std::vector<Heartbeat> heartbeats{at(Phase::waiting_for_peers, 0), at(Phase::waiting_for_peers, 1)};

  EXPECT_FALSE(look_for(59'900ms, heartbeats).has_value());
  EXPECT_TRUE(look_for(100ms, heartbeats).has_value());
}

TEST_F(HangDetectorTest, LetsPeersWaitForAReplicaThatMakesProgress) {
  for (std::uint64_t progress = 1; progress < 10; ++progress) {
    const std::vector<Heartbeat> heartbeats{{.member = 0, .phase = Phase::waiting_for_peers},
                                            {.member = 1, .progress = progress, .phase = Phase::saving}};
    EXPECT_FALSE(look_for(20s, heartbeats).has_value());
  }
}

// Its host may be cut off. Whether it is, is for others to say.
TEST_F(HangDetectorTest, CountsNoTimeInWhichNothingIsHeardOfAReplica) {
  train(20);
  std::vector<Heartbeat> heartbeats{at(Phase::waiting_for_peers, 0), at(Phase::computing, 1)};
  look_for(1300ms, heartbeats);

  heartbeats[1].is_current = false;
  const std::optional<Hang> while_silent = look_for(5min, heartbeats);
  heartbeats[1].is_current = true;
  const std::optional<Hang> when_heard_again = look_after(100ms, heartbeats);

  EXPECT_FALSE(while_silent.has_value());
  ASSERT_TRUE(when_heard_again.has_value());
  EXPECT_THAT(when_heard_again->what, HasSubstr("no progress for 1.4 s"));
}

TEST_F(HangDetectorTest, BlamesNobodyInACollectiveWhileNothingIsHeardOfAReplica) {
  train(20);
  std::vector<Heartbeat> heartbeats{at(Phase::waiting_for_peers, 0), at(Phase::waiting_for_peers, 1)};
  heartbeats[0].arrivals = 1;
  heartbeats[1].is_current = false;

  EXPECT_FALSE(look_for(5min, heartbeats).has_value());
}

// Peers of a lost host have waited for it until it was given up.
TEST_F(HangDetectorTest, GivesThoseThatWaitedTimeToLeaveTheirGeneration) {
  train(20);
  const std::vector<Heartbeat> survivor{at(Phase::waiting_for_peers, 0)};
  look_for(5s, {survivor[0], at(Phase::saving, 1)});

  detector_.excuse_waits();

  EXPECT_FALSE(look_for(1300ms, survivor).has_value());
  EXPECT_TRUE(look_for(100ms, survivor).has_value());
}

TEST_F(HangDetectorTest, ExcusesNobodyWhoDoesNotWait) {
  train(20);
  look_for(1300ms, {at(Phase::waiting_for_peers, 0), at(Phase::computing, 1)});

  detector_.excuse_waits();

  const std::optional<Hang> hang = look_after(100ms, {at(Phase::waiting_for_peers, 0), at(Phase::computing, 1)});
  ASSERT_TRUE(hang.has_value());
  EXPECT_EQ(hang->member, 1);
}

TEST_F(HangDetectorTest, NamesTheReplicaThatHasHungLongest) {
  look_for(10s, {{.member = 0, .progress = 1, .phase = Phase::saving}, {.member = 1, .phase = Phase::saving}});

  const std::optional<Hang> hang =
      look_for(30s, {{.member = 0, .progress = 2, .phase = Phase::saving}, {.member = 1, .phase = Phase::saving}});

  ASSERT_TRUE(hang.has_value());
  EXPECT_EQ(hang->member, 1);
}

TEST_F(HangDetectorTest, DoesNotCountTheTimeInWhichTheMachineSlept) {
  const std::vector<Heartbeat> heartbeats{at(Phase::saving)};
  look_for(29s, heartbeats);

  EXPECT_FALSE(look_after(8h, heartbeats).has_value());
}

TEST_F(HangDetectorTest, GrantsMoreTimeAfterALateLook) {
  train(20);
  look_after(1250ms, {at(Phase::callbacks)});  // one second late

  EXPECT_FALSE(look_for(1400ms, {at(Phase::computing)}).has_value());
  EXPECT_TRUE(look_for(1s, {at(Phase::computing)}).has_value());
}

TEST_F(HangDetectorTest, TrustsItsLimitsAgainSomeTimeAfterALateLook) {
  train(20);
  look_after(8h, {at(Phase::saving)});
  look_for(20s, {at(Phase::saving)});
  Heartbeat heartbeat = at(Phase::computing);
  ++heartbeat.progress;

  EXPECT_TRUE(look_for(1400ms, {heartbeat}).has_value());
}

// The progress of training does not show that the savepoint writer makes progress.
TEST_F(HangDetectorTest, NamesTheReplicaWhoseSavepointHangsWhileItTrains) {
  in_background_[1] = "fsync of the folder run";
  std::optional<Hang> hang;
  int looks = 0;
  for (std::uint64_t progress = 0; !hang && looks < 1000; ++looks) {
    running_ = {{0, 100}, {1, 100}};
    hang = look_after(
        100ms,
        {{.member = 0, .progress = ++progress, .phase = Phase::computing},
         {.member = 1, .progress = progress, .phase = Phase::computing, .step = 850, .background = {.number = 7}}});
  }

  ASSERT_TRUE(hang.has_value());
  EXPECT_EQ(looks, 301);  // the stall begins at the first look
  EXPECT_EQ(hang->member, 1);
  EXPECT_EQ(hang->what,
            "no progress for 30.0 s in the background, during fsync of the folder run, while it trains at step "
            "850; if this may take longer, set a longer hang_after");
}

TEST_F(HangDetectorTest, GrantsBackgroundWorkTheTimeOfItsBytesOnASlowDisk) {
  in_background_[0] = "fsync of run/savepoint";
  const Heartbeat heartbeat{
      .member = 0, .phase = Phase::waiting_for_peers, .background = {.number = 1, .bytes = std::uint64_t{400} << 20}};

  EXPECT_FALSE(look_for(129'900ms, {heartbeat, {.member = 1, .progress = 1, .phase = Phase::callbacks}}).has_value());
  const std::optional<Hang> hang =
      look_for(100ms, {heartbeat, {.member = 1, .progress = 1, .phase = Phase::callbacks}});

  ASSERT_TRUE(hang.has_value());
  EXPECT_EQ(hang->member, 0);
  EXPECT_THAT(hang->what, HasSubstr("fsync of run/savepoint (419430400 bytes)"));
}

TEST_F(HangDetectorTest, StartsAgainWithEachPieceOfBackgroundWork) {
  for (std::uint64_t number = 1; number < 10; ++number) {
    const Heartbeat heartbeat{.progress = number, .phase = Phase::callbacks, .background = {.number = number}};
    EXPECT_FALSE(look_for(29s, {heartbeat}).has_value());
  }
  EXPECT_FALSE(look_for(100s, {{.progress = 10, .phase = Phase::callbacks}}).has_value());
}

TEST_F(CallbackTimeoutTest, HoldsForCallbacksThoughOtherLimitsAreShort) {
  EXPECT_FALSE(look_for(299'900ms, {at(Phase::callbacks)}).has_value());
  const std::optional<Hang> hang = look_for(100ms, {at(Phase::callbacks)});

  ASSERT_TRUE(hang.has_value());
  EXPECT_THAT(hang->what, HasSubstr("set a longer callback_timeout"));
  EXPECT_TRUE(look_for(2s, {at(Phase::reading_data, 1)}).has_value());
}

TEST_F(CallbackTimeoutTest, HoldsForCallbacksInTheBackground) {
  in_background_[0] = "what is to happen once run/savepoint is durable";
  std::optional<Hang> hang;
  int looks = 0;
  for (std::uint64_t progress = 0; !hang && looks < 10'000; ++looks) {
    hang = look_after(
        100ms, {{.progress = ++progress, .phase = Phase::computing, .background = {.number = 1, .is_callback = true}}});
  }

  ASSERT_TRUE(hang.has_value());
  EXPECT_EQ(looks, 3001);  // the stall begins at the first look
  EXPECT_THAT(hang->what, HasSubstr("set a longer callback_timeout"));
}

// An endless loop in a callback would otherwise block all replicas for more than an hour and a half.
TEST_F(HangDetectorTest, GrantsARunningCallbackNoMoreThanASleepingOne) {
  running_ = {{0, 100}};

  EXPECT_FALSE(look_for(599'900ms, {at(Phase::callbacks)}).has_value());
  EXPECT_TRUE(look_for(100ms, {at(Phase::callbacks)}).has_value());
}

// The deadline of the waiting replicas is the last resort.
TEST(HangLimits, LetPeersWaitLongerThanAnyCallbackMayTake) {
  EXPECT_EQ(HangLimits{}.longest(), 10min);
  EXPECT_EQ((HangLimits{.starting = 3s, .hang_after = 2s}.longest()), 3s);
  EXPECT_EQ((HangLimits{.hang_after = 2s, .callback_timeout = 5min}.longest()), 5min);
  EXPECT_EQ((HangLimits{.hang_after = 1h, .callback_timeout = 5min}.longest()), 1h);
}

TEST(HangLimits, GrantHangAfterInPlaceOfAnyLimit) {
  EXPECT_EQ(HangLimits{}.granted(3s), 3s);
  EXPECT_EQ((HangLimits{.hang_after = 2s}.granted(3s)), 2s);
  EXPECT_EQ((HangLimits{.hang_after = 4s}.granted(3s)), 4s);
}

TEST_F(NamesOfTheCommandLineTest, AppearInTheSentences) {
  const auto advice_in = [&](Phase phase) {
    const std::optional<Hang> hang =
        look_for(11min, {{.progress = static_cast<std::uint64_t>(phase) + 1, .phase = phase}});
    return hang ? hang->what.substr(hang->what.rfind(' ') + 1) : "";
  };

  EXPECT_EQ(advice_in(Phase::starting), "--start-timeout");
  EXPECT_EQ(advice_in(Phase::callbacks), "--callback-timeout");
  EXPECT_EQ(advice_in(Phase::saving), "--hang-after");
}

// A long `hang_after` used to make no difference, since it could only shorten limits.
TEST_F(PatientHangDetectorTest, GrantsEveryPhaseExceptTheStartTheUsersLimit) {
  train(20);

  for (const Phase phase :
       {Phase::computing, Phase::evaluating, Phase::saving, Phase::callbacks, Phase::finishing, Phase::regrouping}) {
    SCOPED_TRACE(to_string(phase));
    Heartbeat heartbeat = at(phase);
    heartbeat.progress += static_cast<std::uint64_t>(phase);

    EXPECT_FALSE(look_for(299'900ms, {heartbeat}).has_value());
    EXPECT_TRUE(look_for(100ms, {heartbeat}).has_value());
  }
}

TEST_F(PatientHangDetectorTest, GrantsAStoppedReplicaNoMore) {
  train(20);
  stopped_ = {0};

  EXPECT_FALSE(look_for(1300ms, {at(Phase::callbacks)}).has_value());
  EXPECT_TRUE(look_for(200ms, {at(Phase::callbacks)}).has_value());
}

TEST_F(CappedHangDetectorTest, GrantsOnlyTheStartMoreThanTheUsersLimit) {
  EXPECT_FALSE(look_for(9900ms, {at(Phase::computing)}).has_value());
  EXPECT_TRUE(look_for(100ms, {at(Phase::computing)}).has_value());
  EXPECT_FALSE(look_for(119s, {{.progress = 1, .phase = Phase::starting}}).has_value());
}

// The time that a library needs to release a device is not a matter of the user's steps.
TEST_F(CappedHangDetectorTest, GrantsRegroupingNoLessThanItsOwnLimit) {
  train(20);
  running_ = {{0, 100}};

  EXPECT_FALSE(look_for(59'900ms, {at(Phase::regrouping)}).has_value());
  EXPECT_TRUE(look_for(100ms, {at(Phase::regrouping)}).has_value());
}

TEST_F(CappedHangDetectorTest, GrantsARunningReplicaTheUsersLimit) {
  train(20);
  running_ = {{0, 100}};

  EXPECT_FALSE(look_for(9900ms, {at(Phase::computing)}).has_value());
  EXPECT_TRUE(look_for(100ms, {at(Phase::computing)}).has_value());
}

TEST_F(CappedHangDetectorTest, LetsAllWaitForEachOtherTwiceAsLong) {
  const std::vector<Heartbeat> heartbeats{at(Phase::waiting_for_peers, 0), at(Phase::waiting_for_peers, 1)};

  EXPECT_FALSE(look_for(19'900ms, heartbeats).has_value());
  EXPECT_TRUE(look_for(100ms, heartbeats).has_value());
}

TEST_F(HangDetectorTest, ReturnsNothingWithoutReplicas) {
  EXPECT_FALSE(look_for(100s, {}).has_value());
}

// Survivors compute the shards of lost replicas, too.
TEST_F(HangDetectorTest, GrantsAStepMoreTimeForMoreRounds) {
  train(20);
  const Heartbeat heartbeat{
      .member = 0, .progress = 20, .phase = Phase::computing, .step = 20, .steps = 20, .step_time = 4s};
  Heartbeat of_four = heartbeat;
  of_four.rounds = 4;

  EXPECT_FALSE(look_for(3s, {of_four}).has_value());
  EXPECT_TRUE(look_for(1s, {of_four}).has_value());
}

// The survivor waits for the newcomer inside NCCL, where its wait cannot be seen.
TEST_F(HangDetectorTest, NamesTheNewcomerAndNotTheSurvivorThatConnectsWithIt) {
  train(20);
  const std::vector<Heartbeat> heartbeats{at(Phase::regrouping, 0),
                                          {.member = 1, .phase = Phase::starting, .is_joining = true}};

  const std::optional<Hang> hang = look_for(200s, heartbeats);

  ASSERT_TRUE(hang.has_value());
  EXPECT_EQ(hang->member, 1);
}

}  // namespace
}  // namespace holdfast::recovery
