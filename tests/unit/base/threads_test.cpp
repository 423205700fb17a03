#include "holdfast/base/threads.h"
#include "support/sanitizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdlib>
#include <iostream>

namespace holdfast {
namespace {

using testing::HasSubstr;

TEST(Threads, Start) {
  bool has_run = false;

  start_thread("a thread", [&] { has_run = true; }).join();

  EXPECT_TRUE(has_run);
}

TEST(Threads, NameTheLimitsIfTheSystemRefuses) {
  const Error error = start_error(EAGAIN, "the thread that listens");

  EXPECT_THAT(error.what(), HasSubstr("cannot start the thread that listens: Resource temporarily unavailable"));
  EXPECT_THAT(error.what(), HasSubstr("ulimit -u"));
  EXPECT_THAT(error.what(), HasSubstr("pids.max"));
}

// The standard library's exception says only "Resource temporarily unavailable", not what failed or why.
TEST(ThreadsDeathTest, SayWhatCouldNotBeStartedAndWhichLimitApplies) {
  if (runs_under_a_sanitizer()) GTEST_SKIP() << "a sanitizer's shadow memory does not live under RLIMIT_AS";
  const auto start_without_memory = [] {
    const rlimit limit{.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    ::setrlimit(RLIMIT_AS, &limit);
    try {
      start_thread<std::jthread>("the thread that listens", [] {});
    } catch (const Error& error) {
      std::cerr << error.what() << std::endl;
      std::_Exit(0);
    }
    std::_Exit(1);
  };

  EXPECT_EXIT(start_without_memory(), testing::ExitedWithCode(0),
              "cannot start the thread that listens: .*ulimit -v 1024");
}

// A crash in a thread that blocked its signal ended the process without its crash handler.
TEST(Threads, LeaveSignalsToOthersUnlessTheyHaveFailedThemselves) {
  sigset_t blocked;

  start_thread("a thread", [&] {
    leave_signals_to_others();
    ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  }).join();

  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD, SIGPIPE, SIGXFSZ, SIGALRM}) {
    EXPECT_EQ(::sigismember(&blocked, signal), 1) << signal;
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
    EXPECT_EQ(::sigismember(&blocked, signal), 0) << signal;
  }
}

}  // namespace
}  // namespace holdfast
