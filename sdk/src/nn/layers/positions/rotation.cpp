#include "nn/layers/positions/rotation.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "nn/layers/positions/given_numbers.h"

namespace holdfast {

void check_rotation(std::string_view kind, const RotaryEmbeddingOptions& options) {
  if (!std::isfinite(options.max_wavelength) || options.max_wavelength < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} needs a finite max_wavelength of at least 1, not {}", kind, options.max_wavelength));
  }
  if (std::isfinite(options.scaling_factor) && options.scaling_factor > 0) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} needs a finite scaling_factor above 0, not {}", kind, options.scaling_factor));
}

RotationTables rotation_tables(LayerBuilder& builder, const std::string& prefix, std::int64_t steps, std::int64_t width,
                               const RotaryEmbeddingOptions& options) {
  if (width % 2 != 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("it rotates pairs of elements, so a width of {} must be even", width));
  }
  const auto angle = [&](double step, std::int64_t column) {
    const double exponent = static_cast<double>(2 * column) / static_cast<double>(width);
    return step / static_cast<double>(options.scaling_factor) /
           std::pow(static_cast<double>(options.max_wavelength), exponent);
  };
  const std::int64_t half = width / 2;
  const Value cosine = given_numbers(builder, prefix + "cosine", steps, half,
                                     [&](double t, std::int64_t i) { return std::cos(angle(t, i)); });
  const Value sine = given_numbers(builder, prefix + "sine", steps, half,
                                   [&](double t, std::int64_t i) { return std::sin(angle(t, i)); });
  return {.cosine = cosine, .sine = sine};
}

Value rotated(const Value& x, const RotationTables& tables) {
  const std::int64_t steps = x.shape()[0];
  const std::int64_t width = x.shape()[x.shape().rank() - 1];
  // All heads of a step turn alike.
  std::vector<std::int64_t> extents(x.shape().rank(), 1);
  extents.front() = steps;
  extents.back() = width / 2;
  const auto of_steps = [&](const Value& table) {
    return reshape(table.shape()[0] == steps ? table : slice(table, 0, 0, steps), extents);
  };
  const Value cosine = of_steps(tables.cosine);
  const Value sine = of_steps(tables.sine);
  // The halves of a vector are turned against each other, as in GPT-NeoX and KerasHub, and not its neighbours.
  const Value first = slice(x, -1, 0, width / 2);
  const Value second = slice(x, -1, width / 2, width);
  return concatenate({first * cosine - second * sine, second * cosine + first * sine}, -1);
}

}  // namespace holdfast
