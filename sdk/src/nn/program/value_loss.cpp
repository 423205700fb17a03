#include "holdfast/nn/value_loss.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "nn/program/sample_rows.h"
#include "nn/program/value_function.h"

namespace holdfast {

ValueLoss::ValueLoss(std::string name, ValueOptionsByName options)
    : name_(std::move(name)), options_(std::move(options)) {
  check_value_function("loss", name_, options_);
}

std::string ValueLoss::configuration() const {
  return value_function_configuration("value_loss", name_, options_);
}

float ValueLoss::evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples,
                          float scale, std::span<float> gradient) const {
  const EvaluatedShapes shapes = shapes_of_rows(name_, outputs, targets, samples);
  check_gradient(*this, {.count = 0, .output_elements = 0, .outputs = outputs, .targets = targets}, gradient);
  if (samples == 0) return 0;
  // The graph is made anew in each call. A Trainer has programs for it; this is for tests of a loss.
  const auto described = [this](const Value& o, const Value& t) { return losses(o, t); };
  float sum = 0;
  run_on_host(graph_of_loss(described_name("loss", name_), described, shapes), samples, scale,
              {.outputs = outputs.data(),
               .targets = targets.data(),
               .gradient = gradient.empty() ? nullptr : gradient.data(),
               .sums = &sum});
  return sum;
}

// A kind of Holdfast needs no map of options: its configuration lists them in Keras's order and by Keras's names.
BuiltInLoss::BuiltInLoss(const std::string& kind, const std::string& options)
    : ValueLoss(kind), configuration_(built_in_configuration(kind, options)) {}

LossFunction::LossFunction(std::string name, Function function, Options options)
    : ValueLoss(std::move(name), std::move(options.numbers)),
      function_(std::move(function)),
      target_shape_(std::move(options.target_shape)) {
  if (!function_) throw Error(ErrorCode::invalid_argument, fmt::format("loss \"{}\" has no function", this->name()));
}

}  // namespace holdfast
