#pragma once

// The actions of one decision, as its line of the journal has them:
//
//   "actions": [{"action": "cancel_generation", "generation": 3},
//               {"action": "start_process", "member": 5, "place": 1},
//               {"action": "open_generation", "generation": 4, "members": [0, 5], "shards": [3, 1]}]
//
// `members` and `shards` are in rank order, and so are `hosts`, which a run of several hosts has. Without `shards`,
// they are assigned evenly. "place" is the device slot. Old journals have each action as text ("start_process 5 on
// place 1"), which is read as well.

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "decide/supervisor.h"

namespace holdfast::recovery {

// A timer is written in seconds from `now` on.
nlohmann::json to_json(const Action& action, Moment now);

struct RecordedActions {
  std::vector<std::pair<int, int>> started{};  // members and their device slots
  std::set<int> killed{};
  std::optional<int> cancelled{};                       // generation
  std::optional<int> opened{};                          // generation
  std::vector<int> members{};                           // of the opened generation, by rank
  std::vector<std::pair<int, std::string>> failures{};  // members and causes
  std::optional<std::pair<int, std::string>> finish{};  // exit code and sentence

  bool has_failure_of(int member) const;
};

// Skips actions that it does not know. Throws nlohmann::json::exception when an action is neither an object nor text,
// or when an object lacks a value of its action.
RecordedActions recorded_actions(const nlohmann::json& line);

}  // namespace holdfast::recovery
