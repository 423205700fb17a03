#pragma once

// What an array's values look like: enough to see weights that exploded, died or became NaN.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "holdfast/base/dtype.h"

namespace holdfast::format {

// Of the finite elements, as doubles (integers beyond 2^53 are rounded); all 0 when there are none.
struct ArrayStatistics {
  static constexpr std::size_t kBins = 16;

  std::uint64_t elements = 0;
  std::uint64_t nans = 0;
  std::uint64_t infinities = 0;
  std::uint64_t zeros = 0;
  double minimum = 0;
  double maximum = 0;
  double mean = 0;
  double deviation = 0;  // the root of the mean squared distance from the mean
  double norm = 0;       // the root of the sum of squares
  // How many elements lie in each of kBins equal parts of [minimum, maximum]; all in the first when the two are equal.
  std::array<std::uint64_t, kBins> histogram{};

  std::uint64_t finite() const { return elements - nans - infinities; }
};

// Of `bytes`, elements without padding. In one order: the same bytes give the same bits.
ArrayStatistics statistics_of(DType dtype, std::span<const std::byte> bytes);

// The same of an array that need not be in memory: all its elements are given kPasses times, each time in the same
// order and in any pieces of whole elements.
class StatisticsBuilder {
 public:
  static constexpr int kPasses = 3;

  explicit StatisticsBuilder(DType dtype) : dtype_(dtype) {}

  void add(std::span<const std::byte> bytes);
  void end_pass();
  // All passes have ended.
  const ArrayStatistics& result() const { return result_; }

 private:
  DType dtype_;
  int pass_ = 0;
  ArrayStatistics result_;
  double sum_ = 0;        // of the scaled values
  double squares_ = 0;    //
  double distances_ = 0;  // squared, from the mean
};

}  // namespace holdfast::format
