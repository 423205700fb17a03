// All that can be wrong with losses and metrics is found here, before the first step: shapes, names, and functions of
// values that describe nothing to train with. output_sums.cpp computes them. docs/decisions/losses.md

#include "train/step/outputs/output_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <typeinfo>

#include "compute/device_kernels.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/nn/value_metric.h"
#include "nn/losses/metric_direction.h"
#include "nn/model/description.h"
#include "nn/program/value_function.h"
#include "train/context/configuration_json.h"

namespace holdfast {
namespace {

// How many rows of a sample a loss or metric takes. Throws for positions that the arrays do not have.
std::int64_t positions_of(const auto& part, const std::string& what, const Shape& output, const Shape& target) {
  const std::size_t axes = part.position_axes(output);
  std::int64_t positions = 1;
  for (std::size_t axis = 0; axis < std::min(axes, output.rank()); ++axis) positions *= output[axis];
  if (axes <= output.rank() && positions > 0 && target.element_count() % positions == 0) return positions;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("position_axes() of {} is {}, which does not fit outputs {} with targets {}", what, axes,
                          output.to_string(), target.to_string()));
}

// A metric sees the targets of the loss. On a device nothing else would compare their sizes. So the host's function,
// which does, is called once with zeros.
void check_metric(const Metric& metric, const Shape& output, const Shape& target) {
  const std::int64_t positions = positions_of(metric, described_name("metric", metric.name()), output, target);
  compute::MetricShape kernel;
  if (!metric.describe_kernel(kernel)) return;
  const std::vector<float> outputs(static_cast<std::size_t>(output.element_count()));
  const std::vector<float> targets(static_cast<std::size_t>(target.element_count()));
  static_cast<void>(metric.sum(outputs, targets, positions));
}

}  // namespace

// A clone, since the caller's loss may be gone or changed before fit().
LossHandle::LossHandle(const Loss& loss, float weight) : loss_(loss.clone()), weight_(weight) {
  require_own_clone("loss", loss, *loss_);
  if (std::isfinite(weight) && weight >= 0) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the weight of a loss ({}) is {}; it is a number from 0 on", loss.name(), weight));
}

MetricHandle::MetricHandle(const Metric& metric, std::string output, MetricWeights weights)
    : metric_(metric.clone()), output_(std::move(output)), weights_(weights) {
  require_own_clone("metric", metric, *metric_);
}

// Losses and metrics would take the bits of an integer for a number near 0.
static void check_type_of_output(const ModelArray& output) {
  if (computed_type(output.spec.dtype) == DType::f32) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the output {} of the model is of {}, and losses and metrics take outputs of f32; let the "
                          "model give cast(x, DType::f32) of it",
                          quoted_text(output.name, 100), name(output.spec.dtype)));
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
    check_type_of_output(outputs_[output]);
    target_shapes_.push_back(losses_[output].get()->target_shape(outputs_[output].spec.shape));
    // Here, since a loss of logits after a softmax trains, only worse, and nothing later would show it.
    losses_[output].get()->check_last_activation(model.output_activation(output));
    // Described without weights for the sake of its checks. check_weights() does the same with those of the data.
    static_cast<void>(graph_of_output_loss(output, std::nullopt));
    const Loss& loss = *losses_[output].get();
    positions_of(loss, described_name("loss", loss.name()), outputs_[output].spec.shape, target_shapes_[output]);
    check_ignored(output);
  }
  for (const MetricHandle& metric : metrics) {
    const std::size_t output = output_named(metric);
    const std::string& name = metric.get()->name();
    metric.get()->check_last_activation(model.output_activation(output));
    // Before its graph, which is made by the metric's place in the list.
    metrics_.push_back({.metric = metric.get(),
                        .output = output,
                        .name = has_several() ? fmt::format("{}_{}", outputs_[output].name, name) : name,
                        .ignores_weights = metric.weights() == MetricWeights::ignored});
    if (const auto graph = graph_of_metric(metrics_.size() - 1, std::nullopt)) {
      metrics_.back().sums = graph->element_count();
    } else {
      check_metric(*metric.get(), outputs_[output].spec.shape, target_shapes_[output]);
    }
    name_results(metrics_.back());
  }
  check_rows_at_once();
}

