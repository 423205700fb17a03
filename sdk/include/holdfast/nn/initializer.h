#pragma once

// The distribution of the initial weights of a layer, with the definitions of Keras but for glorot_normal and
// he_normal. A value: cheap to copy, immutable, safe to use from several threads. The numbers depend only on the random
// sequence that is passed in.
//
// With fans i (inputs of one unit) and o (outputs), where a fan of zero counts as one:
//
//   glorot_uniform   uniform in [-l, l), l = sqrt(6 / (i + o))   Glorot and Bengio, AISTATS 2010, equation 16
//   glorot_normal    normal, variance 2 / (i + o)                the same variance
//   he_uniform       uniform in [-l, l), l = sqrt(6 / i)         He et al., ICCV 2015, equation 10
//   he_normal        normal, variance 2 / i                      the same variance
//   lecun_uniform    uniform in [-l, l), l = sqrt(3 / i)         LeCun et al., "Efficient BackProp", 1998, section 4.6
//   lecun_normal     truncated normal, variance 1 / i            the same variance
//
// Draws of glorot_normal and he_normal have their tails. Under these names Keras cuts them off at two standard
// deviations and scales the rest to the same variance; truncated_glorot_normal and truncated_he_normal do so here.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/random.h"
#include "holdfast/core/shape.h"

namespace holdfast {

// What a variance is divided by: inputs of a unit, outputs, or the mean of both.
enum class FanMode { fan_in, fan_out, fan_avg };
// How the numbers of variance_scaling() are distributed.
enum class ScalingDistribution {
  truncated_normal,    // without the tails beyond two deviations
  untruncated_normal,  // with its tails
  uniform,             // from -limit to limit
};

// The variance is scale / fan.
struct VarianceScalingOptions {
  float scale = 1;                                                           // above 0
  FanMode mode = FanMode::fan_in;                                            // by which fan the variance is divided
  ScalingDistribution distribution = ScalingDistribution::truncated_normal;  // see ScalingDistribution
};

class Initializer {
 public:
  // Used as an option of a layer: Dense{128, {.kernel_initializer = Initializer::he_uniform()}}.
  static Initializer glorot_uniform();
  static Initializer glorot_normal();            // normal with its tails, variance 2 / (i + o)
  static Initializer he_uniform();               // uniform, variance 2 / i
  static Initializer he_normal();                // normal with its tails, variance 2 / i
  static Initializer lecun_uniform();            // uniform, variance 1 / i
  static Initializer lecun_normal();             // truncated normal, variance 1 / i
  static Initializer truncated_glorot_normal();  // truncated normal, variance 2 / (i + o): Keras's glorot_normal
  static Initializer truncated_he_normal();      // truncated normal, variance 2 / i: Keras's he_normal
  // Variance scale / fan, of which those above are cases. A truncated normal distribution has the variance after its
  // tails were cut off. Throws Error{invalid_argument} unless the scale is finite and above 0.
  static Initializer variance_scaling(const VarianceScalingOptions& options = {});

  static Initializer zeros() { return constant(0); }  // all elements are 0
  static Initializer ones() { return constant(1); }   // all elements are 1
  // The functions below throw Error{invalid_argument} for a number that is not finite.
  static Initializer constant(float value);
  // The elements of the array in row-major order. A layer whose array has another number of elements is refused.
  static Initializer values(std::vector<float> values);
  // The mean is 0 or `mean`. Both throw Error{invalid_argument} unless the deviation is finite and at least 0.
  static Initializer normal(float standard_deviation);
  static Initializer random_normal(float mean = 0, float standard_deviation = 0.05F);
  // Without values beyond two standard deviations of the mean. `standard_deviation` is that before they are cut off.
  static Initializer truncated_normal(float mean = 0, float standard_deviation = 0.05F);
  // In [minimum, maximum). Throws Error{invalid_argument} unless minimum <= maximum.
  static Initializer random_uniform(float minimum = -0.05F, float maximum = 0.05F);
  // A matrix of the product of all extents but the last and the last one, whose columns (or rows, if they are fewer)
  // are orthogonal and of length `gain`: Q of the QR decomposition of a matrix of normal draws, with signs that make
  // the diagonal of R positive (Saxe et al., 2014). An array of fewer than two axes is refused. The time grows as
  // rows * columns * the smaller of both: seconds for 1024 x 1024.
  static Initializer orthogonal(float gain = 1);
  // `gain` on the diagonal of a matrix, else 0. An array that has not two axes is refused.
  static Initializer identity(float gain = 1);

  // The name in configurations: "glorot_uniform", "normal(0.02)".
  std::string name() const;
  // The inverse of name(). Throws Error{invalid_argument} for any other text.
  static Initializer from_name(std::string_view name);

  // Throws Error{invalid_argument} for an array that this initializer cannot fill.
  void check(const Shape& shape) const;

  // Fills an array of `shape` from the draws of `random`. Asserts that the fans are at least 0, and what check()
  // checks.
  void fill(std::span<float> values, const Shape& shape, std::int64_t fan_in, std::int64_t fan_out,
            Random random) const;
  // For an array of one axis.
  void fill(std::span<float> values, std::int64_t fan_in, std::int64_t fan_out, Random random) const;

  // Whether both write the same numbers.
  friend bool operator==(const Initializer& a, const Initializer& b) { return *a.definition_ == *b.definition_; }

 private:
  enum class Kind { variance_scaling, constant, values, normal, truncated_normal, uniform, orthogonal, identity };

  struct Definition {
    Kind kind;
    std::vector<float> numbers;
    FanMode mode = FanMode::fan_in;
    ScalingDistribution distribution = ScalingDistribution::uniform;

    friend bool operator==(const Definition&, const Definition&) = default;
  };

  explicit Initializer(Definition definition);
  static Initializer from_call(std::string_view function, const std::vector<std::string_view>& arguments);

  std::shared_ptr<const Definition> definition_;
};

}  // namespace holdfast
