// Real signals: the tests write to a pipe without a reader and to a file that is too large.

#include "process/signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "holdfast/base/shared_memory.h"
#include "support/sanitizer.h"
#include "support/temporary_folder.h"

namespace holdfast::recovery {
namespace {

using SignalHandler = void (*)(int);

class BrokenPipe : public testing::Test {
 protected:
  BrokenPipe() {
    if (::pipe(ends_) == 0) ::close(ends_[0]);
  }
  ~BrokenPipe() override {
    ::close(ends_[1]);
    ::signal(SIGPIPE, before_);
    ::signal(SIGXFSZ, before_for_files_);
  }

  // The errno of the write; 0: it succeeded.
  int write_to_it() const { return ::write(ends_[1], "x", 1) == 1 ? 0 : errno; }

 private:
  const SignalHandler before_ = ::signal(SIGPIPE, SIG_DFL);
  const SignalHandler before_for_files_ = ::signal(SIGXFSZ, SIG_DFL);
  int ends_[2] = {-1, -1};
};

TEST_F(BrokenPipe, DoesNotEndAProcessThatOutlivesFailingWrites) {
  outlive_failing_writes();

  EXPECT_EQ(write_to_it(), EPIPE);
}

TEST_F(BrokenPipe, GoesToAnExistingHandler) {
  static volatile std::sig_atomic_t handled = 0;
  ::signal(SIGPIPE, [](int) { handled = 1; });

  outlive_failing_writes();

  EXPECT_EQ(write_to_it(), EPIPE);
  EXPECT_EQ(handled, 1);
}

TEST_F(BrokenPipe, StaysIgnored) {
  ::signal(SIGPIPE, SIG_IGN);

  outlive_failing_writes();

  EXPECT_TRUE(is_ignored(SIGPIPE));
}

TEST_F(BrokenPipe, IsIgnoredUntilTheDefaultIsRestored) {
  ignore_failing_writes();
  EXPECT_TRUE(is_ignored(SIGPIPE));
  EXPECT_TRUE(is_ignored(SIGXFSZ));

  take_failing_writes_back();

  EXPECT_FALSE(is_ignored(SIGPIPE));
  EXPECT_FALSE(is_ignored(SIGXFSZ));
}

// A limit of file sizes (ulimit -f) killed the watchdog at a line of its journal, and replicas at their memory files.
TEST(TooLargeAFile, DoesNotEndAProcessThatOutlivesFailingWrites) {
  const TemporaryFolder folder;
  const FileDescriptor file(::open((folder / "file").c_str(), O_WRONLY | O_CREAT, 0600));
  const SignalHandler before = ::signal(SIGXFSZ, SIG_DFL);
  rlimit old_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const rlimit limit{.rlim_cur = 100, .rlim_max = old_limit.rlim_max};

  outlive_failing_writes();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const ssize_t written = ::pwrite(file.value(), "x", 1, 100);
  const int error_number = errno;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  ::signal(SIGXFSZ, before);

  EXPECT_EQ(written, -1);
  EXPECT_EQ(error_number, EFBIG);
}

class SignalOfStop : public testing::TestWithParam<int> {
 protected:
  ~SignalOfStop() override { ::signal(GetParam(), before_); }

 private:
  const SignalHandler before_ = ::signal(GetParam(), SIG_DFL);
};

TEST_P(SignalOfStop, DoesNotEndAProcessThatLeavesStopsToTheWatchdog) {
  leave_stops_to_the_watchdog();

  EXPECT_EQ(::raise(GetParam()), 0);
  EXPECT_FALSE(is_ignored(GetParam())) << "programs that it starts would ignore it, too";
}

// Python's multiprocessing ends its children so, and then waits for them.
TEST_P(SignalOfStop, EndsAChildThatTheProcessForks) {
  // The thread sanitizer calls no handler in a child of a process that has threads, such as those of other tests.
  if (runs_under_a_sanitizer()) GTEST_SKIP() << "a sanitizer has handlers of its own";
  leave_stops_to_the_watchdog();
  const pid_t child = ::fork();
  if (child == 0) {
    // Another signal ends it if this one does not.
    ::alarm(60);
    for (;;) ::pause();
  }
  ASSERT_EQ(::kill(child, GetParam()), 0);

  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);

  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), GetParam());
}

TEST_P(SignalOfStop, GoesToAnExistingHandler) {
  static volatile std::sig_atomic_t handled = 0;
  handled = 0;
  ::signal(GetParam(), [](int signal) { handled = signal; });

  leave_stops_to_the_watchdog();

  EXPECT_EQ(::raise(GetParam()), 0);
  EXPECT_EQ(handled, GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, SignalOfStop, testing::Values(SIGINT, SIGTERM, SIGHUP, SIGUSR1));

}  // namespace
}  // namespace holdfast::recovery
