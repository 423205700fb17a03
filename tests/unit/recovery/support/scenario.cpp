// Scenarios are read strictly: an unknown word or key fails the test, since a mistyped one would otherwise test
// nothing. docs/decisions/testing.md

#include "unit/recovery/support/scenario.h"

#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "decide/supervisor_text.h"

namespace holdfast::recovery {
namespace {

using Fields = std::map<std::string, std::string>;

std::chrono::milliseconds seconds(const std::string& text) {
  return std::chrono::round<std::chrono::milliseconds>(std::chrono::duration<double>(std::stod(text)));
}

EventKind event_kind(const std::string& name) {
  for (int kind = 0; kind <= static_cast<int>(EventKind::timer); ++kind) {
    if (to_string(static_cast<EventKind>(kind)) == name) return static_cast<EventKind>(kind);
  }
  throw std::runtime_error("unknown event " + name);
}

WhenLost when_lost(const std::string& name) {
  if (name == "wait") return WhenLost::wait;
  if (name == "shrink") return WhenLost::shrink;
  throw std::runtime_error("unknown when_lost " + name);
}

// "a=1 b=2 what=the rest"
Fields parse_fields(std::istringstream& words) {
  Fields fields;
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

bool needs_member(EventKind kind) {
  switch (kind) {
    case EventKind::start:
    case EventKind::assignment_proposed:
    case EventKind::device_slot_lost:
    case EventKind::directory_lost:
    case EventKind::progressed:
    case EventKind::scale_requested:
    case EventKind::stop_requested:
    case EventKind::host_joined:
    case EventKind::host_lost:
    case EventKind::fence_passed:
    case EventKind::host_returned:
    case EventKind::host_leaving:
    case EventKind::hosts_cut:
    case EventKind::timer:
      return false;
    default:
      return true;
  }
}

// "4,2"
std::vector<int> numbers_in(const std::string& value) {
  std::vector<int> numbers;
  std::istringstream words(value);
  for (std::string word; std::getline(words, word, ',');) numbers.push_back(std::stoi(word));
  return numbers;
}

void set_field(Event& event, const std::string& key, const std::string& value) {
  if (key == "what") {
    event.what = value;
  } else if (key == "unrecoverable") {
    event.is_unrecoverable = value == "1";
  } else if (key == "joining") {
    event.is_joining = value == "1";
  } else if (key == "step") {
    event.step = std::stoll(value);
  } else if (key == "shards") {
    event.shards = numbers_in(value);
  } else if (key == "members") {
    event.members = numbers_in(value);
  } else if (key == "steps") {
    for (const int step : numbers_in(value)) event.steps.push_back(step);
  } else {
    static const std::map<std::string, int Event::*> numbers{
        {"member", &Event::member},       {"generation", &Event::generation},
        {"count", &Event::count},         {"place", &Event::device_slot},
        {"exit_code", &Event::exit_code}, {"signal", &Event::signal},
        {"host", &Event::host},           {"peer", &Event::peer}};
    const auto number = numbers.find(key);
    if (number == numbers.end()) throw std::runtime_error("unknown field " + key);
    event.*number->second = std::stoi(value);
  }
}

ScenarioStep parse_step(std::istringstream& words) {
  ScenarioStep step;
  std::string moment;
  std::string kind;
  words >> moment >> kind;
  step.moment = Moment{} + seconds(moment);
  step.event.kind = event_kind(kind);
  const Fields fields = parse_fields(words);
  for (const auto& [key, value] : fields) set_field(step.event, key, value);
  if (needs_member(step.event.kind) != fields.contains("member")) throw std::runtime_error("member= with " + kind);
  step.has_generation = fields.contains("generation");
  return step;
}

void set_policy(SupervisorPolicy& policy, const std::string& key, const std::string& value) {
  static const std::map<std::string, int SupervisorPolicy::*> numbers{
      {"replicas", &SupervisorPolicy::replicas},
      {"places", &SupervisorPolicy::device_slots},
      {"hosts", &SupervisorPolicy::hosts},
      {"failures_of_a_step", &SupervisorPolicy::failures_of_a_step},
      {"kills_of_a_start", &SupervisorPolicy::kills_of_a_start},
      {"failures_of_a_place", &SupervisorPolicy::failures_of_a_slot}};
  static const std::map<std::string, int RecoveryOptions::*> counts{{"spares", &RecoveryOptions::spares},
                                                                    {"max_restarts", &RecoveryOptions::max_restarts}};
  static const std::map<std::string, std::chrono::milliseconds RecoveryOptions::*> durations{
      {"restart_window", &RecoveryOptions::restart_window},
      {"place_rest", &RecoveryOptions::place_rest},
      {"stop_grace", &RecoveryOptions::stop_grace}};
  if (const auto count = counts.find(key); count != counts.end()) {
    policy.recovery.*count->second = std::stoi(value);
  } else if (const auto number = numbers.find(key); number != numbers.end()) {
    policy.*number->second = std::stoi(value);
  } else if (const auto duration = durations.find(key); duration != durations.end()) {
    policy.recovery.*duration->second = seconds(value);
  } else if (key == "hosts_of_places") {
    policy.slot_hosts = numbers_in(value);
  } else if (key == "join_timeout") {
    policy.join_timeout = seconds(value);
  } else if (key == "kill_timeout") {
    policy.restart.kill_timeout = seconds(value);
  } else if (key == "longest_place_rest") {
    policy.longest_slot_rest = seconds(value);
  } else if (key == "start_delay") {
    policy.start_delay = seconds(value);
  } else if (key == "start_when_gone") {
    policy.starts_when_gone = value == "1";
  } else if (key == "keep_survivors") {
    policy.keep_survivors = value == "1";
  } else if (key == "all_start_together") {
    policy.all_start_together = value == "1";
  } else if (key == "when_lost") {
    policy.recovery.when_lost = when_lost(value);
  } else {
    throw std::runtime_error("unknown policy " + key);
  }
}

void parse_line(const std::string& line, int number, Scenario& scenario) {
  std::istringstream words(line.substr(0, line.find('#')));
  std::string word;
  if (!(words >> word)) return;
  std::string rest;
  if (word == "policy") {
    for (const auto& [key, value] : parse_fields(words)) set_policy(scenario.policy, key, value);
  } else if (word == "at") {
    scenario.steps.push_back(parse_step(words));
    scenario.steps.back().line = number;
  } else if (word == "expect" && !scenario.steps.empty() && std::getline(words >> std::ws, rest)) {
    scenario.steps.back().expected.push_back(rest);
  } else if (word == "because" && !scenario.steps.empty() && std::getline(words >> std::ws, rest)) {
    scenario.steps.back().reasons.push_back(rest);
  } else {
    throw std::runtime_error("it is not a line of a scenario");
  }
}

}  // namespace

std::string describe(const Action& action, Moment now) {
  const std::string_view name = to_string(action.kind);
  switch (action.kind) {
    case ActionKind::start_process:
      return fmt::format("{} {} on place {}", name, action.member, action.device_slot);
    case ActionKind::cancel_generation:
      return fmt::format("{} {}", name, action.generation);
    case ActionKind::kill_process:
      return fmt::format("{} {}", name, action.member);
    case ActionKind::open_generation: {
      std::string opened = fmt::format("{} {} with {}", name, action.generation, fmt::join(action.members, " "));
      if (!action.hosts.empty()) opened += fmt::format(" on hosts {}", fmt::join(action.hosts, " "));
      return action.shards.empty() ? opened : fmt::format("{} dealt {}", opened, fmt::join(action.shards, " "));
    }
    case ActionKind::ask_to_regroup:
    case ActionKind::ask_to_stop:
      return std::string(name);
    case ActionKind::set_timer:
      return fmt::format("{} in {}", name, seconds(action.moment - now));
    case ActionKind::record_failure:
      return fmt::format("{} of process {}: {}", name, action.member, action.text);
    case ActionKind::finish:
      return fmt::format("{} {}: {}", name, action.exit_code, action.text);
  }
  return "unknown";
}

Scenario read_scenario(const std::filesystem::path& path) {
  Scenario scenario;
  std::ifstream file(path);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    try {
      parse_line(line, ++number, scenario);
    } catch (const std::exception& error) {
      throw std::runtime_error(path.string() + " line " + std::to_string(number) + ", \"" + line +
                               "\": " + error.what());
    }
  }
  if (scenario.steps.empty()) throw std::runtime_error("no scenario in " + path.string());
  return scenario;
}

std::vector<ToldStep> tell(const Scenario& scenario) {
  State state = initial_state(scenario.policy, 0);
  std::vector<ToldStep> told;
  for (const ScenarioStep& step : scenario.steps) {
    Event event = step.event;
    if (!step.has_generation) event.generation = state.generation;
    Decision decision = decide(state, event, step.moment);
    ToldStep& of_this = told.emplace_back();
    of_this.reason = decision.reason;
    of_this.device_slot_changes = decision.device_slot_changes;
    for (const Action& action : decision.actions) of_this.actions.push_back(describe(action, step.moment));
    state = std::move(decision.state);
  }
  return told;
}

}  // namespace holdfast::recovery
