#pragma once

// A run of the digits example on drawn digits, small enough to be repeated a hundred times.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/comes_true.h"
#include "support/program.h"
#include "support/text/whole_lines.h"

namespace holdfast {

struct DigitsRun {
  int replicas = 2;
  std::vector<std::string> faults{};
  std::map<std::string, std::string> options{};  // added to the options below, or replacing them
};

inline std::string kill_of(int rank, int step) {
  return "rank=" + std::to_string(rank) + ",step=" + std::to_string(step) + ",fault=kill";
}

// 9 steps an epoch, 27 in all. A savepoint follows every fourth step and every epoch. The last batch is short, and not
// a multiple of the shards.
inline std::vector<std::string> digits_arguments(const DigitsRun& run, const TemporaryFolder& folder) {
  std::map<std::string, std::string> options = run.options;
  options.insert({{"--drawn", "80"},
                  {"--holdout", "10"},
                  {"--batch", "8"},
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

// The lines of the journal, oldest first.
inline std::vector<nlohmann::json> journal_of(const TemporaryFolder& folder) {
  std::vector<nlohmann::json> lines;
  for (const std::string& line : whole_lines(folder / "run/journal.jsonl"))
    lines.push_back(nlohmann::json::parse(line));
  return lines;
}

// The report of a successful run, with all restarts of the journal. A replica that dies in the last step may still be
// alive when the program writes its own list.
inline nlohmann::json report_with_restarts(const TemporaryFolder& folder) {
  nlohmann::json report = report_of(folder);
  report["restarts"] = nlohmann::json::array();
  for (const nlohmann::json& line : journal_of(folder)) {
    if (line.at("event") == "restart") report["restarts"].push_back(line.at("restart"));
  }
  return report;
}

// The same for a run that must succeed.
inline nlohmann::json completed(const DigitsRun& run) {
  const TemporaryFolder folder;
  const ProgramResult result = run_program(built_program("digits"), digits_arguments(run, folder));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  if (result.exit_code != 0)
    return {{"weights_digest", "failed"}, {"restarts", nlohmann::json::array()}, {"steps", -1}};
  return report_with_restarts(folder);
}

// A run whose ranks in `hung` all hang in the middle of a step, until the test ends them. So all processes exist when
// some are killed, and those to be killed are at the same step. Where faults kill them, both are chance.
class HeldRun {
 public:
  HeldRun(DigitsRun run, std::vector<int> hung, int step, const TemporaryFolder& folder)
      : folder_(folder), hung_(std::move(hung)), processes_(static_cast<std::size_t>(run.replicas)) {
    for (const int rank : hung_) {
      run.faults.push_back("rank=" + std::to_string(rank) + ",step=" + std::to_string(step) + ",fault=hang");
    }
    if (run.options.contains("--spares")) processes_ += std::stoul(run.options.at("--spares"));
    run.options.insert({"--hang-after", "300"});
    program_.emplace(built_program("digits"), digits_arguments(run, folder));
  }

  // Until the ranks hang, and all processes that were started, spares too, are ready.
  void wait_until_held() const {
    EXPECT_TRUE(comes_true([this] { return faults_fired() == hung_.size() && ready().size() == processes_; }));
  }

  ProgramResult kill_and_wait() {
    wait_until_held();
    for (const int rank : hung_) kill(rank);
    return wait();
  }
  // Kills what had this rank in the first generation.
  void kill(int rank) const { ::kill(ready().at(first_members().at(static_cast<std::size_t>(rank))), SIGKILL); }
  ProgramResult wait() { return program_->wait(); }

  std::size_t faults_fired() const {
    if (!std::filesystem::exists(folder_ / "run/faults")) return 0;
    const std::filesystem::directory_iterator entries(folder_ / "run/faults");
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
  }

 private:
  // The process numbers of the members.
  std::map<int, int> ready() const {
    std::map<int, int> pids;
    for (const nlohmann::json& line : journal_of(folder_)) {
      if (line.at("event") == "ready") pids.emplace(line.at("member").get<int>(), line.at("pid").get<int>());
    }
    return pids;
  }

  std::vector<int> first_members() const {
    for (const nlohmann::json& line : journal_of(folder_)) {
      for (const nlohmann::json& action : line.value("actions", nlohmann::json::array())) {
        if (action.at("action") == "open_generation" && action.at("generation") == 0) return action.at("members");
      }
    }
    return {};
  }

  const TemporaryFolder& folder_;
  const std::vector<int> hung_;
  std::size_t processes_;
  std::optional<RunningProgram> program_;
};

// The digest of the weights of an undisturbed run.
inline const std::string& undisturbed_digest() {
  static const std::string digest = completed({.replicas = 1}).at("weights_digest");
  return digest;
}

}  // namespace holdfast
