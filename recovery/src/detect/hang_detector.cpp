// A process without progress may be hung, or compute something long on a crowded machine. So silence alone is not
// enough: suspects are asked whether they are stopped, and how much they run. A process that runs all the while gets a
// longer limit. See docs/decisions/hangs.md.

#include "detect/hang_detector.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "decide/supervisor_text.h"

namespace holdfast::recovery {
namespace {

// A shorter silence is not examined, which keeps looks at healthy replicas cheap.
constexpr std::chrono::milliseconds kShortestSuspicion(300);
constexpr int kBusyFactor = 10;
constexpr std::chrono::seconds kShortestBusyLimit(30);

// How far a member has come; members are compared by it.
std::pair<std::int64_t, std::uint64_t> place_of(const Heartbeat& heartbeat) {
  // The step comes first: arrivals compare only members that are at the same step.
  return {heartbeat.step, heartbeat.arrivals};
}

std::string advice(const std::string& option) {
  return fmt::format("; if this may take longer, set a longer {}", option);
}

}  // namespace

HangDetector::HangDetector(const HangLimits& limits, Questions questions)
    : limits_(limits), questions_(std::move(questions)) {}

std::optional<Hang> HangDetector::look(std::span<const Heartbeat> heartbeats, Moment now) {
  const Duration elapsed = time_passed(now);
  observe(heartbeats, elapsed);
  Watch* guilty = nullptr;
  const Watch* guilty_in_background = nullptr;
  // The longest stall is the cause. Replicas that wait for the hung one stand still for a shorter time.
  for (auto& [member, watch] : watches_) {
    if (!watch.last.is_current) continue;
    if (guilty_in_background == nullptr && is_hung_in_background(watch)) guilty_in_background = &watch;
    if (watch.stall < kShortestSuspicion) continue;
    examine(watch, elapsed);
    if (is_hung(watch) && (guilty == nullptr || watch.stall > guilty->stall)) guilty = &watch;
  }
  if (guilty == nullptr && guilty_in_background != nullptr) return hang_in_background(*guilty_in_background);
  if (guilty == nullptr) guilty = hung_in_a_collective();
  if (guilty == nullptr) return std::nullopt;
  return hang_of(*guilty);
}

// Otherwise the one survivor that waited for a lost host, for seconds, would be the slowest of all.
void HangDetector::excuse_waits() {
  for (auto& [member, watch] : watches_) {
    if (watch.last.phase == Phase::waiting_for_peers) watch.stall = Duration::zero();
  }
}

// A look that comes late says more about this machine than about the replicas.
HangDetector::Duration HangDetector::time_passed(Moment now) {
  const Duration elapsed = now - last_look_.value_or(now);
  last_look_ = now;
  if (elapsed <= kLongestLook) {
    doubt_ = std::max(doubt_ - elapsed / 2, Duration::zero());
    return elapsed;
  }
  doubt_ = std::min<Duration>(doubt_ + elapsed - kLongestLook, kMostDoubt);
  return kLongestLook;
}

void HangDetector::observe(std::span<const Heartbeat> heartbeats, Duration elapsed) {
  // Made anew at each look, so that members that are gone are forgotten.
  std::map<int, Watch> known = std::exchange(watches_, {});
  is_any_joining_ = std::any_of(heartbeats.begin(), heartbeats.end(),
                                [](const Heartbeat& heartbeat) { return heartbeat.is_joining; });
  for (const Heartbeat& heartbeat : heartbeats) {
    const auto before = known.find(heartbeat.member);
    Watch watch(heartbeat);
    const Duration counted = heartbeat.is_current ? elapsed : Duration::zero();
    if (before != known.end()) {
      const Heartbeat& last = before->second.last;
      if (std::tie(last.progress, last.arrivals) == std::tie(heartbeat.progress, heartbeat.arrivals)) {
        watch = before->second;
        watch.stall += counted;
      }
      record_steps(last, heartbeat);
      watch.last = heartbeat;
      const bool is_at_the_same =
          heartbeat.background.number != 0 && heartbeat.background.number == last.background.number;
      watch.background_stall = is_at_the_same ? before->second.background_stall + counted : Duration::zero();
    }
    watches_.emplace(heartbeat.member, watch);
  }
}

// The first step of a process takes longer than the others, so it is not recorded. Where many short steps came before
// the first look at one of them, their average with the first one is: it is too long and not too short, and a hang in
// the steps that follow would otherwise be noticed after minutes.
void HangDetector::record_steps(const Heartbeat& last, const Heartbeat& now) {
  if (now.steps <= last.steps || now.step_time < last.step_time) return;
  const std::uint64_t steps = now.steps - last.steps;
  const bool has_first = last.steps == 0;
  if (has_first && (steps < kEnoughSteps || step_times_.steps() >= kEnoughSteps)) return;
  step_times_.record((now.step_time - last.step_time) / (static_cast<std::int64_t>(steps) * last.rounds), steps);
}

void HangDetector::examine(Watch& watch, Duration elapsed) const {
  const bool is_stopped = questions_.is_stopped(watch.last.member);
  // The time before the first question counts like the answer to it.
  const Duration since_question = watch.is_examined ? elapsed : watch.stall;
  watch.stopped = is_stopped ? watch.stopped + since_question : Duration::zero();
  watch.is_examined = true;
}

bool HangDetector::is_hung(Watch& watch) const {
  if (watch.stopped > Duration::zero() && watch.stopped >= stopped_limit(watch.last.rounds)) return true;
  // Replicas that wait are judged together, in hung_in_a_collective().
  if (watch.last.phase == Phase::waiting_for_peers) return false;
  return is_overdue(watch, watch.stall, limit_of(watch.last));
}

bool HangDetector::is_overdue(Watch& watch, Duration stall, Duration limit) const {
  judge_demand(watch, stall, limit);
  if (stall < limit) return false;
  if (watch.is_busy.value_or(false)) return stall >= limit_if_busy(watch.last, limit);
  return stall >= limit + doubt_;
}

// How much the process runs says nothing here, since it trains meanwhile.
bool HangDetector::is_hung_in_background(const Watch& watch) const {
  const BackgroundHeartbeat& background = watch.last.background;
  if (background.number == 0) return false;
  if (background.is_callback) return watch.background_stall >= limits_.callback_limit() + doubt_;
  const std::chrono::duration<double> for_bytes(static_cast<double>(background.bytes) /
                                                static_cast<double>(limits_.slowest_bytes_per_second));
  return watch.background_stall >=
         limits_.granted(limits_.saving) + std::chrono::duration_cast<Duration>(for_bytes) + doubt_;
}

// Judges from half of the limit on, over stretches of half of the limit. So a process that was busy and then sleeps is
// noticed, too.
void HangDetector::judge_demand(Watch& watch, Duration stall, Duration limit) const {
  if (stall < limit / 2) {
    watch.stretch.reset();
    watch.is_busy.reset();
    return;
  }
  const Duration demand = questions_.cpu_demand(watch.last.member);
  if (!watch.stretch) watch.stretch = Watch::Stretch{stall, demand};
  const Duration length = stall - watch.stretch->stall;
  if (length <= Duration::zero() || (length < limit / 2 && (watch.is_busy || stall < limit))) return;
  watch.is_busy = demand - watch.stretch->demand > length / 2;
  watch.stretch = Watch::Stretch{stall, demand};
}

// The slowest member counts only once all have stood still: the others may have gone on a moment ago.
HangDetector::Watch* HangDetector::hung_in_a_collective() {
  if (watches_.empty()) return nullptr;
  Watch* slowest = nullptr;
  Duration stall = Duration::max();
  int equals = 0;
  for (auto& [member, watch] : watches_) {
    if (watch.last.phase != Phase::waiting_for_peers || !watch.last.is_current) return nullptr;
    stall = std::min(stall, watch.stall);
    if (slowest == nullptr || place_of(watch.last) < place_of(slowest->last)) {
      slowest = &watch;
      equals = 0;
    }
    if (place_of(watch.last) == place_of(slowest->last)) ++equals;
  }
  if (equals == 1 && is_overdue(*slowest, stall, limit_of(slowest->last))) return slowest;
  return stall >= 2 * limits_.granted(kShortestBusyLimit) ? slowest : nullptr;
}

// Survivors compute the shards of lost replicas, too, so the limit grows with the rounds.
HangDetector::Duration HangDetector::step_limit(int rounds) const {
  return limits_.granted(limits_.step_margin + 3 * rounds * step_times_.p99());
}

// A stopped process does no work, so a longer `hang_after` does not extend its limit.
HangDetector::Duration HangDetector::stopped_limit(int rounds) const {
  return std::min<Duration>(step_limit(rounds), limits_.step_margin + 3 * rounds * step_times_.p99());
}

HangDetector::Duration HangDetector::limit_of(const Heartbeat& heartbeat) const {
  switch (heartbeat.phase) {
    case Phase::starting:
      return limits_.starting;
    case Phase::evaluating:
      return limits_.granted(limits_.evaluating);
    case Phase::saving:
      return limits_.granted(limits_.saving);
    case Phase::callbacks:
      return limits_.callback_limit();
    case Phase::reading_data:
      return limits_.granted(limits_.reading_data);
    case Phase::finishing:
      return limits_.granted(limits_.finishing);
    case Phase::regrouping:
      // The time is up to NCCL. A survivor that connects with a newcomer may have to wait until that one has started.
      return std::max<Duration>(limits_.regrouping, limits_.granted(limits_.regrouping)) +
             (is_any_joining_ ? Duration(limits_.starting) : Duration::zero());
    case Phase::computing:
    case Phase::waiting_for_peers:
    case Phase::updating:
      break;
  }
  // The first steps allocate and load, so their times say little about later ones.
  const bool is_first = heartbeat.steps == 0 || step_times_.steps() < kEnoughSteps;
  const Duration limit = step_limit(heartbeat.rounds);
  return is_first ? std::max(limits_.granted(limits_.first_step), limit) : limit;
}

HangDetector::Duration HangDetector::limit_if_busy(const Heartbeat& heartbeat, Duration limit) const {
  // A callback has ten minutes. Ten times as long would let a loop cost more than an hour and a half.
  if (heartbeat.phase == Phase::regrouping || heartbeat.phase == Phase::callbacks) return limit;
  const Duration longer = std::max<Duration>(kBusyFactor * limit, kShortestBusyLimit);
  return heartbeat.phase == Phase::starting ? longer : limits_.granted(longer);
}

Hang HangDetector::hang_of(const Watch& watch) const {
  const Heartbeat& heartbeat = watch.last;
  std::string what = fmt::format("no progress for {} in phase {}", seconds(watch.stall), to_string(heartbeat.phase));
  if (heartbeat.step >= 0) what += fmt::format(" at step {}", heartbeat.step);
  if (watch.stopped > Duration::zero()) {
    return {heartbeat.member, fmt::format("{}; the process is stopped by a signal", what)};
  }
  if (heartbeat.phase == Phase::waiting_for_peers) {
    what += "; all replicas wait for each other";
  } else if (watch.is_busy.value_or(false)) {
    what += "; the process was running all the time";
  }
  return {heartbeat.member, what + advice(limits_.names.of(heartbeat.phase))};
}

Hang HangDetector::hang_in_background(const Watch& watch) const {
  const Heartbeat& heartbeat = watch.last;
  std::string what = fmt::format("no progress for {} in the background, during {}", seconds(watch.background_stall),
                                 questions_.in_background(heartbeat.member));
  if (heartbeat.background.bytes > 0) what += fmt::format(" ({} bytes)", heartbeat.background.bytes);
  if (heartbeat.step >= 0) what += fmt::format(", while it trains at step {}", heartbeat.step);
  return {heartbeat.member,
          what + advice(limits_.names.of(heartbeat.background.is_callback ? Phase::callbacks : Phase::saving))};
}

}  // namespace holdfast::recovery
