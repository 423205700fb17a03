#include "holdfast/nn/value_metric.h"

#include <fmt/format.h>

#include <vector>

#include "core/json_object.h"
#include "core/json_text.h"
#include "holdfast/base/error.h"
#include "nn/program/value_function.h"

namespace holdfast {

ValueMetric::ValueMetric(std::string name, ValueOptionsByName options)
    : Metric(std::move(name)), options_(std::move(options)) {
  check_value_function("metric", this->name(), options_);
}

std::string ValueMetric::configuration() const {
  return value_function_configuration("value_metric", name(), options_);
}

float ValueMetric::sum(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples) const {
  const EvaluatedShapes shapes = shapes_of_rows(name(), outputs, targets, samples);
  if (samples == 0) return 0;
  SumsGraph graph = graph_of_metric_sums(*this, shapes);
  // A sum may be an array. Metric::sum() has room for one number, which is the first.
  std::vector<float> all(graph.element_count());
  run_on_host(std::move(graph), samples, 1, {.outputs = outputs.data(), .targets = targets.data(), .sums = all.data()});
  return all.front();
}

BuiltInMetric::BuiltInMetric(const std::string& kind, const std::string& name, const std::string& options)
    : ValueMetric(name.empty() ? kind : name),
      configuration_(
          built_in_configuration(kind, options, JsonObject().value("name", json_string(this->name())).members())) {}

// Without a function for the result, Metric::result() reports the mean of the only sum.
MetricFunction::MetricFunction(std::string name, Function function, ValueOptionsByName numbers)
    : ValueMetric(std::move(name), std::move(numbers)) {
  if (!function) throw Error(ErrorCode::invalid_argument, fmt::format("metric \"{}\" has no function", this->name()));
  functions_ = [function = std::move(function)](const Value& outputs, const Value& targets) {
    return std::vector<Value>{function(outputs, targets)};
  };
}

MetricFunction::MetricFunction(std::string name, Functions functions, Result result, ValueOptionsByName numbers)
    : ValueMetric(std::move(name), std::move(numbers)), functions_(std::move(functions)), result_(std::move(result)) {
  if (functions_ && result_) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("metric \"{}\" needs a function for its sums and one for its result", this->name()));
}

}  // namespace holdfast
