#include "data/tables/cell_number.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace holdfast {
namespace {

using Kind = CellNumber::Kind;

TEST(CellNumber, TellsIntegersFromReals) {
  EXPECT_EQ(cell_number("-12", '.').integer, -12);
  EXPECT_EQ(cell_number("+7", '.').integer, 7);
  EXPECT_EQ(cell_number("007", '.').integer, 7);
  EXPECT_EQ(cell_number("9223372036854775807", '.').integer, std::numeric_limits<std::int64_t>::max());
  for (const char* text : {"1.5", "-.5", "1.", "1e3", "+2.5E-2"}) EXPECT_EQ(cell_number(text, '.').kind, Kind::real);
  EXPECT_EQ(cell_number("+2.5E-2", '.').real, 0.025);
}

TEST(CellNumber, TellsWholeNumbersOfMoreThan64Bits) {
  EXPECT_EQ(cell_number("9223372036854775808", '.').kind, Kind::wide_integer);
  EXPECT_EQ(cell_number("-9223372036854775809", '.').real, -9223372036854775808.0);
}

TEST(CellNumber, TellsWhatNoFloatHolds) {
  EXPECT_EQ(cell_number("1e999", '.').kind, Kind::out_of_range);
  EXPECT_EQ(cell_number("-1e-999", '.').kind, Kind::out_of_range);
  EXPECT_EQ(cell_number("4.9406564584124654e-324", '.').real, 4.9406564584124654e-324);
}

TEST(CellNumber, TakesAllElseForText) {
  for (const char* text : {"", "-", "+", ".", "inf", "-inf", "nan", "0x10", "1,5", "1 000", "1e", "+-1", "++1", "--1",
                           "12a", "1.5.2", "infinity", " 1"}) {
    EXPECT_EQ(cell_number(text, '.').kind, Kind::text) << text;
  }
}

TEST(CellNumber, TakesADecimalCommaWhereItIsAskedTo) {
  EXPECT_EQ(cell_number("-1,25", ',').real, -1.25);
  EXPECT_EQ(cell_number(",5", ',').real, 0.5);
  EXPECT_EQ(cell_number("12", ',').integer, 12);
  EXPECT_EQ(cell_number("1.25", ',').kind, Kind::text);
  EXPECT_EQ(cell_number("1,2,3", ',').kind, Kind::text);
}

}  // namespace
}  // namespace holdfast
