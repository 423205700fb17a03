#include "optim/check_option.h"

#include <cmath>

#include "holdfast/base/error.h"

namespace holdfast {

void check_option(const std::string& optimizer, const std::string& option, float value, bool is_in_range,
                  const std::string& range) {
  if (std::isfinite(value) && is_in_range) return;
  throw Error(ErrorCode::invalid_argument,
              optimizer + ": " + option + " is a finite number that is " + range + ", not " + std::to_string(value));
}

}  // namespace holdfast
