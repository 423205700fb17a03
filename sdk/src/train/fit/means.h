#pragma once

// How sums of losses and metrics become the logs of fit() and evaluate().

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/train/callback.h"
#include "holdfast/train/trainable.h"

namespace holdfast {

// What the Trainable reports of sums over so many samples, or over samples of so much weight, by name. Means are NaN
// without samples. `divisors` are those of a Trainable that has its own, else empty.
inline Logs results_by_name(const Trainable& trainable, const std::vector<double>& sums, double samples,
                            const std::vector<double>& divisors) {
  Logs logs;
  const std::vector<std::string> names = trainable.result_names();
  const std::vector<double> results =
      divisors.empty() ? trainable.results(sums, samples) : trainable.results_by_divisors(sums, divisors);
  if (results.size() != names.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("results() of a Trainable gave {} numbers for the {} of result_names()", results.size(),
                            names.size()));
  }
  for (std::size_t i = 0; i < names.size(); ++i) logs[names[i]] = results[i];
  return logs;
}

// Adds the divisors of a batch to those of the batches before, if there are any.
inline void add_divisors(const std::vector<double>& of_batch, std::vector<double>& sums) {
  sums.resize(std::max(sums.size(), of_batch.size()));
  for (std::size_t i = 0; i < of_batch.size(); ++i) sums[i] += of_batch[i];
}

}  // namespace holdfast
