// Two ends in virtual time, with a network that delays and cuts. No clock is read.

#include "hosts/beats.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

using std::chrono::milliseconds;

BootTime at(int ms) {
  return milliseconds(ms);
}

bool is_refused(Beats& beats, const Beat& beat) {
  try {
    beats.take(beat, at(0));
  } catch (const Error& error) {
    return error.code() == ErrorCode::input_output;
  }
  return false;
}

TEST(Beats, CountFromWhenTheAcknowledgedBeatWasSent) {
  Beats agent(at(0));
  Beats head(at(0));

  head.take(agent.next(at(100)), at(900));  // slowly
  agent.take(head.next(at(1000)), at(1700));

  EXPECT_EQ(agent.acknowledged(), at(100));
  EXPECT_EQ(agent.heard(), at(1700));
  EXPECT_EQ(head.heard(), at(900));
  EXPECT_EQ(head.acknowledged(), at(0));
}

TEST(Beats, DoNotCountWhenOnlyOneDirectionWorks) {
  Beats agent(at(0));
  Beats head(at(0));

  for (int ms = 100; ms <= 5000; ms += 100) {
    static_cast<void>(agent.next(at(ms)));  // is lost
    agent.take(head.next(at(ms)), at(ms));  // arrives
  }

  EXPECT_EQ(agent.acknowledged(), at(0));
  EXPECT_EQ(agent.heard(), at(5000));
}

TEST(Beats, CountTheNewestThatWasAcknowledged) {
  Beats agent(at(0));
  Beats head(at(0));
  std::vector<Beat> sent;
  for (int ms = 1; ms <= 5; ++ms) sent.push_back(agent.next(at(ms)));

  head.take(sent[1], at(10));
  head.take(sent[3], at(11));
  agent.take(head.next(at(12)), at(13));

  EXPECT_EQ(agent.acknowledged(), at(4));
}

TEST(Beats, RefuseWhatCannotHaveBeenSent) {
  Beats agent(at(0));
  static_cast<void>(agent.next(at(1)));
  agent.take({.number = 5, .heard = 1}, at(2));

  EXPECT_TRUE(is_refused(agent, {.number = 5, .heard = 1}));
  EXPECT_TRUE(is_refused(agent, {.number = 4, .heard = 1}));
  EXPECT_TRUE(is_refused(agent, {.number = 6, .heard = 2}));
  EXPECT_FALSE(is_refused(agent, {.number = 6, .heard = 0}));
}

TEST(Beats, ForgetTheOldestThatNobodyAcknowledges) {
  Beats agent(at(0));
  for (int ms = 1; ms <= 5000; ++ms) static_cast<void>(agent.next(at(ms)));

  agent.take({.number = 1, .heard = 10}, at(5000));
  EXPECT_EQ(agent.acknowledged(), at(0));
  agent.take({.number = 2, .heard = 5000}, at(5000));

  EXPECT_EQ(agent.acknowledged(), at(5000));
}

// The agent may have learned of an acknowledgement at the last moment, and its clock may be slow by a tenth.
TEST(HostTimes, EndTheFenceBeforeTheHostIsGivenUp) {
  const HostTimes times;

  EXPECT_NO_THROW(check_times(times));
  EXPECT_EQ(times.until_fenced(), milliseconds(4400));
  EXPECT_LE(times.until_fenced(), times.host);
}

TEST(HostTimes, AreRefusedWhenAHostCouldGoOnAfterItWasGivenUp) {
  const auto is_wrong = [](const HostTimes& times) {
    try {
      check_times(times);
    } catch (const Error& error) {
      return error.code() == ErrorCode::invalid_argument;
    }
    return false;
  };

  EXPECT_TRUE(is_wrong({.host = milliseconds(4399)}));
  EXPECT_FALSE(is_wrong({.host = milliseconds(4400)}));
  EXPECT_TRUE(is_wrong({.beat = milliseconds(800)}));
  EXPECT_TRUE(is_wrong({.beat = milliseconds(0)}));
  EXPECT_TRUE(is_wrong({.stop = milliseconds(0)}));
  EXPECT_FALSE(is_wrong(
      {.beat = milliseconds(50), .fence = milliseconds(500), .stop = milliseconds(200), .host = milliseconds(1000)}));
}

TEST(BootTime, GoesOn) {
  const BootTime before = boot_time_now();

  EXPECT_GT(before, BootTime{});
  EXPECT_GE(boot_time_now(), before);
}

}  // namespace
}  // namespace holdfast::recovery
