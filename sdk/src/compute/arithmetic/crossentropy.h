#pragma once

// The formulas of losses for one element or one row, for host and device. The caller decides which part of a row a
// thread computes, and in which order it adds.

#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace holdfast::compute {

// The loss that an element adds to its sample, and its derivative, before they are divided by the number of elements.
struct ElementLoss {
  double loss;
  float gradient;
};

inline constexpr float kProbabilityEpsilon = 1e-7F;

struct ClippedProbability {
  float value;
  bool is_clipped;  // a clipped probability has no gradient
};

HOLDFAST_HOST_DEVICE inline ClippedProbability clip_probability(float p) {
  if (p < kProbabilityEpsilon) return {kProbabilityEpsilon, true};
  if (p > 1.0F - kProbabilityEpsilon) return {1.0F - kProbabilityEpsilon, true};
  return {p, false};
}

// max(x, 0) - x t + log(1 + exp(-|x|)) equals -t log(s) - (1 - t) log(1 - s), s = sigmoid(x), without overflow.
HOLDFAST_HOST_DEVICE inline ElementLoss binary_loss_of_logit(float x, float target) {
  const double decay = std::exp(-std::abs(static_cast<double>(x)));
  const double sigmoid = (x >= 0 ? 1.0 : decay) / (1.0 + decay);
  return {std::fmax(static_cast<double>(x), 0.0) - static_cast<double>(x) * target + std::log1p(decay),
          static_cast<float>(sigmoid - target)};
}

HOLDFAST_HOST_DEVICE inline ElementLoss binary_loss_of_probability(float output, float target) {
  const ClippedProbability p = clip_probability(output);
  const double yes = p.value;
  const double no = 1.0 - yes;
  return {-(target * std::log(yes) + (1.0 - target) * std::log(no)),
          p.is_clipped ? 0.0F : static_cast<float>((yes - target) / (yes * no))};
}

HOLDFAST_HOST_DEVICE inline ElementLoss squared_error(float output, float target) {
  const double difference = static_cast<double>(output) - target;
  return {difference * difference, output - target};
}

// A label is a whole number from 0 to classes - 1. A NaN fails the first comparison.
HOLDFAST_HOST_DEVICE inline bool is_class_label(float label, std::int64_t classes) {
  return label >= 0 && label < static_cast<float>(classes) && std::floor(label) == label;
}

// log(sum(exp(row))) = largest + log_sum; exp(row[c] - largest) / sum is the softmax and never overflows.
struct SoftmaxRow {
  float largest;
  double sum;      // of exp(row[c] - largest), at least 1
  double log_sum;  // log(sum)
};

// The exponential in softmax, and in the sum that divides it.
HOLDFAST_HOST_DEVICE inline float softmax_exponential(float score, float largest) {
  return std::exp(score - largest);
}

// -log(softmax) of a class.
HOLDFAST_HOST_DEVICE inline double loss_of_logit(const SoftmaxRow& row, float score) {
  return row.log_sum - (static_cast<double>(score) - row.largest);
}

// For outputs that are divided by their sum.
HOLDFAST_HOST_DEVICE inline ClippedProbability clipped_share(float output, double sum) {
  return clip_probability(static_cast<float>(output / sum));
}

HOLDFAST_HOST_DEVICE inline double loss_of_share(ClippedProbability share) {
  return -std::log(static_cast<double>(share.value));
}

}  // namespace holdfast::compute
