// What losses and metrics of values have in common. A Trainer runs their graphs with programs of its own; the one here
// serves a single call, so that a loss or metric can be tested without a model. docs/decisions/losses.md

#include "nn/program/value_function.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/json_object.h"
#include "core/json_text.h"
#include "holdfast/base/error.h"

namespace holdfast {

void check_value_function(const std::string& role, const std::string& name, const ValueOptionsByName& options) {
  if (name.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a {} of values needs a name, by which a resumed run knows it", role));
  }
  for (const auto& [option, value] : options) {
    // The configuration is JSON, which has neither NaN nor infinity.
    if (std::isfinite(value)) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("option \"{}\" of {} \"{}\" is {}; it must be finite", option, role, name, value));
  }
}

std::string value_function_configuration(const std::string& kind, const std::string& name,
                                         const ValueOptionsByName& options) {
  // The library sorts members, so that equal options have equal texts.
  nlohmann::json numbers = nlohmann::json::object();
  for (const auto& [option, value] : options) numbers[option] = value;
  return JsonObject(kind).value("name", json_string(name)).value("options", numbers.dump()).text();
}

// The order of the members is that of the arguments. A resume compares the text, so it is data.
std::string built_in_configuration(const std::string& kind, const std::string& options, const std::string& last) {
  return JsonObject(kind).append(options).append(last).text();
}

std::string described_name(const std::string& role, const std::string& name) {
  return fmt::format("{} \"{}\"", role, name);
}

EvaluatedShapes shapes_of_rows(const std::string& name, std::span<const float> outputs, std::span<const float> targets,
                               std::int64_t samples) {
  const auto count = static_cast<std::size_t>(samples);
  // Without samples both arrays must be empty, and nothing is divided.
  const auto divides = [&](std::span<const float> array) {
    return samples == 0 ? array.empty() : !array.empty() && array.size() % count == 0;
  };
  if (samples < 0 || !divides(outputs) || !divides(targets)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} was given {} outputs and {} targets for {} samples; it needs as many of them for each "
                            "sample, one or more",
                            name, outputs.size(), targets.size(), samples));
  }
  if (samples == 0) return {};
  const auto row = [&](std::span<const float> array) {
    return Shape({static_cast<std::int64_t>(array.size() / count)});
  };
  return {.outputs = row(outputs), .targets = row(targets)};
}

SumsGraph graph_of_metric_sums(const ValueMetric& metric, const EvaluatedShapes& shapes) {
  return graph_of_sums(
      described_name("metric", metric.name()),
      [&metric](const Value& outputs, const Value& targets) { return metric.sums(outputs, targets); }, shapes,
      metric.adds_elements() ? ElementsOfSum::all : ElementsOfSum::mean, metric.kept_axes());
}

// One thread, so that a test of a loss has the bits that a shard has by default.
void run_on_host(SumsGraph graph, std::int64_t samples, float scale, const ValueProgram::Arrays& arrays) {
  const std::unique_ptr<compute::Backend> backend = compute::make_cpu_backend(1);
  ValueProgram program(std::move(graph), *backend);
  std::vector<std::uint64_t> key;
  program.prepare(samples, scale, key);
  program.run(arrays);
}

}  // namespace holdfast
