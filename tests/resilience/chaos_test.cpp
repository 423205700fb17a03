// `holdfast chaos` on a program that survives.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "resilience/digits_run.h"

namespace holdfast {
namespace {

std::vector<std::string> chaos_arguments(const std::vector<std::string>& options, const std::string& json_path) {
  std::vector<std::string> arguments = {"chaos", "--json", json_path};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const std::vector<std::string> program = {"--",           built_program("digits"),
                                            "--drawn",      "600",
                                            "--holdout",    "50",
                                            "--batch",      "65",
                                            "--epochs",     "3",
                                            "--shards",     "4",
                                            "--seed",       "11",
                                            "--run-dir",    "{run_dir}",
                                            "--replicas",   "{replicas}",
                                            "--save-every", "4"};
  arguments.insert(arguments.end(), program.begin(), program.end());
  return arguments;
}

nlohmann::json report_of_chaos(const std::vector<std::string>& options) {
  const TemporaryFolder folder;
  const std::string path = folder / "chaos.json";
  const ProgramResult result =
      run_program(built_program("holdfast"), chaos_arguments(options, path), std::chrono::seconds(300));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  return nlohmann::json::parse(read_file(path));
}

TEST(Chaos, InjectsFaultsIntoAProgramWithoutAnOptionForThem) {
  const nlohmann::json report = report_of_chaos({"--fault", "rank=1,step=10,fault=kill", "--replicas", "2"});

  const nlohmann::json& run = report.at("cases").at(0);
  EXPECT_EQ(run.at("verdict"), "same digest");
  EXPECT_EQ(run.at("faults_struck"), 1);
  EXPECT_EQ(run.at("lost").size(), 1U);
  EXPECT_EQ(run.at("last_fit"), report.at("undisturbed").at("last_fit"));
}

TEST(Chaos, StartsARunAgainAfterItsWatchdogDied) {
  const nlohmann::json report = report_of_chaos({"--fault", "rank=0,step=10,fault=kill-watchdog"});

  EXPECT_EQ(report.at("cases").at(0).at("starts"), 2);
  EXPECT_EQ(report.at("cases").at(0).at("verdict"), "same digest");
}

}  // namespace
}  // namespace holdfast
