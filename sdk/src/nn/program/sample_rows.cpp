#include "nn/program/sample_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// Losses and metrics are public, and an application may call them with spans of its own. So this is an error and not an
// assertion.
[[noreturn]] void refuse(const NamedFunction& what, std::span<const float> outputs, std::span<const float> targets,
                         std::int64_t samples, std::string_view rule) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} was given {} outputs and {} targets for {} samples; it needs {}", what.name(),
                          outputs.size(), targets.size(), samples, rule));
}

SampleRows rows(const NamedFunction& what, std::span<const float> outputs, std::span<const float> targets,
                std::int64_t samples) {
  // The length of a row follows from both numbers, so that losses need not know the model. A shard may have no samples.
  const bool is_valid = samples > 0 ? !outputs.empty() && outputs.size() % static_cast<std::uint64_t>(samples) == 0
                                    : samples == 0 && outputs.empty();
  if (!is_valid) refuse(what, outputs, targets, samples, "the same number of outputs, one or more, for each sample");
  const auto count = static_cast<std::size_t>(samples);
  return {.count = count,
          .output_elements = count == 0 ? 0 : outputs.size() / count,
          .outputs = outputs,
          .targets = targets};
}

}  // namespace

SampleRows rows_with_scalar_targets(const NamedFunction& what, std::span<const float> outputs,
                                    std::span<const float> targets, std::int64_t samples) {
  const SampleRows result = rows(what, outputs, targets, samples);
  if (targets.size() != result.count) refuse(what, outputs, targets, samples, "one target for each sample");
  return result;
}

SampleRows rows_with_equal_targets(const NamedFunction& what, std::span<const float> outputs,
                                   std::span<const float> targets, std::int64_t samples) {
  const SampleRows result = rows(what, outputs, targets, samples);
  if (targets.size() != outputs.size()) refuse(what, outputs, targets, samples, "one target for each output");
  return result;
}

void check_gradient(const NamedFunction& what, const SampleRows& rows, std::span<const float> gradient) {
  // An empty gradient asks for the loss alone.
  if (gradient.empty() || gradient.size() == rows.outputs.size()) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("{} has {} outputs, but its gradient has room for {}",
                                                       what.name(), rows.outputs.size(), gradient.size()));
}

std::size_t index_of_largest(std::span<const float> row) {
  // std::max_element() finds the first of equal elements, as argmax of NumPy does.
  return static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

}  // namespace holdfast
