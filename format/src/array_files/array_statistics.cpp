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

using Sums = StatisticsBuilder::Sums;

// The range begins empty, which infinities of the wrong sign express.
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

// `sums` is a copy: the compiler can keep it in registers, which a reference would prevent.
template <typename Element>
Sums add_up(std::span<const std::byte> bytes, const ArrayStatistics& result, Sums sums) {
  const double scale = scale_for(result);
  for_each_finite<Element>(bytes, [&](double value) {
    sums.sum += value * scale;
    sums.squares += (value * scale) * (value * scale);
  });
  return sums;
}

double scaled_mean(const ArrayStatistics& result, const Sums& sums) {
  return sums.sum / static_cast<double>(result.finite());
}

template <typename Element>
Sums measure_distances(std::span<const std::byte> bytes, ArrayStatistics& result, Sums sums) {
  const double scale = scale_for(result);
  const double mean = scaled_mean(result, sums);
  const double begin = result.minimum * scale;
  const double width = result.maximum * scale - begin;
  for_each_finite<Element>(bytes, [&](double value) {
    sums.distances += (value * scale - mean) * (value * scale - mean);
    const double place = width == 0 ? 0 : (value * scale - begin) / width * ArrayStatistics::kBins;
    // A value lies outside the range only if the file changed between two passes.
    constexpr double kLast = ArrayStatistics::kBins - 1;
    ++result.histogram[place > 0 ? static_cast<std::size_t>(std::min(place, kLast)) : 0];
  });
  return sums;
}

}  // namespace

void StatisticsBuilder::add(std::span<const std::byte> bytes) {
  HOLDFAST_ASSERT(pass_ < kPasses);
  with_element(dtype_, [&]<typename Element>(Element) {
    if (pass_ == 0) count_and_find_range<Element>(bytes, result_);
    if (pass_ == 1) sums_ = add_up<Element>(bytes, result_, sums_);
    if (pass_ == 2) sums_ = measure_distances<Element>(bytes, result_, sums_);
  });
}

void StatisticsBuilder::end_pass() {
  // Without a finite element there is no mean, and the results stay 0.
  if (++pass_ < kPasses || result_.finite() == 0) return;
  const double scale = scale_for(result_);
  result_.mean = scaled_mean(result_, sums_) / scale;
  result_.norm = std::sqrt(sums_.squares) / scale;
  result_.deviation = std::sqrt(sums_.distances / static_cast<double>(result_.finite())) / scale;
}

ArrayStatistics statistics_of(DType dtype, std::span<const std::byte> bytes) {
  // For an array in memory, so each pass sees all of it at once.
  StatisticsBuilder builder(dtype);
  for (int pass = 0; pass < StatisticsBuilder::kPasses; ++pass) {
    builder.add(bytes);
    builder.end_pass();
  }
  return builder.result();
}

}  // namespace holdfast::format
