#pragma once

// How sums of losses and metrics become the logs of fit() and evaluate().

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/train/callback.h"

namespace holdfast {

// The means of sums over so many samples, by name; NaN without samples.
inline Logs means(const std::vector<std::string>& names, const std::vector<double>& sums, std::int64_t samples) {
  Logs logs;
  for (std::size_t i = 0; i < names.size(); ++i) logs[names[i]] = sums[i] / static_cast<double>(samples);
  return logs;
}

}  // namespace holdfast
