// A loss computes all samples of a shard at once, unless they have weights: then it computes row by row, so that any
// loss, also one of an application, can be weighted. A row of weight 0 is not computed at all, since what is masked may
// hold anything. See docs/decisions/data.md.

#include "train/step/output_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <typeinfo>

#include "holdfast/base/error.h"
#include "train/context/configuration_json.h"

namespace holdfast {

LossHandle::LossHandle(const Loss& loss, float weight) : loss_(loss.clone()), weight_(weight) {
  if (std::isfinite(weight) && weight >= 0) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the weight of a loss ({}) is {}; it is a number from 0 on", loss.name(), weight));
}

OutputEvaluation::OutputEvaluation(const Model& model, std::vector<LossHandle> losses,
                                   const std::vector<MetricHandle>& metrics)
    : outputs_(model.outputs().begin(), model.outputs().end()), losses_(std::move(losses)) {
  if (losses_.size() != outputs_.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the model has {} outputs and was given {} losses; give a list with one loss for each "
                            "output, in their order",
                            outputs_.size(), losses_.size()));
  }
  for (std::size_t output = 0; output < outputs_.size(); ++output) {
    target_shapes_.push_back(losses_[output].get()->target_shape(outputs_[output].spec.shape));
    // Here, since a loss of logits after a softmax trains, only worse, and nothing later would show it.
    losses_[output].get()->check_last_activation(model.output_activation(output));
  }
  for (const MetricHandle& metric : metrics) {
    const std::size_t output = output_named(metric);
    const std::string& name = metric.get()->name();
    metrics_.push_back({.metric = metric.get(),
                        .output = output,
                        .name = has_several() ? fmt::format("{}_{}", outputs_[output].name, name) : name});
  }
}

std::size_t OutputEvaluation::output_named(const MetricHandle& metric) const {
  if (metric.output().empty()) return 0;
  const auto found = std::ranges::find(outputs_, metric.output(), &ModelArray::name);
  if (found != outputs_.end()) return static_cast<std::size_t>(found - outputs_.begin());
  std::vector<std::string> names;
  for (const ModelArray& output : outputs_) names.push_back(fmt::format("\"{}\"", output.name));
  throw Error(ErrorCode::invalid_argument,
              fmt::format("metric \"{}\" is for the output \"{}\", but the outputs of the model are {}",
                          metric.get()->name(), metric.output(), fmt::join(names, ", ")));
}

std::vector<ArraySpec> OutputEvaluation::targets() const {
  std::vector<ArraySpec> specs;
  for (std::size_t output = 0; output < outputs_.size(); ++output) {
    specs.push_back({.name = has_several() ? outputs_[output].name : std::string(), .shape = target_shapes_[output]});
  }
  return specs;
}

void OutputEvaluation::check_weights(const ArraySpec& weights) const {
  if (weights.shape.rank() == 0) return;
  const Shape& output = outputs_.front().spec.shape;
  const auto positions = weights.shape.extents();
  // Weights may stand for the first axes of the output, as a mask of positions does in a sequence.
  const bool leads = positions.size() <= output.rank() &&
                     std::ranges::equal(positions, std::span(output.extents()).first(positions.size()));
  // A row of the targets belongs to each weight, so their elements must divide evenly.
  const bool divides = target_elements(0) % static_cast<std::size_t>(weights.shape.element_count()) == 0;
  if (!has_several() && leads && divides) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the sample weights have the shape {} a sample; a model {} takes one weight a sample{}",
                          weights.shape.to_string(),
                          has_several() ? "with several outputs" : "with the output " + output.to_string(),
                          has_several() ? "" : ", or one for each position of the output's first axes"));
}

std::vector<std::string> OutputEvaluation::sum_names() const {
  std::vector<std::string> names = {"loss"};
  // The names that Keras uses for models of several outputs.
  if (has_several()) {
    for (const ModelArray& output : outputs_) names.push_back(output.name + "_loss");
  }
  for (const OutputMetric& metric : metrics_) names.push_back(metric.name);
  return names;
}

void OutputEvaluation::append_configuration(nlohmann::json& configuration) const {
  const auto json_of = [](const char* role, const std::string& name, const auto& part) {
    return json_given_by(name_of_class(role, name, typeid(part)), "configuration()", part.configuration());
  };
  nlohmann::json metrics = nlohmann::json::array();
  for (const OutputMetric& metric : metrics_) {
    const nlohmann::json own = json_of("metric", metric.metric->name(), *metric.metric);
    metrics.push_back(has_several() ? nlohmann::json{{"output", metric.output}, {"metric", own}} : own);
  }
  configuration["metrics"] = metrics;
  nlohmann::json losses = nlohmann::json::array();
  for (const LossHandle& loss : losses_) losses.push_back(json_of("loss", loss.get()->name(), *loss.get()));
  // The plain form stays as it is, because savepoints of such runs have it and a resume compares it.
  if (!has_several() && losses_.front().weight() == 1) {
    configuration["loss"] = losses.front();
    return;
  }
  for (std::size_t output = 0; output < losses.size(); ++output) {
    losses[output] = nlohmann::json{{"loss", losses[output]}, {"weight", losses_[output].weight()}};
  }
  configuration["losses"] = losses;
}

