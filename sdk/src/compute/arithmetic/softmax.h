#pragma once

// The formulas of a softmax for one element, for host and device: exp(x[c] - largest) / sum of all such exponentials,
// which never overflows. A row of minus infinities alone, whose elements are all masked, gives zeros.

#include "compute/arithmetic/exponential.h"
#include "core/host_device.h"

namespace holdfast::compute {

// What is subtracted from the scores of a row: its largest, or 0 where all are masked. Then exp() gives zeros there.
HOLDFAST_HOST_DEVICE inline float softmax_shift(float largest) {
  return largest == -kInfiniteFloat ? 0.0F : largest;
}

// The exponential in softmax, and in the sum that divides it.
HOLDFAST_HOST_DEVICE inline float softmax_exponential(float score, float shift) {
  return exponential_of_negative(score - shift);
}

HOLDFAST_HOST_DEVICE inline float softmax_divisor(double sum) {
  return sum == 0 ? 1.0F : static_cast<float>(sum);
}

}  // namespace holdfast::compute
