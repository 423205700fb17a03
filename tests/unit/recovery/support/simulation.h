#pragma once

// A whole run in virtual time. The supervisor decides, the simulated world obeys and has faults, and every promise of
// the supervisor is checked at every step. The same seed gives the same run.

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::recovery {

enum class Ending {
  finished,
  unrecoverable,
  gave_up_on_budget,
  gave_up_on_a_step,
  gave_up_on_a_process,
  gave_up_on_the_start,
  stopped
};

struct SimulatedRun {
  std::string violation{};  // empty: all promises were kept
  Ending ending = Ending::finished;
  int decisions = 0;
  int generations = 0;
  int failures = 0;
  bool went_on_with_survivors = false;
  bool computed_steps_again = false;
  bool regrouped = false;
  bool tried_a_place = false;   // that had been left out
  bool has_place_back = false;  // after that
  bool was_assigned_anew = false;
  int replaced_slow = 0;  // processes
  int lost_devices = 0;
  int lost_hosts = 0;
  int cuts = 0;  // of the network
  int agent_deaths = 0;
  int partings = 0;  // of two hosts
  int parted = 0;    // hosts without which the run went on for that
  int returned = 0;  // members, with a host that was lost
};

// `log` may be null. It gets a line for each event and decision.
SimulatedRun simulate(std::uint64_t seed, std::vector<std::string>* log = nullptr);
// The same for a run of two or three hosts.
SimulatedRun simulate_hosts(std::uint64_t seed, std::vector<std::string>* log = nullptr);

}  // namespace holdfast::recovery