namespace {

// Rows of one output, each with a weight.
struct WeightedRows {
  const float* weights;
  std::size_t count;
  std::size_t output_elements;  // of a row
  std::size_t target_elements;

  // The sum over rows of weight * value(row), in their order in double.
  template <class RowValue>
  float sum(const RowValue& value) const {
    double sum = 0;
    for (std::size_t row = 0; row < count; ++row) {
      // Not a product with 0: what is masked may be NaN, and so would be the product.
      if (weights[row] != 0) sum += static_cast<double>(weights[row]) * static_cast<double>(value(row));
    }
    return static_cast<float>(sum);
  }
};

}  // namespace

void OutputEvaluation::evaluate(const Shard& shard, std::span<float> sums) const {
  const auto samples = static_cast<std::size_t>(shard.samples);
  const std::size_t rows = samples * static_cast<std::size_t>(shard.weights_each);
  const auto outputs_of = [&](std::size_t output) {
    return std::span(shard.outputs[output], samples * elements(output));
  };
  const auto targets_of = [&](std::size_t output) {
    return std::span(shard.targets[output], samples * target_elements(output));
  };
  const auto rows_of = [&](std::size_t output) {
    return WeightedRows{.weights = shard.weights,
                        .count = rows,
                        .output_elements = samples * elements(output) / rows,
                        .target_elements = samples * target_elements(output) / rows};
  };
  for (std::size_t output = 0; output < outputs_.size(); ++output) {
    const Loss& loss = *losses_[output].get();
    const float scale = shard.scale * losses_[output].weight();
    float* const gradient = shard.gradients.empty() ? nullptr : shard.gradients[output];
    const std::size_t count = gradient == nullptr ? 0 : samples * elements(output);
    float& sum = sums[loss_place(output)];
    if (shard.weights == nullptr) {
      sum = loss.evaluate(outputs_of(output), targets_of(output), shard.samples, scale, {gradient, count});
      continue;
    }
    // Rows of weight 0 are not computed, so nothing else writes their gradients.
    std::fill_n(gradient, count, 0.0F);
    const WeightedRows weighted = rows_of(output);
    sum = weighted.sum([&](std::size_t row) {
      const std::size_t width = weighted.output_elements;
      return loss.evaluate(outputs_of(output).subspan(row * width, width),
                           targets_of(output).subspan(row * weighted.target_elements, weighted.target_elements), 1,
                           scale * shard.weights[row],
                           gradient == nullptr ? std::span<float>() : std::span(gradient + row * width, width));
    });
  }
  for (std::size_t index = 0; index < metrics_.size(); ++index) {
    const OutputMetric& metric = metrics_[index];
    float& sum = sums[first_metric() + index];
    if (shard.weights == nullptr) {
      sum = metric.metric->sum(outputs_of(metric.output), targets_of(metric.output), shard.samples);
      continue;
    }
    const WeightedRows weighted = rows_of(metric.output);
    sum = weighted.sum([&](std::size_t row) {
      const std::size_t width = weighted.output_elements;
      return metric.metric->sum(
          outputs_of(metric.output).subspan(row * width, width),
          targets_of(metric.output).subspan(row * weighted.target_elements, weighted.target_elements), 1);
    });
  }
  if (shard.weights != nullptr) {
    // The divisor of the whole batch is the sum over all shards, so each shard adds its own.
    double weight = 0;
    for (std::size_t row = 0; row < rows; ++row) weight += static_cast<double>(shard.weights[row]);
    sums.back() = static_cast<float>(weight);
  }
  add_losses(sums);
}

void OutputEvaluation::add_losses(std::span<float> sums) const {
  if (!has_several()) {
    if (losses_.front().weight() != 1) sums[0] *= losses_.front().weight();
    return;
  }
  sums[0] = 0;
  for (std::size_t output = 0; output < outputs_.size(); ++output) {
    sums[0] += losses_[output].weight() * sums[loss_place(output)];
  }
}

void OutputEvaluation::evaluate_on(compute::DeviceKernels& device, const Shard& shard, float* sums) const {
  if (shard.weights != nullptr) {
    throw Error(ErrorCode::unsupported,
                "sample weights are for training on CPUs; on a device, leave them out, or multiply the loss in a Loss "
                "of your own");
  }
  const auto batch_of = [&](std::size_t output, std::size_t place) {
    return DeviceBatch{.outputs = shard.outputs[output],
                       .targets = shard.targets[output],
                       .samples = shard.samples,
                       .output_elements = static_cast<std::int64_t>(elements(output)),
                       .sum = sums + place};
  };
  for (std::size_t output = 0; output < outputs_.size(); ++output) {
    losses_[output].get()->evaluate_on(device, batch_of(output, loss_place(output)),
                                       shard.scale * losses_[output].weight(),
                                       shard.gradients.empty() ? nullptr : shard.gradients[output]);
  }
  for (std::size_t index = 0; index < metrics_.size(); ++index) {
    metrics_[index].metric->sum_on(device, batch_of(metrics_[index].output, first_metric() + index));
  }
}

}  // namespace holdfast
