#include "run_record.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

namespace holdfast::resilience {
namespace {

using nlohmann::json;

void for_each_line(const std::string& run_directory, const std::function<void(const json&)>& look) {
  std::ifstream file(run_directory + "/journal.jsonl");
  for (std::string text; std::getline(file, text);) {
    const json line = json::parse(text, nullptr, false);
    if (line.is_object() && line.contains("event") && line.at("event").is_string()) look(line);
  }
}

// "finish 70: the restart budget is spent" among what the watchdog did.
void take_end(const json& line, RunResult& result) {
  for (const json& action : line.value("actions", json::array())) {
    const std::string text = action.is_string() ? action.get<std::string>() : "";
    const std::size_t colon = text.find(": ");
    if (text.starts_with("finish ") && colon != std::string::npos) result.sentence = text.substr(colon + 2);
  }
}

void take(const json& line, RunResult& result) {
  const std::string event = line.at("event");
  if (event == "watchdog_started" && result.replicas == 0) result.replicas = line.at("replicas").get<int>();
  if (event == "corruption_injected") ++result.corruptions;
  if (event == "rolled_back") ++result.roll_backs;
  if (event == "fit_finished") {
    const json& details = line.at("details");
    result.last_fit = FinishedFit{.step = details.at("step").get<std::int64_t>(),
                                  .weights_digest = details.at("weights_digest").get<std::string>()};
  }
  if (line.contains("restart")) {
    const json& lost = line.at("restart");
    result.lost.push_back({.generation = lost.at("generation").get<int>(),
                           .rank = lost.at("rank").get<int>(),
                           .step = lost.at("step").get<std::int64_t>(),
                           .cause = lost.at("cause").get<std::string>()});
  }
  take_end(line, result);
}

int marks_of_faults(const std::string& run_directory) {
  std::error_code none;
  const std::filesystem::directory_iterator marks(run_directory + "/faults", none);
  return none ? 0 : static_cast<int>(std::distance(begin(marks), end(marks)));
}

}  // namespace

void read_record(const std::string& run_directory, RunResult& result) {
  for_each_line(run_directory, [&](const json& line) {
    try {
      take(line, result);
    } catch (const json::exception&) {
      // A line that a program wrote through a replica may have any form.
    }
  });
  result.faults_struck = marks_of_faults(run_directory);
}

int watchdog_pid(const std::string& run_directory) {
  int pid = 0;
  for_each_line(run_directory, [&](const json& line) {
    if (line.at("event") == "watchdog_started" && line.contains("pid") && line.at("pid").is_number_integer())
      pid = line.at("pid").get<int>();
  });
  return pid;
}

}  // namespace holdfast::resilience
