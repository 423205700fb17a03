#pragma once

// What training reports besides the loss: one number per sample, averaged over an epoch. Metrics are
// immutable and hold only options; any thread may use the same one. They are passed to a Trainer in a
// list: Trainer(replica, model, Adam{}, loss, {MyMetric{}}).
//
// The short way to a metric of your own is a function of values (value_metric.h), which may also have
// several sums. A metric that functions of values cannot describe derives from Metric and computes rows
// of floats. On a device, such a metric is computed on the host, which the log says once.
//
//   class LargestError final : public Metric {
//    public:
//     LargestError() : Metric("largest_error") {}
//     std::string configuration() const override { return R"({"kind":"mine.largest_error"})"; }
//     std::unique_ptr<Metric> clone() const override { return std::make_unique<LargestError>(*this); }
//     float sum(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples) const override {
//       const std::size_t row = samples == 0 ? 0 : outputs.size() / static_cast<std::size_t>(samples);
//       double sum = 0;
//       for (std::size_t begin = 0; begin < outputs.size(); begin += row) {
//         float largest = 0;
//         for (std::size_t i = begin; i < begin + row; ++i) {
//           largest = std::max(largest, std::abs(outputs[i] - targets[i]));
//         }
//         sum += largest;
//       }
//       return static_cast<float>(sum);
//     }
//   };

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/best.h"
#include "holdfast/nn/loss.h"

namespace holdfast {

// The options of metrics that have no others.
struct MetricOptions {
  std::string name{};  // the name in the logs; empty: the name of the class, "categorical_accuracy"
};

class ValueMetric;

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

  // What is reported of sums over all samples, by default the mean. `weight` is the number of samples, or
  // the sum of their weights. The default throws Error{invalid_argument} for a metric of several sums.
  virtual double result(std::span<const double> sums, double weight) const;

  // What is reported in place of result() where a metric has several numbers, such as a score for each class, and the
  // names under which they are logged: as many, for outputs of this shape. By default, result() and name().
  virtual std::vector<double> results(std::span<const double> sums, double weight) const {
    return {result(sums, weight)};
  }
  // The names of results(), for outputs of this shape.
  virtual std::vector<std::string> result_names(const Shape&) const { return {name_}; }

  // Whether lower or higher values are better, for callbacks that watch this metric (Best::automatic); empty where
  // nobody can say. By default, what is known of Holdfast's own kinds. Override it in a metric of your own.
  virtual std::optional<Best> best() const;

  // As the functions of Loss with these names. A metric of values need not say it: its sums see samples whole. Where it
  // says that all axes but the classes are positions, a loss with positions_at_once may have it compute each of them as
  // a sample.
  virtual std::size_t position_axes(const Shape&) const { return 0; }
  // See Loss.
  virtual void check_last_activation(std::optional<Activation>) const {}
  // See Loss.
  virtual bool is_mean_of_elements() const { return false; }
  // See Loss.
  virtual const ValueMetric* as_values() const { return nullptr; }
  // See Loss.
  virtual bool describe_kernel(compute::MetricShape&) const { return false; }

 protected:
  // `name` is that in the logs.
  explicit Metric(std::string name) : name_(std::move(name)) {}
  Metric(const Metric&) = default;
  Metric& operator=(const Metric&) = default;

 private:
  std::string name_;
};

}  // namespace holdfast
