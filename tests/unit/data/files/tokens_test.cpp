// Windows of token ids are the same from memory and from each kind of file, and a file that is not an array of ids is
// refused by file and position.

#include "holdfast/data/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "holdfast/base/error.h"
#include "support/process_status.h"
#include "support/sanitizer.h"
#include "unit/data/support/array_writer.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::int32_t> counted_ids(std::int32_t count) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

Tokens tokens_of(const std::vector<std::int32_t>& ids) {
  return Tokens(Tensor(Shape{static_cast<std::int64_t>(ids.size())}, ids));
}

struct TokenSample {
  std::vector<std::int32_t> ids;
  std::vector<float> next;
};

TokenSample token_sample(const Dataset& data, std::int64_t position) {
  std::vector<float> inputs(data.input_layout().words());
  std::vector<float> targets(data.target_layout().words());
  data.load(0, 0, position, {.features = inputs, .targets = targets});
  const auto ids = ArrayRow(data.input_layout(), inputs).elements<std::int32_t>("ids");
  return {.ids = {ids.begin(), ids.end()}, .next = targets};
}

class TokenFiles : public testing::Test {
 protected:
  template <typename T>
  std::string raw(const std::vector<T>& ids, const std::string& header = "") const {
    write_file("ids.bin", header + text_of_elements(ids));
    return path("ids.bin");
  }
  void write_file(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }
  std::string path(const std::string& name) const { return folder_ / name; }

  template <typename Action>
  static void expect_refused(ErrorCode code, const std::vector<std::string>& words, const Action& action) {
    try {
      action();
      ADD_FAILURE() << "nothing was wrong; expected: " << words[0];
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      for (const std::string& word : words) EXPECT_THAT(error.what(), HasSubstr(word));
    }
  }

 private:
  TemporaryFolder folder_;
};

TEST(Tokens, BecomeWindowsWithTheIdsThatFollow) {
  const Dataset data = tokens_of(counted_ids(11)).windows(3, {.vocabulary = 11});

  ASSERT_EQ(data.size(), 3);
  EXPECT_THAT(token_sample(data, 0).ids, ElementsAre(0, 1, 2));
  EXPECT_THAT(token_sample(data, 2).ids, ElementsAre(6, 7, 8));
  EXPECT_THAT(token_sample(data, 2).next, ElementsAre(7, 8, 9));
}

TEST(Tokens, HaveWindowsAtEachStrideUpToTheLastId) {
  const Tokens tokens = tokens_of(counted_ids(11));

  const Dataset overlapping = tokens.windows(3, {.vocabulary = 11, .stride = 1});
  ASSERT_EQ(overlapping.size(), 8);
  EXPECT_THAT(token_sample(overlapping, 7).next, ElementsAre(8, 9, 10));
  EXPECT_EQ(tokens.windows(3, {.vocabulary = 11, .stride = 100}).size(), 1);
  EXPECT_EQ(tokens.windows(10, {.vocabulary = 11}).size(), 1);
}

TEST(Tokens, AreSplitSoThatNoWindowHasIdsOfBothParts) {
  const auto [training, validation] = tokens_of(counted_ids(20)).split(0.25);

  EXPECT_EQ(training.size(), 15);
  EXPECT_THAT(token_sample(training.windows(7, {.vocabulary = 20}), 1).next, ElementsAre(8, 9, 10, 11, 12, 13, 14));
  EXPECT_THAT(token_sample(validation.windows(4, {.vocabulary = 20}), 0).ids, ElementsAre(15, 16, 17, 18));
  EXPECT_NE(training.windows(4, {.vocabulary = 20}).description(),
            validation.windows(4, {.vocabulary = 20}).description());
}

TEST_F(TokenFiles, GiveTheSamplesAndTheDescriptionOfTheSameIdsInMemory) {
  const std::vector<std::int32_t> ids = counted_ids(40);
  const TokenWindows windows{.vocabulary = 50, .stride = 4};
  const Dataset expected = tokens_of(ids).windows(5, windows);
  const std::vector<std::uint16_t> small(ids.begin(), ids.end());
  const std::vector<std::int64_t> large(ids.begin(), ids.end());
  write_npy(path("ids.npy"), "<i8", "(40,)", text_of_elements(large));
  write_npy(path("swapped.npy"), ">u2", "(40,)", [&] {
    std::string bytes = text_of_elements(small);
    for (std::size_t i = 0; i < bytes.size(); i += 2) std::swap(bytes[i], bytes[i + 1]);
    return bytes;
  }());

  std::vector<Dataset> found = {Tokens(Tensor(Shape{40}, small)).windows(5, windows)};
  found.push_back(open_raw_tokens(raw(small)).windows(5, windows));
  found.push_back(open_tokens({.path = path("ids.npy")}).windows(5, windows));
  found.push_back(open_tokens({.path = path("swapped.npy")}).windows(5, windows));
  std::filesystem::remove(path("ids.bin"));  // a file stays open
  const std::string with_header = raw(ids, std::string(1024, 'h'));
  found.push_back(open_raw_tokens(with_header, {.dtype = DType::i32, .header_bytes = 1024}).windows(5, windows));

  for (const Dataset& data : found) {
    EXPECT_EQ(data.description(), expected.description());
    ASSERT_EQ(data.size(), expected.size());
    for (std::int64_t sample = 0; sample < data.size(); ++sample) {
      EXPECT_EQ(token_sample(data, sample).ids, token_sample(expected, sample).ids) << sample;
      EXPECT_EQ(token_sample(data, sample).next, token_sample(expected, sample).next) << sample;
    }
  }
}

