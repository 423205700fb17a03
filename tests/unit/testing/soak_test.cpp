#include "holdfast/testing/soak.h"

#include <gtest/gtest.h>

namespace holdfast::resilience {
namespace {

// A shell plays the watchdog: it starts three children, each after the one before has died.
TEST(Soak, KillsChildrenOfTheWatchdogUntilTheRunIsOver) {
  const std::string line =
      "mkdir -p {run_dir}; echo '{\"event\":\"watchdog_started\",\"replicas\":1,\"pid\":'$$'}' > "
      "{run_dir}/journal.jsonl; "
      "for i in 1 2 3; do sleep 1000; done; exit 0";

  const SoakResult result = soak({.command = {"/bin/sh", "-c", line}},
                                 {.every = std::chrono::milliseconds(20), .time_limit = std::chrono::seconds(100)});

  EXPECT_EQ(result.run.exit_code, 0) << result.run.output;
  EXPECT_FALSE(result.run.is_out_of_time);
  EXPECT_EQ(result.kills, 3);
  EXPECT_GT(result.first.resident_kilobytes, 0);
  EXPECT_EQ(result.first.threads, 1);
  EXPECT_GE(result.most.descriptors, 3);
}

TEST(Soak, KillsNoProcessWithoutAWatchdog) {
  const SoakResult result = soak({.command = {"/bin/sh", "-c", "sleep 0.2; exit 4 # {run_dir}"}},
                                 {.every = std::chrono::milliseconds(20), .time_limit = std::chrono::seconds(100)});

  EXPECT_EQ(result.kills, 0);
  EXPECT_EQ(result.run.exit_code, 4);
}

}  // namespace
}  // namespace holdfast::resilience
