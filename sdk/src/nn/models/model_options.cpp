#include "nn/models/model_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "holdfast/base/error.h"
#include "holdfast/nn/dropout.h"
#include "nn/operations/checks.h"

namespace holdfast {

void check_heads(std::string_view model, std::int64_t width, std::int64_t heads) {
  check_extent(model, "a width", width);
  check_extent(model, "a number of heads", heads);
  if (width % heads == 0) return;
  const std::int64_t below = std::max(heads, width / heads * heads);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} needs a width that its {} heads divide, not {}; take {} or {}", model, heads, width,
                          below, below + heads));
}

Value dropped_out(const Value& x, float rate, const std::string& name) {
  return rate == 0 ? x : Dropout{rate, {.name = name}}(x);
}

}  // namespace holdfast
