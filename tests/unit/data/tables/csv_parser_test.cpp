#include "data/tables/csv_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using Records = std::vector<std::vector<std::string>>;

constexpr CsvLimits kCsvLimits = {.fields = 4, .field_bytes = 10};

// Feeds the text in pieces of so many bytes.
Records parsed(std::string_view text, std::size_t piece = 1000, char separator = ',',
               std::vector<std::int64_t>* lines = nullptr) {
  Records records;
  CsvParser parser("a.csv", separator, kCsvLimits, [&](const CsvRecord& record) {
    std::vector<std::string> fields;
    for (std::size_t i = 0; i < record.size(); ++i) fields.emplace_back(record[i]);
    records.push_back(fields);
    if (lines != nullptr) lines->push_back(record.line());
  });
  for (std::size_t begin = 0; begin < text.size(); begin += piece) parser.feed(text.substr(begin, piece));
  parser.finish();
  return records;
}

void expect_refused_csv(std::string_view text, const std::string& place, const std::string& reason) {
  try {
    parsed(text);
    ADD_FAILURE() << "nothing was wrong; expected: " << reason;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_file) << error.what();
    EXPECT_THAT(error.what(), AllOf(HasSubstr("\"a.csv\", " + place), HasSubstr(reason)));
  }
}

TEST(CsvParser, CutsLinesIntoFields) {
  EXPECT_THAT(parsed("a,b\n1,\n,2\n"), ElementsAre(ElementsAre("a", "b"), ElementsAre("1", ""), ElementsAre("", "2")));
}

TEST(CsvParser, NeedsNoLineEndAtTheEnd) {
  EXPECT_EQ(parsed("a,b\n1,2"), parsed("a,b\n1,2\n"));
  EXPECT_THAT(parsed("a,b\n1,"), ElementsAre(ElementsAre("a", "b"), ElementsAre("1", "")));
  EXPECT_THAT(parsed("\"\""), ElementsAre(ElementsAre("")));
}

TEST(CsvParser, TakesLineEndsOfBothKinds) {
  EXPECT_EQ(parsed("a,b\r\n1,2\r\n"), parsed("a,b\n1,2\n"));
}

TEST(CsvParser, KeepsSeparatorsQuotesAndLineEndsWithinQuotes) {
  EXPECT_THAT(parsed("\"a,b\",\"say \"\"x\"\"\"\n\"1\r\n2\",\"\"\n"),
              ElementsAre(ElementsAre("a,b", "say \"x\""), ElementsAre("1\r\n2", "")));
}

TEST(CsvParser, LeavesOutBlanksAroundFieldsButNotWithinQuotes) {
  EXPECT_THAT(parsed("  a b\t,  \" c \"  ,\t\n"), ElementsAre(ElementsAre("a b", " c ", "")));
}

TEST(CsvParser, TakesATabAsSeparator) {
  EXPECT_THAT(parsed(" a\t\tb,c\n", 1000, '\t'), ElementsAre(ElementsAre("a", "", "b,c")));
}

TEST(CsvParser, SkipsAByteOrderMarkOnlyAtTheBegin) {
  EXPECT_THAT(parsed("\xEF\xBB\xBF"
                     "a,\xEF\xBB\xBF"),
              ElementsAre(ElementsAre("a", "\xEF\xBB\xBF")));
  EXPECT_THAT(parsed("\xEF\xBB\xBF"), ElementsAre());
}

TEST(CsvParser, SkipsEmptyLinesButNotAQuotedEmptyField) {
  EXPECT_THAT(parsed("\n\r\na\n  \n\"\"\n\n"), ElementsAre(ElementsAre("a"), ElementsAre("")));
}

TEST(CsvParser, TellsInWhichLineARecordBegins) {
  std::vector<std::int64_t> lines;

  parsed("a\n\n\"b\nc\"\nd\n", 1000, ',', &lines);

  EXPECT_THAT(lines, ElementsAre(1, 3, 5));
}

TEST(CsvParser, DoesNotDependOnThePieces) {
  const std::string text = "\xEF\xBB\xBFname,\"x,\"\"y\"\r\n\xC3\xA4,\" \"\r\n\r\n1,2";
  for (std::size_t piece = 1; piece < text.size(); ++piece) EXPECT_EQ(parsed(text, piece), parsed(text)) << piece;
}

TEST(CsvParser, RefusesWhatIsQuotedWrongly) {
  expect_refused_csv("a,b\n1,\"2\n3,4\n", "line 2, column 2", "the quote that opens here is never closed");
  expect_refused_csv("a\n\"b\"c\n", "line 2, column 1", "\"c\" follows the quote that closes the field");
  expect_refused_csv("a\n\"b\" \"c\"\n", "line 2, column 1", "follows the quote");
  expect_refused_csv("a,5\"\n", "line 1, column 2", "a quote inside of a field that has no quotes around it");
}

TEST(CsvParser, RefusesBytesThatAreNotText) {
  expect_refused_csv(std::string_view("a\n1\0", 4), "line 2, column 1", "a NUL byte");
  expect_refused_csv("a,\xE4\n", "line 1, column 2", "not UTF-8");
  expect_refused_csv("a\rb\n", "line 1, column 1", "a carriage return without a line feed");
  expect_refused_csv("a\r", "line 1, column 1", "ends with a carriage return");
}

TEST(CsvParser, RefusesMoreThanItsLimits) {
  expect_refused_csv("1,2,3,4,5\n", "line 1, column 5", "more than 4 columns");
  expect_refused_csv("a,01234567890\n", "line 1, column 2", "more than 10 bytes");
  EXPECT_THAT(parsed("1,2,3,0123456789\n"), ElementsAre(ElementsAre("1", "2", "3", "0123456789")));
}

}  // namespace
}  // namespace holdfast
