// Messages name the sample of the data set that a user can look up, whatever the stages have made of its order. The
// samples of these tests hold the numbers by which they must be named.

#include "data/batches/sample_places.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "data/stages/class_weight_stage.h"
#include "holdfast/data/csv.h"
#include "holdfast/data/idx.h"
#include "holdfast/data/pictures.h"
#include "holdfast/data/table_encoder.h"
#include "holdfast/data/tokens.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "unit/data/support/idx_writer.h"
#include "unit/data/support/loaded.h"
#include "unit/data/support/numbers.h"
#include "unit/data/support/picture_writer.h"

namespace holdfast {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

// Rows of a CSV file: the feature of each is the number of its line, which begins with 2, and the target a class.
class Lines {
 public:
  explicit Lines(int rows) : path_(folder_ / "lines.csv") {
    std::ofstream file(path_);
    file << "line,kind\n";
    for (int row = 0; row < rows; ++row) file << row + 2 << ',' << (row % 2 == 0 ? 'a' : 'b') << '\n';
  }

  const std::string& path() const { return path_; }
  Table table() const { return read_csv(path_); }
  static Dataset samples_of(const Table& table) {
    return TableEncoder::fit(table, {.targets = {"kind"}, .normalize = false}).dataset(table);
  }
  Dataset samples() const { return samples_of(table()); }
  std::string place(std::int64_t line) const { return fmt::format("(\"{}\", line {})", path_, line); }

 private:
  const TemporaryFolder folder_;
  const std::string path_;
};

std::int64_t remainder_of_five(const SampleArrays& sample) {
  return static_cast<std::int64_t>(sample.inputs.elements<float>(0)[0]) % 5;
}

std::string name_in(const Dataset& data, std::int64_t epoch, std::int64_t position) {
  return name_of_sample(*data.last_stage(), 3, epoch, position);
}

}  // namespace

TEST(SamplePlaces, AreLinesOfTheFileInAnyOrder) {
  const Lines lines(40);
  const Dataset data = lines.samples();
  const auto is_even = [](const SampleArrays& sample) {
    return static_cast<int>(sample.inputs.elements<float>(0)[0]) % 2 == 0;
  };
  const std::vector<Dataset> orders = {
      data.shuffle(),
      data.split(0.25, {.seed = 3}).training.shuffle(7),
      data.skip(5).take(20).filter(is_even, "even").shuffle(),
      data.shuffle(9).repeat(3),
      data.cache().bucketed(4, {.bounds = {2}, .length_of = remainder_of_five}),
      Dataset::concatenate({data.take(7).shuffle(), data.skip(7).shuffle().repeat(2)}),
      Dataset::interleave({data.skip(30), data.shuffle()}).shuffle(),
      Dataset::zip({data.shuffle(), numbers(40)}),
      Dataset::zip({numbers(40), data.shuffle()}).shuffle().map([](const SampleArrays& sample, Random&) {
        // The line stands in the second input.
        sample.inputs.elements<float>(0)[0] = sample.inputs.elements<float>(1)[0];
      }),
      with_class_weights(data.shuffle().batch(4), {1, 2}),
      data.shuffle().batch(16, {.pad_remainder = true}),
  };

  for (const Dataset& order : orders) {
    for (const std::int64_t epoch : {0, 2}) {
      for (std::int64_t position = 0; position < order.size(); ++position) {
        const auto line = static_cast<std::int64_t>(loaded(order, 3, epoch, position)[0]);
        ASSERT_EQ(name_in(order, epoch, position), fmt::format("sample {} {}", line - 2, lines.place(line)))
            << order.description() << " position " << position;
      }
    }
  }
}

TEST(SamplePlaces, AreLinesOfTheFileInPartsOfATable) {
  const Lines lines(20);
  const auto [training, validation] = lines.table().split(0.3);

  for (const Table& part : {training, validation}) {
    const Dataset data = Lines::samples_of(part).shuffle();
    for (std::int64_t position = 0; position < data.size(); ++position) {
      const auto line = static_cast<std::int64_t>(loaded(data, 3, 1, position)[0]);
      EXPECT_THAT(name_in(data, 1, position), EndsWith(lines.place(line)));
    }
  }
}

