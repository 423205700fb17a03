#pragma once

// The formulas of losses for one element or one row, for host and device. The caller decides which part of a row a
// thread computes, and in which order it adds.

#include <cstdint>

#include "compute/arithmetic/exponential.h"
#include "compute/arithmetic/softmax.h"
#include "core/host_device.h"

namespace holdfast::compute {

// The loss that an element adds to its sample, and its derivative, before they are divided by the number of elements.
struct ElementLoss {
  float loss;
  float gradient;
};

inline constexpr float kProbabilityEpsilon = 1e-7F;

struct ClippedProbability {
  float value;
  bool is_clipped;  // a clipped probability has no gradient
};

HOLDFAST_HOST_DEVICE inline ClippedProbability clip_probability(float p) {
  const bool is_too_small = p < kProbabilityEpsilon;
  const bool is_too_large = p > 1.0F - kProbabilityEpsilon;
  const float value = is_too_small ? kProbabilityEpsilon : is_too_large ? 1.0F - kProbabilityEpsilon : p;
  // Without a branch: || would be one.
  return {value, (is_too_small | is_too_large) != 0};
}

// max(x, 0) - x t + log(1 + exp(-|x|)) equals -t log(s) - (1 - t) log(1 - s), s = sigmoid(x), without overflow.
HOLDFAST_HOST_DEVICE inline ElementLoss binary_loss_of_logit(float x, float target) {
  const float decay = exponential_of_negative(-absolute(x));
  const float sigmoid = (x >= 0 ? 1.0F : decay) / (1.0F + decay);
  return {(x > 0 ? x : 0.0F) - x * target + logarithm_of_one_plus(decay), sigmoid - target};
}

HOLDFAST_HOST_DEVICE inline ElementLoss binary_loss_of_probability(float output, float target) {
  const ClippedProbability p = clip_probability(output);
  const float yes = p.value;
  const float no = 1.0F - yes;
  return {-(target * logarithm(yes) + (1.0F - target) * logarithm(no)),
          p.is_clipped ? 0.0F : (yes - target) / (yes * no)};
}

HOLDFAST_HOST_DEVICE inline ElementLoss squared_error(float output, float target) {
  const float difference = output - target;
  return {difference * difference, difference};
}

// A label is a whole number from 0 to classes - 1. A NaN fails each comparison.
HOLDFAST_HOST_DEVICE inline bool is_class_label(float label, std::int64_t classes) {
  if (!(label >= 0 && label < static_cast<float>(classes))) return false;
  return static_cast<float>(static_cast<std::int64_t>(label)) == label;
}

// A target of a binary cross-entropy. Beyond 0 and 1 the loss falls without end, so a wrong target would show nowhere.
HOLDFAST_HOST_DEVICE inline bool is_probability(float target) {
  return target >= 0 && target <= 1;
}

// log(sum(exp(row))) = largest + log_sum; exp(row[c] - largest) / sum is the softmax and never overflows. The loss of a
// row of minus infinities alone is a NaN.
struct SoftmaxRow {
  float largest;
  double sum;      // of exp(row[c] - largest), at least 1
  double log_sum;  // logarithm_of_sum(sum)
};

// The logarithm of such a sum. The sum is at least 1, and where it is hardly more its digits after 1 count.
HOLDFAST_HOST_DEVICE inline double logarithm_of_sum(double sum) {
  return logarithm_of_one_plus(static_cast<float>(sum - 1.0));
}

// -log(softmax) of a class.
HOLDFAST_HOST_DEVICE inline double loss_of_logit(const SoftmaxRow& row, float score) {
  return row.log_sum - (static_cast<double>(score) - row.largest);
}

// For outputs that are divided by their sum.
HOLDFAST_HOST_DEVICE inline ClippedProbability clipped_share(float output, double sum) {
  return clip_probability(static_cast<float>(output / sum));
}

HOLDFAST_HOST_DEVICE inline float loss_of_share(ClippedProbability share) {
  return -logarithm(share.value);
}

}  // namespace holdfast::compute
