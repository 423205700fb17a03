#pragma once

// Losses and metrics for a model with several outputs: one loss for each output, in the order of the outputs, and the
// metrics of any of them.
//
//   Trainer trainer(replica, model, Adam{},
//                   {SparseCategoricalCrossentropy{}, {MeanSquaredError{}, 0.5F}},
//                   {{SparseCategoricalAccuracy{}, "kind"}, {MeanAbsoluteError{}, "price"}});
//
// What is minimized, and logged as "loss", is the sum of the losses, each times its weight. With several outputs, each
// is also logged by itself, as "kind_loss", and the names of metrics begin with that of their output.

#include <memory>
#include <string>
#include <utility>

#include "holdfast/nn/loss.h"
#include "holdfast/nn/metric.h"

namespace holdfast {

// Holds a copy of any loss, so that a list can hold losses of several classes.
class LossHandle {
 public:
  // Throws Error{invalid_argument} unless the weight is finite and not negative, and if clone() gives another class.
  LossHandle(const Loss& loss, float weight = 1);                   // NOLINT(google-explicit-constructor)
  const std::shared_ptr<const Loss>& get() const { return loss_; }  // never null
  float weight() const { return weight_; }                          // by which the loss is multiplied

 private:
  std::shared_ptr<const Loss> loss_;
  float weight_;
};

// Whether the weights of samples count in a metric. In Keras they do in `weighted_metrics` alone.
enum class MetricWeights {
  counted,  // as in the loss; a sample of weight 0 is masked
  ignored,  // each sample counts once, whatever its weight or the weight of its class
};

// Holds a copy of any metric, and names the output that it looks at. Without a name it is the model's first output.
//
//   Trainer trainer(replica, model, Adam{}, loss, {SparseCategoricalAccuracy{}, unweighted(Accuracy{{.name =
//   "hits"}})});
class MetricHandle {
 public:
  // Throws Error{invalid_argument} if clone() of the metric gives another class.
  MetricHandle(const Metric& metric, std::string output = {},  // NOLINT(google-explicit-constructor)
               MetricWeights weights = MetricWeights::counted);
  const std::shared_ptr<const Metric>& get() const { return metric_; }  // never null
  const std::string& output() const { return output_; }                 // the name of the output; empty: the first one
  MetricWeights weights() const { return weights_; }                    // see MetricWeights

 private:
  std::shared_ptr<const Metric> metric_;
  std::string output_;
  MetricWeights weights_;
};

// The metric with MetricWeights::ignored.
inline MetricHandle unweighted(const Metric& metric, std::string output = {}) {
  return {metric, std::move(output), MetricWeights::ignored};
}

}  // namespace holdfast
