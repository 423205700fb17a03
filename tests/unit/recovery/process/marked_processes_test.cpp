// The format of marks, and shells with real children in sessions of their own.

#include "process/marked_processes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>

#include "channel/descriptors.h"
#include "process/process.h"
#include "support/comes_true.h"

namespace holdfast::recovery {
namespace {

const char* const kName = "HOLDFAST_DESCENDANT_OF";

std::string environment(const std::string& marks) {
  return std::string("A=b\0", 4) + kName + "=" + marks + std::string("\0C=d\0", 5);
}

TEST(MarkedMember, IsThatOfTheRun) {
  EXPECT_EQ(marked_member(environment("7.99.12"), "7.99."), 12);
  EXPECT_EQ(marked_member(std::string(kName) + "=7.99.0", "7.99."), 0);
}

TEST(MarkedMember, IgnoresMarksOfAnotherRun) {
  EXPECT_EQ(marked_member(environment("8.99.12"), "7.99."), std::nullopt);
  EXPECT_EQ(marked_member(environment("17.99.12"), "7.99."), std::nullopt);
  EXPECT_EQ(marked_member("", "7.99."), std::nullopt);
}

TEST(MarkedMember, IgnoresSimilarNamesAndValues) {
  EXPECT_EQ(marked_member(std::string("NO_") + kName + "=7.99.1", "7.99."), std::nullopt);
  EXPECT_EQ(marked_member("OTHER=7.99.1", "7.99."), std::nullopt);
  EXPECT_EQ(marked_member(environment("7.99."), "7.99."), std::nullopt);
  EXPECT_EQ(marked_member(environment("7.99.1x"), "7.99."), std::nullopt);
  EXPECT_EQ(marked_member(environment("7.99.-1"), "7.99."), std::nullopt);
}

TEST(MarkedMember, IsFoundInARunWithinARun) {
  const std::string marks = environment("7.99.12/8.5.3");

  EXPECT_EQ(marked_member(marks, "7.99."), 12);
  EXPECT_EQ(marked_member(marks, "8.5."), 3);
}

TEST(Marks, DifferFromRunToRun) {
  EXPECT_NE(Marks::create().run(), Marks::create().run());
}

TEST(Marks, AreAddedToThoseOfAnEnclosingRun) {
  ::setenv(kName, "7.99.12", 1);
  const Marks marks = Marks::create();
  const std::string variable = marks.variable_of(3);
  ::unsetenv(kName);

  EXPECT_EQ(marked_member(variable, marks.run()), 3);
  EXPECT_EQ(marked_member(variable, "7.99."), 12);
  EXPECT_EQ(marked_member(marks.variable_of(4), marks.run()), 4);
  EXPECT_EQ(marked_member(marks.variable_of(4), "7.99."), std::nullopt);
}

// Each reports when it runs.
class Shells : public testing::Test {
 protected:
  Process start(int member, const std::string& script) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const FileDescriptor reading(ends[0]);
    const FileDescriptor writing(ends[1]);
    Process process = Process::spawn({.executable = "/bin/sh",
                                      .arguments = {"sh", "-c", script, std::to_string(ends[1])},
                                      .variables = {marks_.variable_of(member)},
                                      .inherited = {ends[1]}},
                                     Deadline::after(kPatience));
    EXPECT_TRUE(wait_for_descriptor(reading.value(), POLLIN, Deadline::after(kPatience)));
    return process;
  }

  static std::multiset<int> members(const Marks& marks) {
    MarkedProcesses processes(marks.run());
    std::multiset<int> members;
    while (const std::optional<MarkedProcess> marked = processes.next()) members.insert(marked->member);
    return members;
  }

  // A process that a shell has started in a session of its own outlives the shell. A look may miss one that is started
  // meanwhile, which would hold the output of this program open.
  void TearDown() override {
    while (!members(marks_).empty()) {
      MarkedProcesses processes(marks_.run());
      while (const std::optional<MarkedProcess> marked = processes.next()) {
        ::syscall(SYS_pidfd_send_signal, marked->process.value(), SIGKILL, nullptr, 0);
      }
    }
  }

  const Marks marks_ = Marks::create();
};

TEST_F(Shells, AreFoundWithTheirChildrenInOtherSessionsToo) {
  const Process first = start(1, "sleep 1000 & echo > /dev/fd/$0; wait");
  const Process second = start(2, "setsid sh -c \"sleep 1000 & echo > /dev/fd/$0; wait\" & wait");

  const std::multiset<int> found = members(marks_);

  EXPECT_EQ(found.count(1), 2U);
  EXPECT_GE(found.count(2), 2U);
  EXPECT_EQ(members(Marks::create()), std::multiset<int>{});
}

// For a moment of each exec, /proc has an environment of no bytes: seen by 58 of 2,000 looks.
TEST_F(Shells, AreFoundWhileTheyExec) {
  const std::string again = "exec sh -c \"$1\" $0 \"$1\"";
  const Process process = start(1, "echo > /dev/fd/$0; again='" + again + "'; exec sh -c \"$again\" $0 \"$again\"");

  int times = 0;
  for (int i = 0; i < 500; ++i) times += members(marks_) == std::multiset<int>{1} ? 1 : 0;

  EXPECT_EQ(times, 500);
}

TEST_F(Shells, AreNotFoundAfterTheirEnd) {
  Process process = start(1, "echo > /dev/fd/$0; exec sleep 1000");
  ASSERT_EQ(members(marks_), std::multiset<int>{1});

  process.kill_group();
  ASSERT_TRUE(wait_for_descriptor(process.descriptor(), POLLIN, Deadline::after(kPatience)));

  EXPECT_EQ(members(marks_), std::multiset<int>{}) << "before it is reaped";
}

TEST_F(Shells, AreFoundWithAVeryLargeEnvironment) {
  const Process process = start(1,
                                "export LARGE=$(head -c 100000 /dev/zero | tr '\\0' x); "
                                "exec sh -c 'echo > /dev/fd/$0; sleep 1000' $0");

  EXPECT_GE(members(marks_).count(1), 1U);
}

}  // namespace
}  // namespace holdfast::recovery
