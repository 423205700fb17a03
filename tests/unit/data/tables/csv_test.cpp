// CSV files come from outside: types are found as documented, and what is wrong is refused by file, line and column.

#include "holdfast/data/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "holdfast/base/error.h"
#include "holdfast/data/table_encoder.h"
#include "support/thrown.h"
#include "unit/data/support/idx_writer.h"
#include "unit/data/support/loaded.h"

namespace holdfast {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Csv : public testing::Test {
 protected:
  Table read(const std::string& content, const CsvOptions& options = {}) const {
    write_plain(path(), Bytes(content.begin(), content.end()));
    return read_csv(path(), options);
  }

  void expect_refused(const std::string& content, const CsvOptions& options, ErrorCode code,
                      const std::vector<std::string>& words) const {
    try {
      read(content, options);
      ADD_FAILURE() << "nothing was wrong; expected: " << words[0];
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      for (const std::string& word : words) EXPECT_THAT(error.what(), HasSubstr(word));
    }
  }
  void expect_invalid(const std::string& content, const std::vector<std::string>& words,
                      const CsvOptions& options = {}) const {
    expect_refused(content, options, ErrorCode::invalid_file, words);
  }

  std::string path(const std::string& name = "a.csv") const { return folder_ / name; }

 private:
  TemporaryFolder folder_;
};

TEST_F(Csv, GivesColumnsTheNarrowestTypeOfTheirValues) {
  const Table table = read("id,size,town,empty\n1,2,Bonn,\n2,2.5,7,\n");

  EXPECT_EQ(table.rows(), 2);
  EXPECT_THAT(table.columns(), ElementsAre("id", "size", "town", "empty"));
  EXPECT_EQ(table.type("id"), ColumnType::integer);
  EXPECT_EQ(table.type("size"), ColumnType::real);
  EXPECT_EQ(table.type("town"), ColumnType::text);
  EXPECT_EQ(table.type("empty"), ColumnType::real);
  EXPECT_THAT(table.numbers("size"), ElementsAre(2, 2.5));
  EXPECT_THAT(table.texts("town"), ElementsAre("Bonn", "7"));
  EXPECT_THAT(table.texts("id"), ElementsAre("1", "2"));
}

TEST_F(Csv, NamesColumnsByPositionIfTheFirstLineHoldsANumber) {
  const Table table = read("a,1\nb,2\n");

  EXPECT_THAT(table.columns(), ElementsAre("column_1", "column_2"));
  EXPECT_EQ(table.rows(), 2);
}

TEST_F(Csv, TakesTheHeaderAsItIsDeclared) {
  EXPECT_THAT(read("2020,2021\n1,2\n", {.header = CsvHeader::present}).columns(), ElementsAre("2020", "2021"));
  EXPECT_EQ(read("a,b\nc,d\n", {.header = CsvHeader::absent}).rows(), 2);
  // A name that is a number makes the line a row, which is told where it matters.
  EXPECT_THAT(sentence_thrown_by([&] { read("town,2020\na,2\n").texts("town"); }),
              AllOf(HasSubstr("has no column \"town\""), HasSubstr("CsvHeader::present")));
  EXPECT_THAT(sentence_thrown_by([&] { read("town,2020\na,2\n", {.header = CsvHeader::present}).texts("twn"); }),
              Not(HasSubstr("CsvHeader::present")));
  EXPECT_THAT(read("a,b\n1,2\n", {.names = {"x", "y"}}).columns(), ElementsAre("x", "y"));
  EXPECT_THAT(read(",b\n1,2\n").columns(), ElementsAre("column_1", "b"));
}

TEST_F(Csv, KnowsCellsWithoutAValue) {
  const Table table = read("a,b\n1,x\nNA,\n?,y\n", {.missing = {"", "NA", "?"}});

  EXPECT_EQ(table.type("a"), ColumnType::integer);
  EXPECT_EQ(table.missing("a"), 2);
  EXPECT_EQ(table.missing("b"), 1);
  EXPECT_TRUE(table.is_missing("b", 1));
  EXPECT_FALSE(table.is_missing("b", 2));
}

TEST_F(Csv, ReadsDeclaredTypes) {
  const Table table =
      read("zip,n\n01234,5\n00007,6\n", {.types = {{"zip", ColumnType::text}, {"n", ColumnType::real}}});

  EXPECT_THAT(table.texts("zip"), ElementsAre("01234", "00007"));
  EXPECT_EQ(table.type("n"), ColumnType::real);
}

TEST_F(Csv, ReadsFilesOfOtherCountries) {
  const Table table = read("a;b\n1,5;x\n-2,25;y\n", {.separator = ';', .decimal_point = ','});

  EXPECT_THAT(table.numbers("a"), ElementsAre(1.5, -2.25));
}

TEST_F(Csv, ReadsGzipWhateverItsName) {
  const std::string content = "a,b\n1,2\n3,4\n";
  write_gzip(path(), Bytes(content.begin(), content.end()));

  EXPECT_THAT(read_csv(path()).numbers("b"), ElementsAre(2, 4));
}

TEST_F(Csv, ReadsMoreThanOnePieceOfAFile) {
  std::string content = "a,b\n";
  for (int row = 0; row < 200'000; ++row) content += std::to_string(row) + ",\"x,y\"\n";

  const Table table = read(content);

  ASSERT_EQ(table.rows(), 200'000);
  EXPECT_EQ(table.numbers("a").back(), 199'999);
  EXPECT_EQ(table.place(199'999), "\"" + path() + "\", line 200001");
}

// A terminal obeys a control character, and a name may come from anywhere.
TEST_F(Csv, ShowsTheNameOfItsFileEscaped) {
  const std::string content = "a,b\n1,2\n3\n";
  write_plain(path("up\x7f.csv"), Bytes(content.begin(), content.end()));

  EXPECT_THAT(read_csv(path("up\x7f.csv"), {.skip_ragged = 1}).place(0), HasSubstr(R"(/up\x7f.csv", line 2)"));
  EXPECT_THAT(sentence_thrown_by([&] { read_csv(path("up\x7f.csv")); }), HasSubstr(R"(/up\x7f.csv", line 3)"));
  EXPECT_THAT(sentence_thrown_by([&] { read_csv(path("up\x7f.csv"), {.max_bytes = 3}); }),
              HasSubstr(R"(/up\x7f.csv" has more than 3 bytes)"));
}

// A path of 200 bytes or more lost the name of the file.
TEST_F(Csv, NamesItsFileHoweverLongItsFolderIs) {
  const std::string folder = path(std::string(250, 'd'));
  std::filesystem::create_directory(folder);
  const std::string content = "a,b\n1,2\n3\n";
  write_plain(folder + "/houses.csv", Bytes(content.begin(), content.end()));

  EXPECT_THAT(sentence_thrown_by([&] { read_csv(folder + "/houses.csv"); }), HasSubstr("ddd/houses.csv\", line 3"));
}

TEST_F(Csv, CountsTheLinesOfQuotedFields) {
  EXPECT_THAT(read("a,b\n\"1\n2\",x\ny,z\n").place(1), HasSubstr("line 4"));
}

TEST_F(Csv, RefusesLinesWithOtherNumbersOfFields) {
  expect_invalid("a,b,c\n1,2,3\n1,2\n", {path(), "line 3", "2 fields, where the first line has 3", "quotes"});
  expect_invalid("a,b\n1,2,3\n", {"line 2", "3 fields"});
}

TEST_F(Csv, LeavesLinesWithOtherNumbersOfFieldsOutWhereThatIsAllowed) {
  const std::string content = "a,b\n1,2\n3\n4,5\n6,7,8\n9,10\n11,12\n";
  const Table table = read(content, {.skip_ragged = 2});

  EXPECT_THAT(table.numbers("a"), ElementsAre(1, 4, 9, 11));
  EXPECT_EQ(table.place(1), "\"" + path() + "\", line 4");
  EXPECT_EQ(table.skipped_rows().count, 2);
  EXPECT_THAT(table.skipped_rows().first, ElementsAre(HasSubstr("line 3: 1 fields"), HasSubstr("line 5: 3 fields")));
  expect_invalid(content, {"line 5", "skip_ragged allows 1 such lines", "line 3: 1 fields"}, {.skip_ragged = 1});
  expect_refused(content, {.skip_ragged = -1}, ErrorCode::invalid_argument, {"skip_ragged is a number of lines"});
}

// fit() gets training and validation data of one file, whose lines were left out once.
TEST_F(Csv, CountsWhatItLeftOutOnceForAllPartsOfATable) {
  const Table table = read("a,b\n1,2\n3\n4,5\n6,7,8\n9,10\n11,12\n", {.skip_ragged = 5});
  const TableEncoder encoder = TableEncoder::fit(table, {.targets = {"b"}});
  const Dataset training = encoder.dataset(table.skip(1)), validation = encoder.dataset(table.take(1));

  EXPECT_EQ(training.size(), 3);
  EXPECT_EQ(training.skipped_samples().count, 2);
  EXPECT_EQ(Dataset::concatenate({training, validation}).skipped_samples().count, 2);
  EXPECT_EQ(loaded(training, 0, 0, 2), loaded(encoder.dataset(read("a,b\n1,2\n4,5\n9,10\n11,12\n").skip(1)), 0, 0, 2));
}

// What draws is told apart by its number, which describe() does not show.
TEST_F(Csv, DrawsTheSameAfterLinesThatItLeftOutAsWithoutThem) {
  const auto shuffled = [&](const std::string& content) {
    const Table table = read(content, {.skip_ragged = 5});
    const Dataset data = TableEncoder::fit(table, {.targets = {"b"}}).dataset(table).shuffle();
    std::vector<float> numbers;
    for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
      for (std::int64_t i = 0; i < data.size(); ++i) numbers.push_back(loaded(data, 3, epoch, i)[0]);
    }
    return numbers;
  };

  EXPECT_EQ(shuffled("a,b\n1,2\n3\n4,5\n9,10\n11,12\n"), shuffled("a,b\n1,2\n4,5\n9,10\n11,12\n"));
}

TEST_F(Csv, RefusesFilesWithoutRows) {
  expect_invalid("", {path(), "holds no row; look at its path"});
  expect_invalid("a,b\n", {"holds no row after its header; if its first line is a row, set CsvOptions::header"});
}

TEST_F(Csv, RefusesTwoColumnsOfOneName) {
  expect_invalid("a,b,a\n1,2,3\n", {"two columns named \"a\"", "CsvOptions::names"});
}

TEST_F(Csv, RefusesNumbersOutsideOfTheirRange) {
  expect_invalid("a,b\n1,2\n1,1e999\n", {path(), "line 3, column 2 (\"b\")", "\"1e999\"", "range of 64-bit floats"});
  expect_invalid("a\n1\n12345678901234567890\n", {"line 3, column 1", "more than 64 bits", "real or text"});
}

TEST_F(Csv, RoundsWideNumbersInAColumnOfReals) {
  EXPECT_THAT(read("a\n0.5\n12345678901234567890\n").numbers("a"), ElementsAre(0.5, 12345678901234567890.0));
  EXPECT_EQ(read("a\n1e999\nx\n").type("a"), ColumnType::text);
}

TEST_F(Csv, RefusesValuesOfAnotherTypeThanDeclared) {
  expect_invalid("a\n1\n1.5\n", {"line 3, column 1 (\"a\")", "\"1.5\" is not an integer"},
                 {.types = {{"a", ColumnType::integer}}});
  expect_invalid("a\n1\nx\n", {"line 3", "\"x\" is not a number"}, {.types = {{"a", ColumnType::real}}});
}

TEST_F(Csv, RefusesNamesThatDoNotFit) {
  expect_invalid("1,2\n", {"2 columns, but 1 names"}, {.names = {"a"}});
  expect_refused("price\n1\n", {.types = {{"prize", ColumnType::text}}}, ErrorCode::invalid_argument,
                 {"no column \"prize\"", "nearest name is \"price\""});
}

TEST_F(Csv, RefusesMoreThanItsLimits) {
  expect_invalid("a\n1\n2\n3\n", {"line 4", "more than 2 rows", "max_rows"}, {.max_rows = 2});
  expect_invalid("a\n1\n2\n3\n", {path(), "more than 7 bytes", "max_bytes"}, {.max_bytes = 7});
  expect_invalid("a,b\n1,2\n", {"more than 1 columns", "max_columns"}, {.max_columns = 1});
  expect_invalid("a\n1234\n", {"more than 3 bytes", "max_field_bytes"}, {.max_field_bytes = 3});
  EXPECT_EQ(read("a\n1\n2\n", {.max_bytes = 6, .max_rows = 2, .max_columns = 1, .max_field_bytes = 1}).rows(), 2);
}

// A few kilobytes that expand to four megabytes.
TEST_F(Csv, RefusesAFileThatExpandsBeyondItsLimit) {
  Bytes content(4 << 20, '\n');
  write_gzip(path(), content);

  try {
    read_csv(path(), {.max_bytes = 1 << 20});
    ADD_FAILURE() << "the limit was not noticed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr(path()), HasSubstr("more than 1048576 bytes")));
  }
}

TEST_F(Csv, RefusesACutGzipStream) {
  const std::string content = "a,b\n1,2\n3,4\n";
  write_gzip(path(), Bytes(content.begin(), content.end()));
  Bytes cut = read_plain(path());
  cut.resize(cut.size() - 9);
  write_plain(path(), cut);

  try {
    read_csv(path());
    ADD_FAILURE() << "the cut was not noticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_file);
    EXPECT_THAT(error.what(), HasSubstr("not a whole CSV file: its gzip stream is cut off"));
  }
}

TEST_F(Csv, RefusesOptionsThatCanNeverWork) {
  for (const char separator : {'"', '\n', '7', 'x', '-', '\0'}) {
    expect_refused("a\n1\n", {.separator = separator}, ErrorCode::invalid_argument, {"separator"});
  }
  expect_refused("a\n1\n", {.decimal_point = ','}, ErrorCode::invalid_argument, {"the decimal point is the separator"});
  expect_refused("a\n1\n", {.decimal_point = ';'}, ErrorCode::invalid_argument, {"'.' or ','"});
  expect_refused("a\n1\n", {.max_rows = 0}, ErrorCode::invalid_argument, {"limits are 1 or more"});
}

TEST_F(Csv, IsNotFoundByAnotherName) {
  try {
    read_csv(path() + ".absent");
    ADD_FAILURE() << "the file does not exist";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
  }
}

}  // namespace
}  // namespace holdfast
