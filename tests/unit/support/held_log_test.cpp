#include "support/held_log.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <string>

#include <unistd.h>

namespace holdfast {
namespace {

struct WrittenLog {
  std::string text;
  HeldLog held{[this](std::string_view more) { text += more; }};
};

TEST(HeldLog, WritesNothingOfATestThatPasses) {
  WrittenLog log;

  log.held.begin_test();
  log.held.take(LogLevel::warning, "replica 1 is gone");
  log.held.begin_test();
  log.held.show();

  EXPECT_EQ(log.text, "");
}

TEST(HeldLog, WritesWhatLedToAFailureAndThenEachLine) {
  WrittenLog log;

  log.held.begin_test();
  log.held.take(LogLevel::warning, "replica 1 is gone");
  log.held.show();
  EXPECT_EQ(log.text, "warning replica 1 is gone\n");
  log.held.take(LogLevel::info, "replica 1 is back");
  log.held.show();

  EXPECT_EQ(log.text, "warning replica 1 is gone\ninfo replica 1 is back\n");
}

TEST(HeldLog, LeavesOutLinesBelowTheLogLevel) {
  WrittenLog log;

  log.held.take(LogLevel::debug, "a step took 2 ms");
  log.held.show();

  EXPECT_EQ(log.text, "");
}

TEST(HeldLog, WritesAtOnceInAForkedProcess) {
  WrittenLog log;

  const pid_t child = ::fork();
  if (child == 0) {
    log.held.take(LogLevel::info, "in the child");
    ::_exit(log.text == "info in the child\n" ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);

  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace holdfast
