#include "decide/watchdog_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

#include "holdfast/base/error.h"
#include "unit/recovery/support/complaint.h"

namespace holdfast::recovery {
namespace {

using ::testing::HasSubstr;

WatchdogOptions some_options() {
  return {.replicas = 2, .run_directory = "run", .command = {"program"}};
}

std::string options_complaint(const WatchdogOptions& options) {
  return complaint_about([&] { check_options(options); });
}

TEST(WatchdogOptions, AreTakenWhereTheyMakeSense) {
  EXPECT_NO_THROW(check_options(some_options()));
}

TEST(WatchdogOptions, NameTheDurationThatIsNone) {
  WatchdogOptions start = some_options();
  start.recovery.start_timeout = std::chrono::milliseconds(-1000);
  WatchdogOptions hang = some_options();
  hang.recovery.hang_after = std::chrono::milliseconds(0);
  WatchdogOptions callback = some_options();
  callback.recovery.callback_timeout = std::chrono::milliseconds(-1);

  EXPECT_THAT(options_complaint(start), HasSubstr("start_timeout is -1000 ms; it has to be longer than 0"));
  EXPECT_THAT(options_complaint(hang), HasSubstr("hang_after is 0 ms"));
  EXPECT_THAT(options_complaint(callback), HasSubstr("callback_timeout is -1 ms; it has to be longer than 0"));
}

// Later sums with the clock's time would not fit into 64 bits.
TEST(WatchdogOptions, TakeNoDurationOfMoreThanTenYears) {
  WatchdogOptions options = some_options();
  options.recovery.hang_after = std::chrono::milliseconds::max();
  EXPECT_THAT(options_complaint(options), HasSubstr("hang_after is 9223372036854775807 ms"));

  options.recovery.hang_after = std::chrono::hours(24 * 3650);
  EXPECT_NO_THROW(check_options(options));
}

TEST(WatchdogOptions, NameTheCountThatIsOutOfRangeAndTheRange) {
  WatchdogOptions spares = some_options();
  spares.recovery.spares = 1000;
  WatchdogOptions restarts = some_options();
  restarts.recovery.max_restarts = -1;

  EXPECT_THAT(options_complaint(spares), HasSubstr("spares is 1000, allowed are 0 to 64"));
  EXPECT_THAT(options_complaint(restarts), HasSubstr("max_restarts is -1, allowed are 0 to 2147483647"));
}

// Twenty starts failed one after the other, over more than a minute.
TEST(WatchdogOptions, AskForFilesThatMayBeOpen) {
  rlimit old_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old_limit), 0);
  const rlimit limit{.rlim_cur = 30, .rlim_max = old_limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::string complaint = "none";
  try {
    check_options(some_options());
  } catch (const Error& error) {
    complaint = error.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old_limit), 0);

  EXPECT_THAT(complaint, HasSubstr("it may have 30 files open, and needs 36"));
  EXPECT_THAT(complaint, HasSubstr("ulimit -n"));
}

TEST(WatchdogOptions, SayHowManyReplicasThereMayBe) {
  WatchdogOptions options = some_options();
  options.max_replicas = 3;
  options.replicas = 4;

  EXPECT_THAT(options_complaint(options), HasSubstr("replicas is 4, allowed are 1 to 3"));
}

TEST(WatchdogOptions, HaveAPlaceForEachDevice) {
  WatchdogOptions options = some_options();
  EXPECT_EQ(policy_of(options).places, 2);

  options.devices = {"cpu:0", "cpu:1", "cpu:2"};

  EXPECT_EQ(policy_of(options).places, 3);
}

}  // namespace
}  // namespace holdfast::recovery
