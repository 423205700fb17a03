#pragma once

// What training reports beside the loss: a number a sample, averaged over an epoch. Metrics are immutable and hold
// options only: any thread may use the same one.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "holdfast/nn/loss.h"

namespace holdfast {

struct MetricOptions {
  std::string name{};  // under which the metric is logged; empty: the metric's own
};

class Metric {
 public:
  virtual ~Metric() = default;

  // Under which it is logged: "sparse_categorical_accuracy", or the option.
  const std::string& name() const { return name_; }
  // Kind and options as JSON; the same text for the same metric, wherever it is made.
  virtual std::string configuration() const = 0;
  virtual std::unique_ptr<Metric> clone() const = 0;

  // The sum over `samples` rows of outputs and targets, added in their order in double; the average is sum / samples.
  // Throws Error{invalid_argument} for spans that do not fit together.
  virtual float sum(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples) const = 0;

  // The same of arrays on a device, as Loss::evaluate_on().
  virtual void sum_on(compute::DeviceKernels& device, const DeviceBatch& batch) const;

 protected:
  explicit Metric(std::string name) : name_(std::move(name)) {}
  Metric(const Metric&) = default;
  Metric& operator=(const Metric&) = default;

 private:
  std::string name_;
};

}  // namespace holdfast
