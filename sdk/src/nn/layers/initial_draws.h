#pragma once

// How initializers turn draws into weights.

#include <cstdint>
#include <span>

#include "holdfast/core/random.h"

namespace holdfast {

// Uniform around 0, normal, and normal without what is beyond two standard deviations. Each element takes a fixed
// number of draws.
void fill_uniform(std::span<float> values, double variance, Random& random);
void fill_normal(std::span<float> values, double variance, Random& random);
void fill_truncated_normal(std::span<float> values, double standard_deviation, Random& random);

// Row-major [rows, columns]: the columns, or the rows if they are fewer, are orthonormal.
void fill_orthogonal(std::span<float> values, std::int64_t rows, std::int64_t columns, Random& random);

// The standard deviation of a normal distribution of deviation 1 without what is beyond 2.
inline constexpr double kTruncatedDeviation = 0.87962566103423978;

// The x below which a share p of the standard normal distribution lies. p is from 1e-10 to 1 - 1e-10.
double normal_quantile(double p);

}  // namespace holdfast
