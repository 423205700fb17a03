// A text becomes ids of the vocabulary of its part for training, and comes back from them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "holdfast/base/error.h"
#include "holdfast/data/text.h"
#include "unit/data/support/array_writer.h"
#include "unit/data/support/loaded.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename Action>
void expect_refused_text(ErrorCode code, const std::vector<std::string>& words, const Action& action) {
  try {
    action();
    ADD_FAILURE() << "nothing was wrong; expected: " << words[0];
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& word : words) EXPECT_THAT(error.what(), HasSubstr(word));
  }
}

TEST(TextEncoder, NumbersTheCharactersOfTheTextForTrainingByCodePoint) {
  const TextEncoder encoder = TextEncoder::fit(Text("ba\nüb€"));

  EXPECT_THAT(encoder.vocabulary(), ElementsAre("\n", "a", "b", "ü", "€"));
  EXPECT_EQ(encoder.ids(), 5);
  EXPECT_THAT(encoder.encode("üba").elements<std::int32_t>(), ElementsAre(3, 2, 1));
}

TEST(TextEncoder, DecodesWhatItEncoded) {
  const TextEncoder encoder = TextEncoder::fit(Text("grün, blau"));

  EXPECT_EQ(encoder.decode(encoder.encode("ablaün").elements<std::int32_t>()), "ablaün");
  expect_refused_text(ErrorCode::invalid_argument, {"99 is not an id"},
                      [&] { encoder.decode(std::vector<std::int32_t>{99}); });
}

TEST(TextEncoder, NamesACharacterThatTrainingDidNotHave) {
  const TextEncoder strict = TextEncoder::fit(Text("abc\n"));
  const TextEncoder lenient = TextEncoder::fit(Text("abc"), {.unknown = UnknownCategory::other});

  expect_refused_text(ErrorCode::invalid_argument, {"\"x\"", "byte 3 (line 2)"}, [&] { strict.encode("a\nx"); });
  expect_refused_text(ErrorCode::invalid_argument, {"\"\xC3\xBC\"", "byte 2 (line 1)"}, [&] { strict.encode("aü"); });
  EXPECT_THAT(lenient.encode("axc").elements<std::int32_t>(), ElementsAre(1, 0, 3));
  EXPECT_EQ(lenient.ids(), 4);
  EXPECT_EQ(lenient.decode(std::vector<std::int32_t>{1, 0, 3}), "a\xEF\xBF\xBD\x63");
}

// It was saved, and load() refused the file.
TEST(TextEncoder, IsNotFittedToAnEmptyText) {
  for (const UnknownCategory unknown : {UnknownCategory::refuse, UnknownCategory::other}) {
    expect_refused_text(ErrorCode::invalid_argument, {"empty text", "give it the text for training"},
                        [&] { TextEncoder::fit(Text(""), {.unknown = unknown}); });
  }
  EXPECT_EQ(TextEncoder::fit(Text("", TextUnit::bytes)).ids(), 256);
}

TEST(TextEncoder, TakesBytesOfAnyContent) {
  const Text text(std::string("\xFF\0a", 3), TextUnit::bytes);
  const TextEncoder encoder = TextEncoder::fit(text);

  EXPECT_EQ(encoder.ids(), 256);
  EXPECT_THAT(encoder.encode(text.content()).elements<std::int32_t>(), ElementsAre(255, 0, 97));
  EXPECT_EQ(encoder.decode(std::vector<std::int32_t>{255, 0, 97}), text.content());
}

