// A real sweeping process, and shells whose children leave their group and session.

#include "process/sweeper.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "channel/descriptors.h"
#include "process/process.h"
#include "support/comes_true.h"

namespace holdfast::recovery {
namespace {

// Processes that hold a pipe open, and that have reported once that they run.
class PipeHolder {
 public:
  PipeHolder(const Sweeper& sweeper, int member, const std::string& script) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    pipe_ = FileDescriptor(ends[0]);
    const FileDescriptor writing(ends[1]);
    shell_.emplace(Process::spawn({.executable = "/bin/sh",
                                   .arguments = {"sh", "-c", script, std::to_string(ends[1])},
                                   .variables = {sweeper.variable_of(member)},
                                   .inherited = {ends[1]}},
                                  Deadline::after(kPatience)));
    char byte = 0;
    EXPECT_TRUE(wait_for_descriptor(pipe_.value(), POLLIN, Deadline::after(kPatience)));
    EXPECT_EQ(::read(pipe_.value(), &byte, 1), 1);
  }

  // Leaves the processes that it has started in other sessions.
  void end_shell() { shell_.reset(); }

  // All processes that held the pipe.
  bool are_gone_by(Deadline deadline) const { return wait_for_descriptor(pipe_.value(), POLLIN, deadline); }
  bool is_there() const { return !are_gone_by(Deadline::after({})); }

 private:
  FileDescriptor pipe_;
  std::optional<Process> shell_;
};

// A process that leaves its group and its session, so that no other process's end ends it.
const std::string kDaemon = "setsid sh -c 'echo > /dev/fd/$0; trap : TERM HUP; while :; do sleep 0.1; done' $0 & wait";

class Sweeping : public testing::Test {
 protected:
  Sweeping() : lock_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {
    sweeper_ = std::make_unique<Sweeper>(io_, lock_.value(), [this] { is_lost_ = true; });
  }

  // Blocks until `what` holds something.
  void run_until(const std::optional<int>& what) {
    const Deadline deadline = Deadline::after(kPatience);
    io_.restart();
    while (!what && !deadline.has_passed()) io_.run_one_for(std::chrono::milliseconds(100));
    ASSERT_TRUE(what.has_value()) << "there was no answer";
  }

  static Sweeper::WhenGone note_in(std::optional<int>& ended) {
    return [&ended](int count) { ended = count; };
  }

  boost::asio::io_context io_;
  const FileDescriptor lock_;
  bool is_lost_ = false;
  std::unique_ptr<Sweeper> sweeper_;
};

TEST_F(Sweeping, EndsOnlyTheProcessesThatAMemberHasLeft) {
  PipeHolder mine(*sweeper_, 1, kDaemon);
  const PipeHolder other(*sweeper_, 11, kDaemon);
  mine.end_shell();
  ASSERT_TRUE(mine.is_there());
  std::optional<int> ended;

  sweeper_->end(1, note_in(ended));

  run_until(ended);
  EXPECT_GE(*ended, 1);
  EXPECT_TRUE(mine.are_gone_by(Deadline::after(kPatience)));
  EXPECT_TRUE(other.is_there());
}

TEST_F(Sweeping, ReportsThatNothingWasLeft) {
  std::optional<int> ended;

  sweeper_->end(1, note_in(ended));

  run_until(ended);
  EXPECT_EQ(ended, 0);
}

TEST_F(Sweeping, AwaitsTheEndOfProcessesThatItMustNotKill) {
  PipeHolder holder(*sweeper_, 1,
                    "setsid sh -c 'echo > /dev/fd/$0; trap exit TERM; while :; do sleep 0.1; done' $0 & wait");
  std::optional<int> ended_of_another;
  std::optional<int> ended;
  sweeper_->await(1, note_in(ended));
  sweeper_->end(2, note_in(ended_of_another));
  run_until(ended_of_another);
  EXPECT_FALSE(ended.has_value());
  EXPECT_TRUE(holder.is_there());

  sweeper_->end(1, note_in(ended));

  run_until(ended);
  EXPECT_GE(*ended, 1);
  EXPECT_TRUE(holder.are_gone_by(Deadline::after(kPatience)));
}

TEST_F(Sweeping, EndsAllProcessesWhenItIsDestroyed) {
  PipeHolder first(*sweeper_, 1, kDaemon);
  PipeHolder second(*sweeper_, 2, kDaemon);
  first.end_shell();
  second.end_shell();

  sweeper_.reset();

  EXPECT_TRUE(first.are_gone_by(Deadline::after(kPatience)));
  EXPECT_TRUE(second.are_gone_by(Deadline::after(kPatience)));
}

TEST_F(Sweeping, AnswersEvenWhenItsProcessIsLost) {
  ::kill(sweeper_->pid(), SIGKILL);
  std::optional<int> ended;

  sweeper_->end(1, note_in(ended));

  run_until(ended);
  EXPECT_EQ(ended, 0);
  EXPECT_TRUE(is_lost_);
  ended.reset();
  sweeper_->await(2, note_in(ended));
  run_until(ended);
  EXPECT_EQ(ended, 0);
}

TEST_F(Sweeping, KeepsOnlyTheLockOpen) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  int lock[2] = {-1, -1};
  ASSERT_EQ(::pipe2(lock, O_CLOEXEC), 0);
  const FileDescriptor lock_reading(lock[0]);
  FileDescriptor lock_writing(lock[1]);
  boost::asio::io_context io;
  std::optional<Sweeper> sweeper;
  sweeper.emplace(io, lock[1], [] {});

  writing.reset();
  lock_writing.reset();

  EXPECT_TRUE(wait_for_descriptor(reading.value(), POLLIN, Deadline::after(kPatience)));
  EXPECT_FALSE(wait_for_descriptor(lock_reading.value(), POLLIN, Deadline::after({})));
  sweeper.reset();
  EXPECT_TRUE(wait_for_descriptor(lock_reading.value(), POLLIN, Deadline::after(kPatience)));
}

}  // namespace
}  // namespace holdfast::recovery
