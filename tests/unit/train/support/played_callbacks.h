#pragma once

// Callbacks for tests: one ends a training, and one observes it.

#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "holdfast/base/deadline.h"
#include "holdfast/train/callback.h"

namespace holdfast {

// Throws at a step, as a failing program would.
class FailAt final : public Callback {
 public:
  // Throws once `may_fail` returns true, so that work in the background can come to a certain point.
  explicit FailAt(
      std::int64_t step, std::function<bool()> may_fail = [] { return true; })
      : step_(step), may_fail_(std::move(may_fail)) {}
  std::string name() const override { return "fail_at"; }
  void on_step_end(TrainingContext& context, const Logs&) override {
    if (context.step() != step_) return;
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    while (!may_fail_() && !deadline.has_passed()) std::this_thread::yield();
    throw std::runtime_error("failed as asked");
  }

 private:
  std::int64_t step_;
  std::function<bool()> may_fail_;
};

// Adds up losses. The sum survives a restart only through the declared state.
class SumOfLosses final : public Callback {
 public:
  std::string name() const override { return "sum_of_losses"; }
  void describe_state(CallbackFields& fields) override { fields.add("sum", sum).add("epochs", epochs); }
  void on_step_end(TrainingContext&, const Logs& logs) override { sum += logs.at("loss"); }
  void on_epoch_end(TrainingContext&, const Logs&) override { ++epochs; }

  double sum = 0;
  std::int64_t epochs = 0;
};

}  // namespace holdfast
