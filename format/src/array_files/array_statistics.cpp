// Three passes, because each needs what the pass before it found: the sums need the range, which scales
// the values so that no square overflows, and the distances need the mean. Every sum has one order, so
// the same bytes give the same bits.

#include "holdfast/format/array_statistics.h"

#include <algorithm>
#include <cmath>

#include "holdfast/base/elements.h"
#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

template <typename Element, typename Action>
void for_each_finite(std::span<const std::byte> bytes, const Action& action) {
  for (std::size_t at = 0; at + Element::kBytes <= bytes.size(); at += Element::kBytes) {
    const auto value = static_cast<double>(Element::load(bytes.data() + at));
    if (std::isfinite(value)) action(value);
  }
}

// A power of two that scales the largest value to about 1, so that no square overflows.
double scale_for(const ArrayStatistics& range) {
  const double largest = std::max(std::abs(range.minimum), std::abs(range.maximum));
  return largest == 0 ? 1 : std::ldexp(1.0, std::clamp(-std::ilogb(largest), -1000, 1000));
}

// The sums that a pass carries from piece to piece.
struct Sums {
  double& sum;
  double& squares;
  double& distances;
};

template <typename Element>
void count_and_find_range(std::span<const std::byte> bytes, ArrayStatistics& result) {
  double minimum = result.finite() == 0 ? HUGE_VAL : result.minimum;
  double maximum = result.finite() == 0 ? -HUGE_VAL : result.maximum;
  for (std::size_t at = 0; at + Element::kBytes <= bytes.size(); at += Element::kBytes) {
    const auto value = static_cast<double>(Element::load(bytes.data() + at));
    result.nans += std::isnan(value) ? 1 : 0;
    result.infinities += std::isinf(value) ? 1 : 0;
    result.zeros += value == 0 ? 1 : 0;
    if (!std::isfinite(value)) continue;
    minimum = std::min(minimum, value);
    maximum = std::max(maximum, value);
  }
  result.elements += bytes.size() / Element::kBytes;
  if (result.finite() == 0) return;
  result.minimum = minimum;
  result.maximum = maximum;
}

template <typename Element>
void add_up(std::span<const std::byte> bytes, const ArrayStatistics& result, Sums sums) {
  const double scale = scale_for(result);
  double sum = sums.sum;
  double squares = sums.squares;
  for_each_finite<Element>(bytes, [&](double value) {
    sum += value * scale;
    squares += (value * scale) * (value * scale);
  });
  sums.sum = sum;
  sums.squares = squares;
}

double scaled_mean(const ArrayStatistics& result, Sums sums) {
  return sums.sum / static_cast<double>(result.finite());
}

template <typename Element>
void measure_distances(std::span<const std::byte> bytes, ArrayStatistics& result, Sums sums) {
  const double scale = scale_for(result);
  const double mean = scaled_mean(result, sums);
  const double begin = result.minimum * scale;
  const double width = result.maximum * scale - begin;
  double distances = sums.distances;
  for_each_finite<Element>(bytes, [&](double value) {
    distances += (value * scale - mean) * (value * scale - mean);
    const double place = width == 0 ? 0 : (value * scale - begin) / width * ArrayStatistics::kBins;
    // A value lies outside the range only if the file changed between two passes.
    constexpr double kLast = ArrayStatistics::kBins - 1;
    ++result.histogram[place > 0 ? static_cast<std::size_t>(std::min(place, kLast)) : 0];
  });
  sums.distances = distances;
}

}  // namespace

void StatisticsBuilder::add(std::span<const std::byte> bytes) {
  HOLDFAST_ASSERT(pass_ < kPasses);
  const Sums sums{sum_, squares_, distances_};
  with_element(dtype_, [&]<typename Element>(Element) {
    if (pass_ == 0) count_and_find_range<Element>(bytes, result_);
    if (pass_ == 1) add_up<Element>(bytes, result_, sums);
    if (pass_ == 2) measure_distances<Element>(bytes, result_, sums);
  });
}

void StatisticsBuilder::end_pass() {
  if (++pass_ < kPasses || result_.finite() == 0) return;
  const double scale = scale_for(result_);
  result_.mean = scaled_mean(result_, {sum_, squares_, distances_}) / scale;
  result_.norm = std::sqrt(squares_) / scale;
  result_.deviation = std::sqrt(distances_ / static_cast<double>(result_.finite())) / scale;
}

ArrayStatistics statistics_of(DType dtype, std::span<const std::byte> bytes) {
  StatisticsBuilder builder(dtype);
  for (int pass = 0; pass < StatisticsBuilder::kPasses; ++pass) {
    builder.add(bytes);
    builder.end_pass();
  }
  return builder.result();
}

}  // namespace holdfast::format
