#pragma once

// The part of a run's report about hosts that were lost or left. A run on a single host has no such lines.

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "holdfast/recovery/run_report.h"

namespace holdfast::recovery {

class HostStory {
 public:
  // Another watchdog begins, which waits for all hosts anew.
  void begin_start();
  // `line` is a decision of the watchdog, and `noticed` the moment of its event. Throws nlohmann::json::exception when
  // the watchdog did not write such a line.
  void take_decision(const std::string& event, double noticed, const nlohmann::json& line);

  const std::vector<RunReport::Absence>& absences() const { return absences_; }

 private:
  std::vector<RunReport::Absence> absences_;
  std::set<int> there_;              // hosts that are part of the run
  std::map<int, std::size_t> open_;  // the absence of each host that is away
};

nlohmann::json to_json(const RunReport::Absence& absence);

}  // namespace holdfast::recovery
