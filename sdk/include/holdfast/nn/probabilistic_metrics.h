#pragma once

// Metrics of probabilities, as keras.metrics defines them (Keras 3), and the perplexity of KerasHub. They report the
// mean over all samples and positions of an epoch. Probabilities are clipped to [e, 1 - e], e = 1e-7; logits are not.
//
//   Trainer trainer(replica, model, Adam{}, SparseCategoricalCrossentropy{{.from_logits = true}},
//                   {metrics::Perplexity{{.from_logits = true}}});
//
// Each metric is a function of values (value_metric.h): it is computed where the model is, and takes weights of samples
// and of positions. A NaN among the outputs is one in the metric.

#include <cstdint>
#include <optional>

#include "holdfast/nn/value_metric.h"

namespace holdfast::metrics {

// losses::Poisson: the mean of y - t log(y + e), for outputs y that are rates, such as expected counts. An output below
// -e makes it NaN, as in Keras.
class Poisson final : public BuiltInMetric {
 public:
  explicit Poisson(const MetricOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<Poisson>(*this); }
};

// losses::KLDivergence: the sum of t log(t / y) along the last axis, which has the probabilities of a distribution.
// Both are clipped to [e, 1] first, so that a share of 0 does not make NaN.
class KLDivergence final : public BuiltInMetric {
 public:
  explicit KLDivergence(const MetricOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<KLDivergence>(*this); }
};

// Options of the cross-entropies of probabilities.
struct CrossentropyMetricOptions {
  // Whether the outputs are scores before a softmax or sigmoid. A Trainer refuses a metric that does not fit the last
  // activation of the model, as far as that is known.
  bool from_logits = false;
  bool accept_any_activation = false;  // for outputs that are probabilities all the same
  float label_smoothing = 0;           // from 0 to 1, as in CrossentropyOptions
  std::string name{};                  // the name in the logs; empty: that of the class
};

// The loss of this name (binary_crossentropy.h), as a number to report besides another loss.
class BinaryCrossentropy final : public BuiltInMetric {
 public:
  // Throws Error{invalid_argument} for a smoothing out of range.
  explicit BinaryCrossentropy(const CrossentropyMetricOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  void check_last_activation(std::optional<Activation> last) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<BinaryCrossentropy>(*this); }

 private:
  CrossentropyMetricOptions options_;
};

// The loss of this name (categorical_crossentropy.h). Targets are rows along the last axis, such as one-hot ones.
class CategoricalCrossentropy final : public BuiltInMetric {
 public:
  // Throws Error{invalid_argument} for a smoothing out of range.
  explicit CategoricalCrossentropy(const CrossentropyMetricOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  void check_last_activation(std::optional<Activation> last) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<CategoricalCrossentropy>(*this); }

 private:
  CrossentropyMetricOptions options_;
};

// Options of the metrics of class numbers.
struct SparseCrossentropyMetricOptions {
  // Whether the outputs are scores before a softmax. A Trainer refuses a metric that does not fit the last activation
  // of the model, as far as that is known.
  bool from_logits = false;
  bool accept_any_activation = false;  // for outputs that are probabilities all the same
  std::string name{};                  // the name in the logs; empty: that of the class
  // Samples or positions with this target are not counted, as those of CrossentropyOptions::ignore_class in the loss. A
  // metric does not see the options of the loss, so give both the same.
  std::optional<std::int64_t> ignore_class{};
};

// The loss of this name (sparse_categorical_crossentropy.h), whose targets are class numbers. A target that is
// not one adds 0; the loss of this name ends training with an error.
class SparseCategoricalCrossentropy final : public BuiltInMetric {
 public:
  // Throws as Perplexity does.
  explicit SparseCategoricalCrossentropy(const SparseCrossentropyMetricOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  double result(std::span<const double> sums, double weight) const override;
  std::size_t position_axes(const Shape& output) const override;
  void check_last_activation(std::optional<Activation> last) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<SparseCategoricalCrossentropy>(*this); }

 private:
  SparseCrossentropyMetricOptions options_;
};

// The exponential of the mean sparse cross-entropy (keras_hub.metrics.Perplexity): among how many equally likely
// classes the model chooses. Give an ignore_class or weights of positions to leave some out, such as padding.
class Perplexity final : public BuiltInMetric {
 public:
  // Throws Error{invalid_argument} for an ignored class that is not from -2^24 to 2^24: targets are compared as f32.
  explicit Perplexity(const SparseCrossentropyMetricOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  double result(std::span<const double> sums, double weight) const override;
  std::size_t position_axes(const Shape& output) const override;
  void check_last_activation(std::optional<Activation> last) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<Perplexity>(*this); }

 private:
  SparseCrossentropyMetricOptions options_;
};

}  // namespace holdfast::metrics
