// Processes are real shells. What a test waits for is a pipe or a descriptor, never a time.

#include "process/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "channel/descriptors.h"
#include "holdfast/base/error.h"
#include "process/signals.h"
#include "support/comes_true.h"
#include "support/temporary_folder.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Process shell(const std::string& script, const std::vector<int>& inherited = {}) {
  return Process::spawn({.executable = "/bin/sh",
                         .arguments = {"sh", "-c", script},
                         .variables = {"GREETING=hello"},
                         .inherited = inherited},
                        Deadline::after(kPatience));
}

ExitStatus wait_for(Process& process) {
  EXPECT_TRUE(wait_for_descriptor(process.descriptor(), POLLIN, Deadline::after(kPatience)));
  return process.try_reap().value();
}

TEST(Process, ReportsTheExitCode) {
  Process process = shell("exit 7");

  const ExitStatus status = wait_for(process);

  EXPECT_EQ(status.code, 7);
  EXPECT_EQ(status.signal, 0);
  EXPECT_EQ(process.try_reap().value().code, 7);
}

TEST(Process, ReportsTheSignalThatKilledIt) {
  Process process = shell("kill -ABRT $$");

  EXPECT_EQ(wait_for(process).signal, SIGABRT);
}

TEST(Process, ReplacesVariablesOfTheEnvironment) {
  const std::string script = "[ \"$HOME\" = elsewhere ] && [ \"$GREETING\" = hello ] && [ -n \"$PATH\" ]";
  Process process = Process::spawn(
      {.executable = "/bin/sh", .arguments = {"sh", "-c", script}, .variables = {"HOME=elsewhere", "GREETING=hello"}},
      Deadline::after(kPatience));

  EXPECT_EQ(wait_for(process).code, 0);
}

TEST(Process, SignalsItsChildrenToo) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  Process process = shell("sleep 1000 & echo > /dev/fd/" + std::to_string(ends[1]) + "; wait", {ends[1]});
  writing.reset();
  char byte = 0;
  ASSERT_EQ(::read(reading.value(), &byte, 1), 1);

  process.signal_group(SIGTERM);

  EXPECT_EQ(wait_for(process).signal, SIGTERM);
  EXPECT_EQ(::read(reading.value(), &byte, 1), 0) << "somebody still holds the pipe";
}

