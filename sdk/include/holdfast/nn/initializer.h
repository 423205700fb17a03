#pragma once

// How the weights of a layer begin. A value: cheap to copy, immutable, safe to use from several threads. The numbers
// depend on the random sequence that is passed in and on nothing else.
//
// With fans i (inputs of one unit) and o (outputs), fans of zero counting as one:
//
//   glorot_uniform   even in [-l, l), l = sqrt(6 / (i + o))      Glorot and Bengio, AISTATS 2010, equation 16
//   glorot_normal    normal, variance 2 / (i + o)                the same variance
//   he_uniform       even in [-l, l), l = sqrt(6 / i)            He et al., ICCV 2015, equation 10
//   he_normal        normal, variance 2 / i                      the same variance
//   normal(s)        normal, standard deviation s
//
// Normal draws are not truncated: Keras cuts glorot_normal and he_normal off at two standard deviations and stretches
// the rest to the same variance; here the tails stay.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "holdfast/core/random.h"

namespace holdfast {

class Initializer {
 public:
  static Initializer glorot_uniform() { return Initializer(Kind::glorot_uniform); }
  static Initializer glorot_normal() { return Initializer(Kind::glorot_normal); }
  static Initializer he_uniform() { return Initializer(Kind::he_uniform); }
  static Initializer he_normal() { return Initializer(Kind::he_normal); }
  static Initializer zeros() { return Initializer(Kind::zeros); }
  static Initializer ones() { return Initializer(Kind::ones); }
  // Throws Error{invalid_argument} unless the deviation is finite and not negative.
  static Initializer normal(float standard_deviation);

  // "glorot_uniform", "normal(0.02)": what from_name() takes.
  std::string name() const;
  // Throws Error{invalid_argument} for a name that name() does not give.
  static Initializer from_name(std::string_view name);

  // Fills `values` in order from the draws of `random`. Asserts that the fans are not negative.
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
