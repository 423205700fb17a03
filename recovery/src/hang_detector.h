#pragma once

// Tells which replica has hung, from what each one's life page says. Pure but for its memory of earlier looks: the
// caller brings the time.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/recovery/phase.h"
#include "restart_policy.h"

namespace holdfast::recovery {

// One replica that should be making progress.
struct Pulse {
  int member = 0;
  std::uint64_t progress = 0;
  Phase phase = Phase::starting;
  std::int64_t step = -1;
  bool is_stopped = false;  // the process is, by a signal
};

struct Hang {
  int member = 0;
  std::string what;
};

class HangDetector {
 public:
  struct Limits {
    std::chrono::milliseconds hang_after;
    std::chrono::milliseconds start_timeout;  // instead of hang_after in Phase::starting
  };

  explicit HangDetector(Limits limits);

  // Names the replica that made no progress for too long; not one that waits for its peers, unless it was stopped.
  // Where all wait for each other for twice as long, the one that is furthest behind. Time passes at most kLongestLook
  // a call, so that a machine that was asleep, or too busy to call in time, does not make its replicas look hung.
  std::optional<Hang> look(std::span<const Pulse> pulses, Moment now);

  static constexpr std::chrono::milliseconds kLongestLook{250};

 private:
  struct Stall {
    std::uint64_t progress = 0;
    Moment::duration duration{};
  };

  void measure(std::span<const Pulse> pulses, Moment now);
  bool is_hung(const Pulse& pulse) const;
  bool all_wait_for_ever(std::span<const Pulse> pulses) const;
  Hang hang_of(const Pulse& pulse) const;
  const Stall& stall(const Pulse& pulse) const { return stalls_.at(pulse.member); }

  Limits limits_;
  std::map<int, Stall> stalls_;  // by member
  std::optional<Moment> last_look_;
};

}  // namespace holdfast::recovery
