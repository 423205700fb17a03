#include "watchdog_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "unit/recovery/support/complaint.h"

namespace holdfast::recovery {
namespace {

using ::testing::HasSubstr;

WatchdogOptions some_options() {
  return {.replicas = 2, .run_directory = "run", .command = {"program"}};
}

std::string options_complaint(const WatchdogOptions& options) {
  return complaint_about([&] { check(options); });
}

TEST(WatchdogOptions, AreTakenWhereTheyMakeSense) {
  EXPECT_NO_THROW(check(some_options()));
}

TEST(WatchdogOptions, NameTheDurationThatIsNone) {
  WatchdogOptions start = some_options();
  start.start_timeout = std::chrono::milliseconds(-1000);
  WatchdogOptions hang = some_options();
  hang.hang_after = std::chrono::milliseconds(0);

  EXPECT_THAT(options_complaint(start), HasSubstr("start_timeout is -1000 ms; it has to be longer than 0"));
  EXPECT_THAT(options_complaint(hang), HasSubstr("hang_after is 0 ms"));
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
