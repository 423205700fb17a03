// These metrics are functions of values on all back ends. The cross-entropy losses of the same names have loops and
// kernels of their own, so the last bits of a loss and its metric may differ.

#include "holdfast/nn/probabilistic_metrics.h"

#include <cmath>

#include "core/json_object.h"
#include "nn/losses/crossentropy_checks.h"
#include "nn/losses/loss_values.h"
#include "nn/losses/softmax_row.h"

namespace holdfast::metrics {
namespace {

std::string checked_options(std::string_view what, const CrossentropyMetricOptions& options) {
  check_range(what, "label_smoothing", options.label_smoothing, 0, 1);
  return JsonObject()
      .boolean("from_logits", options.from_logits)
      .number("label_smoothing", options.label_smoothing)
      .members();
}

std::string checked_options(const std::string& what, const SparseCrossentropyMetricOptions& options) {
  check_ignored_class(what, options.ignore_class);
  JsonObject object;
  object.boolean("from_logits", options.from_logits);
  if (options.ignore_class) object.integer("ignore_class", *options.ignore_class);
  return object.members();
}

// Returns the losses, and with an ignored class a mask of the targets that count.
std::vector<Value> sparse_sums(const std::string& name, const Value& outputs, const Value& targets,
                               const SparseCrossentropyMetricOptions& options) {
  check_has_classes(name, outputs.shape());
  const Value losses = sparse_crossentropy(log_probabilities(outputs, options.from_logits), targets);
  if (!options.ignore_class) return {losses};
  // Class numbers are whole.
  const Value counts = less(0.5F, absolute(targets - static_cast<float>(*options.ignore_class)));
  return {where(counts, losses, 0.0F), counts};
}

// With an ignored class the sums are divided by what counted, and else by the weight of all samples.
double mean_of(std::span<const double> sums, double weight) {
  return sums[0] / (sums.size() > 1 ? sums[1] : weight);
}

}  // namespace

Poisson::Poisson(const MetricOptions& options) : BuiltInMetric("poisson", options.name) {}

std::vector<Value> Poisson::sums(const Value& outputs, const Value& targets) const {
  return {poisson(outputs, targets)};
}

KLDivergence::KLDivergence(const MetricOptions& options) : BuiltInMetric("kl_divergence", options.name) {}

std::vector<Value> KLDivergence::sums(const Value& outputs, const Value& targets) const {
  return {kl_divergence(outputs, targets)};
}

BinaryCrossentropy::BinaryCrossentropy(const CrossentropyMetricOptions& options)
    : BuiltInMetric("binary_crossentropy", options.name, checked_options("binary_crossentropy", options)),
      options_(options) {}

// Perplexity of scores, or a cross-entropy of them, would be that of other probabilities: it looks plausible, and is
// wrong. docs/decisions/losses.md
void BinaryCrossentropy::check_last_activation(std::optional<Activation> last) const {
  if (!options_.accept_any_activation) check_metric_of_probabilities(name(), options_.from_logits, last, "sigmoid");
}

std::vector<Value> BinaryCrossentropy::sums(const Value& outputs, const Value& targets) const {
  // Two parts: an output stands for a class and its opposite, which share what smoothing takes away.
  return {binary_crossentropy(outputs, smoothed(targets, options_.label_smoothing, 2), options_.from_logits)};
}

CategoricalCrossentropy::CategoricalCrossentropy(const CrossentropyMetricOptions& options)
    : BuiltInMetric("categorical_crossentropy", options.name, checked_options("categorical_crossentropy", options)),
      options_(options) {}

void CategoricalCrossentropy::check_last_activation(std::optional<Activation> last) const {
  if (!options_.accept_any_activation) check_metric_of_probabilities(name(), options_.from_logits, last, "softmax");
}

std::vector<Value> CategoricalCrossentropy::sums(const Value& outputs, const Value& targets) const {
  check_class_axes(name(), outputs, targets);
  return {categorical_crossentropy(outputs, targets, options_.from_logits, options_.label_smoothing)};
}

SparseCategoricalCrossentropy::SparseCategoricalCrossentropy(const SparseCrossentropyMetricOptions& options)
    : BuiltInMetric("sparse_categorical_crossentropy", options.name,
                    checked_options("sparse_categorical_crossentropy", options)),
      options_(options) {}

void SparseCategoricalCrossentropy::check_last_activation(std::optional<Activation> last) const {
  if (!options_.accept_any_activation) check_metric_of_probabilities(name(), options_.from_logits, last, "softmax");
}

std::vector<Value> SparseCategoricalCrossentropy::sums(const Value& outputs, const Value& targets) const {
  return sparse_sums(name(), outputs, targets, options_);
}

double SparseCategoricalCrossentropy::result(std::span<const double> sums, double weight) const {
  return mean_of(sums, weight);
}

std::size_t SparseCategoricalCrossentropy::position_axes(const Shape& output) const {
  return axes_before_classes(output);
}

Perplexity::Perplexity(const SparseCrossentropyMetricOptions& options)
    : BuiltInMetric("perplexity", options.name, checked_options("perplexity", options)), options_(options) {}

void Perplexity::check_last_activation(std::optional<Activation> last) const {
  if (!options_.accept_any_activation) check_metric_of_probabilities(name(), options_.from_logits, last, "softmax");
}

std::vector<Value> Perplexity::sums(const Value& outputs, const Value& targets) const {
  return sparse_sums(name(), outputs, targets, options_);
}

std::size_t Perplexity::position_axes(const Shape& output) const {
  return axes_before_classes(output);
}

// The exponential is taken of the mean over the whole epoch. A mean of the perplexities of batches would depend on how
// samples are cut.
double Perplexity::result(std::span<const double> sums, double weight) const {
  return std::exp(mean_of(sums, weight));
}

}  // namespace holdfast::metrics
