#pragma once

// How sums of losses and metrics become the logs of fit() and evaluate().

#include <string>
#include <vector>

#include "holdfast/train/callback.h"

namespace holdfast {

// The means of sums over so many samples, or over samples of so much weight, by name; NaN without samples.
inline Logs means(const std::vector<std::string>& names, const std::vector<double>& sums, double samples) {
  Logs logs;
  for (std::size_t i = 0; i < names.size(); ++i) logs[names[i]] = sums[i] / samples;
  return logs;
}

}  // namespace holdfast
