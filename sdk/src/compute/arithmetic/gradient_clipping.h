#pragma once

// Gradient clipping for host and device, with the same bits on both, because a norm is a sum in one order.
//
// An array is cut into chunks, and the elements of a chunk are assigned to lanes. Each lane adds the squares of its
// elements one after another; then the lanes are added in a tree. The sums of the chunks are added in the same way. All
// sums are in double, in which the square of a float is exact. docs/decisions/optimizers.md

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "compute/device_kernels.h"
#include "core/host_device.h"

namespace holdfast::compute {

inline constexpr std::size_t kNormLanes = 256;
inline constexpr std::size_t kNormChunk = 16 * kNormLanes;  // floats

HOLDFAST_HOST_DEVICE inline std::size_t norm_chunks(const NormRange& range) {
  return (range.end - range.begin + kNormChunk - 1) / kNormChunk;
}

// The size of the workspace of DeviceKernels::clip_norms(): a double for each chunk and a float for each range.
inline std::size_t norm_workspace_floats(std::span<const NormRange> ranges) {
  std::size_t chunks = 0;
  for (const NormRange& range : ranges) chunks += norm_chunks(range);
  return chunks * (sizeof(double) / sizeof(float)) + ranges.size();
}

// A NaN stays a NaN.
HOLDFAST_HOST_DEVICE inline float clipped_value(float gradient, float limit) {
  return gradient > limit ? limit : gradient < -limit ? -limit : gradient;
}

inline constexpr double kLargestNorm = std::numeric_limits<double>::max();  // device code may not call max()

// The factor of the gradients; 1 if nothing is clipped.
HOLDFAST_HOST_DEVICE inline float norm_scale(double sum_of_squares, float limit) {
  const double norm = std::sqrt(sum_of_squares);
  const bool is_clipped = norm > limit && norm <= kLargestNorm;
  return is_clipped ? static_cast<float>(limit / norm) : 1.0F;
}

// The host's implementation of that order; `value_of(i)` are the summands.
template <class Value>
HOLDFAST_HOST_INLINE inline double sum_in_norm_lanes(std::size_t count, const Value& value_of) {
  double lanes[kNormLanes] = {};
  for (std::size_t first = 0; first < count; first += kNormLanes) {
    const std::size_t width = count - first < kNormLanes ? count - first : kNormLanes;
    for (std::size_t lane = 0; lane < width; ++lane) lanes[lane] += value_of(first + lane);
  }
  for (std::size_t half = kNormLanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

// The squares of up to kNormChunk floats.
HOLDFAST_HOST_INLINE inline double squares_of_chunk(const float* values, std::size_t count) {
  return sum_in_norm_lanes(count, [values](std::size_t i) {
    const double value = values[i];
    return value * value;
  });
}

// Fills the places of `sums` for the chunks of an array from number `first` on. `chunk_squares` is squares_of_chunk(),
// or a function that gives the same bits.
inline void square_chunks(std::span<const float> array, std::size_t first, std::span<double> sums,
                          double (*chunk_squares)(const float*, std::size_t) = squares_of_chunk) {
  for (std::size_t chunk = 0; chunk < sums.size(); ++chunk) {
    const std::size_t begin = (first + chunk) * kNormChunk;
    sums[chunk] = chunk_squares(array.data() + begin, std::min(kNormChunk, array.size() - begin));
  }
}

inline double sum_of_chunks(std::span<const double> sums) {
  return sum_in_norm_lanes(sums.size(), [sums](std::size_t chunk) { return sums[chunk]; });
}

// `chunk_sums` has norm_chunks() places.
inline double sum_of_squares(std::span<const float> array, std::span<double> chunk_sums) {
  square_chunks(array, 0, chunk_sums);
  return sum_of_chunks(chunk_sums);
}

}  // namespace holdfast::compute
