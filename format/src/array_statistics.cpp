#include "holdfast/format/array_statistics.h"

#include <algorithm>
#include <cmath>

#include "elements.h"

namespace holdfast::format {
namespace {

template <typename Element, typename Action>
void for_each_finite(std::span<const std::byte> bytes, const Action& action) {
  for (std::size_t at = 0; at + Element::kBytes <= bytes.size(); at += Element::kBytes) {
    const auto value = static_cast<double>(Element::load(bytes.data() + at));
    if (std::isfinite(value)) action(value);
  }
}

template <typename Element>
void count(std::span<const std::byte> bytes, ArrayStatistics& result) {
  for (std::size_t at = 0; at + Element::kBytes <= bytes.size(); at += Element::kBytes) {
    const auto value = static_cast<double>(Element::load(bytes.data() + at));
    result.nans += std::isnan(value) ? 1 : 0;
    result.infinities += std::isinf(value) ? 1 : 0;
    result.zeros += value == 0 ? 1 : 0;
  }
  result.elements = bytes.size() / Element::kBytes;
}

template <typename Element>
void find_range(std::span<const std::byte> bytes, ArrayStatistics& result) {
  if (result.finite() == 0) return;
  double minimum = HUGE_VAL;
  double maximum = -HUGE_VAL;
  for_each_finite<Element>(bytes, [&](double value) {
    minimum = std::min(minimum, value);
    maximum = std::max(maximum, value);
  });
  result.minimum = minimum;
  result.maximum = maximum;
}

// A power of two that brings all values to the size of 1, so that no square overflows.
double scale_for(const ArrayStatistics& range) {
  const double largest = std::max(std::abs(range.minimum), std::abs(range.maximum));
  return largest == 0 ? 1 : std::ldexp(1.0, std::clamp(-std::ilogb(largest), -1000, 1000));
}

template <typename Element>
void measure(std::span<const std::byte> bytes, ArrayStatistics& result) {
  if (result.finite() == 0) return;
  const auto finite = static_cast<double>(result.finite());
  const double scale = scale_for(result);
  double sum = 0;
  double squares = 0;
  for_each_finite<Element>(bytes, [&](double value) {
    sum += value * scale;
    squares += (value * scale) * (value * scale);
  });
  const double mean = sum / finite;
  double distances = 0;
  for_each_finite<Element>(bytes, [&](double value) { distances += (value * scale - mean) * (value * scale - mean); });
  result.mean = mean / scale;
  result.norm = std::sqrt(squares) / scale;
  result.deviation = std::sqrt(distances / finite) / scale;
}

template <typename Element>
void fill_histogram(std::span<const std::byte> bytes, ArrayStatistics& result) {
  const double scale = scale_for(result);
  const double begin = result.minimum * scale;
  const double width = result.maximum * scale - begin;
  for_each_finite<Element>(bytes, [&](double value) {
    const double place = width == 0 ? 0 : (value * scale - begin) / width * ArrayStatistics::kBins;
    ++result.histogram[std::min(static_cast<std::size_t>(place), ArrayStatistics::kBins - 1)];
  });
}

}  // namespace

ArrayStatistics statistics_of(DType dtype, std::span<const std::byte> bytes) {
  return with_element(dtype, [&]<typename Element>(Element) {
    ArrayStatistics result;
    count<Element>(bytes, result);
    find_range<Element>(bytes, result);
    measure<Element>(bytes, result);
    fill_histogram<Element>(bytes, result);
    return result;
  });
}

}  // namespace holdfast::format
