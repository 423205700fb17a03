#pragma once

// What training reports besides the loss: one number per sample, averaged over an epoch. Metrics are
// immutable and hold only options; any thread may use the same one. Derive from Metric for a metric of
// your own on CPUs; it is passed to a Trainer in the list of metrics: Trainer(replica, model, Adam{},
// loss, {MyMetric{}}).

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "holdfast/nn/loss.h"

namespace holdfast {

// The options of metrics that have no others.
struct MetricOptions {
  std::string name{};  // the name in the logs; empty: the name of the class, "categorical_accuracy"
};

class Metric {
 public:
  virtual ~Metric() = default;

  // The name in the logs: "sparse_categorical_accuracy", or that of the options.
  const std::string& name() const { return name_; }
  // The kind and all options as JSON. A run refuses to resume with another one. Equal metrics must give
  // equal texts, on every machine.
  virtual std::string configuration() const = 0;
  // An independent copy; a Trainer keeps one.
  virtual std::unique_ptr<Metric> clone() const = 0;

  // The sum over `samples` rows of outputs and targets, added in their order in double. The mean is sum
  // / samples. Throws Error{invalid_argument} for spans whose sizes do not fit together.
  virtual float sum(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples) const = 0;

  // The same for arrays on a device, as Loss::evaluate_on(). The default throws Error{unsupported}.
  virtual void sum_on(compute::DeviceKernels& device, const DeviceBatch& batch) const;

 protected:
  explicit Metric(std::string name) : name_(std::move(name)) {}
  Metric(const Metric&) = default;
  Metric& operator=(const Metric&) = default;

 private:
  std::string name_;
};

}  // namespace holdfast
