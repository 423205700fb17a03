// What a launcher's environment and the options decide together. No process is started.

#include "holdfast/recovery/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "holdfast/base/cores.h"
#include "holdfast/base/error.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "watchdog/launch_variables.h"

namespace holdfast::recovery {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// With an environment that says nothing about a run.
class Launch : public ::testing::Test {
 protected:
  Launch() { forget_launchers(); }
  ~Launch() override { forget_launchers(); }

  static void forget_launchers() {
    for (const char* name :
         {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "HOLDFAST_NNODES", "PET_NNODES",
          "PET_NODE_RANK", "PET_MASTER_ADDR", "SLURM_STEP_NODELIST", "OMPI_COMM_WORLD_SIZE"}) {
      ::unsetenv(name);
    }
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

// POSIX: an empty entry is the current folder, also in the last place.
TEST_F(Launch, SearchesTheCurrentFolderForEachEmptyEntryOfThePath) {
  const TemporaryFolder folder;
  std::ofstream(folder / "here") << "#!/bin/sh\n";
  std::filesystem::permissions(folder / "here", std::filesystem::perms::owner_all);
  const std::string path_before = std::getenv("PATH");
  const std::filesystem::path folder_before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  WatchdogOptions of_the_folder = options(1);
  of_the_folder.command = {"here"};
  const auto found_with = [&](const char* path) {
    ::setenv("PATH", path, 1);
    try {
      return for_any_program(of_the_folder, {}).executable;
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };

  std::vector<std::string> found;
  for (const char* path : {":/usr/bin", "/usr/bin::/bin", "/usr/bin:", ":"}) found.push_back(found_with(path));
  const std::string without = found_with("/usr/bin:/bin");
  ::setenv("PATH", path_before.c_str(), 1);
  std::filesystem::current_path(folder_before);

  EXPECT_THAT(found, Each("./here"));
  EXPECT_THAT(without, HasSubstr("there is no program here in the folders of PATH"));
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
  const auto variables =
      for_any_program(options(4), {}).variables_of({.rank = 3, .local_rank = 5, .replicas = 4, .device_slot = 3});

  for (const char* expected : {"RANK=3", "LOCAL_RANK=5", "WORLD_SIZE=4", "LOCAL_WORLD_SIZE=4", "MASTER_ADDR=127.0.0.1",
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

// As torchrun and Kubeflow name them. Each host would have begun a run of its own.
TEST_F(Launch, RefusesToBeOneOfSeveralHosts) {
  ::setenv("PET_NNODES", "2", 1);
  ::setenv("PET_NODE_RANK", "1", 1);
  ::setenv("PET_MASTER_ADDR", "train-0", 1);

  EXPECT_THAT(
      sentence_thrown_by([] { for_any_program(options(2), {}); }),
      AllOf(HasSubstr("PET_NNODES says that the run has 2 hosts, of which this is number 1"), HasSubstr("--nnodes 1")));
  EXPECT_EQ(code_of_failure(options(2)), ErrorCode::unsupported);
}

TEST_F(Launch, RunsOnThisHostAloneWhereTheUserSaysSo) {
  ::setenv("PET_NNODES", "2", 1);
  ::setenv("RANK", "1", 1);
  ::setenv("WORLD_SIZE", "2", 1);

  EXPECT_EQ(for_any_program(options(3), {}, {.nnodes = 1}).replicas, 3);
}

TEST_F(Launch, TellsProcessesOfSeveralHostsWhereTheyAre) {
  const std::vector<std::string> variables = variables_on_hosts(
      {"cpu:0", "cpu:5"}, 2, "/a/run")({.rank = 2, .local_rank = 1, .replicas = 4, .device_slot = 3});

  EXPECT_THAT(variables,
              ElementsAre("RANK=2", "LOCAL_RANK=1", "WORLD_SIZE=4", "LOCAL_WORLD_SIZE=2", "HOLDFAST_DEVICE=cpu:5",
                          "HOLDFAST_DEVICES=cpu:0,cpu:5", "HOLDFAST_RUN_DIRECTORY=/a/run", "HOLDFAST_NNODES=1"));
}

// Two processes on one device had the same local rank, and a device without a process counted as a replica.
TEST_F(Launch, CountsReplicasAndNotDevicesOfAHost) {
  struct Case {
    NewProcess process;
    std::vector<std::string> devices;
    std::string expected;
  };
  const std::vector<std::string> one = {"cuda:0"}, three = {"cuda:0", "cuda:1", "cuda:2"};
  for (const Case& each : {
           // Two hosts, each with two processes on its only device.
           Case{{.rank = 0, .local_rank = 0, .replicas = 4, .device_slot = 0}, one, "0 of 2 on cuda:0"},
           Case{{.rank = 3, .local_rank = 1, .replicas = 4, .device_slot = 1}, one, "1 of 2 on cuda:0"},
           // Three replicas on more devices.
           Case{{.rank = 2, .local_rank = 1, .replicas = 3, .device_slot = 2}, three, "1 of 2 on cuda:1"},
           Case{{.rank = 1, .local_rank = 0, .replicas = 3, .device_slot = 1}, three, "0 of 1 on cuda:0"},
           // It has taken over a replica of the other host.
           Case{{.rank = 1, .local_rank = 2, .replicas = 4, .device_slot = 4}, three, "2 of 2 on cuda:2"},
           // A spare.
           Case{{.rank = 4, .local_rank = 2, .replicas = 4, .device_slot = 4}, three, "2 of 2 on cuda:2"},
       }) {
    const std::vector<std::string> variables = variables_on_hosts(each.devices, 2, "/a/run")(each.process);
    const auto value = [&](const std::string& name) {
      for (const std::string& variable : variables) {
        if (variable.starts_with(name + "=")) return variable.substr(name.size() + 1);
      }
      return std::string("none");
    };

    EXPECT_EQ(fmt::format("{} of {} on {}", value("LOCAL_RANK"), value("LOCAL_WORLD_SIZE"), value("HOLDFAST_DEVICE")),
              each.expected);
  }
}

TEST_F(Launch, CompletesTheOptionsOfOneOfSeveralHosts) {
  const WatchdogOptions by_option = complete_for_a_host(options(3), {}, 2);
  const WatchdogOptions by_launcher = complete_for_a_host(options(), {}, 2);

  EXPECT_EQ(by_option.replicas, 3);
  EXPECT_THAT(by_launcher.devices, ElementsAre("cpu:0", "cpu:1"));
  EXPECT_EQ(by_launcher.run_directory, std::filesystem::absolute("run"));
}

TEST_F(Launch, RefusesFlagsOfSeveralHosts) {
  const HostFlags flags{.nnodes = 2, .node_rank = 0, .head = "a:29400", .secret = "secret"};

  EXPECT_THAT(sentence_thrown_by([&] { for_any_program(options(2), {}, flags); }),
              HasSubstr("--nnodes says that the run has 2 hosts"));
  EXPECT_THAT(sentence_thrown_by([] { for_any_program(options(2), {}, {.node_rank = 1}); }),
              HasSubstr("--node-rank is given, but not the number of hosts"));
}

}  // namespace
}  // namespace holdfast::recovery