TEST(Process, SaysWhatCannotBeExecuted) {
  try {
    Process::spawn({.executable = "/missing/program", .arguments = {"program"}, .variables = {"A=b"}},
                   Deadline::after(kPatience));
    FAIL() << "spawned";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_THAT(error.what(), HasSubstr("/missing/program"));
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(Process, HasAGroupOfItsOwnAndItsVariable) {
  const TemporaryFolder directory;
  const std::string path = directory.path() + "/out";
  Process process = shell("echo $GREETING $(cut -d' ' -f5 /proc/$$/stat) $$ > " + path);
  wait_for(process);

  std::string greeting;
  int group = 0;
  int pid = -1;
  std::ifstream(path) >> greeting >> group >> pid;

  EXPECT_EQ(greeting, "hello");
  EXPECT_EQ(group, pid);
}

TEST(Process, InheritsOnlyWhatItIsGiven) {
  const FileDescriptor given(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const FileDescriptor leaked(::open("/dev/null", O_RDONLY));
  const auto path_of = [](const FileDescriptor& file) { return "/proc/$$/fd/" + std::to_string(file.value()); };

  Process process = shell("test -e " + path_of(given) + " && ! test -e " + path_of(leaked), {given.value()});

  EXPECT_EQ(wait_for(process).code, 0);
}

TEST(Process, ReadsNothingFromStandardInput) {
  Process process = shell("read line");

  EXPECT_EQ(wait_for(process).code, 1);
}

TEST(Process, IsKilledWithItsOwner) {
  int pid = -1;
  {
    const Process process = shell("while :; do sleep 1; done");
    pid = process.pid();
    EXPECT_EQ(::kill(pid, 0), 0);
  }

  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(Process, KillsItsChildrenWhenItIsKilled) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  Process process = shell("sleep 1000 & echo >&" + std::to_string(writing.value()) + "; wait", {writing.value()});
  char byte = 0;
  ASSERT_EQ(::read(reading.value(), &byte, 1), 1);
  writing.reset();

  process.kill_group();

  // The pipe ends when no process can write to it any more, including the grandchild.
  ASSERT_TRUE(wait_for_descriptor(reading.value(), POLLIN, Deadline::after(kPatience)));
  EXPECT_EQ(::read(reading.value(), &byte, 1), 0);
  EXPECT_EQ(wait_for(process).signal, SIGKILL);
}

TEST(Process, KillsTheChildrenThatItHasLeft) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  Process process = shell("sleep 1000 & exit 3", {writing.value()});
  writing.reset();
  ASSERT_TRUE(wait_for_descriptor(process.descriptor(), POLLIN, Deadline::after(kPatience)));
  ASSERT_TRUE(process.has_ended());
  ASSERT_FALSE(wait_for_descriptor(reading.value(), POLLIN, Deadline::after({}))) << "nobody holds the pipe";

  EXPECT_EQ(process.try_reap().value().code, 3);

  EXPECT_TRUE(wait_for_descriptor(reading.value(), POLLIN, Deadline::after(kPatience)));
}

TEST(Process, SeesThatItIsStopped) {
  Process process = shell("kill -STOP $$; exit 5");
  const Deadline deadline = Deadline::after(kPatience);
  while (!process.is_stopped() && !deadline.has_passed()) {
  }
  EXPECT_TRUE(process.is_stopped());
  EXPECT_FALSE(process.try_reap().has_value());

  ::kill(process.pid(), SIGCONT);

  EXPECT_EQ(wait_for(process).code, 5);
  EXPECT_FALSE(process.is_stopped());
}

// How a shell ends that was started by `spawn` and gets a SIGPIPE.
ExitStatus end_by_broken_pipe(bool ignores_failing_writes) {
  Process process = Process::spawn({.executable = "/bin/sh",
                                    .arguments = {"sh", "-c", "kill -PIPE $$; exit 5"},
                                    .ignores_failing_writes = ignores_failing_writes},
                                   Deadline::after(kPatience));
  return wait_for(process);
}

TEST(Process, EndsByABrokenPipeAlthoughItsOwnerDoesNot) {
  const auto before = ::signal(SIGPIPE, SIG_DFL);
  outlive_failing_writes();

  EXPECT_EQ(end_by_broken_pipe(false).signal, SIGPIPE);
  EXPECT_EQ(end_by_broken_pipe(true).code, 5);
  ::signal(SIGPIPE, before);
}

TEST(Process, KeepsSigpipeIgnoredWhenItsOwnerIgnoredIt) {
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  outlive_failing_writes();

  EXPECT_EQ(end_by_broken_pipe(false).code, 5);
  ::signal(SIGPIPE, before);
}

// A shell with a limit of file sizes writes a larger file.
ExitStatus end_by_too_large_a_file(bool ignores_failing_writes) {
  const TemporaryFolder folder;
  const std::string write_too_much = "ulimit -f 1; printf '%02000d' 1 > " + (folder / "file") + " 2>/dev/null; exit 5";
  Process process = Process::spawn({.executable = "/bin/sh",
                                    .arguments = {"sh", "-c", write_too_much},
                                    .ignores_failing_writes = ignores_failing_writes},
                                   Deadline::after(kPatience));
  return wait_for(process);
}

TEST(Process, EndsByATooLargeFileUnlessItIgnoresFailingWrites) {
  EXPECT_EQ(end_by_too_large_a_file(false).signal, SIGXFSZ);
  EXPECT_EQ(end_by_too_large_a_file(true).code, 5);
}

TEST(Process, StartsWithDefaultSignalHandlers) {
  static volatile std::sig_atomic_t handled = 0;
  const auto before = ::signal(SIGTERM, [](int) { handled = 1; });

  Process process = shell("kill -TERM $$");

  EXPECT_EQ(wait_for(process).signal, SIGTERM);
  EXPECT_EQ(handled, 0);
  ::signal(SIGTERM, before);
}

}  // namespace
}  // namespace holdfast::recovery
