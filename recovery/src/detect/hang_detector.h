#pragma once

// Finds the replica that hangs, from what the life pages say. It reads no clock: the caller passes the time, and
// answers questions about suspects. It only remembers earlier looks. See docs/decisions/hangs.md.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "decide/restart_policy.h"
#include "detect/life_page.h"
#include "detect/step_times.h"
#include "holdfast/recovery/hang_limits.h"
#include "holdfast/recovery/phase.h"

namespace holdfast::recovery {

// The progress of one member, as its life page has it.
struct Heartbeat {
  int member = 0;  // a process, numbered for the whole run
  std::uint64_t progress = 0;
  Phase phase = Phase::starting;
  std::int64_t step = -1;
  std::uint64_t steps = 0;               // that the process has ended
  std::chrono::nanoseconds step_time{};  // of these steps together, without waits for peers
  std::uint64_t arrivals = 0;            // how often it signalled its arrival to its peers in collectives
  int rounds = 1;                        // of shards, one after the other in each step
  bool is_joining = false;               // it is on its way into its first generation
  bool is_current = true;                // false: its host is silent, so it may have come further
  BackgroundHeartbeat background{};
};

struct Hang {
  int member = 0;
  std::string what;
};

class HangDetector {
 public:
  // Questions about a member of the heartbeats. They cost system calls, so they are asked about suspects only.
  struct Questions {
    std::function<bool(int member)> is_stopped;  // by a signal
    std::function<std::chrono::nanoseconds(int member)> cpu_demand;
    std::function<std::string(int member)> in_background{};  // what it does there
  };

  // One detector serves a whole run.
  HangDetector(const HangLimits& limits, Questions questions);

  // `heartbeats` are those of the members that should make progress. A member that is not among them is forgotten.
  //
  // Returns the member that made no progress for longer than its limit (hang_limits.h). A member that waits for its
  // peers is not returned, unless it is stopped or its background work hangs. When all wait for each other, the result
  // is the one that has come least far, and after a longer time any of them.
  //
  // No time counts while a heartbeat is not current, and its member is not returned: how long its host may be silent is
  // decided elsewhere.
  //
  // Each call counts at most kLongestLook as passed, so replicas of a machine that was asleep or busy do not look hung.
  // For a while after such a call, the limits are longer by the time that was not counted.
  std::optional<Hang> look(std::span<const Heartbeat> heartbeats, Moment now);

  // The generation is over. Members that wait for their peers have as long to leave it as if they had just begun to.
  void excuse_waits();

  static constexpr std::chrono::milliseconds kLongestLook{250};
  static constexpr std::chrono::seconds kMostDoubt{10};
  // Until so many steps of the run have been timed, each step has the limit of a first step.
  static constexpr std::uint64_t kEnoughSteps = 8;

 private:
  using Duration = std::chrono::nanoseconds;

  // What is known about one member.
  struct Watch {
    explicit Watch(const Heartbeat& heartbeat) : last(heartbeat) {}

    Heartbeat last;
    Duration stall{};    // since its last progress
    Duration stopped{};  // the latest part of the stall, in which it was stopped by a signal
    Duration background_stall{};
    bool is_examined = false;
    // Its use of processors is judged over stretches of the stall.
    struct Stretch {
      Duration stall{};  // at the beginning of the stretch
      Duration demand{};
    };
    std::optional<Stretch> stretch{};
    std::optional<bool> is_busy{};  // in the latest complete stretch
  };

  Duration time_passed(Moment now);
  void observe(std::span<const Heartbeat> heartbeats, Duration elapsed);
  void record_steps(const Heartbeat& last, const Heartbeat& now);
  void examine(Watch& watch, Duration elapsed) const;
  void judge_demand(Watch& watch, Duration stall, Duration limit) const;

  bool is_hung(Watch& watch) const;
  bool is_overdue(Watch& watch, Duration stall, Duration limit) const;
  bool is_hung_in_background(const Watch& watch) const;
  Watch* hung_in_a_collective();

  Duration step_limit(int rounds) const;
  Duration stopped_limit(int rounds) const;
  Duration limit_of(const Heartbeat& heartbeat) const;
  Duration limit_if_busy(const Heartbeat& heartbeat, Duration limit) const;
  Hang hang_of(const Watch& watch) const;
  Hang hang_in_background(const Watch& watch) const;

  const HangLimits limits_;
  const Questions questions_;
  std::map<int, Watch> watches_;  // by member
  std::optional<Moment> last_look_;
  Duration doubt_{};      // time that recent looks did not count
  StepTimes step_times_;  // of one round
  bool is_any_joining_ = false;
};

}  // namespace holdfast::recovery