// docs/data.md shows these lines.
TEST(Tokens, AreReadAsThePageOfDataShows) {
  const WorkInTemporaryFolder folder;
  std::vector<std::uint16_t> ids;
  for (int i = 0; i < 200'000; ++i) ids.push_back(static_cast<std::uint16_t>(i % 50'000));
  std::ofstream("corpus.bin", std::ios::binary) << text_of_elements(ids);

  const auto [training, validation] = open_raw_tokens("corpus.bin", {.dtype = DType::u16}).split(0.01);
  const Dataset data = training.windows(1024, {.vocabulary = 50257});  // inputs i32 [1024], targets f32 [1024]

  EXPECT_EQ(validation.size(), 2'000);
  EXPECT_EQ(data.size(), 193);
  EXPECT_EQ(data.inputs()[0], (ArraySpec{"ids", {1024}, DType::i32}));
  EXPECT_EQ(data.targets()[0], (ArraySpec{"next", {1024}, DType::f32}));
}

// Another id, length or stride is other data.
TEST(Tokens, AreDescribedByAllThatSamplesDependOn) {
  std::vector<std::int32_t> ids = counted_ids(12);
  const std::string text = tokens_of(ids).windows(3, {.vocabulary = 12}).description();

  EXPECT_EQ(tokens_of(ids).windows(3, {.vocabulary = 500}).description(), text);
  EXPECT_NE(tokens_of(ids).windows(4, {.vocabulary = 12}).description(), text);
  EXPECT_NE(tokens_of(ids).windows(3, {.vocabulary = 12, .stride = 2}).description(), text);
  ids[11] = 1;
  EXPECT_NE(tokens_of(ids).windows(3, {.vocabulary = 12}).description(), text);
}

