#pragma once

// The part of a run's report about slow replicas: since when each was slow, and what was done about it.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "holdfast/recovery/run_report.h"
#include "journal/recorded_actions.h"

namespace holdfast::recovery {

// Takes the lines of a journal in their order. A line that the watchdog did not write makes the functions throw
// nlohmann::json::exception, and changes nothing.
class SlowStory {
 public:
  // Another watchdog begins; the processes of the one before it are gone.
  void begin_start();
  void take_straggler(double time, const nlohmann::json& line);
  void take_assignment(double time, const nlohmann::json& line);
  void take_decision(const std::string& event, double time, const nlohmann::json& line, const RecordedActions& actions);

  const std::vector<RunReport::SlowReplica>& replicas() const { return replicas_; }

 private:
  using Ending = RunReport::SlowReplica::Ending;

  RunReport::SlowReplica* slow_now(int member);
  void end(int member, Ending ending, double time);
  void note_successors(const std::vector<int>& by_rank);

  std::vector<RunReport::SlowReplica> replicas_;
  // Indices below are those of replicas_.
  std::map<int, int> device_slots_;      // device slots, by member
  std::vector<int> members_;             // of the newest generation, by rank
  std::map<int, std::size_t> open_;      // replicas that are slow, by member
  std::vector<std::size_t> unevenly_;    // replicas for which shards are assigned unevenly
  std::vector<std::size_t> to_succeed_;  // replicas that were replaced, without a successor yet
};

nlohmann::json to_json(const RunReport::SlowReplica& replica);

}  // namespace holdfast::recovery
