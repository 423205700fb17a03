#pragma once

// A scenario says what happens to the processes of a run, and what the supervisor decides each time. Its lines are
//
// policy replicas=2 when_lost=shrink ...      comes first, for values other than the defaults; durations are seconds.
//                                             With hosts=2, hosts_of_places=0,0,1,1 says where each place is
//   at 1.5 died member=1 [generation=0] [step=7] [count=3] [exit_code=3] [signal=9] [unrecoverable=1] [shards=4,2]
//      [host=1] [members=2,3 steps=7,-1] [what=the rest]
//     expect kill_process 1                     all actions that the event above leads to, in order;
//     expect finish 70: gave up...              a trailing "..." stands for any further text
//     because died without a report             a part of the reason
//
// Times are seconds. An event is of the newest generation unless it says otherwise. A # starts a comment.

#include <filesystem>
#include <string>
#include <vector>

#include "decide/supervisor.h"

namespace holdfast::recovery {

struct ScenarioStep {
  int line = 0;
  Moment moment;
  Event event;
  bool has_generation = false;
  std::vector<std::string> expected;
  std::vector<std::string> reasons;
};

struct Scenario {
  SupervisorPolicy policy{.recovery = {.stop_grace = std::chrono::seconds(8)}};
  std::vector<ScenarioStep> steps;
};

struct ToldStep {
  std::vector<std::string> actions;
  std::string reason;
  std::vector<DeviceSlotChange> device_slot_changes;
};

// One line, such as "set_timer in 0.100 s" or "record_failure of process 1: exited with code 3". Journals of old runs
// have actions in this form.
std::string describe(const Action& action, Moment now);

// Throws std::runtime_error that names the line when the file is not a scenario.
Scenario read_scenario(const std::filesystem::path& path);
// What the supervisor decides at each of the scenario's steps.
std::vector<ToldStep> tell(const Scenario& scenario);

}  // namespace holdfast::recovery
