#pragma once

// What the supervisor did with one decision, as the line of the journal that tells of it has it:
//
//   "actions": [{"action": "cancel_generation", "generation": 3},
//               {"action": "start_process", "member": 5, "place": 1},
//               {"action": "open_generation", "generation": 4, "members": [0, 5], "shards": [3, 1]}]
//
// `members` and `shards` are in the order of ranks; without `shards` each rank has as many as the others. Earlier
// journals have the same as text ("start_process 5 on place 1").

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "decide/supervisor.h"

namespace holdfast::recovery {

// A timer is given in seconds from `now` on.
nlohmann::json to_json(const Action& action, Moment now);

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

// Passes over actions that it does not know. Throws nlohmann::json::exception where the line has something else than
// objects or text for actions, or an object lacks what belongs to its action.
RecordedActions recorded_actions(const nlohmann::json& line);

}  // namespace holdfast::recovery
