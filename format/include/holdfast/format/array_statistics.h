#pragma once

// What an array's values look like: enough to see weights that exploded, died or became NaN.
//
//   const ArrayStatistics statistics = statistics_of(DType::f32, bytes);
//   if (statistics.nans > 0) std::cout << statistics.nans << " of " << statistics.elements << " are NaN\n";
//
// For an array in a file that is larger than memory:
//
//   StatisticsBuilder builder(info.dtype);
//   for (int pass = 0; pass < StatisticsBuilder::kPasses; ++pass) {
//     file.read_parts(info.name, [&](std::span<const std::byte> part) { builder.add(part); });
//     builder.end_pass();
//   }
//   const ArrayStatistics& statistics = builder.result();

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "holdfast/base/dtype.h"

namespace holdfast::format {

// minimum to histogram are those of the finite elements, taken as doubles: integers beyond 2^53 are
// rounded. All are 0 when no element is finite.
struct ArrayStatistics {
  static constexpr std::size_t kBins = 16;  // of the histogram

  std::uint64_t elements = 0;    // of any value
  std::uint64_t nans = 0;        // elements that are NaN
  std::uint64_t infinities = 0;  // of either sign
  std::uint64_t zeros = 0;       // of either sign
  double minimum = 0;            // of the finite elements
  double maximum = 0;            // of the finite elements
  double mean = 0;               // of the finite elements
  double deviation = 0;          // the root of the mean squared distance from the mean
  double norm = 0;               // the root of the sum of squares
  // How many elements lie in each of kBins equal parts of [minimum, maximum]. All are in the first part
  // when minimum and maximum are equal.
  std::array<std::uint64_t, kBins> histogram{};

  std::uint64_t finite() const { return elements - nans - infinities; }  // the number of finite elements
};

// The statistics of `bytes`, elements without padding. Sums have one order, so the same bytes give the
// same bits.
ArrayStatistics statistics_of(DType dtype, std::span<const std::byte> bytes);

// The same for an array that need not be in memory: all its elements are added kPasses times, each time
// in the same order and in pieces of any number of whole elements. One thread at a time.
class StatisticsBuilder {
 public:
  static constexpr int kPasses = 3;  // how often all elements must be added

  // For elements of this type.
  explicit StatisticsBuilder(DType dtype) : dtype_(dtype) {}

  // The next piece of this pass. Its size is a multiple of the element's.
  void add(std::span<const std::byte> bytes);
  // To be called after the last piece of each pass. The last of kPasses calls completes result().
  void end_pass();
  // Complete once all passes have ended.
  const ArrayStatistics& result() const { return result_; }

  // What a pass carries from piece to piece: sums over the scaled values.
  struct Sums {
    double sum = 0;        // of the values
    double squares = 0;    // of the squared values
    double distances = 0;  // squared, from the mean
  };

 private:
  DType dtype_;
  int pass_ = 0;
  ArrayStatistics result_;
  Sums sums_;
};

}  // namespace holdfast::format
