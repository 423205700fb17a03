#include "holdfast/nn/regularizer.h"

#include <fmt/format.h>

#include <cmath>

#include "core/json_text.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {

static void check_factor(float factor) {
  // Written so that a NaN is refused.
  if (factor >= 0 && std::isfinite(factor)) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("a regularizer needs finite factors of at least 0, not {}", factor));
}

Regularizer Regularizer::l1_l2(float l1, float l2) {
  check_factor(l1);
  check_factor(l2);
  Regularizer regularizer;
  regularizer.l1_ = l1;
  regularizer.l2_ = l2;
  return regularizer;
}

Regularizer Regularizer::orthogonal(float factor, Lines lines) {
  check_factor(factor);
  Regularizer regularizer;
  regularizer.orthogonal_ = factor;
  // Without a penalty all are equal.
  if (factor > 0) regularizer.lines_ = lines;
  return regularizer;
}

void Regularizer::check(const Shape& shape) const {
  // Sums of elements fit each shape. Only right angles need rows and columns.
  if (orthogonal_ == 0 || shape.rank() == 2) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the regularizer {} is for matrices, and this array has {} axes", name(), shape.rank()));
}

// Files hold this text. A factor of 0 is left out, so that equal penalties have one text.
std::string Regularizer::name() const {
  if (is_none()) return {};
  if (orthogonal_ > 0) {
    return fmt::format("orthogonal({},{})", json_number(orthogonal_), lines_ == Lines::rows ? "rows" : "columns");
  }
  if (l2_ == 0) return fmt::format("l1({})", json_number(l1_));
  if (l1_ == 0) return fmt::format("l2({})", json_number(l2_));
  return fmt::format("l1_l2({},{})", json_number(l1_), json_number(l2_));
}

// The text may come from a file. The functions below check its numbers, and the sentence shows only its beginning.
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
    if (function == "orthogonal" && comma != std::string_view::npos) {
      const std::string_view lines = numbers.substr(comma + 1);
      if (lines == "rows") return orthogonal(float_from_text(numbers.substr(0, comma)), Lines::rows);
      if (lines == "columns") return orthogonal(float_from_text(numbers.substr(0, comma)), Lines::columns);
    }
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("there is no regularizer {}; write it as l1(0.01), l2(0.01), l1_l2(0.01,0.01) or "
                          "orthogonal(0.01,rows)",
                          quoted_text(name, 100)));
}

}  // namespace holdfast
