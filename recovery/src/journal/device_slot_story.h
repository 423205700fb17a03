#pragma once

// The part of a run's report about device slots that were left out for a rest.

#include <cstddef>
#include <map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "holdfast/recovery/run_report.h"

namespace holdfast::recovery {

class DeviceSlotStory {
 public:
  // Another watchdog begins, for which all device slots are well.
  void begin_start() { open_.clear(); }
  // `line` is a decision of the watchdog. `incident` is the index of the incident of its member, or -1. Throws
  // nlohmann::json::exception or Error{invalid_file} when the watchdog did not write such a line.
  void take_decision(double time, const nlohmann::json& line, int incident);

  const std::vector<RunReport::Rest>& rests() const { return rests_; }

 private:
  std::vector<RunReport::Rest> rests_;
  std::map<int, std::size_t> open_;  // the newest rest of each device slot
};

nlohmann::json to_json(const RunReport::Rest& rest);

}  // namespace holdfast::recovery