void OutputEvaluation::check_rows_at_once() const {
  const auto asks = [](const LossHandle& loss) { return loss.get()->positions_at_once() != 0; };
  if (std::ranges::none_of(losses_, asks)) return;
  const Loss& loss = *losses_.front().get();
  const std::string what = described_name("loss", loss.name());
  if (has_several()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a loss of {} outputs has positions_at_once, which is for models of one; leave it out",
                            outputs_.size()));
  }
  const Shape& shape = outputs_.front().spec.shape;
  const auto takes_rows = [&](const auto& part) { return part.position_axes(shape) + 1 == shape.rank(); };
  if (loss.positions_at_once() < 0 || loss.as_values() != nullptr || !takes_rows(loss)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("positions_at_once() of {} is {}, for outputs {} with {} axes of positions; it is a number "
                            "from 0 on, and for losses with kernels of their own whose positions are all axes but the "
                            "last one",
                            what, loss.positions_at_once(), shape.to_string(), loss.position_axes(shape)));
  }
  for (const OutputMetric& metric : metrics_) {
    if (takes_rows(*metric.metric)) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} sees the outputs of a sample whole, and {} computes them {} positions at a time; leave "
                            "positions_at_once out, or the metric. Metrics that can be computed so say it by "
                            "position_axes(), such as sparse_categorical_accuracy and perplexity",
                            described_name("metric", metric.name), what, loss.positions_at_once()));
  }
}

std::int64_t OutputEvaluation::rows_of_sample() const {
  const Shape& shape = outputs_.front().spec.shape;
  return shape.element_count() / shape[shape.rank() - 1];
}

void OutputEvaluation::name_results(OutputMetric& metric) const {
  const ModelArray& output = outputs_[metric.output];
  // Keras's names of metrics of several outputs begin with that of the output.
  for (const std::string& name : metric.metric->result_names(output.spec.shape)) {
    metric.result_names.push_back(has_several() ? fmt::format("{}_{}", output.name, name) : name);
  }
  // A class of several sums that lacks a result is found here, not after the first step.
  // Ones, since a metric may divide by its sums.
  const std::size_t count = metric.metric->results(std::vector<double>(metric.sums, 1), 1).size();
  if (count == metric.result_names.size()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("results() of {} gave {} numbers for the {} of result_names()",
                          described_name("metric", metric.metric->name()), count, metric.result_names.size()));
}

std::optional<SumsGraph> OutputEvaluation::graph_of_output_loss(std::size_t output,
                                                                const std::optional<Shape>& weights) const {
  const ValueLoss* const loss = losses_[output].get()->as_values();
  if (loss == nullptr) return std::nullopt;
  return graph_of_loss(described_name("loss", loss->name()),
                       [loss](const Value& o, const Value& t) { return loss->losses(o, t); },
                       {.outputs = outputs_[output].spec.shape, .targets = target_shapes_[output], .weights = weights});
}

std::optional<SumsGraph> OutputEvaluation::graph_of_metric(std::size_t index,
                                                           const std::optional<Shape>& weights) const {
  const OutputMetric& metric = metrics_[index];
  const ValueMetric* const of_values = metric.metric->as_values();
  if (of_values == nullptr) return std::nullopt;
  return graph_of_metric_sums(*of_values, {.outputs = outputs_[metric.output].spec.shape,
                                           .targets = target_shapes_[metric.output],
                                           .weights = metric.ignores_weights ? std::nullopt : weights});
}

std::optional<SumsGraph> OutputEvaluation::graph_of_metric_of_rows(std::size_t index, bool has_weights) const {
  const OutputMetric& metric = metrics_[index];
  const ValueMetric* const of_values = metric.metric->as_values();
  if (of_values == nullptr) return std::nullopt;
  const Shape& output = outputs_.front().spec.shape;
  // Described as if a row were a sample: what it gives is then added up row by row.
  const Shape row{output[output.rank() - 1]};
  return graph_of_metric_sums(
      *of_values, {.outputs = row,
                   .targets = losses_.front().get()->target_shape(row),
                   .weights = has_weights && !metric.ignores_weights ? std::optional(Shape()) : std::nullopt});
}

std::size_t OutputEvaluation::output_named(const MetricHandle& metric) const {
  // A metric without an output is for the first one, or for the only one.
  if (metric.output().empty()) return 0;
  // By the name of the output, as in Keras's dictionaries of metrics.
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

bool OutputEvaluation::ignores_targets() const {
  return std::ranges::any_of(losses_, [](const LossHandle& loss) { return loss.get()->ignored_target().has_value(); });
}

// Ignored targets are counted one by one for the divisor, so each must belong to one position.
void OutputEvaluation::check_ignored(std::size_t output) const {
  const Loss& loss = *losses_[output].get();
  if (!loss.ignored_target()) return;
  const Shape& shape = outputs_[output].spec.shape;
  const std::int64_t positions = positions_of(loss, described_name("loss", loss.name()), shape, target_shapes_[output]);
  if (loss.as_values() == nullptr && target_shapes_[output].element_count() == positions) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} ignores a target, but its targets {} are not one number for each of {} positions",
                          described_name("loss", loss.name()), target_shapes_[output].to_string(), positions));
}

