// Files of text: what is not UTF-8 is named by its place, and a text is split between characters.

#include "holdfast/data/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/base/error.h"
#include "unit/data/support/idx_writer.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

template <typename Action>
void expect_bad_text(ErrorCode code, const std::vector<std::string>& words, const Action& action) {
  try {
    action();
    ADD_FAILURE() << "nothing was wrong; expected: " << words[0];
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& word : words) EXPECT_THAT(error.what(), HasSubstr(word));
  }
}

TEST(ReadText, NamesFileByteAndLineOfWhatIsNotUtf8) {
  TemporaryFolder folder;
  const std::string bad = "ab\nc\xFF";
  write_plain(folder / "a.txt", Bytes(bad.begin(), bad.end()));

  expect_bad_text(ErrorCode::invalid_file, {"a.txt", "byte 5 (line 2)", "0xff"}, [&] { read_text(folder / "a.txt"); });
  EXPECT_EQ(read_text(folder / "a.txt", {.unit = TextUnit::bytes}).size(), 5);
}

TEST(ReadText, ReadsGzipSkipsAByteOrderMarkAndKeepsTheRest) {
  TemporaryFolder folder;
  const std::string content = "\xEF\xBB\xBFü\r\n";
  write_gzip(folder / "a.gz", Bytes(content.begin(), content.end()));

  const Text text = read_text(folder / "a.gz");

  EXPECT_EQ(text.content(), "ü\r\n");
  EXPECT_EQ(text.size(), 3);
}

TEST(ReadText, RefusesAnEmptyFileAndOneAboveTheLimit) {
  TemporaryFolder folder;
  write_plain(folder / "empty.txt", {});
  write_plain(folder / "a.txt", Bytes(11, 'a'));

  expect_bad_text(ErrorCode::invalid_file, {"empty.txt", "empty"}, [&] { read_text(folder / "empty.txt"); });
  expect_bad_text(ErrorCode::invalid_file,
                  {"a.txt\" has more than the 10 bytes of content that TextOptions::max_bytes allows", "raise"},
                  [&] { read_text(folder / "a.txt", {.max_bytes = 10}); });
}

TEST(Text, IsSplitBetweenCharactersWithoutOverlap) {
  const auto [training, validation] = Text("aüb€").split(0.5);

  EXPECT_EQ(training.content(), "aü");
  EXPECT_EQ(validation.content(), "b€");
  EXPECT_EQ(training.size(), 2);
  EXPECT_EQ(validation.size(), 2);
  expect_bad_text(ErrorCode::invalid_argument, {"split()"}, [] { Text("a").split(0.5); });
}

}  // namespace
}  // namespace holdfast
