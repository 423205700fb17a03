#pragma once

// Measures the times of epochs and steps, and ends fit() when a budget of time is spent:
//
//   const auto timer = std::make_shared<Timer>(TimerOptions{.limit = std::chrono::hours(8)});
//   trainer.fit(data, {.epochs = 1000, .callbacks = {timer}});
//   // timer->epoch_seconds(), and run/times.csv
//
// A fit() that ends by its budget ends in order, after a step, with its last savepoint and the calls of
// on_fit_end(); the program goes on after it. Give a signal or `holdfast stop` for an end from which a later
// start goes on.
//
// Times are of this machine and this day. No weight depends on them, except through the step at which the
// limit ends fit(); savepoints hold the times so far, so the savepoints of two equal runs with a Timer
// differ in these numbers. The budget counts the time within fit() over all starts of a run. What a failure
// lost since the last state is not counted.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/train/callback.h"

namespace holdfast {

struct TimerOptions {
  // How long fit() may take, validation and callbacks included; positive. Steps are not cut off, so fit()
  // takes up to the two steps longer that all replicas need to agree. Empty: without limit.
  std::optional<std::chrono::milliseconds> limit{};
  // A CSV file with a line for each epoch: epoch, seconds, steps, seconds_per_step. Default: times.csv in the
  // run directory; without a run directory, no file.
  std::string path{};
  // The clock; for tests.
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

class Timer final : public Callback {
 public:
  // Throws Error{invalid_argument} for a limit that is not positive.
  explicit Timer(TimerOptions options = {});

  // By epoch of this fit(), those before a restart included; of the clock of this replica.
  const std::vector<double>& epoch_seconds() const { return epoch_seconds_; }
  // Steps of each of these epochs.
  const std::vector<double>& epoch_steps() const { return epoch_steps_; }
  // The time of this fit() so far, over all starts.
  double seconds() const;
  // Whether this fit() ended because of the limit.
  bool has_ended_fit() const { return has_ended_fit_; }

  std::string name() const override { return "timer"; }
  // The times so far.
  CallbackState state() const override;
  void restore(const CallbackState& state) override;
  void on_fit_begin(TrainingContext& context) override;
  void on_epoch_begin(TrainingContext& context) override;
  void on_step_end(TrainingContext& context, const Logs& logs) override;
  void on_epoch_end(TrainingContext& context, const Logs& logs) override;

 private:
  using Clock = std::chrono::steady_clock;

  void write(const TrainingContext& context) const;

  TimerOptions options_;
  double seconds_before_ = 0;  // of this fit(), in earlier processes
  Clock::time_point start_;    // of what follows
  double epoch_start_ = 0;     // the seconds of this fit() when the epoch began
  std::vector<double> epoch_seconds_;
  std::vector<double> epoch_steps_;
  bool has_ended_fit_ = false;
};

}  // namespace holdfast
