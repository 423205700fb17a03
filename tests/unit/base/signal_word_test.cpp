// A lost wake-up is a hang, so every wait has a deadline that is far longer than the test takes.

#include "holdfast/base/signal_word.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "holdfast/base/shared_memory.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using Outcome = SignalWord::Outcome;

// Longer than any wait here takes, unless a wake-up is lost.
Deadline generous() {
  return Deadline::after(60s);
}

// A word whose count is already `count`. Counting up to it would take minutes.
void set_count(SignalWord& word, std::uint32_t count) {
  const std::uint32_t value = count << 1;
  std::memcpy(static_cast<void*>(&word), &value, sizeof value);
}

TEST(SignalWord, IsNewWhenAllItsBytesAreZero) {
  const SignalWord word;

  EXPECT_EQ(word.count(), 0U);
  EXPECT_FALSE(word.is_cancelled());
  EXPECT_EQ(word.wait_until(0, generous()), Outcome::reached);
}

TEST(SignalWord, IsReachedByAnyHigherCount) {
  SignalWord word;
  for (int i = 0; i < 3; ++i) word.count_up();

  EXPECT_EQ(word.count(), 3U);
  EXPECT_EQ(word.wait_until(2, generous()), Outcome::reached);
  EXPECT_EQ(word.wait_until(3, generous()), Outcome::reached);
}

TEST(SignalWord, GivesUpAtTheDeadline) {
  const SignalWord word;

  EXPECT_EQ(word.wait_until(1, Deadline::after(1ms)), Outcome::deadline_passed);
  EXPECT_EQ(word.wait_until(1, Deadline::at(Deadline::Clock::now() - 1s)), Outcome::deadline_passed);
}

TEST(SignalWord, IsReachedEvenAfterTheDeadline) {
  SignalWord word;
  word.count_up();

  EXPECT_EQ(word.wait_until(1, Deadline::at(Deadline::Clock::now() - 1s)), Outcome::reached);
}

TEST(SignalWord, EndsLaterWaitsOnceCancelledEvenForACountThatWasReached) {
  SignalWord word;
  word.count_up();

  word.cancel();

  EXPECT_TRUE(word.is_cancelled());
  EXPECT_EQ(word.count(), 1U);
  EXPECT_EQ(word.wait_until(1, generous()), Outcome::cancelled);
}

TEST(SignalWord, StaysCancelledWhenCounted) {
  SignalWord word;
  word.cancel();
  word.count_up();

  EXPECT_TRUE(word.is_cancelled());
  EXPECT_EQ(word.count(), 1U);
}

TEST(SignalWord, WakesSleepersWhenCancelled) {
  SignalWord word;
  std::vector<Outcome> outcomes(3, Outcome::reached);
  std::vector<std::thread> sleepers;
  for (Outcome& outcome : outcomes) {
    sleepers.emplace_back([&word, &outcome] { outcome = word.wait_until(1, generous()); });
  }

  word.cancel();
  for (std::thread& sleeper : sleepers) sleeper.join();

  EXPECT_EQ(outcomes, std::vector<Outcome>(3, Outcome::cancelled));
}

TEST(SignalWord, ComparesAcrossTheWrapAround) {
  constexpr std::uint32_t kLast = 0x7FFF'FFFF;  // 31 bits
  SignalWord word;
  set_count(word, kLast - 1);

  EXPECT_EQ(word.wait_until(kLast - 1, generous()), Outcome::reached);
  EXPECT_EQ(word.wait_until(kLast, Deadline::after(0s)), Outcome::deadline_passed);
  EXPECT_EQ(word.wait_until(kLast + 1, Deadline::after(0s)), Outcome::deadline_passed);

  word.count_up();
  word.count_up();

  EXPECT_EQ(word.count(), 0U);
  EXPECT_FALSE(word.is_cancelled());
  EXPECT_EQ(word.wait_until(kLast, generous()), Outcome::reached);
  EXPECT_EQ(word.wait_until(kLast + 1, generous()), Outcome::reached);
  EXPECT_EQ(word.wait_until(0, generous()), Outcome::reached);
  EXPECT_EQ(word.wait_until(1, Deadline::after(0s)), Outcome::deadline_passed);
}

TEST(SignalWord, MakesWhatWasWrittenBeforeTheCountVisibleToAWaiter) {
  constexpr std::uint32_t kRounds = 2000;
  SignalWord ping;
  SignalWord pong;
  std::uint32_t message = 0;  // plain memory: only the words order the accesses
  std::uint32_t mismatches = 0;

  std::jthread peer([&] {
    for (std::uint32_t round = 1; round <= kRounds; ++round) {
      if (ping.wait_until(round, generous()) != Outcome::reached) return;
      if (message != round) ++mismatches;
      pong.count_up();
    }
  });
  for (std::uint32_t round = 1; round <= kRounds; ++round) {
    message = round;
    ping.count_up();
    ASSERT_EQ(pong.wait_until(round, generous()), Outcome::reached);
  }
  peer.join();

  EXPECT_EQ(mismatches, 0U);
}

TEST(SignalWord, WakesAnotherProcessThatMapsItReadOnly) {
  SharedMemory memory = SharedMemory::create("words", 2 * sizeof(SignalWord));
  const SharedMemory view = SharedMemory::map_read_only(memory.read_only_descriptor(), memory.size_bytes());
  auto* words = new (memory.writable().data()) SignalWord[2];
  const auto* read_only = reinterpret_cast<const SignalWord*>(view.readable().data());

  const pid_t child = ::fork();
  if (child == 0) {
    // Only calls that are safe after fork(): no test macros, no return.
    const bool is_reached = read_only[0].wait_until(1, generous()) == Outcome::reached;
    words[1].count_up();
    const bool is_cancelled = read_only[0].wait_until(2, generous()) == Outcome::cancelled;
    ::_exit(is_reached && is_cancelled ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  words[0].count_up();
  EXPECT_EQ(words[1].wait_until(1, generous()), Outcome::reached);
  words[0].cancel();
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);

  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace holdfast
