// The thread with tasks that hang, as in a file system that does not answer.

#include "journal/folder_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "support/comes_true.h"
#include "support/gate.h"

namespace holdfast::recovery {
namespace {

using testing::ElementsAre;

constexpr std::chrono::seconds kLongEnough(60);

Deadline surely() {
  return Deadline::after(kLongEnough);
}

TEST(FolderThread, DoesAllTasksInTheirOrder) {
  FolderThread thread;
  std::vector<int> done;

  for (int task = 0; task < 3; ++task) thread.add([&done, task] { done.push_back(task); }, 10);
  const bool are_all_done = thread.wait(surely());

  EXPECT_TRUE(are_all_done);
  EXPECT_THAT(done, ElementsAre(0, 1, 2));
  EXPECT_EQ(thread.bytes(), 0U);
}

TEST(FolderThread, WaitsForNoTaskThatHangs) {
  FolderThread thread;
  const auto gate = std::make_shared<Gate>();

  thread.add([gate] { gate->pass(); }, 10);
  thread.add([] {}, 5);

  EXPECT_FALSE(thread.wait(Deadline::after(std::chrono::milliseconds(1))));
  EXPECT_EQ(thread.bytes(), 15U);
  gate->open();
  EXPECT_TRUE(thread.wait(surely()));
}

// A crash in a task ended the watchdog without its crash handler.
TEST(FolderThread, LeavesSignalsToOthersUnlessATaskHasFailed) {
  FolderThread thread;
  sigset_t blocked;

  thread.add([&] { ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked); }, 0);
  ASSERT_TRUE(thread.wait(surely()));

  EXPECT_EQ(::sigismember(&blocked, SIGTERM), 1);
  EXPECT_EQ(::sigismember(&blocked, SIGSEGV), 0);
  EXPECT_EQ(::sigismember(&blocked, SIGABRT), 0);
}

// The task that has begun uses what it owns, long after the end of its thread's owner.
TEST(FolderThread, DropsWhatHasNotBegunWhenItsOwnerGoes) {
  const auto gate = std::make_shared<Gate>();
  const auto text = std::make_shared<std::atomic<int>>(1);
  const auto never_used = std::make_shared<std::atomic<int>>(0);
  {
    FolderThread thread;
    thread.add([gate, text] { gate->pass(), ++*text; }, 0);
    thread.add([never_used] { ++*never_used; }, 0);
    gate->wait_for_arrival();
  }

  gate->open();

  EXPECT_TRUE(comes_true([&] { return text.use_count() == 1 && never_used.use_count() == 1; }));
  EXPECT_EQ(*text, 2);
  EXPECT_EQ(*never_used, 0);
}

}  // namespace
}  // namespace holdfast::recovery
