#pragma once

// What the supervisor did with one decision, read back from the line of the journal that tells of it.

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace holdfast::recovery {

// From the lines that describe() makes of actions.
struct RecordedActions {
  std::vector<std::pair<int, int>> started{};  // members and their places
  std::set<int> killed{};
  std::optional<int> cancelled{};  // generation
  std::optional<int> opened{};     // generation
  std::vector<int> members{};      // of it, by rank
  std::vector<std::pair<int, std::string>> failures{};
  std::optional<std::pair<int, std::string>> finish{};

  bool has_failure_of(int member) const;
};

// Throws nlohmann::json::exception where the line has other things than text for actions.
RecordedActions recorded_actions(const nlohmann::json& line);

}  // namespace holdfast::recovery
