// What a launcher's environment and the options decide together. No process is started.

#include "holdfast/recovery/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// With an environment that says nothing about a run.
class Launch : public ::testing::Test {
 protected:
  Launch() {
    for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_PORT"}) ::unsetenv(name);
  }
  ~Launch() override {
    for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_PORT"}) ::unsetenv(name);
  }

  static WatchdogOptions options(int replicas = 0) {
    return {.replicas = replicas, .run_directory = "run", .command = {"sh", "-c", "true"}};
  }

  static ErrorCode code_of_failure(const WatchdogOptions& options) {
    try {
      for_any_program(options, {});
    } catch (const Error& error) {
      return error.code();
    }
    ADD_FAILURE() << "nothing was thrown";
    return ErrorCode::cancelled;
  }

  static std::string port_of(const std::vector<std::string>& variables) {
    for (const std::string& variable : variables) {
      if (variable.starts_with("MASTER_PORT=")) return variable;
    }
    return "";
  }
};

TEST_F(Launch, FindsTheProgramAsAShellWould) {
  const WatchdogOptions found = for_any_program(options(1), {});

  EXPECT_THAT(found.executable, HasSubstr("/sh"));
  EXPECT_EQ(found.command.front(), "sh");
}

TEST_F(Launch, RefusesFoldersAndFilesThatMayNotBeExecuted) {
  for (const std::string name : {"/", "/etc/passwd", "/nowhere/at-all", "nowhere-at-all"}) {
    WatchdogOptions bad = options(1);
    bad.command = {name};

    EXPECT_EQ(code_of_failure(bad), ErrorCode::not_found) << name;
  }
}

TEST_F(Launch, RefusesAMissingProgram) {
  WatchdogOptions none = options(1);
  none.command.clear();

  EXPECT_EQ(code_of_failure(none), ErrorCode::invalid_argument);
}

TEST_F(Launch, TakesTheNumberOfReplicasFromOptionEnvironmentOrDevices) {
  EXPECT_EQ(for_any_program(options(), {}).replicas, std::min(core_count(), kMaxReplicas));
  EXPECT_EQ(for_any_program(options(), {"cpu:0", "cpu:0", "cpu:1"}).replicas, 3);
  ::setenv("WORLD_SIZE", "5", 1);
  EXPECT_EQ(for_any_program(options(), {"cpu:0", "cpu:1"}).replicas, 5);
  EXPECT_EQ(for_any_program(options(7), {}).replicas, 7);
}

TEST_F(Launch, AssignsTheListedDevices) {
  const WatchdogOptions launched = for_any_program(options(2), {"cpu:4", "gpu:1"});

  EXPECT_EQ(launched.devices.size(), 2U);
  EXPECT_THAT(launched.variables_of({.rank = 0, .replicas = 2, .device_slot = 1}), Contains("HOLDFAST_DEVICE=gpu:1"));
  EXPECT_THAT(launched.variables_of({.rank = 0, .replicas = 2, .device_slot = 1}),
              Contains("HOLDFAST_DEVICES=cpu:4,gpu:1"));
}

TEST_F(Launch, NamesRankAndSizeAsLaunchersDo) {
  const auto variables = for_any_program(options(4), {}).variables_of({.rank = 3, .replicas = 4, .device_slot = 3});

  for (const char* expected : {"RANK=3", "LOCAL_RANK=3", "WORLD_SIZE=4", "LOCAL_WORLD_SIZE=4", "MASTER_ADDR=127.0.0.1",
                               "HOLDFAST_DEVICE=cpu:3"}) {
    EXPECT_THAT(variables, Contains(expected));
  }
  EXPECT_THAT(variables, Contains("HOLDFAST_RUN_DIRECTORY=" + std::filesystem::absolute("run").string()));
}

TEST_F(Launch, KeepsThePortAsLongAsAProcessOfTheRunLives) {
  const WatchdogOptions launched = for_any_program(options(2), {});

  const std::string first = port_of(launched.variables_of({.rank = 0, .replicas = 2, .is_first = true}));
  const std::string second = port_of(launched.variables_of({.rank = 1, .replicas = 2, .is_first = false}));

  EXPECT_GT(first.size(), std::string("MASTER_PORT=").size());
  EXPECT_NE(first, "MASTER_PORT=0");
  EXPECT_EQ(second, first);
}

TEST_F(Launch, ObeysThePortOfTheEnvironment) {
  ::setenv("MASTER_PORT", "29501", 1);

  EXPECT_EQ(port_of(for_any_program(options(1), {}).variables_of({.replicas = 1})), "MASTER_PORT=29501");
}

TEST_F(Launch, RefusesVariablesThatAreNotNumbers) {
  ::setenv("MASTER_PORT", "http", 1);

  EXPECT_EQ(code_of_failure(options(1)), ErrorCode::invalid_argument);
}

TEST_F(Launch, RefusesToBeOneOfSeveralProcessesOfALauncher) {
  ::setenv("RANK", "0", 1);
  ::setenv("WORLD_SIZE", "1", 1);
  EXPECT_EQ(for_any_program(options(2), {}).replicas, 2);

  ::setenv("WORLD_SIZE", "2", 1);
  EXPECT_EQ(code_of_failure(options(2)), ErrorCode::unsupported);
}

}  // namespace
}  // namespace holdfast::recovery
