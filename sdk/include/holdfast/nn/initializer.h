#pragma once

// The distribution of the initial weights of a layer. A value: cheap to copy, immutable, safe to use
// from several threads. The numbers depend only on the random sequence that is passed in.
//
// With fans i (inputs of one unit) and o (outputs), where a fan of zero counts as one:
//
//   glorot_uniform   uniform in [-l, l), l = sqrt(6 / (i + o))   Glorot and Bengio, AISTATS 2010, equation 16
//   glorot_normal    normal, variance 2 / (i + o)                the same variance
//   he_uniform       uniform in [-l, l), l = sqrt(6 / i)         He et al., ICCV 2015, equation 10
//   he_normal        normal, variance 2 / i                      the same variance
//   normal(s)        normal, standard deviation s
//
// Normal draws are not truncated. Keras cuts glorot_normal and he_normal off at two standard deviations
// and scales the rest to the same variance; here the tails stay.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "holdfast/core/random.h"

namespace holdfast {

class Initializer {
 public:
  // Used as an option of a layer: Dense{128, {.kernel_initializer = Initializer::he_uniform()}}.
  static Initializer glorot_uniform() { return Initializer(Kind::glorot_uniform); }
  static Initializer glorot_normal() { return Initializer(Kind::glorot_normal); }
  static Initializer he_uniform() { return Initializer(Kind::he_uniform); }
  static Initializer he_normal() { return Initializer(Kind::he_normal); }
  static Initializer zeros() { return Initializer(Kind::zeros); }
  static Initializer ones() { return Initializer(Kind::ones); }
  // Throws Error{invalid_argument} unless the deviation is finite and at least 0.
  static Initializer normal(float standard_deviation);

  // The name in configurations: "glorot_uniform", "normal(0.02)".
  std::string name() const;
  // The inverse of name(). Throws Error{invalid_argument} for any other text.
  static Initializer from_name(std::string_view name);

  // Fills `values` in order from the draws of `random`. Asserts that the fans are at least 0.
  void fill(std::span<float> values, std::int64_t fan_in, std::int64_t fan_out, Random random) const;

  friend bool operator==(const Initializer&, const Initializer&) = default;

 private:
  enum class Kind { glorot_uniform, glorot_normal, he_uniform, he_normal, normal, zeros, ones };

  explicit Initializer(Kind kind, float standard_deviation = 0)
      : kind_(kind), standard_deviation_(standard_deviation) {}
  static std::string_view kind_name(Kind kind);

  Kind kind_;
  float standard_deviation_;  // of Kind::normal; else 0
};

}  // namespace holdfast
