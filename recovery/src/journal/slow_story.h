#pragma once

// The part of a run's report that tells of slow replicas: since when, and what was done about each.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "holdfast/recovery/run_report.h"
#include "journal/recorded_actions.h"

namespace holdfast::recovery {

// Takes the lines of a journal in their order. Its functions throw nlohmann::json::exception for a line that is not as
// the watchdog writes it, and keep what they had.
class SlowStory {
 public:
  // Another watchdog: what was known of processes is over.
  void begin_start();
  void take_standing(double time, const nlohmann::json& line);
  void take_deal(double time, const nlohmann::json& line);
  void take_decision(const std::string& event, double time, const nlohmann::json& line, const RecordedActions& actions);

  const std::vector<RunReport::SlowReplica>& replicas() const { return replicas_; }

 private:
  using Ending = RunReport::SlowReplica::Ending;

  RunReport::SlowReplica* slow_now(int member);
  void end(int member, Ending ending, double time);
  void note_successors(const std::vector<int>& by_rank);

  std::vector<RunReport::SlowReplica> replicas_;
  std::map<int, int> places_;            // by member
  std::vector<int> members_;             // of the newest generation, by rank
  std::map<int, std::size_t> open_;      // those that are slow, by member
  std::vector<std::size_t> unevenly_;    // those for whom shards are dealt unevenly
  std::vector<std::size_t> to_succeed_;  // those that were replaced by nobody yet
};

nlohmann::json to_json(const RunReport::SlowReplica& replica);

}  // namespace holdfast::recovery
