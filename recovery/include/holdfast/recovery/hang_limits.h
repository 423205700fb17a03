#pragma once

// How long a replica may go without progress before it is taken for hung, by what it is doing. Nobody waits for the
// guilty one longer than its peers must: a replica that waits for peers has no limit of its own.
//
// A process that runs, or that is ready to run on a crowded machine, may take ten times its limit, and at least 30 s;
// one that is stopped by a signal gets the limit of a step, whatever it was doing.

#include <chrono>
#include <optional>

namespace holdfast::recovery {

struct HangLimits {
  std::chrono::milliseconds starting = std::chrono::seconds(120);
  // Of a process, which may have to compile and to allocate; and of all, until the run's first few have been timed.
  std::chrono::milliseconds first_step = std::chrono::seconds(60);
  // Later steps may take three times the 99th percentile of those before and this. What the watchdog sees is up to two
  // of its looks old, which makes it up to a second.
  std::chrono::milliseconds step_margin{800};
  std::chrono::milliseconds evaluating = std::chrono::seconds(30);
  std::chrono::milliseconds saving = std::chrono::seconds(30);
  std::chrono::milliseconds callbacks = std::chrono::seconds(30);  // and reading data
  std::chrono::milliseconds finishing = std::chrono::seconds(30);
  std::chrono::milliseconds regrouping = std::chrono::seconds(60);
  // When given: that of every phase but `starting`, be it longer or shorter, also for a process that runs. It makes
  // `regrouping` no shorter.
  std::optional<std::chrono::milliseconds> hang_after{};
};

}  // namespace holdfast::recovery