bool OutputEvaluation::takes_weights(std::size_t output, const Shape& weights) const {
  if (weights.rank() == 0) return true;
  const Shape& shape = outputs_[output].spec.shape;
  const auto positions = weights.extents();
  // Weights may stand for the first axes of the output, as a mask of positions does in a sequence.
  const bool leads = positions.size() <= shape.rank() &&
                     std::ranges::equal(positions, std::span(shape.extents()).first(positions.size()));
  // A row of the targets belongs to each weight, so their elements must divide evenly.
  const auto count = static_cast<std::size_t>(weights.element_count());
  const bool divides = count > 0 && target_elements(output) % count == 0;
  // A class is not a position: it has no loss of its own. Functions of values are checked by their graphs.
  const auto takes = [&](const auto& part) {
    if (part.as_values() != nullptr) return true;
    return part.is_mean_of_elements() || positions.size() <= part.position_axes(shape);
  };
  const bool all_take = takes(*losses_[output].get()) && std::ranges::all_of(metrics_, [&](const OutputMetric& metric) {
                          return metric.output != output || metric.ignores_weights || takes(*metric.metric);
                        });
  if (!leads || !divides || !all_take) return false;
  static_cast<void>(graph_of_output_loss(output, weights));
  for (std::size_t index = 0; index < metrics_.size(); ++index) {
    if (metrics_[index].output == output) static_cast<void>(graph_of_metric(index, weights));
  }
  return true;
}

// The last axis of an output holds the numbers of a position. An output of one axis has no positions.
Shape OutputEvaluation::positions(std::size_t output) const {
  const auto& extents = outputs_[output].spec.shape.extents();
  if (extents.size() < 2) return {};
  return Shape(std::vector<std::int64_t>(extents.begin(), extents.end() - 1));
}

// One array of weights serves all outputs, or has a part for each: a number, or one for each position.
std::vector<Shape> OutputEvaluation::shapes_of_weights(const Shape& weights) const {
  std::vector<Shape> shapes(outputs_.size(), weights);
  if (!are_of_each_output(weights)) return shapes;
  // As many weights as outputs are one for each, also where each output has one position.
  const bool has_positions = weights.element_count() != static_cast<std::int64_t>(outputs_.size());
  for (std::size_t output = 0; output < shapes.size(); ++output) {
    shapes[output] = has_positions ? positions(output) : Shape();
  }
  return shapes;
}

void OutputEvaluation::check_weights(const ArraySpec& weights) const {
  if (weights.shape.rank() == 0) return;
  const std::vector<Shape> shapes = shapes_of_weights(weights.shape);
  // Each output takes its part of the weights, and together the parts must be all of them.
  std::int64_t numbers = 0;
  bool all_take = !has_several() || weights.shape.rank() == 1;
  for (std::size_t output = 0; output < shapes.size() && all_take; ++output) {
    numbers += shapes[output].element_count();
    all_take = takes_weights(output, shapes[output]);
  }
  if (all_take && numbers == weights.shape.element_count()) return;
  std::int64_t all_positions = 0;
  // For the sentence alone, which says how many weights would have fit.
  for (std::size_t output = 0; output < outputs_.size(); ++output) all_positions += positions(output).element_count();
  const std::string taken =
      has_several()
          ? fmt::format(
                "with several outputs takes one weight a sample, {} (one for each output), or {} (one for each "
                "position of all outputs, in the order of the targets)",
                outputs_.size(), all_positions)
          : fmt::format(
                "with the output {} takes one weight a sample, or one for each position of the output's first "
                "axes",
                outputs_.front().spec.shape.to_string());
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the sample weights have the shape {} a sample; a model {}. For other weights, make them "
                          "numbers of the targets, which a loss of values reads (LossFunction in value_loss.h)",
                          weights.shape.to_string(), taken));
}

// The order of the sums of a step. Savepoints within an epoch hold the sums in this order.
std::vector<std::string> OutputEvaluation::sum_names() const {
  std::vector<std::string> names = {"loss"};
  // The names that Keras uses for models of several outputs.
  if (has_several()) {
    for (const ModelArray& output : outputs_) names.push_back(output.name + "_loss");
  }
  for (const OutputMetric& metric : metrics_) {
    names.push_back(metric.name);
    for (std::size_t sum = 1; sum < metric.sums; ++sum) {
      names.push_back(fmt::format("{} (sum {})", metric.name, sum + 1));
    }
    if (metric.ignores_weights) names.push_back(fmt::format("{} (samples)", metric.name));
  }
  return names;
}

std::vector<std::string> OutputEvaluation::result_names() const {
  std::vector<std::string> names = sum_names();
  names.resize(first_metric());
  for (const OutputMetric& metric : metrics_) {
    names.insert(names.end(), metric.result_names.begin(), metric.result_names.end());
  }
  return names;
}

