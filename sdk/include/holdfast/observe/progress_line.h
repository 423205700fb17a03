#pragma once

// Shows how fit() goes on, on the primary rank: epoch, step, means, samples a second, time left. On a terminal that is
// one row, never wider than the terminal, written again and again; a line of the log takes its place until it is
// written again. Elsewhere it is a line at the end of each epoch, and one a minute in a long epoch.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>

#include "holdfast/train/callback.h"

namespace holdfast {

struct ProgressSpeed {
  double samples_per_second = 0;  // 0: not known
  double seconds_left = 0;        // of this fit()
};

// "epoch 3/10  batch 12/71  step 154  accuracy 0.9612  loss 0.1234  5230 samples/s  12 s left". Where that is wider
// than `columns`, it leaves out the step, the speed, the batch and the time left, in this order, as far as needed. A
// line that is still too wide is cut.
std::string progress_text(const TrainingContext& context, const Logs& logs, const ProgressSpeed& speed,
                          int columns = std::numeric_limits<int>::max());

class ProgressLine final : public Callback {
 public:
  // `stream` must outlive the callback.
  explicit ProgressLine(std::FILE* stream = stderr);

  std::string name() const override { return "progress_line"; }
  void on_step_end(TrainingContext& context, const Logs& logs) override;
  void on_epoch_end(TrainingContext& context, const Logs& logs) override;

 private:
  using Clock = std::chrono::steady_clock;

  bool is_due(Clock::time_point now);
  void show(const TrainingContext& context, const Logs& logs, bool is_epoch_end);
  ProgressSpeed speed(const TrainingContext& context) const;

  std::FILE* stream_;
  bool is_terminal_;
  // Of the samples that this process has seen since it (re)started or since the epoch began.
  bool has_start_ = false;
  Clock::time_point start_{};
  std::int64_t start_samples_ = 0;
  std::int64_t start_batch_ = 0;
  Clock::time_point last_shown_{};
  int columns_ = 0;  // of the terminal, when it was last looked at
};

}  // namespace holdfast
