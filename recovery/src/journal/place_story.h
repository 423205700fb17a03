#pragma once

// The part of a run's report that tells of places that were left out for a rest.

#include <cstddef>
#include <map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "holdfast/recovery/run_report.h"

namespace holdfast::recovery {

class PlaceStory {
 public:
  // Another watchdog, to which all places are well.
  void begin_start() { open_.clear(); }
  // `line` tells of a decision; `incident` is that of the process which it is about, -1 without one. Throws
  // nlohmann::json::exception or Error{invalid_file} for a line that is not as the watchdog writes it.
  void take_decision(double time, const nlohmann::json& line, int incident);

  const std::vector<RunReport::Rest>& rests() const { return rests_; }

 private:
  std::vector<RunReport::Rest> rests_;
  std::map<int, std::size_t> open_;  // the newest of each place, by place
};

nlohmann::json to_json(const RunReport::Rest& rest);

}  // namespace holdfast::recovery