// A metric that ignores weights has its own divisor among the sums: the number of samples.
void OutputEvaluation::append_metric_results(std::span<const double> sums, const DivisorOf& divisor_of,
                                             std::vector<double>& results) const {
  // Each metric takes its places from the front, and its divisor from those places or from the data.
  sums = sums.subspan(first_metric());
  for (const OutputMetric& metric : metrics_) {
    const double divisor = metric.ignores_weights ? sums[metric.sums] : divisor_of(metric);
    const std::vector<double> own = metric.metric->results(sums.first(metric.sums), divisor);
    results.insert(results.end(), own.begin(), own.end());
    sums = sums.subspan(metric.places());
  }
}

std::vector<double> OutputEvaluation::results(std::span<const double> sums, double weight) const {
  std::vector<double> results;
  for (const double sum : sums.first(first_metric())) results.push_back(sum / weight);
  append_metric_results(
      sums, [&](const OutputMetric&) { return weight; }, results);
  return results;
}

std::vector<double> OutputEvaluation::results_by_divisors(std::span<const double> sums,
                                                          std::span<const double> divisors) const {
  HOLDFAST_ASSERT(divisors.size() == divisor_count());
  // With several outputs the first sum has penalties alone: no common divisor would fit all losses.
  std::vector<double> results = {sums[0] / divisors[0]};
  for (std::size_t output = 0; output < outputs_.size() && has_several(); ++output) {
    const double divisor = divisors[1 + output];
    const double loss = sums[loss_place(output)] / divisor;
    results.push_back(loss);
    // Without anything to divide by, a loss is 0 / 0, which must not make the sum of all losses a NaN.
    if (divisor > 0) results[0] += static_cast<double>(losses_[output].weight()) * loss;
  }
  const std::span<const double> of_metrics = divisors.subspan(1 + outputs_.size());
  append_metric_results(
      sums, [&](const OutputMetric& metric) { return of_metrics[metric.output]; }, results);
  return results;
}

std::optional<Best> OutputEvaluation::best_of(const std::string& result_name) const {
  for (const OutputMetric& metric : metrics_) {
    if (std::ranges::find(metric.result_names, result_name) == metric.result_names.end()) continue;
    if (const std::optional<Best> own = metric.metric->best()) return own;
  }
  return direction_of_name(result_name);
}

// What a device cannot compute, for a warning, and for the decision whether a step can be recorded.
std::vector<std::string> OutputEvaluation::without_device_code() const {
  std::vector<std::string> names;
  compute::LossShape loss_kernel;
  compute::MetricShape metric_kernel;
  for (const LossHandle& loss : losses_) {
    if (loss.get()->as_values() != nullptr) continue;
    if (!loss.get()->describe_kernel(loss_kernel)) names.push_back(described_name("loss", loss.get()->name()));
  }
  for (const OutputMetric& metric : metrics_) {
    if (metric.metric->as_values() != nullptr) continue;
    if (!metric.metric->describe_kernel(metric_kernel)) names.push_back(described_name("metric", metric.name));
  }
  return names;
}

void OutputEvaluation::append_configuration(nlohmann::json& configuration) const {
  const auto json_of = [](const char* role, const std::string& name, const auto& part) {
    return json_given_by(name_of_class(role, name, typeid(part)), "configuration()", part.configuration());
  };
  nlohmann::json metrics = nlohmann::json::array();
  for (const OutputMetric& metric : metrics_) {
    nlohmann::json own = json_of("metric", metric.metric->name(), *metric.metric);
    // The sums of an epoch are saved, and those of another number would be taken for other metrics.
    if (metric.sums > 1) own = nlohmann::json{{"metric", own}, {"sums", metric.sums}};
    if (metric.ignores_weights) own = nlohmann::json{{"metric", own}, {"ignores_weights", true}};
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

void OutputEvaluation::complete(std::span<float> sums, std::int64_t samples, bool has_own_divisors) const {
  // Counts of samples are filled in here: no kernel computes them.
  std::size_t place = first_metric();
  for (const OutputMetric& metric : metrics_) {
    if (metric.ignores_weights) sums[place + metric.sums] = static_cast<float>(samples);
    place += metric.places();
  }
  // On a device this place has what was added up there last, maybe for other data.
  if (has_own_divisors && place < sums.size()) sums[place] = 0;
  if (!has_several()) {
    if (losses_.front().weight() != 1) sums[0] *= losses_.front().weight();
    return;
  }
  sums[0] = 0;
  // results_by_divisors() adds the losses up, each after its own division.
  if (has_own_divisors) return;
  for (std::size_t output = 0; output < outputs_.size(); ++output) {
    sums[0] += losses_[output].weight() * sums[loss_place(output)];
  }
}

}  // namespace holdfast
