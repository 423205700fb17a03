#include "holdfast/data/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

template <typename Function>
void expect_refused_table(const Function& function, const std::string& reason) {
  try {
    function();
    ADD_FAILURE() << "nothing was wrong; expected: " << reason;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(reason));
  }
}

Table towns() {
  return Table({{"id", std::vector<std::int64_t>{1, 2, 3, 4}},
                {"area", std::vector<double>{141, kNoValue, 405, 160.9}},
                {"name", std::vector<std::string>{"Bonn", "Unna", "", "Aachen"}}});
}

Table numbered(std::int64_t rows) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(rows));
  std::iota(numbers.begin(), numbers.end(), 0);
  return Table({{"number", numbers}});
}

TEST(Table, HoldsColumnsOfAProgram) {
  const Table table = towns();

  EXPECT_EQ(table.rows(), 4);
  EXPECT_THAT(table.columns(), ElementsAre("id", "area", "name"));
  EXPECT_EQ(table.type("name"), ColumnType::text);
  EXPECT_THAT(table.numbers("id"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(table.texts("name"), ElementsAre("Bonn", "Unna", "", "Aachen"));
  EXPECT_EQ(table.missing("area"), 1);
  EXPECT_EQ(table.missing("name"), 1);
  EXPECT_TRUE(table.has_column("area"));
  EXPECT_FALSE(table.has_column("Area"));
}

TEST(Table, LeavesOutRowsWithoutAValue) {
  EXPECT_THAT(towns().without_missing({"area"}).numbers("id"), ElementsAre(1, 3, 4));
  EXPECT_THAT(towns().without_missing().numbers("id"), ElementsAre(1, 4));
  EXPECT_THAT(towns().without_missing({"area"}).without_missing({"name"}).numbers("id"), ElementsAre(1, 4));
  expect_refused_table([] { towns().take(0).split(0.2); }, "split() of a table without rows");
}

TEST(Table, CutsByPosition) {
  EXPECT_THAT(towns().skip(1).take(2).numbers("id"), ElementsAre(2, 3));
  EXPECT_THAT(towns().take(9).numbers("id"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(towns().skip(9).numbers("id"), IsEmpty());
  expect_refused_table([] { towns().take(-1); }, "take() needs a number of at least 0");
  expect_refused_table([] { towns().skip(-1); }, "skip() needs a number of at least 0");
}

TEST(Table, SplitsIntoPartsThatTogetherAreAll) {
  const auto [training, validation] = numbered(50).split(0.2);

  EXPECT_EQ(training.rows(), 40);
  EXPECT_EQ(validation.rows(), 10);
  std::vector<double> all = training.numbers("number");
  const std::vector<double> others = validation.numbers("number");
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_TRUE(std::is_sorted(others.begin(), others.end()));
  all.insert(all.end(), others.begin(), others.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, numbered(50).numbers("number"));
}

TEST(Table, SplitsEqualTablesAlikeAndByTheSeed) {
  const auto validation = [](std::uint64_t seed) { return numbered(50).split(10, {.seed = seed}).validation; };

  EXPECT_EQ(validation(1).numbers("number"), validation(1).numbers("number"));
  EXPECT_NE(validation(1).numbers("number"), validation(2).numbers("number"));
}

// A second split by the same seed must not find the same positions.
TEST(Table, SplitsPartsOfPartsAnew) {
  const Table part = numbered(100).split(50).training;
  std::vector<double> positions;
  for (const double number : part.split(25).validation.numbers("number")) {
    const std::vector<double> numbers = part.numbers("number");
    positions.push_back(static_cast<double>(std::find(numbers.begin(), numbers.end(), number) - numbers.begin()));
  }

  EXPECT_NE(positions, numbered(50).split(25).training.numbers("number"));
  EXPECT_EQ(part.split(25).training.rows(), 25);
}

TEST(Table, RefusesSplitsWithoutRows) {
  expect_refused_table([] { numbered(4).split(4); }, "4 rows for validation out of 4");
  expect_refused_table([] { numbered(4).split(0); }, "0 rows for validation");
  expect_refused_table([] { numbered(4).split(1.5); }, "takes a fraction between 0 and 1, the share of rows");
  expect_refused_table([] { numbered(4).split(0.01); }, "split(0.01) of 4 rows leaves no row for validation");
}

TEST(Table, NamesTheNearestColumn) {
  expect_refused_table([] { towns().numbers("aera"); }, "no column \"aera\"; the nearest name is \"area\"");
}

TEST(Table, RefusesValuesThatDoNotExist) {
  expect_refused_table([] { towns().numbers("area"); }, "row 1 of the table: column \"area\" has no value");
  expect_refused_table([] { towns().numbers("name"); }, "column \"name\" is used as a number, but it is text");
  expect_refused_table([] { towns().texts("area"); }, "column \"area\" is one of reals");
  expect_refused_table([] { towns().is_missing("id", 4); }, "no row 4 in a table of 4 rows");
}

TEST(Table, RefusesColumnsThatMakeNoTable) {
  expect_refused_table([] { Table(std::vector<NamedColumn>{}); }, "at least one column");
  expect_refused_table(
      [] {
        Table({{"a", std::vector<double>{1}}, {"b", std::vector<double>{1, 2}}});
      },
      "column \"b\" of a table has 2 rows, where \"a\" has 1");
  expect_refused_table(
      [] {
        Table({{"a", std::vector<double>{1}}, {"a", std::vector<double>{1}}});
      },
      "two columns named \"a\"");
  expect_refused_table([] { Table({{"a", std::vector<double>{1, HUGE_VAL}}}); }, "row 1 is infinite");
  expect_refused_table([] { Table({{"a", std::vector<std::string>{"\xFF"}}}); }, "row 0 is not UTF-8");
}

TEST(Table, SummarizesItsColumns) {
  const std::string summary = towns().summary();

  EXPECT_THAT(summary, HasSubstr("4 rows, 3 columns\n"));
  EXPECT_THAT(summary, testing::ContainsRegex("area +real +141 to 405, 1 missing\n"));
  EXPECT_THAT(summary, testing::ContainsRegex("name +text +3 different values, 1 missing\n"));
}

}  // namespace
}  // namespace holdfast
