// Every element takes a fixed number of draws, so that its value does not depend on those before it: a truncated
// distribution is made with the inverse of the normal one, and not by drawing again.

#include "nn/layers/initial_draws.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast {

void fill_uniform(std::span<float> values, double variance, Random& random) {
  // An even distribution over [-l, l) has the variance l * l / 3.
  const auto limit = static_cast<float>(std::sqrt(3.0 * variance));
  for (float& value : values) value = limit * (2.0F * random.uniform() - 1.0F);
}

void fill_normal(std::span<float> values, double variance, Random& random) {
  const auto standard_deviation = static_cast<float>(std::sqrt(variance));
  for (float& value : values) value = standard_deviation * random.normal();
}

namespace {

// The coefficient of the highest power comes last.
double polynomial_at(double x, std::span<const double> coefficients) {
  double result = 0;
  for (std::size_t i = coefficients.size(); i-- > 0;) result = result * x + coefficients[i];
  return result;
}

}  // namespace

// M. Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution", Applied Statistics 37 (1988),
// PPND16, without its third range, which begins at exp(-25).
double normal_quantile(double p) {
  // The numbers are the coefficients a, b, c and d of the paper.
  constexpr std::array kCentralAbove = {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                                        1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                                        3.3430575583588128105e4, 2.5090809287301226727e3};
  constexpr std::array kCentralBelow = {1.0,
                                        4.2313330701600911252e1,
                                        6.8718700749205790830e2,
                                        5.3941960214247511077e3,
                                        2.1213794301586595867e4,
                                        3.9307895800092710610e4,
                                        2.8729085735721942674e4,
                                        5.2264952788528545610e3};
  constexpr std::array kOuterAbove = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                      3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                      2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr std::array kOuterBelow = {1.0,
                                      2.05319162663775882187e0,
                                      1.67638483018380384940e0,
                                      6.89767334985100004550e-1,
                                      1.48103976427480074590e-1,
                                      1.51986665636164571966e-2,
                                      5.47593808499534494600e-4,
                                      1.05075007164441684324e-9};
  // Draws for a truncated distribution lie between 0.02 and 0.98, far from the range that is left out.
  HOLDFAST_ASSERT(p > 1e-10 && p < 1 - 1e-10);
  const double q = p - 0.5;
  // Near the middle, the quantile is q times a rational function of q^2.
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial_at(r, kCentralAbove) / polynomial_at(r, kCentralBelow);
  }
  // The distribution is symmetric, so the lower tail serves both sides.
  const double r = std::sqrt(-std::log(q < 0 ? p : 1 - p)) - 1.6;
  const double magnitude = polynomial_at(r, kOuterAbove) / polynomial_at(r, kOuterBelow);
  return q < 0 ? -magnitude : magnitude;
}

void fill_truncated_normal(std::span<float> values, double standard_deviation, Random& random) {
  // The share of the normal distribution below -2.
  constexpr double kTail = 0.022750131948179207;
  for (float& value : values) {
    // The half keeps the number between 0 and 1 and the distribution symmetric.
    const double even = (static_cast<double>(random.next_u32()) + 0.5) * 0x1p-32;
    value = static_cast<float>(standard_deviation * normal_quantile(kTail + even * (1 - 2 * kTail)));
  }
}

namespace {

using Vector = std::vector<double>;

double product_of(const Vector& a, const Vector& b) {
  // The sum runs in one order, so that all replicas begin with the same bits.
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// A vector may nearly lie in the plane of the others, and then one pass of Gram and Schmidt leaves mostly rounding
// errors. So there are two (Giraud et al., "The Loss of Orthogonality in the Gram-Schmidt Process", 2005). The diagonal
// of R comes out positive.
void make_orthonormal(std::vector<Vector>& vectors) {
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    Vector& vector = vectors[i];
    for (int pass = 0; pass < 2; ++pass) {
      // Each projection is taken from what the ones before it have left (the modified method), which loses fewer
      // digits.
      for (std::size_t before = 0; before < i; ++before) {
        const double along = product_of(vector, vectors[before]);
        for (std::size_t k = 0; k < vector.size(); ++k) vector[k] -= along * vectors[before][k];
      }
    }
    const double length = std::sqrt(product_of(vector, vector));
    for (double& element : vector) element /= length;
  }
}

}  // namespace

void fill_orthogonal(std::span<float> values, std::int64_t rows, std::int64_t columns, Random& random) {
  const auto longer = static_cast<std::size_t>(std::max(rows, columns));
  const auto shorter = static_cast<std::size_t>(std::min(rows, columns));
  HOLDFAST_ASSERT(values.size() == longer * shorter);
  std::vector<Vector> vectors(shorter, Vector(longer));
  // Draws fill a matrix [longer, shorter] row by row, also where the array has more columns than rows. This order is a
  // part of the bits.
  for (std::size_t element = 0; element < longer; ++element) {
    for (Vector& vector : vectors) vector[element] = random.normal();
  }
  make_orthonormal(vectors);
  for (std::size_t i = 0; i < shorter; ++i) {
    for (std::size_t element = 0; element < longer; ++element) {
      // The vectors are the rows of a wide array, and the columns of a tall one.
      const std::size_t place = rows < columns ? i * longer + element : element * shorter + i;
      values[place] = static_cast<float>(vectors[i][element]);
    }
  }
}

}  // namespace holdfast
