#pragma once

// One run of the digits example on drawn digits, small enough to be made a hundred times.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/program.h"

namespace holdfast {

struct DigitsRun {
  int replicas = 2;
  std::vector<std::string> faults{};
  std::map<std::string, std::string> options{};  // beside, or instead of, those below
};

inline std::string kill_of(int rank, int step) {
  return "rank=" + std::to_string(rank) + ",step=" + std::to_string(step) + ",fault=kill";
}

// 9 steps an epoch, 27 in all, a savepoint after every fourth and every epoch; the last batch is short and no multiple
// of the shards.
inline std::vector<std::string> digits_arguments(const DigitsRun& run, const TemporaryFolder& folder) {
  std::map<std::string, std::string> options = run.options;
  options.insert({{"--drawn", "600"},
                  {"--holdout", "50"},
                  {"--batch", "65"},
                  {"--epochs", "3"},
                  {"--shards", "4"},
                  {"--seed", "11"},
                  {"--save-every", "4"},
                  {"--replicas", std::to_string(run.replicas)},
                  {"--run-dir", folder / "run"},
                  {"--report", folder / "report.json"}});
  std::vector<std::string> arguments;
  for (const auto& [name, value] : options) arguments.insert(arguments.end(), {name, value});
  for (const std::string& fault : run.faults) arguments.insert(arguments.end(), {"--inject", fault});
  return arguments;
}

inline nlohmann::json report_of(const TemporaryFolder& folder) {
  return nlohmann::json::parse(read_file(folder / "report.json"));
}

// Its lines, oldest first.
inline std::vector<nlohmann::json> journal_of(const TemporaryFolder& folder) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(folder / "run/journal.jsonl");
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

// The report of a run that must succeed, with all restarts that the journal tells of: who dies in the last step may not
// be gone yet when the program writes its own list.
inline nlohmann::json completed(const DigitsRun& run) {
  const TemporaryFolder folder;
  const ProgramResult result = run_program(built_program("digits"), digits_arguments(run, folder));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  if (result.exit_code != 0)
    return {{"weights_digest", "failed"}, {"restarts", nlohmann::json::array()}, {"steps", -1}};
  nlohmann::json report = report_of(folder);
  report["restarts"] = nlohmann::json::array();
  for (const nlohmann::json& line : journal_of(folder)) {
    if (line.at("event") == "restart") report["restarts"].push_back(line.at("restart"));
  }
  return report;
}

// Of a run that nobody disturbs.
inline const std::string& undisturbed_digest() {
  static const std::string digest = completed({.replicas = 1}).at("weights_digest");
  return digest;
}

}  // namespace holdfast
