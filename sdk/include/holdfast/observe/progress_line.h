#pragma once

// Shows the progress of fit() on the primary rank: epoch, step, means, samples per second, time left.
// On a terminal it rewrites one row, which is never wider than the terminal; a line of the log takes
// its place until the next update. Elsewhere it writes a line at the end of each epoch, and one per
// minute within an epoch.
//
//   trainer.fit(data, {.epochs = 5, .callbacks = {ProgressLine{}}});
//
// Speed is measured from the end of the first step of a process, of an epoch or after a failure, since that step pays
// for memory and kernels, and for the recovery. A line that cannot be written is lost.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>

#include "holdfast/train/callback.h"

namespace holdfast {

// Measured by this process since its first step of the epoch, or its first one after a failure.
struct ProgressSpeed {
  double samples_per_second = 0;  // 0: not known
  double seconds_left = 0;        // until fit() ends
};

// The text of the line: "epoch 3/10  batch 12/71  step 154  accuracy 0.9612  loss 0.1234  5230
// samples/s 12 s left". If it is wider than `columns`, it leaves out the step, the speed, the batch and
// the time left, in this order, until it fits. If it still does not fit, it is cut.
std::string progress_text(const TrainingContext& context, const Logs& logs, const ProgressSpeed& speed,
                          int columns = std::numeric_limits<int>::max());

class ProgressLine final : public Callback {
 public:
  // The callback does not own `stream`, which must outlive it.
  explicit ProgressLine(std::FILE* stream = stderr);

  std::string name() const override { return "progress_line"; }
  // On a terminal, writes the line up to ten times per second, and when the width changes.
  void on_step_end(TrainingContext& context, const Logs& logs) override;
  void on_epoch_end(TrainingContext& context, const Logs& logs) override;

 private:
  using Clock = std::chrono::steady_clock;

  // Whether enough time has passed since the last update, or the width of the terminal changed.
  bool is_due(Clock::time_point now);
  // Writes the line for the present moment.
  void show(const TrainingContext& context, const Logs& logs, bool is_epoch_end);
  ProgressSpeed speed(const TrainingContext& context) const;

  // Constant after construction.
  std::FILE* stream_;
  bool is_terminal_;
  // Samples that this process has seen since it started or recovered, or since the epoch began.
  bool has_start_ = false;
  Clock::time_point start_{};
  std::int64_t start_samples_ = 0;
  std::int64_t start_batch_ = 0;
  int start_generation_ = 0;
  Clock::time_point last_shown_{};
  int columns_ = 0;  // width of the terminal at the last update
};

}  // namespace holdfast
