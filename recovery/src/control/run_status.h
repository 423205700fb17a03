#pragma once

// What `holdfast status` shows: the supervisor's view of a run, and how fast each process trains, which repeated
// looks at it show. The caller passes the time.

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "decide/supervisor.h"
#include "holdfast/recovery/phase.h"
#include "holdfast/recovery/restart.h"
#include "journal/journal.h"

namespace holdfast::recovery {

// The counters of a process at one moment.
struct MemberStatus {
  int pid = 0;
  std::int64_t step = -1;
  Phase phase = Phase::starting;
  std::uint64_t progress = 0;  // counts heartbeats
  std::uint64_t samples = 0;   // that it has trained on
  int shards = 0;              // that it computes in a step of the newest generation; 0: not reported
};

// Samples per second over the last kWindow.
class SampleRate {
 public:
  static constexpr std::chrono::seconds kWindow{10};

  void look(std::uint64_t samples, Moment now);
  // Correct while steps take their usual time. It falls while a step takes longer.
  double per_second(Moment now) const;

 private:
  struct Change {
    std::uint64_t samples = 0;
    Moment moment{};
  };
  std::deque<Change> changes_;
};

class RunStatus {
 public:
  // `devices` are the names of the device slots; empty: they have none.
  explicit RunStatus(std::vector<std::string> devices = {}) : devices_(std::move(devices)) {}

  void look(const std::map<int, MemberStatus>& member_statuses, Moment now);

  // `restarts` counts those of the whole run.
  nlohmann::json describe(const State& state, const std::map<int, MemberStatus>& member_statuses,
                          const RestartCounts& restarts, Moment now) const;

 private:
  // What repeated looks at one member have shown.
  struct Course {
    std::uint64_t progress = 0;
    Moment last_progress{};
    SampleRate rate{};
  };

  nlohmann::json device_of(std::size_t slot) const;
  nlohmann::json describe_rests(const State& state, Moment now) const;
  static nlohmann::json describe_hosts(const State& state, Moment now);

  const std::vector<std::string> devices_;
  std::map<int, Course> courses_;  // by member
};

// Physical memory that the process uses; 0 when it is gone.
std::uint64_t resident_bytes(int pid);

}  // namespace holdfast::recovery
