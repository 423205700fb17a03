#pragma once

// The losses and metrics of all outputs of a model: what they are, and whether they fit. OutputSums computes them.

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/best.h"
#include "holdfast/core/row_layout.h"
#include "holdfast/nn/model.h"
#include "holdfast/train/output_losses.h"
#include "nn/program/value_program.h"

namespace holdfast {

class OutputEvaluation {
 public:
  // Throws Error{invalid_argument} unless there is one loss for each output, and if a loss does not fit its output or a
  // metric names none.
  OutputEvaluation(const Model& model, std::vector<LossHandle> losses, const std::vector<MetricHandle>& metrics);

  // The targets that the losses take, in the order of the outputs.
  std::vector<ArraySpec> targets() const;
  // Throws Error{invalid_argument} unless weights of this shape fit the outputs: one a sample, one for each position of
  // the only output, or for several outputs those of one after another.
  void check_weights(const ArraySpec& weights) const;
  // Whether weights of this shape, if there are any, are of several outputs.
  bool are_of_each_output(const std::optional<Shape>& weights) const {
    return has_several() && weights && weights->rank() > 0;
  }
  // Whether the losses have divisors of their own: outputs have weights of their own, or a loss ignores targets.
  bool has_own_divisors(const std::optional<Shape>& weights) const {
    return are_of_each_output(weights) || ignores_targets();
  }
  // How many there are: that of the first sum, then those of the losses, then those of the metrics of each output.
  std::size_t divisor_count() const { return 1 + 2 * outputs_.size(); }
  // The shape of each output's part of weights that fit.
  std::vector<Shape> shapes_of_weights(const Shape& weights) const;
  // "loss", then the loss of each output if there are several, then the sums of the metrics.
  std::vector<std::string> sum_names() const;
  // What is reported of these sums: of a metric with several, one number.
  std::vector<std::string> result_names() const;
  std::vector<double> results(std::span<const double> sums, double weight) const;
  // The same for sums with divisors of their own. An output without anything to divide by adds nothing to the loss.
  std::vector<double> results_by_divisors(std::span<const double> sums, std::span<const double> divisors) const;
  // Whether lower or higher values of one of these are better: losses fall, and a metric says it of itself or by its
  // name. Empty where nobody can say.
  std::optional<Best> best_of(const std::string& result_name) const;
  // Adds the configurations of losses and metrics to a JSON object.
  void append_configuration(nlohmann::json& configuration) const;
  // Completes the sums of a shard of so many samples, which have the losses of the outputs and the sums of metrics.
  // With divisors of their own the losses of several outputs have no sum.
  void complete(std::span<float> sums, std::int64_t samples, bool has_own_divisors) const;
  // The losses and metrics that devices cannot compute, for a message.
  std::vector<std::string> without_device_code() const;

  struct OutputMetric {
    std::shared_ptr<const Metric> metric;
    std::size_t output = 0;
    std::string name;
    std::size_t sums = 1;
    bool ignores_weights = false;
    std::vector<std::string> result_names{};  // as they are logged

    // A metric that ignores weights counts samples by itself: the sum of all weights is not their number.
    std::size_t places() const { return sums + (ignores_weights ? 1 : 0); }
  };

  // How many rows (positions, or samples without positions) of the only output are computed at a time, with the product
  // that makes them; 0: all of a shard (CrossentropyOptions::positions_at_once).
  std::int64_t rows_at_once() const { return losses_.front().get()->positions_at_once(); }
  // The rows of a sample of the only output, if they are computed so.
  std::int64_t rows_of_sample() const;

  std::span<const ModelArray> outputs() const { return outputs_; }
  const LossHandle& loss(std::size_t output) const { return losses_[output]; }
  std::span<const OutputMetric> metrics() const { return metrics_; }
  // How many elements one sample has.
  std::size_t elements(std::size_t output) const {
    return static_cast<std::size_t>(outputs_[output].spec.shape.element_count());
  }
  std::size_t target_elements(std::size_t output) const {
    return static_cast<std::size_t>(target_shapes_[output].element_count());
  }
  // Where the sum of an output's loss lies, and the first of the metrics' sums.
  std::size_t loss_place(std::size_t output) const { return has_several() ? 1 + output : 0; }
  std::size_t first_metric() const { return has_several() ? 1 + outputs_.size() : 1; }

  // The graphs of losses and metrics that are functions of values; nothing for others. Both throw
  // Error{invalid_argument} for weights that do not fit.
  std::optional<SumsGraph> graph_of_output_loss(std::size_t output, const std::optional<Shape>& weights) const;
  std::optional<SumsGraph> graph_of_metric(std::size_t index, const std::optional<Shape>& weights) const;
  // The same where each row is a sample with a weight of its own, or without.
  std::optional<SumsGraph> graph_of_metric_of_rows(std::size_t index, bool has_weights) const;

 private:
  bool has_several() const { return outputs_.size() > 1; }
  bool ignores_targets() const;
  // Throws Error{invalid_argument} if the loss ignores targets that are not single numbers.
  void check_ignored(std::size_t output) const;
  // Throws Error{invalid_argument} if outputs are to be computed some rows at a time, and cannot.
  void check_rows_at_once() const;
  // Whether the loss and the metrics of an output take weights of this shape. May throw the same error as the graphs.
  bool takes_weights(std::size_t output, const Shape& weights) const;
  // The axes of an output that count positions, if weights of several outputs are given for each position.
  Shape positions(std::size_t output) const;
  using DivisorOf = std::function<double(const OutputMetric&)>;
  void append_metric_results(std::span<const double> sums, const DivisorOf& divisor_of,
                             std::vector<double>& results) const;
  std::size_t output_named(const MetricHandle& metric) const;
  // Throws Error{invalid_argument} for other numbers of results and of names.
  void name_results(OutputMetric& metric) const;

  std::vector<ModelArray> outputs_;
  std::vector<LossHandle> losses_;
  std::vector<OutputMetric> metrics_;
  std::vector<Shape> target_shapes_;
};

}  // namespace holdfast
