// Forked processes crash in real ways. The tests look for the functions where they crashed.

#include "process/crash_handler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "detect/life_page.h"
#include "process/crash_reader.h"
#include "support/sanitizer.h"

namespace holdfast::recovery {

// Not in an unnamed namespace: the tests look for these names.
// Keeps the optimiser from inlining the function.
#if defined(__clang__)
#define HOLDFAST_KEPT_APART [[clang::optnone]] [[gnu::noinline]]
#else
#define HOLDFAST_KEPT_APART [[gnu::noipa]]
#endif

HOLDFAST_KEPT_APART void write_where_nothing_is(volatile int* place) {
  *place = 1;
}
HOLDFAST_KEPT_APART int divide_by(volatile int* divisor) {
  return 100 / *divisor;  // for 1 g++ knows the quotient without a division
}
HOLDFAST_KEPT_APART int recurse_without_end(volatile int* depth) {
  if (*depth < 0) return 0;
  volatile char room[4096];
  room[0] = static_cast<char>(*depth);
  *depth = *depth + 1;
  return recurse_without_end(depth) + room[0];
}
HOLDFAST_KEPT_APART void give_up_by_abort() {
  std::abort();
}
HOLDFAST_KEPT_APART int call_what_is_no_function(int (*volatile* function)()) {
  return (*function)() + 1;
}

namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr std::chrono::seconds kTimeForNames(20);

SharedMemory worker_memory() {
  return SharedMemory::create("life", LifePage::kBytes + CrashPage::kBytes);
}

struct Death {
  int signal = 0;
  std::optional<Crash> crash;
  std::vector<std::string> frames;
};

// How a process with a handler dies of `crash`.
Death death_of(
    const std::function<void()>& crash, const std::function<void()>& before = [] {}) {
  SharedMemory memory = worker_memory();
  const std::time_t started = std::time(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{};
    ::setrlimit(RLIMIT_CORE, &none);
    before();
    const CrashHandler handler(CrashPage::find(memory));
    crash();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  Death death{
      .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0, .crash = CrashPage::read(memory, child), .frames = {}};
  if (death.crash) death.frames = describe_frames(*death.crash, started, Deadline::after(kTimeForNames));
  return death;
}

class CrashHandlerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (runs_under_a_sanitizer()) GTEST_SKIP() << "a sanitizer has handlers of its own";
  }
};

}  // namespace

TEST_F(CrashHandlerTest, RecordsAWriteToAWrongAddress) {
  const Death death = death_of([] { write_where_nothing_is(nullptr); });

  EXPECT_EQ(death.signal, SIGSEGV);
  ASSERT_FALSE(death.frames.empty());
  EXPECT_EQ(death.crash->signal, SIGSEGV);
  EXPECT_THAT(death.frames[0], HasSubstr("holdfast::recovery::write_where_nothing_is(int volatile*) (/"));
  EXPECT_THAT(death.frames[0], HasSubstr("+0x"));
  EXPECT_THAT(death.frames, Contains(HasSubstr("main (")));
}

TEST_F(CrashHandlerTest, RecordsAnAbort) {
  const Death death = death_of([] { give_up_by_abort(); });

  EXPECT_EQ(death.signal, SIGABRT);
  EXPECT_THAT(death.frames, Contains(HasSubstr("give_up_by_abort()")));
}

#if defined(__x86_64__)
TEST_F(CrashHandlerTest, RecordsADivisionByZero) {
  const Death death = death_of([] {
    volatile int zero = 0;
    static_cast<void>(divide_by(&zero));
  });

  EXPECT_EQ(death.signal, SIGFPE);
  ASSERT_FALSE(death.frames.empty());
  EXPECT_THAT(death.frames[0], HasSubstr("divide_by(int volatile*)"));
}
#endif

TEST_F(CrashHandlerTest, RecordsAReadBeyondTheEndOfAMappedFile) {
  const Death death = death_of([] {
    std::FILE* file = std::tmpfile();
    void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ::fileno(file), 0);
    write_where_nothing_is(static_cast<int*>(memory));
  });

  EXPECT_EQ(death.signal, SIGBUS);
  ASSERT_FALSE(death.frames.empty());
  EXPECT_THAT(death.frames[0], HasSubstr("write_where_nothing_is(int volatile*)"));
}

TEST_F(CrashHandlerTest, RecordsAStackOverflow) {
  const Death death = death_of([] {
    volatile int depth = 0;
    static_cast<void>(recurse_without_end(&depth));
  });

  EXPECT_EQ(death.signal, SIGSEGV);
  EXPECT_THAT(death.frames, Contains(HasSubstr("recurse_without_end(int volatile*)")).Times(testing::Ge(10)));
}

TEST_F(CrashHandlerTest, RecordsTheCallerOfAWrongFunctionPointer) {
  const Death death = death_of([] {
    int (*volatile function)() = nullptr;
    static_cast<void>(call_what_is_no_function(&function));
  });

  EXPECT_EQ(death.signal, SIGSEGV);
  EXPECT_THAT(death.frames, Contains(HasSubstr("call_what_is_no_function(")));
  ASSERT_FALSE(death.frames.empty());
  EXPECT_EQ(death.frames[0], "0x0 (in no file)");
}

TEST_F(CrashHandlerTest, RecordsACrashOfAnotherThread) {
  const Death death = death_of([] { std::thread([] { write_where_nothing_is(nullptr); }).join(); });

  EXPECT_EQ(death.signal, SIGSEGV);
  ASSERT_FALSE(death.frames.empty());
  EXPECT_THAT(death.frames[0], HasSubstr("write_where_nothing_is(int volatile*)"));
}

// A signal that was sent does not come again after the handler. The process must not go on.
TEST_F(CrashHandlerTest, EndsAProcessThatTheSignalWasSentTo) {
  const Death death = death_of([] { ::kill(::getpid(), SIGSEGV); });

  EXPECT_EQ(death.signal, SIGSEGV);
  EXPECT_TRUE(death.crash.has_value());
}

TEST_F(CrashHandlerTest, LeavesAHandlerOfTheProgramAlone) {
  const Death death = death_of([] { ::raise(SIGSEGV); }, [] { ::signal(SIGSEGV, [](int) { ::_exit(3); }); });

  EXPECT_EQ(death.signal, 0);
  EXPECT_FALSE(death.crash.has_value());
}

TEST_F(CrashHandlerTest, IsGoneWithItsObject) {
  SharedMemory memory = worker_memory();
  { const CrashHandler handler(CrashPage::find(memory)); }

  struct sigaction action {};
  ::sigaction(SIGSEGV, nullptr, &action);
  EXPECT_EQ(action.sa_handler, SIG_DFL);
  EXPECT_EQ(action.sa_flags & SA_SIGINFO, 0);
}

// The crash of a forked child is not recorded.
TEST_F(CrashHandlerTest, RecordsNothingForAForkedChild) {
  const Death death = death_of([] {
    const pid_t child = ::fork();
    if (child == 0) write_where_nothing_is(nullptr);
    int status = 0;
    ::waitpid(child, &status, 0);
    ::_exit(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV ? 0 : 1);
  });

  EXPECT_EQ(death.signal, 0);
  EXPECT_FALSE(death.crash.has_value());
}

}  // namespace holdfast::recovery
