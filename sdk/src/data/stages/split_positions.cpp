#include "data/stages/split_positions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "holdfast/base/error.h"

namespace holdfast {

void SplitPositions::add(Positions positions, std::int64_t validation_samples, Random random) {
  HOLDFAST_ASSERT(validation_samples >= 0 && validation_samples <= static_cast<std::int64_t>(positions.size()));
  for (std::size_t i = 0; i < static_cast<std::size_t>(validation_samples); ++i) {
    // The first steps of Fisher and Yates: as many draws as validation has samples, and what is left is for training.
    std::swap(positions[i], positions[i + random.below(positions.size() - i)]);
  }
  const auto border = positions.begin() + validation_samples;
  validation.insert(validation.end(), positions.begin(), border);
  training.insert(training.end(), border, positions.end());
}

void SplitPositions::sort() {
  std::ranges::sort(training);
  std::ranges::sort(validation);
}

std::int64_t samples_of_fraction(double fraction, std::int64_t size, std::string_view sample) {
  // The shortest text that gives the same double, so the message shows what the program wrote.
  const std::string given = fmt::format("split({})", nlohmann::json(fraction).dump());
  // Written so that a NaN is refused too.
  if (!(fraction > 0 && fraction < 1)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} takes a fraction between 0 and 1, the share of {}s for validation; to give a number of "
                            "{}s, pass an integer as in split(1000)",
                            given, sample, sample));
  }
  // To the nearest, so 0.1 of 60000 is 6000 although no double is 0.1.
  const auto count = static_cast<std::int64_t>(std::llround(fraction * static_cast<double>(size)));
  if (count < 1 || count >= size) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} of {} {}s leaves no {} for {}; use another fraction, or a number of {}s", given, size,
                            sample, sample, count < 1 ? "validation" : "training", sample));
  }
  return count;
}

}  // namespace holdfast
