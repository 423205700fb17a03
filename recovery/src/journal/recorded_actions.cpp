// Actions as JSON, and back. Journals of old runs have actions as text, which reads like the lines of a scenario.
// `holdfast report` must go on reading them, so this parser stays as it is. See docs/decisions/journal.md.

#include "journal/recorded_actions.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string_view>
#include <system_error>

#include <nlohmann/json.hpp>

namespace holdfast::recovery {
namespace {

// For the text form: the number after `prefix`, if the text begins with it. `rest` becomes what follows the number.
std::optional<int> number_after(std::string_view text, std::string_view prefix, std::string_view* rest = nullptr) {
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (rest != nullptr) *rest = text;
  return number;
}

std::string_view without_prefix(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

// Takes the text form of old journals. At most one prefix fits. A text that fits none is about a timer or a request,
// which no report needs.
void take_text(const std::string& text, RecordedActions& actions) {
  std::string_view rest;
  if (const auto member = number_after(text, "start_process ", &rest)) {
    if (const auto slot = number_after(rest, " on place ")) actions.started.emplace_back(*member, *slot);
  }
  if (const auto member = number_after(text, "kill_process ")) actions.killed.insert(*member);
  if (const auto generation = number_after(text, "cancel_generation ")) actions.cancelled = generation;
  if (const auto failed = number_after(text, "record_failure of process ", &rest)) {
    actions.failures.emplace_back(*failed, without_prefix(rest, ": "));
  }
  if (const auto code = number_after(text, "finish ", &rest)) actions.finish.emplace(*code, without_prefix(rest, ": "));
  if (const auto generation = number_after(text, "open_generation ", &rest)) {
    actions.opened = generation;
    rest = without_prefix(rest, " with");
    while (const auto member = number_after(rest, " ", &rest)) actions.members.push_back(*member);
  }
}

// Takes the JSON form, in which to_json() writes actions. A missing value throws, and the report counts the line as one
// that Holdfast did not write.
void take_object(const nlohmann::json& action, RecordedActions& actions) {
  // Kinds that a report does not need, such as timers, are passed over.
  const std::string kind = action.at("action");
  if (kind == to_string(ActionKind::start_process))
    actions.started.emplace_back(action.at("member"), action.at("place"));
  if (kind == to_string(ActionKind::kill_process)) actions.killed.insert(action.at("member").get<int>());
  if (kind == to_string(ActionKind::cancel_generation)) actions.cancelled = action.at("generation").get<int>();
  if (kind == to_string(ActionKind::record_failure))
    actions.failures.emplace_back(action.at("member"), action.at("cause"));
  if (kind == to_string(ActionKind::finish)) actions.finish.emplace(action.at("exit_code"), action.at("sentence"));
  if (kind == to_string(ActionKind::open_generation)) {
    actions.opened = action.at("generation").get<int>();
    actions.members = action.at("members").get<std::vector<int>>();
  }
}

}  // namespace

nlohmann::json to_json(const Action& action, Moment now) {
  nlohmann::json json{{"action", to_string(action.kind)}};
  // Without a default: a new kind of action is a warning here until its values are written.
  switch (action.kind) {
    case ActionKind::start_process:
      json.update({{"member", action.member}, {"place", action.device_slot}});
      break;
    case ActionKind::cancel_generation:
      json["generation"] = action.generation;
      break;
    case ActionKind::kill_process:
      json["member"] = action.member;
      break;
    case ActionKind::open_generation:
      json.update({{"generation", action.generation}, {"members", action.members}});
      if (!action.shards.empty()) json["shards"] = action.shards;
      if (!action.hosts.empty()) json["hosts"] = action.hosts;
      break;
    case ActionKind::ask_to_regroup:
    case ActionKind::ask_to_stop:
      break;
    case ActionKind::set_timer:
      // The steady clock begins anew with each start of the machine, so a moment of it would tell a reader nothing.
      json["seconds"] = std::chrono::duration<double>(action.moment - now).count();
      break;
    case ActionKind::record_failure:
      // The line of the restart, which comes before this one, has generation, rank and step.
      json.update({{"member", action.member}, {"cause", action.text}});
      break;
    case ActionKind::finish:
      json.update({{"exit_code", action.exit_code}, {"sentence", action.text}});
      break;
  }
  return json;
}

bool RecordedActions::has_failure_of(int member) const {
  return std::any_of(failures.begin(), failures.end(),
                     [member](const auto& failure) { return failure.first == member; });
}

RecordedActions recorded_actions(const nlohmann::json& line) {
  RecordedActions actions;
  const auto recorded = line.find("actions");
  if (recorded == line.end()) return actions;
  // A journal may have both forms, when a later version has gone on with the run.
  for (const nlohmann::json& action : *recorded) {
    if (action.is_string()) {
      take_text(action, actions);
    } else {
      take_object(action, actions);
    }
  }
  return actions;
}

}  // namespace holdfast::recovery
