#pragma once

// Shows how fit() goes on, on the primary rank: epoch, step, means, samples a second, time left. One line that is
// written again and again on a terminal; elsewhere a plain line now and then and one at each epoch's end.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "holdfast/train/callback.h"

namespace holdfast {

class ProgressLine final : public Callback {
 public:
  // `stream` must outlive the callback.
  explicit ProgressLine(std::FILE* stream = stderr);

  std::string name() const override { return "progress_line"; }
  void on_step_end(TrainingContext& context, const Logs& logs) override;
  void on_epoch_end(TrainingContext& context, const Logs& logs) override;

 private:
  using Clock = std::chrono::steady_clock;

  void show(const TrainingContext& context, const Logs& logs, bool is_epoch_end);

  std::FILE* stream_;
  bool is_terminal_;
  // Of the samples that this process has seen since it (re)started or since the epoch began.
  bool has_start_ = false;
  Clock::time_point start_{};
  std::int64_t start_samples_ = 0;
  std::int64_t start_batch_ = 0;
  Clock::time_point last_shown_{};
};

// "epoch 3/10  batch 12/71  step 154  accuracy 0.9612  loss 0.1234  5230 samples/s  12 s left".
struct ProgressSpeed {
  double samples_per_second = 0;  // 0: not known
  double seconds_left = 0;        // of this fit()
};
std::string progress_text(const TrainingContext& context, const Logs& logs, const ProgressSpeed& speed);

}  // namespace holdfast
