#pragma once

// Ends fit() when a mean has not improved for some epochs. Its memory survives a restart.

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/train/callback.h"
#include "holdfast/train/model_checkpoint.h"

namespace holdfast {

struct EarlyStoppingOptions {
  // A name in the epoch's logs. Where it is missing, fit() throws Error{invalid_argument} with the names that there
  // are.
  std::string monitor = "val_loss";
  Best best = Best::lowest;
  double min_delta = 0;       // a smaller change is no improvement
  std::int64_t patience = 0;  // epochs without improvement that are borne
};

class EarlyStopping final : public Callback {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options = {});

  std::string name() const override { return "early_stopping/" + options_.monitor; }
  std::vector<std::string> monitors() const override { return {options_.monitor}; }
  CallbackState state() const override;
  void restore(const CallbackState& state) override;
  void on_fit_begin(TrainingContext& context) override;
  void on_epoch_end(TrainingContext& context, const Logs& logs) override;

 private:
  EarlyStoppingOptions options_;
  bool has_best_ = false;
  double best_value_ = 0;
  std::int64_t epochs_without_improvement_ = 0;
};

}  // namespace holdfast
