#include "holdfast/nn/regularizer.h"

#include <fmt/format.h>

#include <cmath>

#include "core/json_text.h"
#include "holdfast/base/error.h"

namespace holdfast {

Regularizer Regularizer::l1_l2(float l1, float l2) {
  for (const float factor : {l1, l2}) {
    // Written so that a NaN is refused.
    if (factor >= 0 && std::isfinite(factor)) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a regularizer needs finite factors of at least 0, not {}", factor));
  }
  Regularizer regularizer;
  regularizer.l1_ = l1;
  regularizer.l2_ = l2;
  return regularizer;
}

std::string Regularizer::name() const {
  if (is_none()) return {};
  if (l2_ == 0) return fmt::format("l1({})", json_number(l1_));
  if (l1_ == 0) return fmt::format("l2({})", json_number(l2_));
  return fmt::format("l1_l2({},{})", json_number(l1_), json_number(l2_));
}

Regularizer Regularizer::from_name(std::string_view name) {
  const std::size_t open = name.find('(');
  if (open != std::string_view::npos && name.ends_with(')')) {
    const std::string_view function = name.substr(0, open);
    const std::string_view numbers = name.substr(open + 1, name.size() - open - 2);
    const std::size_t comma = numbers.find(',');
    if (function == "l1") return l1(float_from_text(numbers));
    if (function == "l2") return l2(float_from_text(numbers));
    if (function == "l1_l2" && comma != std::string_view::npos) {
      return l1_l2(float_from_text(numbers.substr(0, comma)), float_from_text(numbers.substr(comma + 1)));
    }
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("there is no regularizer \"{}\"; write it as l1(0.01), l2(0.01) or l1_l2(0.01,0.01)",
                          name.substr(0, 100)));
}

}  // namespace holdfast
