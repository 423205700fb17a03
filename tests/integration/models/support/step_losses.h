#pragma once

#include <string>
#include <vector>

#include "holdfast/holdfast.h"

namespace holdfast {

// Keeps the loss of each step of an epoch. Its logs are means over the steps of the epoch so far, and here each step
// counts as much as any other.
class RecordsLosses final : public Callback {
 public:
  std::string name() const override { return "records_losses"; }
  void on_step_end(TrainingContext& context, const Logs& logs) override {
    const double sum = logs.at("loss") * static_cast<double>(context.batch_in_epoch());
    losses.push_back(sum - sum_before_);
    sum_before_ = sum;
  }

  std::vector<double> losses;

 private:
  double sum_before_ = 0;
};

}  // namespace holdfast
