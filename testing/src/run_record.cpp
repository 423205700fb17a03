// A run under test is known by its journal and by the marks of faults that struck. The program is not asked, so any
// program can be tested. See docs/decisions/testing.md.

#include "run_record.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "holdfast/base/whole_number.h"

namespace holdfast::resilience {
namespace {

using Json = nlohmann::json;
using ReplicasOfGenerations = std::map<int, int>;

void for_each_line(const std::string& run_directory, const std::function<void(const Json&)>& look) {
  // A run that ended before its watchdog began has no journal, and then there are no lines.
  std::ifstream file(run_directory + "/journal.jsonl");
  for (std::string text; std::getline(file, text);) {
    const Json line = Json::parse(text, nullptr, false);
    if (line.is_object() && line.contains("event") && line.at("event").is_string()) look(line);
  }
}

// The line's actions of one kind, such as {"action": "finish", "exit_code": 70, "sentence": "..."}.
std::vector<Json> actions_of(const Json& line, const std::string& kind) {
  std::vector<Json> found;
  for (const Json& action : line.value("actions", Json::array())) {
    if (action.is_object() && action.value("action", "") == kind) found.push_back(action);
  }
  return found;
}

// Other savepoints than the run's own have names that the application chose, and no fault strikes there.
void take_savepoint(const Json& details, std::vector<std::int64_t>& steps) {
  const std::filesystem::path path = details.at("path").get<std::string>();
  const auto step = details.at("step").get<std::int64_t>();
  const auto place = std::lower_bound(steps.begin(), steps.end(), step);
  const bool is_known = place != steps.end() && *place == step;
  if (path.filename().string().starts_with("savepoint-") && !is_known) steps.insert(place, step);
}

// Generations are collected on the way, because a corruption is judged by how many replicas were left.
void take(const Json& line, ReplicasOfGenerations& replicas_of, RunResult& result) {
  const std::string event = line.at("event");
  if (event == "watchdog_started" && result.replicas == 0) result.replicas = line.at("replicas").get<int>();
  if (event == "corruption_injected") {
    const int generation = line.at("generation").get<int>();
    const auto replicas = replicas_of.find(generation);
    result.corruptions.push_back({.generation = generation,
                                  .rank = line.at("rank").get<int>(),
                                  .step = line.at("details").at("step").get<std::int64_t>(),
                                  .replicas = replicas == replicas_of.end() ? 0 : replicas->second});
  }
  if (event == "rolled_back") ++result.roll_backs;
  if (event == "savepoint") take_savepoint(line.at("details"), result.savepoint_steps);
  if (event == "fit_finished") {
    const Json& details = line.at("details");
    result.last_fit = FinishedFit{.step = details.at("step").get<std::int64_t>(),
                                  .weights_digest = details.at("weights_digest").get<std::string>()};
  }
  if (line.contains("restart")) {
    const Json& lost = line.at("restart");
    result.lost.push_back({.generation = lost.at("generation").get<int>(),
                           .rank = lost.at("rank").get<int>(),
                           .step = lost.at("step").get<std::int64_t>(),
                           .cause = lost.at("cause").get<std::string>()});
  }
  for (const Json& action : actions_of(line, "open_generation")) {
    replicas_of[action.at("generation").get<int>()] = static_cast<int>(action.at("members").size());
  }
  for (const Json& action : actions_of(line, "finish")) result.sentence = action.at("sentence");
}

// A mark is a file with the name "INDEX-DIGEST.fired".
void take_marks_of_faults(const std::string& run_directory, RunResult& result) {
  std::error_code none;
  for (const auto& mark : std::filesystem::directory_iterator(run_directory + "/faults", none)) {
    ++result.faults_struck;
    const std::string name = mark.path().filename().string();
    const std::optional<int> index = whole_number<int>(name.substr(0, name.find('-')));
    if (index) result.struck.push_back(*index);
  }
  std::sort(result.struck.begin(), result.struck.end());
}

// The last line that is not empty.
std::string last_line(const std::string& output) {
  const std::size_t last = output.find_last_not_of(" \r\n");
  if (last == std::string::npos) return {};
  const std::size_t before = output.find_last_of("\r\n", last);
  const std::size_t first = before == std::string::npos ? 0 : before + 1;
  return output.substr(first, last - first + 1);
}

}  // namespace

void read_record(const std::string& run_directory, RunResult& result) {
  ReplicasOfGenerations replicas_of;
  for_each_line(run_directory, [&](const Json& line) {
    try {
      take(line, replicas_of, result);
    } catch (const Json::exception&) {
      // A program may report events of any form through its replicas.
    }
  });
  take_marks_of_faults(run_directory, result);
  // A program that failed before it had a watchdog wrote no journal, and says why in its output.
  if (result.sentence.empty()) result.sentence = last_line(result.output);
}

// The last one counts: a run may have been started several times.
int watchdog_pid(const std::string& run_directory) {
  int pid = 0;
  for_each_line(run_directory, [&](const Json& line) {
    if (line.at("event") == "watchdog_started" && line.contains("pid") && line.at("pid").is_number_integer())
      pid = line.at("pid").get<int>();
  });
  return pid;
}

}  // namespace holdfast::resilience
