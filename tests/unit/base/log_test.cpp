// What the log writes to standard error, byte for byte: on a terminal it must replace the progress line.

#include "holdfast/base/log.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

#include <unistd.h>

#include "holdfast/base/terminal.h"
#include "support/pseudo_terminal.h"

namespace holdfast {
namespace {

// main() of the test programs holds log lines back; here they go to standard error.
class Log : public testing::Test {
 protected:
  Log() { set_log_sink({}); }
};

// Without the date, a log of several days did not show on which day a line was written.
TEST_F(Log, WritesTheDateAndTheTimeZoneOfEachLine) {
  testing::internal::CaptureStderr();

  log(LogLevel::warning, "replica 1 is gone");

  const std::string line = testing::internal::GetCapturedStderr();
  const std::regex expected("\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d [+-]\\d\\d:\\d\\d warning replica 1 is gone\n");
  EXPECT_TRUE(std::regex_match(line, expected)) << line;
}

// Captures standard error as long as the object exists.
class ErrorsGoTo {
 public:
  explicit ErrorsGoTo(int descriptor) : before_(::dup(STDERR_FILENO)) { ::dup2(descriptor, STDERR_FILENO); }
  ~ErrorsGoTo() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
  }

 private:
  int before_;
};

// A replica draws the progress line while the watchdog logs. One line was appended to the other.
TEST_F(Log, ReplacesTheProgressLineOnATerminal) {
  PseudoTerminal terminal(80);
  const std::string progress = std::string(kClearLine) + std::string(70, 'x') + std::string(kLineStart);
  ASSERT_EQ(::write(terminal.program_end(), progress.data(), progress.size()), static_cast<ssize_t>(progress.size()));
  {
    const ErrorsGoTo errors(terminal.program_end());
    log(LogLevel::warning, "replica 1 is gone");
  }
  ASSERT_EQ(::write(terminal.program_end(), progress.data(), progress.size()), static_cast<ssize_t>(progress.size()));

  const std::vector<std::string> rows = terminal.screen().rows();

  ASSERT_EQ(rows.size(), 2U);
  EXPECT_TRUE(std::regex_match(rows[0], std::regex("\\d{4}-.* warning replica 1 is gone"))) << rows[0];
  EXPECT_EQ(rows[1], std::string(70, 'x'));
}

TEST_F(Log, WritesNoTerminalCommandsElsewhere) {
  testing::internal::CaptureStderr();

  log(LogLevel::error, "replica 1 is gone");

  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(line.find_first_of("\r\x1b"), std::string::npos) << line;
}

class LogLevelForATest {
 public:
  explicit LogLevelForATest(LogLevel least) : before_(log_level()) { set_log_level(least); }
  ~LogLevelForATest() { set_log_level(before_); }

 private:
  LogLevel before_;
};

TEST_F(Log, WritesLinesOfAtLeastTheLevelThatWasSet) {
  testing::internal::CaptureStderr();
  log(LogLevel::debug, "one");
  log(LogLevel::info, "two");
  {
    const LogLevelForATest level(LogLevel::debug);
    log(LogLevel::debug, "three");
  }
  {
    const LogLevelForATest level(LogLevel::error);
    log(LogLevel::warning, "four");
    log(LogLevel::error, "five");
  }

  const std::string lines = testing::internal::GetCapturedStderr();

  EXPECT_TRUE(std::regex_match(lines, std::regex(".* info two\n.* debug three\n.* error five\n"))) << lines;
}

TEST_F(Log, HasANameForEachLevel) {
  for (const LogLevel level : {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error}) {
    EXPECT_EQ(log_level_from_name(name(level)), level);
  }
  EXPECT_EQ(log_level_from_name("verbose"), std::nullopt);
}

}  // namespace
}  // namespace holdfast
