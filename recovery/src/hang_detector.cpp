#include "hang_detector.h"

#include <algorithm>
#include <cstdio>

namespace holdfast::recovery {

HangDetector::HangDetector(Limits limits) : limits_(limits) {}

std::optional<Hang> HangDetector::look(std::span<const Pulse> pulses, Moment now) {
  measure(pulses, now);
  const Pulse* guilty = nullptr;
  for (const Pulse& pulse : pulses) {
    if (is_hung(pulse) && (guilty == nullptr || stall(pulse).duration > stall(*guilty).duration)) guilty = &pulse;
  }
  if (guilty == nullptr && all_wait_for_ever(pulses)) {
    guilty = &*std::min_element(pulses.begin(), pulses.end(),
                                [](const Pulse& a, const Pulse& b) { return a.step < b.step; });
  }
  if (guilty == nullptr) return std::nullopt;
  return hang_of(*guilty);
}

void HangDetector::measure(std::span<const Pulse> pulses, Moment now) {
  const Moment::duration elapsed = std::min<Moment::duration>(now - last_look_.value_or(now), kLongestLook);
  last_look_ = now;
  for (const Pulse& pulse : pulses) {
    Stall& stall = stalls_[pulse.member];
    stall.duration = stall.progress == pulse.progress ? stall.duration + elapsed : Moment::duration::zero();
    stall.progress = pulse.progress;
  }
}

bool HangDetector::is_hung(const Pulse& pulse) const {
  if (pulse.phase == Phase::waiting_for_peers && !pulse.is_stopped) return false;
  return stall(pulse).duration >= (pulse.phase == Phase::starting ? limits_.start_timeout : limits_.hang_after);
}

bool HangDetector::all_wait_for_ever(std::span<const Pulse> pulses) const {
  return !pulses.empty() && std::all_of(pulses.begin(), pulses.end(), [this](const Pulse& pulse) {
    return pulse.phase == Phase::waiting_for_peers && stall(pulse).duration >= 2 * limits_.hang_after;
  });
}

Hang HangDetector::hang_of(const Pulse& pulse) const {
  char duration[32];
  std::snprintf(duration, sizeof duration, "%.1f s", std::chrono::duration<double>(stall(pulse).duration).count());
  std::string what = "no progress for " + std::string(duration) + " in phase " + std::string(to_string(pulse.phase));
  if (pulse.step >= 0) what += " at step " + std::to_string(pulse.step);
  if (pulse.is_stopped) {
    what += "; the process is stopped by a signal";
  } else if (pulse.phase == Phase::waiting_for_peers) {
    what += "; all replicas wait for each other, and none is further behind";
  }
  return {pulse.member, what};
}

}  // namespace holdfast::recovery
