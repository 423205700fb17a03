#include "holdfast/nn/metric.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast {

double Metric::result(std::span<const double> sums, double weight) const {
  if (sums.size() == 1) return sums[0] / weight;
  // The mean of the first sum would look like the metric.
  throw Error(ErrorCode::invalid_argument,
              fmt::format("metric \"{}\" has {} sums, and nothing says what it reports of them; override result()",
                          name_, sums.size()));
}

}  // namespace holdfast
