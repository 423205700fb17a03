// The life page through two mappings, and the deaths of real processes that hold it.

#include "detect/life_page.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <future>
#include <thread>

#include "support/comes_true.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;

// The time in the phase, until the worker last left it.
std::chrono::nanoseconds time_in(const LifePage& page, Phase phase) {
  return std::chrono::nanoseconds(page.nanoseconds_in[static_cast<std::size_t>(phase)]);
}

TEST(LifePage, StartsBeforeItsFirstStep) {
  SharedMemory memory = SharedMemory::create("life", LifePage::kBytes);
  LifePage::make(memory);

  const LifePage& page = LifePage::find(memory);

  EXPECT_EQ(page.phase.load(), Phase::starting);
  EXPECT_EQ(page.step.load(), -1);
  EXPECT_EQ(page.progress.load(), 0U);
}

TEST(LifePage, ShowsProgressThroughAnotherMapping) {
  SharedMemory watchdogs = SharedMemory::create("life", LifePage::kBytes);
  const LifePage& seen = LifePage::make(watchdogs);
  SharedMemory workers = SharedMemory::map_writable(FileDescriptor(::dup(watchdogs.descriptor())), LifePage::kBytes);
  LifePage& page = LifePage::find(workers);

  page.enter(Phase::saving, 12);
  page.beat();

  EXPECT_EQ(seen.phase.load(), Phase::saving);
  EXPECT_EQ(seen.step.load(), 12);
  EXPECT_EQ(seen.progress.load(), 2U);
}

TEST(LifePage, ShowsBackgroundWork) {
  SharedMemory memory = SharedMemory::create("life", LifePage::kBytes);
  LifePage& page = LifePage::make(memory);
  EXPECT_EQ(page.in_background().number, 0U);

  page.enter_background({.number = 7, .bytes = 4096, .is_callback = true}, "fsync of run/savepoint");

  EXPECT_EQ(page.in_background().number, 7U);
  EXPECT_EQ(page.in_background().bytes, 4096U);
  EXPECT_TRUE(page.in_background().is_callback);
  EXPECT_EQ(page.what_in_background(), "fsync of run/savepoint");
  page.enter_background({.number = 8}, std::string(5000, 'x'));
  EXPECT_EQ(page.what_in_background(), std::string(page.background_what.size() - 1, 'x'));
  page.enter_background({}, "");
  EXPECT_EQ(page.in_background().number, 0U);
}

TEST(LifePage, CountsStepsThatEndOutOfAPhaseOfAStep) {
  SharedMemory memory = SharedMemory::create("life", LifePage::kBytes);
  LifePage& page = LifePage::make(memory);

  page.enter(Phase::computing, 1200);  // a resumed run begins here, so no step ended
  EXPECT_EQ(page.steps.load(), 0U);
  page.enter(Phase::waiting_for_peers, 1200);
  page.enter(Phase::updating, 1200);
  page.enter(Phase::callbacks, 1201);
  EXPECT_EQ(page.steps.load(), 1U);
  page.enter(Phase::computing, 1201);
  page.enter(Phase::computing, 1202);
  EXPECT_EQ(page.steps.load(), 2U);
  page.enter(Phase::computing, 1201);  // again, after a failure

  EXPECT_EQ(page.steps.load(), 2U);
}

TEST(LifePage, CountsTheTimeOfEachPhaseWhenItEnds) {
  SharedMemory memory = SharedMemory::create("life", LifePage::kBytes);
  const auto before = std::chrono::steady_clock::now();
  LifePage& page = LifePage::make(memory);
  page.enter(Phase::computing, 0);
  EXPECT_EQ(time_in(page, Phase::computing), 0ns);
  while (time_in(page, Phase::computing) < 2ms) page.enter(Phase::computing, 0);
  page.enter(Phase::waiting_for_peers, 0);

  const std::chrono::nanoseconds sum = time_in(page, Phase::starting) + time_in(page, Phase::computing);

  EXPECT_LE(sum, std::chrono::steady_clock::now() - before);
  EXPECT_EQ(time_in(page, Phase::waiting_for_peers), 0ns);
}

TEST(LifePage, CountsTheTimeOfStepsWhenTheyEnd) {
  SharedMemory memory = SharedMemory::create("life", LifePage::kBytes);
  LifePage& page = LifePage::make(memory);
  page.enter(Phase::computing, 0);
  while (time_in(page, Phase::computing) < 2ms) page.enter(Phase::computing, 0);
  page.enter(Phase::updating, 0);
  EXPECT_EQ(page.time_in_steps(Phase::computing), 0ns);

  page.enter(Phase::callbacks, 1);
  const std::chrono::nanoseconds of_the_step = time_in(page, Phase::computing);
  page.enter(Phase::computing, 1);
  page.enter(Phase::waiting_for_peers, 1);

  EXPECT_EQ(page.time_in_steps(Phase::computing), of_the_step);
}

TEST(DeathWatch, NoticesTheDeathOfAProcess) {
  SharedMemory memory = SharedMemory::create("life", LifePage::kBytes);
  LifePage& page = LifePage::make(memory);
  int ready[2] = {-1, -1};
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    page.hold();
    [[maybe_unused]] const ssize_t written = ::write(ready[1], "x", 1);
    while (true) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  std::promise<void> death;

  {
    const DeathWatch watch(page, [&death] { death.set_value(); });
    ::kill(pid, SIGKILL);

    EXPECT_EQ(death.get_future().wait_for(kPatience), std::future_status::ready);
  }
  ::waitpid(pid, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

// Holds the page in a thread of this process until let_go() is called.
class PageHolder {
 public:
  explicit PageHolder(LifePage& page)
      : thread_([this, &page] {
          page.hold();
          holds_.set_value();
          release_.get_future().wait();
          page.let_go();
        }) {
    holds_.get_future().wait();
  }
  void let_go() {
    release_.set_value();
    thread_.join();
  }

 private:
  std::promise<void> holds_;
  std::promise<void> release_;
  std::thread thread_;
};

TEST(DeathWatch, DoesNotTakeAnOrderlyLeaveForADeath) {
  SharedMemory memory = SharedMemory::create("life", LifePage::kBytes);
  LifePage& page = LifePage::make(memory);
  PageHolder holder(page);
  bool has_died = false;

  {
    const DeathWatch watch(page, [&has_died] { has_died = true; });
    holder.let_go();
  }

  EXPECT_FALSE(has_died);
}

TEST(DeathWatch, EndsWhileTheHolderLives) {
  SharedMemory memory = SharedMemory::create("life", LifePage::kBytes);
  LifePage& page = LifePage::make(memory);
  PageHolder holder(page);
  bool has_died = false;

  {
    const DeathWatch watch(page, [&has_died] { has_died = true; });
  }

  EXPECT_FALSE(has_died);
  holder.let_go();
}

}  // namespace
}  // namespace holdfast::recovery
