#pragma once

// How long a replica may go without progress before the watchdog takes it for hung, by what it is doing. A replica that
// waits for peers has no limit of its own, because the one that it waits for is to blame.
//
// A process that runs, or that is ready to run on a crowded machine, may take ten times its limit, and at least 30 s,
// except in `callbacks`. A process that is stopped by a signal gets the limit of a step, whatever it was doing.
//
// Background work, such as an fsync of a savepoint, has a limit of its own while training goes on: that of `saving`,
// plus the time that its bytes take on a storage of `slowest_bytes_per_second`.
//
//   HangLimits limits;
//   limits.hang_after = std::chrono::seconds(20);
//   limits.granted(limits.saving);  // 20 s
//   limits.callback_limit();        // 20 s, since callback_timeout is not given

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "holdfast/recovery/phase.h"

namespace holdfast::recovery {

// What the user of this run calls the options that set limits. Sentences about a hang name them.
struct LimitNames {
  std::string hang_after = "hang_after";              // which sets all limits
  std::string callback_timeout = "callback_timeout";  // which sets that of callbacks
  std::string start_timeout = "start_timeout";        // which sets that of the start

  // The name of the option that sets the limit of `phase`.
  const std::string& of(Phase phase) const {
    if (phase == Phase::starting) return start_timeout;
    return phase == Phase::callbacks ? callback_timeout : hang_after;
  }
};

// A limit for each phase (Phase).
struct HangLimits {
  // From the start of the process to its registration.
  std::chrono::milliseconds starting = std::chrono::seconds(120);
  // The first step of a process, which may have to compile and to allocate. Holds for all steps until the run has timed
  // a few.
  std::chrono::milliseconds first_step = std::chrono::seconds(60);
  // Later steps may take three times the 99th percentile of those before, plus this. The watchdog looks every 0.1 s, so
  // the margin amounts to up to a second.
  std::chrono::milliseconds step_margin{800};
  std::chrono::milliseconds evaluating = std::chrono::seconds(30);  // from one sign of progress to the next
  // Also the limit of background work, without its bytes.
  std::chrono::milliseconds saving = std::chrono::seconds(30);
  std::chrono::milliseconds callbacks = std::chrono::minutes(10);     // code of the application
  std::chrono::milliseconds reading_data = std::chrono::seconds(30);  // from one batch to the next
  // From the end of training to the end of the process.
  std::chrono::milliseconds finishing = std::chrono::seconds(30);
  std::chrono::milliseconds regrouping = std::chrono::seconds(60);  // from one generation into the next
  // A tenth of what an old disk writes.
  std::uint64_t slowest_bytes_per_second = std::uint64_t{4} << 20;
  // When given, it is the limit of every phase except `starting`, and except `callbacks` where `callback_timeout` is
  // given too. It also holds for a process that runs. It does not shorten `regrouping`.
  std::optional<std::chrono::milliseconds> hang_after{};
  std::optional<std::chrono::milliseconds> callback_timeout{};  // when given, the limit of `callbacks`
  LimitNames names{};                                           // for sentences about a hang

  // `hang_after` where it is given, otherwise `limit`.
  std::chrono::nanoseconds granted(std::chrono::nanoseconds limit) const { return hang_after ? *hang_after : limit; }
  // The limit `callbacks`, by whichever option sets it.
  std::chrono::milliseconds callback_limit() const { return callback_timeout.value_or(hang_after.value_or(callbacks)); }
  // The longest limit, without times that are proportional to bytes or to steps.
  std::chrono::milliseconds longest() const {
    return std::max({starting, hang_after.value_or(starting), callback_limit()});
  }
};

}  // namespace holdfast::recovery
