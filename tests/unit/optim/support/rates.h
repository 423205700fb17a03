#pragma once

// What the tests of schedules share.

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/optim/learning_rate_schedule.h"

namespace holdfast {

// Rates by the number of updates. The expected numbers were computed in double with the formulas of Keras, from the
// same floats. They may differ by the last rounding, and by one more where two libraries compute powers and cosines.
using Rates = std::vector<std::pair<std::int64_t, float>>;

inline void expect_rates(const LearningRateSchedule& schedule, const Rates& expected) {
  const auto clone = schedule.clone();
  EXPECT_EQ(clone->configuration(), schedule.configuration());
  for (const auto& [updates, rate] : expected) {
    EXPECT_FLOAT_EQ(schedule.rate_after(updates), rate) << schedule.configuration() << " after " << updates;
    EXPECT_EQ(clone->rate_after(updates), schedule.rate_after(updates)) << "clone, after " << updates;
  }
}

template <class Make>
void expect_refused(const Make& make, const char* what) {
  try {
    make();
    ADD_FAILURE() << "took " << what;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << what;
  }
}

}  // namespace holdfast