TEST(TextEncoder, MakesWindowsWhoseTargetsAreTheNextCharacters) {
  const Text text("abcdefgh");
  const Dataset data = TextEncoder::fit(text).dataset(text).window(3, {.shift = 3, .targets = WindowTargets::all});
  std::vector<float> inputs(data.input_layout().words());
  std::vector<float> targets(data.target_layout().words());
  data.load(0, 0, 1, {.features = inputs, .targets = targets});

  EXPECT_EQ(data.size(), 2);
  EXPECT_EQ(data.inputs()[0], (ArraySpec{"", {3}, DType::i32}));
  EXPECT_THAT(ArrayRow(data.input_layout(), inputs).elements<std::int32_t>(std::size_t{0}), ElementsAre(3, 4, 5));
  EXPECT_THAT(targets, ElementsAre(4, 5, 6));
}

TEST(TextEncoder, ComesBackFromItsTextAndItsFile) {
  TemporaryFolder folder;
  for (const TextEncoder& encoder :
       {TextEncoder::fit(Text("a\"\\\nü")), TextEncoder::fit(Text("ab"), {.unknown = UnknownCategory::other}),
        TextEncoder::fit(Text("ab", TextUnit::bytes))}) {
    encoder.save(folder / "text.json");
    const TextEncoder read = TextEncoder::load(folder / "text.json");

    EXPECT_EQ(read.text(), encoder.text());
    EXPECT_EQ(read.ids(), encoder.ids());
    EXPECT_THAT(read.encode("a").elements<std::int32_t>().size(), 1U);
  }
}

// As docs/data.md shows it.
TEST(TextEncoder, ServesTraining) {
  const WorkInTemporaryFolder folder;
  const std::string content(2000, 'a');
  write_plain("shakespeare.txt", Bytes(content.begin(), content.end()));
  std::filesystem::create_directory("run");

  const auto [train, test] = read_text("shakespeare.txt").split(0.1);
  const TextEncoder encoder = TextEncoder::fit(train);
  const WindowOptions windows{.shift = 64, .targets = WindowTargets::all};
  const Dataset data = encoder.dataset(train).window(64, windows);  // ids [64], next ids [64]
  encoder.save("run/text.json");

  EXPECT_EQ(data.size(), 1799 / 64);
  EXPECT_EQ(test.size(), 200);
  EXPECT_EQ(TextEncoder::load("run/text.json").text(), encoder.text());
}

TEST(TextEncoder, RefusesATextOfAnotherKind) {
  const std::string head = R"({"format":"holdfast text encoder","version":1,"unit":"characters","other":false,)";
  for (const auto& [text, reason] : std::vector<std::pair<std::string, std::string>>{
           {"", "not a JSON object"},
           {"[]", "not a JSON object"},
           {R"({"format":"holdfast table encoder","version":1})", "format and version"},
           {R"({"format":"holdfast text encoder","version":1,"unit":"words"})", "unit"},
           {R"({"format":"holdfast text encoder","version":1,"unit":"characters"})", "\"other\""},
           {head + R"("vocabulary":[]})", "empty"},
           {head + R"("vocabulary":["ab"]})", "entry 0"},
           {head + R"("vocabulary":["a",1]})", "entry 1"},
           {head + R"("vocabulary":["b","a"]})", "not sorted"},
           {head + R"("vocabulary":["a","a"]})", "not sorted"}}) {
    expect_refused_text(ErrorCode::invalid_file, {reason}, [&, &json = text] { TextEncoder::from_text(json); });
  }
}

TEST(TextEncoder, GivesShakespeareBack) {
  const char* folder = std::getenv("HOLDFAST_TEST_DATA");
  const std::string path = std::string(folder == nullptr ? "" : folder) + "/text/tinyshakespeare.txt";
  if (folder == nullptr || !std::filesystem::exists(path)) GTEST_SKIP() << "needs HOLDFAST_TEST_DATA with " << path;

  const Text text = read_text(path);
  const TextEncoder encoder = TextEncoder::fit(text);

  EXPECT_EQ(text.size(), 1'115'394);
  EXPECT_EQ(encoder.ids(), 65);
  EXPECT_EQ(encoder.decode(encoder.encode(text.content()).elements<std::int32_t>()), text.content());
}

}  // namespace
}  // namespace holdfast