TEST(SamplePlaces, AreRowsWhereATableHasNoFile) {
  const Table table({{"x", std::vector<double>{0, 1, 2, 3}}, {"y", std::vector<double>{0, 0, 0, 0}}});
  const Dataset data = TableEncoder::fit(table, {.targets = {"y"}, .normalize = false}).dataset(table.skip(1));

  EXPECT_EQ(name_in(data, 0, 2), "sample 2 (row 3 of the table)");
}

TEST(SamplePlaces, AreNumbersWhereNothingElseIsKnown) {
  const Dataset data = numbers(30);

  for (std::int64_t position = 0; position < 30; ++position) {
    const auto number = static_cast<std::int64_t>(loaded(data.shuffle(), 3, 1, position)[0]);
    EXPECT_EQ(name_in(data.shuffle(), 1, position), fmt::format("sample {}", number));
  }
  // The number in one of two parts would not say in which.
  EXPECT_EQ(name_in(Dataset::concatenate({data.shuffle(), data}), 0, 45), "sample 45");
  EXPECT_EQ(name_in(data.window(3, {.shift = 2}), 0, 4), "sample 8 and those joined with it");
}

TEST(SamplePlaces, AreTheFilesOfPictures) {
  const TemporaryFolder folder;
  for (const int shade : {10, 20, 30, 40}) {
    const std::string name = fmt::format("{}/{}.png", shade < 25 ? "dark" : "light", shade);
    write_bytes(folder / name,
                png_bytes({.height = 1, .width = 1, .channels = 1, .pixels = {static_cast<std::uint8_t>(shade)}}));
  }
  const Dataset data = read_pictures(folder.path(), {.height = 1, .width = 1, .channels = 1, .scale = 1}).shuffle();

  for (std::int64_t position = 0; position < 4; ++position) {
    const float shade = loaded(data, 3, 0, position)[0];
    EXPECT_THAT(name_in(data, 0, position), HasSubstr(fmt::format("/{}.png\")", shade)));
    EXPECT_THAT(name_in(data, 0, position), HasSubstr("(the picture \"/"));
  }
}

TEST(SamplePlaces, AreLabelsOfAnIdxFile) {
  const TemporaryFolder folder;
  write_plain(folder / "images", idx_bytes({3, 1, 1}, {0, 1, 2}));
  write_plain(folder / "labels", idx_bytes({3}, {0, 1, 2}));
  const Dataset data = read_idx(folder / "images", folder / "labels", {.scale = 1}).shuffle();

  const auto number = static_cast<std::int64_t>(loaded(data, 3, 0, 1)[0]);

  EXPECT_EQ(name_in(data, 0, 1), fmt::format("sample {0} (label {0} of \"{1}\")", number, folder / "labels"));
}

TEST(SamplePlaces, AreIdsOfAText) {
  const Tokens tokens(Tensor(Shape{9}, std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  const Dataset data = tokens.windows(2, {.vocabulary = 9});

  EXPECT_THAT(name_in(data, 0, 3), HasSubstr("sample 3 (from id 6 of "));
}

TEST(SamplePlaces, StandBeforeTheSentenceOfTheBatch) {
  const Lines lines(40);
  const Dataset data = lines.samples().shuffle().batch(8);
  const std::int64_t line = static_cast<std::int64_t>(loaded(data, 3, 1, 2 * 8 + 5)[0]);
  const Batch batch = LoadedShards(data, 3, 2, 0, 2, 1, 2).batch();

  const std::string sentence = sentence_thrown_by(
      [&] { naming_sample_of(data, 3, batch, [] { throw SampleError(5, 8, "has the class label 12"); }); });

  EXPECT_EQ(sentence, fmt::format("sample {} {} of the data set: sample 5 of 8 has the class label 12", line - 2,
                                  lines.place(line)));
}

TEST(SamplePlaces, LeaveOtherErrorsAndResultsAsTheyAre) {
  const Dataset data = numbers(8).batch(8);
  const Batch batch = LoadedShards(data, 3, 1, 0, 1, 0, 0).batch();

  EXPECT_EQ(naming_sample_of(data, 3, batch, [] { return 7; }), 7);
  EXPECT_EQ(sentence_thrown_by([&] {
              naming_sample_of(data, 3, batch, [] { throw Error(ErrorCode::unsupported, "no such device"); });
            }),
            "no such device");
}

}  // namespace holdfast
