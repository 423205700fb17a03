#include "journal/recorded_actions.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

#include <nlohmann/json.hpp>

namespace holdfast::recovery {
namespace {

// The number behind `prefix`, if the text begins so; `rest` is what follows.
std::optional<int> number_behind(std::string_view text, std::string_view prefix, std::string_view* rest = nullptr) {
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

void take(const std::string& text, RecordedActions& actions) {
  std::string_view rest;
  if (const auto member = number_behind(text, "start_process ", &rest)) {
    if (const auto place = number_behind(rest, " on place ")) actions.started.emplace_back(*member, *place);
  }
  if (const auto member = number_behind(text, "kill_process ")) actions.killed.insert(*member);
  if (const auto generation = number_behind(text, "cancel_generation ")) actions.cancelled = generation;
  if (const auto failed = number_behind(text, "record_failure of process ", &rest)) {
    actions.failures.emplace_back(*failed, without_prefix(rest, ": "));
  }
  if (const auto code = number_behind(text, "finish ", &rest))
    actions.finish.emplace(*code, without_prefix(rest, ": "));
  if (const auto generation = number_behind(text, "open_generation ", &rest)) {
    actions.opened = generation;
    rest = without_prefix(rest, " with");
    while (const auto member = number_behind(rest, " ", &rest)) actions.members.push_back(*member);
  }
}

}  // namespace

bool RecordedActions::has_failure_of(int member) const {
  return std::any_of(failures.begin(), failures.end(),
                     [member](const auto& failure) { return failure.first == member; });
}

RecordedActions recorded_actions(const nlohmann::json& line) {
  RecordedActions actions;
  const auto texts = line.find("actions");
  if (texts == line.end()) return actions;
  for (const nlohmann::json& text : *texts) take(text.get<std::string>(), actions);
  return actions;
}

}  // namespace holdfast::recovery
