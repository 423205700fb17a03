#include "holdfast/base/log.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace holdfast {
namespace {

// Without the date nobody knew which night a line was of.
TEST(Log, SaysOnWhichDayAndInWhichZoneALineWasWritten) {
  testing::internal::CaptureStderr();

  log(LogLevel::warning, "replica 1 is gone");

  const std::string line = testing::internal::GetCapturedStderr();
  const std::regex expected("\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d [+-]\\d\\d:\\d\\d warning replica 1 is gone\n");
  EXPECT_TRUE(std::regex_match(line, expected)) << line;
}

}  // namespace
}  // namespace holdfast
