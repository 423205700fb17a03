#pragma once

// What tests of schedules share.

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/optim/learning_rate_schedule.h"

namespace holdfast {

// By the number of updates. Expected numbers were computed in double with Keras's formulae, from the same floats: what
// is left is the last rounding, and one that two libraries' powers and cosines may differ by.
using Rates = std::vector<std::pair<std::int64_t, float>>;

inline void expect_rates(const LearningRateSchedule& schedule, const Rates& expected) {
  const auto clone = schedule.clone();
  EXPECT_EQ(clone->configuration(), schedule.configuration());
  for (const auto& [updates, rate] : expected) {
    EXPECT_FLOAT_EQ(schedule.rate_after(updates), rate) << schedule.configuration() << " behind " << updates;
    EXPECT_EQ(clone->rate_after(updates), schedule.rate_after(updates)) << "clone, behind " << updates;
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
