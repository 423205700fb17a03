#pragma once

// A metric as a function of values (functions.h). It has one sum over the samples or several, and a function that makes
// the reported number of them:
//
//   const MetricFunction precision(
//       "precision",
//       [](const Value& outputs, const Value& targets) {
//         const Value positive = less(0.5F, outputs);
//         return std::vector<Value>{positive * targets, positive};
//       },
//       [](std::span<const double> sums, double) { return sums[0] / sums[1]; });
//   Trainer trainer(replica, model, Adam{}, BinaryCrossentropy{}, {precision, BinaryAccuracy{}});
//
// A sum may be an array, such as a count for each threshold or class: a class that derives from ValueMetric says with
// kept_axes() how many axes a sum has.
//
// The sums are added over shards, replicas and steps, so the reported number is that of the whole epoch. It is computed
// where the model is: on CPUs and on devices, with sample weights or without.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "holdfast/nn/functions.h"
#include "holdfast/nn/metric.h"
#include "holdfast/nn/value_loss.h"

namespace holdfast {

class ValueMetric : public Metric {
 public:
  // What is summed over the samples: at least one value, each f32. `outputs` has the shape of the model's output for
  // one sample, `targets` that of the loss's target; both are f32. A value has one number a sample, or an array of
  // them, of which the mean is taken. Weights apply as in ValueLoss::losses().
  //
  // Only functions of values may be used, not layers. It is called several times, also by several threads at once, and
  // must describe the same values each time.
  virtual std::vector<Value> sums(const Value& outputs, const Value& targets) const = 0;

  // Whether a sum takes all elements of a sample, in place of their mean. Counts do, so that weights of positions and
  // of samples count alike.
  virtual bool adds_elements() const { return false; }

  // How many axes each sum has: so many last axes of the values of sums() stay, and 0 stands for numbers. result() gets
  // all elements of the first sum, in row-major order, then those of the second, and so on. A step adds each element
  // over all replicas, so some thousands of them are fine.
  virtual std::size_t kept_axes() const { return 0; }

  // {"kind":"value_metric","name":...,"options":{...}}
  std::string configuration() const override;

  const ValueMetric* as_values() const final { return this; }

  // Computes the first element of the first sum on the CPU; for tests of a metric. Rows have no shape, so `outputs` and
  // `targets` of sums() have one axis here. Throws as Metric::sum() does.
  float sum(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples) const final;

 protected:
  // Throws Error{invalid_argument} without a name, and for options that are not finite.
  explicit ValueMetric(std::string name, ValueOptionsByName options = {});

 private:
  ValueOptionsByName options_;
};

// The base of Holdfast's own metrics of values: {"kind":"precision","threshold":0.5,"name":"precision"}.
class BuiltInMetric : public ValueMetric {
 public:
  std::string configuration() const final { return configuration_; }

 protected:
  // An empty name stands for the kind. `options` are the members between kind and name, such as R"("k":5)", or empty.
  BuiltInMetric(const std::string& kind, const std::string& name, const std::string& options = {});

 private:
  std::string configuration_;
};

// The short form: a name and functions.
class MetricFunction final : public ValueMetric {
 public:
  // Describes one value of each sample or position.
  using Function = std::function<Value(const Value& outputs, const Value& targets)>;
  // Describes several of them.
  using Functions = std::function<std::vector<Value>(const Value& outputs, const Value& targets)>;
  // Makes the reported number of sums over all samples.
  using Result = std::function<double(std::span<const double> sums, double weight)>;

  // The mean of one value. A run is resumed with functions of the same name and numbers; give changed functions another
  // name.
  MetricFunction(std::string name, Function function, ValueOptionsByName numbers = {});
  // Several sums, and Metric::result().
  MetricFunction(std::string name, Functions functions, Result result, ValueOptionsByName numbers = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override {
    return functions_(outputs, targets);
  }
  double result(std::span<const double> sums, double weight) const override {
    return result_ ? result_(sums, weight) : Metric::result(sums, weight);
  }
  std::unique_ptr<Metric> clone() const override { return std::make_unique<MetricFunction>(*this); }

 private:
  Functions functions_;
  Result result_;
};

}  // namespace holdfast
