#include "holdfast/nn/metric.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "nn/losses/metric_direction.h"

namespace holdfast {

double Metric::result(std::span<const double> sums, double weight) const {
  if (sums.size() == 1) return sums[0] / weight;
  // The mean of the first sum would look like the metric.
  throw Error(ErrorCode::invalid_argument,
              fmt::format("metric \"{}\" has {} sums, and nothing says what it reports of them; override result()",
                          name_, sums.size()));
}

// The kind decides and not the name, which users may choose as they like.
std::optional<Best> Metric::best() const {
  return direction_of_configuration(configuration());
}

}  // namespace holdfast
