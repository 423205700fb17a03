// Runs tests/scenarios/*.scenario against the supervisor. A scenario is lines of
//
//   replicas 2                                    first of all; with policy NAME=SECONDS_OR_COUNT... where it matters
//   at 1.5 died rank=1 [generation=0] [exit_code=3] [signal=9] [unrecoverable=1] [what=the rest of the line]
//     expect kill_all                             all actions that the event above leads to, in order;
//     expect finish 70: gave up...                a trailing "..." stands for any further text
//     because all processes                       a part of the reason
//
// Times are seconds. An event is of the current generation unless it says otherwise. A # starts a comment.

#include "supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::recovery {
namespace {

using testing::HasSubstr;

struct Step {
  int line = 0;
  Moment moment;
  Event event;
  bool has_generation = false;
  std::vector<std::string> expected;
  std::vector<std::string> reasons;
};

struct Scenario {
  int replicas = 1;
  RestartPolicy policy;
  std::vector<Step> steps;
};

std::chrono::milliseconds seconds(const std::string& text) {
  return std::chrono::round<std::chrono::milliseconds>(std::chrono::duration<double>(std::stod(text)));
}

EventKind event_kind(const std::string& name) {
  for (int kind = 0; kind <= static_cast<int>(EventKind::timer); ++kind) {
    if (to_string(static_cast<EventKind>(kind)) == name) return static_cast<EventKind>(kind);
  }
  throw std::runtime_error("unknown event " + name);
}

// "a=1 b=2 what=the rest"
std::map<std::string, std::string> parse_fields(std::istringstream& words) {
  std::map<std::string, std::string> fields;
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) throw std::runtime_error("no KEY=VALUE: " + word);
    std::string& value = fields[word.substr(0, equals)];
    value = word.substr(equals + 1);
    if (!word.starts_with("what=")) continue;
    std::string rest;
    std::getline(words, rest);
    value += rest;
  }
  return fields;
}

Step parse_step(std::istringstream& words) {
  Step step;
  std::string moment;
  std::string kind;
  words >> moment >> kind;
  step.moment = Moment{} + seconds(moment);
  step.event.kind = event_kind(kind);
  for (const auto& [key, value] : parse_fields(words)) {
    if (key == "rank") {
      step.event.rank = std::stoi(value);
    } else if (key == "generation") {
      step.event.generation = std::stoi(value);
      step.has_generation = true;
    } else if (key == "exit_code") {
      step.event.exit_code = std::stoi(value);
    } else if (key == "signal") {
      step.event.signal = std::stoi(value);
    } else if (key == "unrecoverable") {
      step.event.is_unrecoverable = value == "1";
    } else if (key == "what") {
      step.event.what = value;
    } else {
      throw std::runtime_error("unknown field " + key);
    }
  }
  return step;
}

void parse_policy(std::istringstream& words, RestartPolicy& policy) {
  for (const auto& [key, value] : parse_fields(words)) {
    if (key == "max_restarts") {
      policy.max_restarts = std::stoi(value);
    } else if (key == "restart_window") {
      policy.restart_window = seconds(value);
    } else if (key == "stop_grace") {
      policy.stop_grace = seconds(value);
    } else {
      throw std::runtime_error("unknown policy " + key);
    }
  }
}

void parse_line(const std::string& line, int number, Scenario& scenario) {
  std::istringstream words(line.substr(0, line.find('#')));
  std::string word;
  if (!(words >> word)) return;
  std::string rest;
  if (word == "replicas") {
    words >> scenario.replicas;
  } else if (word == "policy") {
    parse_policy(words, scenario.policy);
  } else if (word == "at") {
    scenario.steps.push_back(parse_step(words));
    scenario.steps.back().line = number;
  } else if (word == "expect" && std::getline(words >> std::ws, rest)) {
    scenario.steps.at(scenario.steps.size() - 1).expected.push_back(rest);
  } else if (word == "because" && std::getline(words >> std::ws, rest)) {
    scenario.steps.at(scenario.steps.size() - 1).reasons.push_back(rest);
  } else {
    throw std::runtime_error("line " + std::to_string(number) + " is no line of a scenario: " + line);
  }
}

Scenario read_scenario(const std::filesystem::path& path) {
  Scenario scenario;
  std::ifstream file(path);
  int number = 0;
  for (std::string line; std::getline(file, line);) parse_line(line, ++number, scenario);
  if (scenario.steps.empty()) throw std::runtime_error("no scenario in " + path.string());
  return scenario;
}

bool is_as_expected(const std::string& actual, const std::string& expected) {
  if (!expected.ends_with("...")) return actual == expected;
  return actual.starts_with(expected.substr(0, expected.size() - 3));
}

void check_step(const Step& step, const Decision& decision) {
  std::vector<std::string> actual;
  for (const Action& action : decision.actions) actual.push_back(describe(action, step.moment));

  EXPECT_TRUE(std::equal(actual.begin(), actual.end(), step.expected.begin(), step.expected.end(), is_as_expected))
      << "line " << step.line << ": actions are " << testing::PrintToString(actual) << ", expected "
      << testing::PrintToString(step.expected);
  EXPECT_FALSE(decision.reason.empty()) << "line " << step.line;
  for (const std::string& reason : step.reasons) {
    EXPECT_THAT(decision.reason, HasSubstr(reason)) << "line " << step.line;
  }
}

std::vector<std::filesystem::path> scenario_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(HOLDFAST_SOURCE_DIR "/tests/scenarios")) {
    if (entry.path().extension() == ".scenario") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class SupervisorScenario : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(SupervisorScenario, GoesAsWritten) {
  const Scenario scenario = read_scenario(GetParam());
  State state = initial_state(scenario.replicas, scenario.policy, 0);

  for (Step step : scenario.steps) {
    if (!step.has_generation) step.event.generation = state.generation;
    Decision decision = decide(state, step.event, step.moment);
    check_step(step, decision);
    state = std::move(decision.state);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, SupervisorScenario, testing::ValuesIn(scenario_files()),
                         [](const auto& file) { return file.param.stem().string(); });

TEST(Supervisor, HasScenarios) {
  EXPECT_FALSE(scenario_files().empty());
}

TEST(Supervisor, StartsAtTheGenerationThatItIsGiven) {
  const State state = initial_state(2, {}, 7);

  const Decision decision = decide(state, {.kind = EventKind::start}, Moment{});

  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(describe(decision.actions[0], Moment{}), "start_generation 7");
}

TEST(Supervisor, LeavesTheStateThatItWasGivenAsItWas) {
  const State state = initial_state(2, {}, 0);

  static_cast<void>(decide(state, {.kind = EventKind::start}, Moment{}));

  EXPECT_EQ(state.phase, RunPhase::idle);
}

TEST(Supervisor, RecordsWhenAFailureWasDetectedAndNotWhenItsProcessWasGone) {
  const Moment detected = Moment{} + std::chrono::seconds(5);
  State state = initial_state(1, {}, 0);
  state = decide(state, {.kind = EventKind::start}, Moment{}).state;
  state = decide(state, {.kind = EventKind::died}, detected).state;

  const Decision decision = decide(state, {.kind = EventKind::exited, .signal = 9}, detected + std::chrono::seconds(1));

  ASSERT_FALSE(decision.actions.empty());
  EXPECT_EQ(decision.actions[0].kind, ActionKind::record_restart);
  EXPECT_EQ(decision.actions[0].moment, detected);
}

}  // namespace
}  // namespace holdfast::recovery
