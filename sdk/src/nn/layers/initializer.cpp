#include "holdfast/nn/initializer.h"

#include <algorithm>
#include <cmath>

#include "core/json_text.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

void fill_uniform(std::span<float> values, double variance, Random& random) {
  // An even distribution over [-l, l) has the variance l * l / 3.
  const auto limit = static_cast<float>(std::sqrt(3.0 * variance));
  for (float& value : values) value = limit * (2.0F * random.uniform() - 1.0F);
}

void fill_normal(std::span<float> values, double variance, Random& random) {
  const auto standard_deviation = static_cast<float>(std::sqrt(variance));
  for (float& value : values) value = standard_deviation * random.normal();
}

double glorot_variance(std::int64_t fan_in, std::int64_t fan_out) {
  return 2.0 / static_cast<double>(std::max<std::int64_t>(1, fan_in) + std::max<std::int64_t>(1, fan_out));
}

double he_variance(std::int64_t fan_in) {
  return 2.0 / static_cast<double>(std::max<std::int64_t>(1, fan_in));
}

}  // namespace

Initializer Initializer::normal(float standard_deviation) {
  if (!std::isfinite(standard_deviation) || standard_deviation < 0) {
    throw Error(ErrorCode::invalid_argument,
                "the standard deviation of a normal initializer must be finite and not negative, but is " +
                    std::to_string(standard_deviation));
  }
  return Initializer(Kind::normal, standard_deviation);
}

std::string_view Initializer::kind_name(Kind kind) {
  switch (kind) {
    case Kind::glorot_uniform:
      return "glorot_uniform";
    case Kind::glorot_normal:
      return "glorot_normal";
    case Kind::he_uniform:
      return "he_uniform";
    case Kind::he_normal:
      return "he_normal";
    case Kind::normal:
      return "normal";
    case Kind::zeros:
      return "zeros";
    case Kind::ones:
      return "ones";
  }
  HOLDFAST_ASSERT(false);
}

std::string Initializer::name() const {
  const std::string name(kind_name(kind_));
  return kind_ == Kind::normal ? name + "(" + json_number(standard_deviation_) + ")" : name;
}

Initializer Initializer::from_name(std::string_view name) {
  constexpr std::string_view kNormal = "normal(";
  if (name.starts_with(kNormal) && name.ends_with(')')) {
    return normal(float_from_text(name.substr(kNormal.size(), name.size() - kNormal.size() - 1)));
  }
  for (const Kind kind :
       {Kind::glorot_uniform, Kind::glorot_normal, Kind::he_uniform, Kind::he_normal, Kind::zeros, Kind::ones}) {
    if (name == kind_name(kind)) return Initializer(kind);
  }
  throw Error(
      ErrorCode::invalid_argument,
      "no initializer is called \"" + std::string(name) +
          "\"; there are glorot_uniform, glorot_normal, he_uniform, he_normal, normal(deviation), zeros and ones");
}

void Initializer::fill(std::span<float> values, std::int64_t fan_in, std::int64_t fan_out, Random random) const {
  HOLDFAST_ASSERT(fan_in >= 0 && fan_out >= 0);
  switch (kind_) {
    case Kind::glorot_uniform:
      return fill_uniform(values, glorot_variance(fan_in, fan_out), random);
    case Kind::glorot_normal:
      return fill_normal(values, glorot_variance(fan_in, fan_out), random);
    case Kind::he_uniform:
      return fill_uniform(values, he_variance(fan_in), random);
    case Kind::he_normal:
      return fill_normal(values, he_variance(fan_in), random);
    case Kind::normal:
      return fill_normal(values, static_cast<double>(standard_deviation_) * standard_deviation_, random);
    case Kind::zeros:
      std::fill(values.begin(), values.end(), 0.0F);
      return;
    case Kind::ones:
      std::fill(values.begin(), values.end(), 1.0F);
      return;
  }
}

}  // namespace holdfast
