#pragma once

// Tells which replica has hung, from what each one's life page says. Pure but for its memory of earlier looks: the
// caller brings the time, and answers questions about suspects.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "decide/restart_policy.h"
#include "detect/background_pulse.h"
#include "detect/step_times.h"
#include "holdfast/recovery/hang_limits.h"
#include "holdfast/recovery/phase.h"

namespace holdfast::recovery {

// One member that should be making progress.
struct Pulse {
  int member = 0;  // a process, numbered for the whole run
  std::uint64_t progress = 0;
  Phase phase = Phase::starting;
  std::int64_t step = -1;
  std::uint64_t steps = 0;               // that the process has ended
  std::chrono::nanoseconds step_time{};  // of all of these, without waits for peers
  std::uint64_t arrivals = 0;            // how often it told its peers that it has come as far as they, in collectives
  int rounds = 1;                        // of shards, one behind the other in each step
  bool is_joining = false;               // it has a generation, and is on its way into it for the first time
  BackgroundPulse background{};
};

struct Hang {
  int member = 0;
  std::string what;
};

class HangDetector {
 public:
  // About a member of the pulses. They cost system calls or time, and are asked about suspects only.
  struct Questions {
    std::function<bool(int member)> is_stopped;  // by a signal
    std::function<std::chrono::nanoseconds(int member)> cpu_demand;
    std::function<std::string(int member)> in_background{};  // what it is at there
  };

  // For a whole run.
  HangDetector(const HangLimits& limits, Questions questions);

  // `pulses` are those of the members that should be making progress; a member that is not among them is forgotten.
  //
  // Names the member that made no progress for too long (hang_limits.h); not one that waits for its peers, unless it
  // is stopped, or what it does in the background hangs. Where all wait for each other, it names the one that
  // has come least far, and in the end any of them.
  //
  // Time passes at most kLongestLook a call, so that a machine that was asleep, or too busy to call in time, does not
  // make its replicas look hung; and for a while after such a call the limits are longer by what was lost.
  std::optional<Hang> look(std::span<const Pulse> pulses, Moment now);

  static constexpr std::chrono::milliseconds kLongestLook{250};
  static constexpr std::chrono::seconds kMostDoubt{10};
  // Before so many steps of the run have been timed, each gets the first one's time.
  static constexpr std::uint64_t kEnoughSteps = 8;

 private:
  using Duration = std::chrono::nanoseconds;

  // What is known of one member.
  struct Watch {
    explicit Watch(const Pulse& pulse) : last(pulse) {}

    Pulse last;
    Duration stall{};    // since its last progress
    Duration stopped{};  // of that, the latest part in which it was stopped
    Duration background_stall{};
    bool is_examined = false;
    // Its demand of processors is judged over stretches of its stall.
    struct Stretch {
      Duration stall{};  // at its begin
      Duration demand{};
    };
    std::optional<Stretch> stretch{};
    std::optional<bool> is_busy{};  // in the latest whole stretch
  };

  Duration time_passed(Moment now);
  void observe(std::span<const Pulse> pulses, Duration elapsed);
  void examine(Watch& watch, Duration elapsed) const;
  void judge_demand(Watch& watch, Duration stall, Duration limit) const;

  bool is_hung(Watch& watch) const;
  bool is_overdue(Watch& watch, Duration stall, Duration limit) const;
  bool is_hung_in_background(const Watch& watch) const;
  Watch* hung_in_a_collective();

  Duration step_limit(int rounds) const;
  Duration stopped_limit(int rounds) const;
  Duration limit_of(const Pulse& pulse) const;
  Duration limit_if_busy(const Pulse& pulse, Duration limit) const;
  // What the user grants instead, if anything.
  Duration granted(Duration limit) const;
  Hang hang_of(const Watch& watch) const;
  Hang hang_in_background(const Watch& watch) const;
  const std::string& option_for(Phase phase) const;

  const HangLimits limits_;
  const Questions questions_;
  std::map<int, Watch> watches_;  // by member
  std::optional<Moment> last_look_;
  Duration doubt_{};
  StepTimes step_times_;  // of one round
  bool is_any_joining_ = false;
};

}  // namespace holdfast::recovery
