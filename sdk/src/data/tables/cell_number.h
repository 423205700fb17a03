#pragma once

// What kind of number a cell spells. Only digits, signs, a decimal point and an exponent make one: "inf", "nan", hex
// digits and thousands separators are text.

#include <cstdint>
#include <string_view>

namespace holdfast {

struct CellNumber {
  enum class Kind {
    text,
    integer,
    wide_integer,  // a whole number of more than 64 bits; `real` holds it rounded
    real,
    out_of_range,  // too large or too small for a real
  };

  Kind kind = Kind::text;
  std::int64_t integer = 0;  // of an integer
  double real = 0;           // of all but text and out_of_range
};

// `decimal_point` is '.' or ','. The locale has no influence.
CellNumber cell_number(std::string_view text, char decimal_point);

}  // namespace holdfast
