#pragma once

// How sums of losses and metrics become the logs of fit() and evaluate().

#include <fmt/format.h>

#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/train/callback.h"
#include "holdfast/train/trainable.h"

namespace holdfast {

// What the Trainable reports of sums over so many samples, or over samples of so much weight, by name. Means are NaN
// without samples.
inline Logs results_by_name(const Trainable& trainable, const std::vector<double>& sums, double samples) {
  Logs logs;
  const std::vector<std::string> names = trainable.result_names();
  const std::vector<double> results = trainable.results(sums, samples);
  if (results.size() != names.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("results() of a Trainable gave {} numbers for the {} of result_names()", results.size(),
                            names.size()));
  }
  for (std::size_t i = 0; i < names.size(); ++i) logs[names[i]] = results[i];
  return logs;
}

}  // namespace holdfast
