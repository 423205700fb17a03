#include "data/tables/cell_number.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "holdfast/base/whole_number.h"

namespace holdfast {
namespace {

bool is_decimal_digit(char c) {
  return c >= '0' && c <= '9';
}

// Whether from_chars() may be asked: it also reads "inf" and "nan".
bool looks_like_a_number(std::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  return !text.empty() && (is_decimal_digit(text[0]) || text[0] == '.');
}

// `text` must have passed looks_like_a_number(). A text that from_chars() takes in part, such as "12 km" or "1.2.3", is
// text as a whole. A real that is too small for a double is out of range too: as 0 it would be another value.
CellNumber real_of(std::string_view text, bool is_whole) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument) return {};
  if (error == std::errc::result_out_of_range) return {.kind = CellNumber::Kind::out_of_range};
  return {.kind = is_whole ? CellNumber::Kind::wide_integer : CellNumber::Kind::real, .real = value};
}

}  // namespace

CellNumber cell_number(std::string_view text, char decimal_point) {
  // from_chars() takes no plus.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  // With a decimal comma, a point can only separate thousands, as in 1.234,5. Read as a decimal point, it would give
  // another number without a word, so such a cell is text.
  if (decimal_point != '.' && looks_like_a_number(text) && text.find('.') != std::string_view::npos) return {};
  // Integers first: a double would round those of more than 53 bits, and such numbers are often names of things.
  if (const auto integer = whole_number<std::int64_t>(text)) {
    return {.kind = CellNumber::Kind::integer, .integer = *integer, .real = static_cast<double>(*integer)};
  }
  std::string with_point;
  if (decimal_point != '.' && text.find(decimal_point) != std::string_view::npos) {
    with_point = text;
    std::ranges::replace(with_point, decimal_point, '.');
    text = with_point;
  }
  if (!looks_like_a_number(text)) return {};
  // Digits alone that did not fit above are a whole number of more than 64 bits.
  // The caller decides what that means.
  const std::string_view digits = text[0] == '-' ? text.substr(1) : text;
  return real_of(text, std::ranges::all_of(digits, is_decimal_digit));
}

}  // namespace holdfast
