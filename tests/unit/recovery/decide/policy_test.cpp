// Which options the watchdog refuses before any process starts, and that the sentence names the option and its range.

#include "decide/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/recovery/faults.h"
#include "support/thrown.h"
#include "unit/recovery/support/complaint.h"

namespace holdfast::recovery {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

WatchdogOptions some_options() {
  return {.replicas = 2, .run_directory = "run", .command = {"program"}};
}

std::string options_complaint(const WatchdogOptions& options) {
  return complaint_about([&] { check_options(options); });
}

TEST(WatchdogOptions, AreAcceptedWhenTheyMakeSense) {
  EXPECT_NO_THROW(check_options(some_options()));
}

TEST(WatchdogOptions, NameTheDurationThatIsNotPositive) {
  WatchdogOptions start = some_options();
  start.recovery.start_timeout = std::chrono::milliseconds(-1000);
  WatchdogOptions hang = some_options();
  hang.recovery.hang_after = std::chrono::milliseconds(0);
  WatchdogOptions callback = some_options();
  callback.recovery.callback_timeout = std::chrono::milliseconds(-1);

  EXPECT_THAT(options_complaint(start), HasSubstr("start_timeout is -1000 ms; it must be longer than 0"));
  EXPECT_THAT(options_complaint(hang), HasSubstr("hang_after is 0 ms"));
  EXPECT_THAT(options_complaint(callback), HasSubstr("callback_timeout is -1 ms; it must be longer than 0"));
}

// Sums with the clock's time would not fit into 64 bits.
TEST(WatchdogOptions, RefuseADurationOfMoreThanTenYears) {
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

  EXPECT_THAT(options_complaint(spares), HasSubstr("spares is 1000; it must be from 0 to 64"));
  EXPECT_THAT(options_complaint(restarts), HasSubstr("max_restarts is -1; it must be from 0 to 2147483647"));
}

// Without this check, twenty starts failed in a row, which took more than a minute.
TEST(WatchdogOptions, NeedEnoughOpenFiles) {
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

  EXPECT_THAT(complaint, HasSubstr("it may open 30 files, but needs 36"));
  EXPECT_THAT(complaint, HasSubstr("ulimit -n"));
}

TEST(WatchdogOptions, NameTheLimitOfReplicas) {
  WatchdogOptions options = some_options();
  options.max_replicas = 3;
  options.replicas = 4;

  EXPECT_THAT(options_complaint(options), HasSubstr("replicas is 4; it must be from 1 to 3"));
}

TEST(WatchdogOptions, HaveASlotForEachDevice) {
  WatchdogOptions options = some_options();
  EXPECT_EQ(policy_of(options).device_slots, 2);

  options.devices = {"cpu:0", "cpu:1", "cpu:2"};

  EXPECT_EQ(policy_of(options).device_slots, 3);
}

TEST(WatchdogOptions, WaitForTheEndOfProcessesOnDevicesOtherThanCpus) {
  WatchdogOptions options = some_options();
  EXPECT_FALSE(policy_of(options).starts_when_gone);

  options.devices = {"cpu:0", "gpu:1"};
  EXPECT_TRUE(policy_of(options).starts_when_gone);

  options.recovery.start_when_gone = false;
  EXPECT_FALSE(policy_of(options).starts_when_gone);

  options.devices = {"cpu:0", "cpu:1"};
  options.recovery.start_when_gone = true;
  EXPECT_TRUE(policy_of(options).starts_when_gone);
}

TEST(WatchdogOptions, UseNoStateInMemoryWhenRecoveryIsFromSavepoints) {
  WatchdogOptions options = some_options();
  EXPECT_TRUE(may_use_memory(options));
  EXPECT_TRUE(policy_of(options).keep_survivors);

  options.recovery.recover_from = RecoverFrom::savepoint;

  EXPECT_FALSE(may_use_memory(options));
  EXPECT_FALSE(policy_of(options).keep_survivors);
}

TEST(WatchdogOptions, HaveTheFaultsOfTheEnvironmentAfterTheirOwn) {
  WatchdogOptions options = some_options();
  options.recovery.faults = {"rank=0,step=1,fault=kill"};
  ::setenv(kFaultsVariable, "rank=1,step=2,fault=hang", 1);
  const std::vector<std::string> faults = all_faults(options);
  ::unsetenv(kFaultsVariable);

  EXPECT_THAT(faults, ElementsAre("rank=0,step=1,fault=kill", "rank=1,step=2,fault=hang"));
  EXPECT_THAT(all_faults(options), ElementsAre("rank=0,step=1,fault=kill"));
}

TEST(WatchdogOptions, DivideTheDevicesAmongTheHosts) {
  WatchdogOptions options = some_options();
  EXPECT_THAT(policy_of(options).slot_hosts, IsEmpty());

  options.hosts = 2;
  options.devices = {"cpu:0", "cpu:0", "cpu:1", "cpu:1"};

  EXPECT_NO_THROW(check_options(options));
  EXPECT_EQ(policy_of(options).hosts, 2);
  EXPECT_EQ(policy_of(options).device_slots, 4);
  EXPECT_THAT(policy_of(options).slot_hosts, ElementsAre(0, 1, 0, 1));
  options.devices = {"cuda:0", "cuda:0", "cuda:1", "cuda:1"};
  EXPECT_NO_THROW(check_options(options));
}

TEST(WatchdogOptions, RefuseSeveralHostsWhereTheyAreNotPossible) {
  WatchdogOptions options = some_options();
  options.hosts = 2;
  options.devices = {"cpu:0", "cpu:0", "cpu:0"};
  EXPECT_THAT(options_complaint(options), HasSubstr("3 devices cannot be divided among 2 hosts"));

  options.devices = {"cpu:0", "cpu:0"};
  options.is_plain_program = true;
  EXPECT_THAT(options_complaint(options), HasSubstr("runs on a single host"));
}

// Such a fault would never strike, and the test that asks for it would pass.
TEST(WatchdogOptions, RefuseAMisspelledFaultOfTheEnvironment) {
  ::setenv(kFaultsVariable, "rank=2,step=1,fault=kill", 1);
  const std::string complaint = options_complaint(some_options());
  ::unsetenv(kFaultsVariable);

  EXPECT_THAT(complaint, HasSubstr("rank=2"));
}

}  // namespace
}  // namespace holdfast::recovery