// 64 MiB of ids. So a file may be larger than the memory.
TEST_F(TokenFiles, AreReadPieceByPiece) {
  if (runs_under_a_sanitizer()) GTEST_SKIP() << "a sanitizer takes memory of its own";
  constexpr std::int64_t kIds = 32 << 20;
  std::vector<std::uint16_t> piece(1 << 20);
  for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = static_cast<std::uint16_t>(i % 50'000);
  std::ofstream file(path("ids.bin"), std::ios::binary);
  for (std::int64_t begin = 0; begin < kIds; begin += 1 << 20) file << text_of_elements(piece);
  file.close();
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak of VmHWM begins anew
  const std::size_t before = status_of_process("VmRSS");

  const Dataset data = open_raw_tokens(path("ids.bin")).windows(1024, {.vocabulary = 50'000});
  const TokenSample last = token_sample(data, data.size() - 1);

  EXPECT_EQ(last.ids.front(), piece[piece.size() - 2048]);
  EXPECT_LT(status_of_process("VmHWM"), before + (16U << 20));
}

TEST_F(TokenFiles, NameAnIdBeyondTheVocabularyByItsPosition) {
  std::vector<std::int32_t> ids = counted_ids(30);
  ids[21] = 77;
  const std::string file = raw(ids);

  expect_refused(ErrorCode::invalid_file, {"id 77 at position 21 of \"" + file, "vocabulary of 30", "here i32"},
                 [&] { open_raw_tokens(file, {.dtype = DType::i32}).windows(4, {.vocabulary = 30}); });
  // The position is that in the file, also in the second part.
  expect_refused(ErrorCode::invalid_file, {"position 21 of"}, [&] {
    open_raw_tokens(file, {.dtype = DType::i32}).split(0.5).validation.windows(4, {.vocabulary = 30});
  });
  ids[21] = -1;
  expect_refused(ErrorCode::invalid_argument, {"id -1 at position 21 of the tensor"},
                 [&] { tokens_of(ids).windows(4, {.vocabulary = 30}); });
}

TEST_F(TokenFiles, ThatAreReadAsAnotherTypeAreRefused) {
  const std::vector<std::int32_t> ids = counted_ids(200);
  const std::vector<std::uint16_t> small(ids.begin(), ids.end());

  expect_refused(ErrorCode::invalid_file, {"ids.bin", "every second id", ".dtype = DType::i32"},
                 [&] { open_raw_tokens(raw(ids)).windows(4, {.vocabulary = 200}); });
  expect_refused(ErrorCode::invalid_file, {"at position 0", "here i32"},
                 [&] { open_raw_tokens(raw(small), {.dtype = DType::i32}).windows(4, {.vocabulary = 200}); });
  write_npy(path("ids.npy"), "<u2", "(200,)", text_of_elements(small));
  expect_refused(ErrorCode::invalid_file, {"ids.npy\" is a file of NumPy", "open_tokens("},
                 [&] { open_raw_tokens(path("ids.npy")); });
  write_npy(path("up\x7f.npy"), "<u2", "(200,)", text_of_elements(small));
  expect_refused(ErrorCode::invalid_file, {R"(/up\x7f.npy" is a file of NumPy)"},
                 [&] { open_raw_tokens(path("up\x7f.npy")); });
  expect_refused(ErrorCode::invalid_argument, {"not of f32 after 0"},
                 [&] { open_raw_tokens(raw(ids), {.dtype = DType::f32}); });
  expect_refused(ErrorCode::invalid_file, {"element 1 of", "0.5"}, [&] {
    write_npy(path("half.npy"), "<f4", "(3,)", text_of_elements<float>({1, 0.5F, 2}));
    open_tokens({.path = path("half.npy")}).windows(2, {.vocabulary = 5});
  });
}

TEST_F(TokenFiles, ThatWereCutAreRefused) {
  const std::string file = raw<std::uint16_t>({1, 2, 3, 4});
  std::filesystem::resize_file(file, 7);

  expect_refused(ErrorCode::invalid_file, {file + "\" has 7 bytes", "whole ids of 2 bytes (u16)", "cut off"},
                 [&] { open_raw_tokens(file); });
  expect_refused(ErrorCode::invalid_file, {"not a header of 1024"},
                 [&] { open_raw_tokens(file, {.header_bytes = 1024}); });
  expect_refused(ErrorCode::not_found, {"nothing.bin"}, [&] { open_raw_tokens(path("nothing.bin")); });
}

TEST_F(TokenFiles, ThatChangeWhileTheyAreInUseAreErrorsAndNoOtherSamples) {
  std::vector<std::uint16_t> ids(40, 3);
  const Dataset data = open_raw_tokens(raw(ids)).windows(4, {.vocabulary = 10});

  ids[35] = 700;
  write_file("ids.bin", text_of_elements(ids));
  EXPECT_THAT(token_sample(data, 0).ids, ElementsAre(3, 3, 3, 3));
  expect_refused(ErrorCode::invalid_file, {"id 700 at position 35 of", "must not change"},
                 [&] { token_sample(data, data.size() - 1); });
  std::filesystem::resize_file(path("ids.bin"), 20);
  expect_refused(ErrorCode::invalid_file, {"ids.bin\" became shorter"}, [&] { token_sample(data, data.size() - 1); });
}

TEST_F(TokenFiles, AndTensorsSayWhatTheyNeed) {
  const Tokens tokens = tokens_of(counted_ids(5));

  expect_refused(ErrorCode::invalid_argument, {"has 5 ids here", "a window of 5"},
                 [&] { tokens.windows(5, {.vocabulary = 5}); });
  expect_refused(ErrorCode::invalid_argument, {"windows() needs the vocabulary"}, [&] { tokens.windows(2, {}); });
  expect_refused(ErrorCode::invalid_argument, {"from 1 to 16777216"},
                 [&] { tokens.windows(2, {.vocabulary = (1 << 24) + 1}); });
  expect_refused(ErrorCode::invalid_argument, {"a length of at least 1"},
                 [&] { tokens.windows(0, {.vocabulary = 5}); });
  expect_refused(ErrorCode::invalid_argument, {"a stride of at least 1"},
                 [&] { tokens.windows(2, {.vocabulary = 5, .stride = -1}); });
  expect_refused(ErrorCode::invalid_argument, {"a fraction between 0 and 1"}, [&] { tokens.split(1); });
  expect_refused(ErrorCode::invalid_argument, {"has the shape [2, 2]", "one axis"}, [] {
    Tokens(Tensor(Shape{2, 2}, std::vector<std::int32_t>(4)));
  });
  expect_refused(ErrorCode::invalid_argument, {"is of f32"}, [] { Tokens(Tensor(Shape{2}, {1, 2})); });
  write_npy(path("pairs.npy"), "<u2", "(2, 2)", text_of_elements<std::uint16_t>({1, 2, 3, 4}));
  expect_refused(ErrorCode::invalid_argument, {"pairs.npy\" has the shape [2, 2]"},
                 [&] { open_tokens({.path = path("pairs.npy")}); });
}

}  // namespace
}  // namespace holdfast
