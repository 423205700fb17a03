// Samples of several arrays and types.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "data/batches/batch_loader.h"
#include "holdfast/base/error.h"
#include "holdfast/data/dataset.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kSamples = 5;

Dataset mixed() {
  return from_tensors({{"ids", Tensor(Shape{kSamples, 2}, std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})},
                       {"pixels", Tensor(Shape{kSamples, 3}, std::vector<std::uint8_t>(15, 9))}},
                      {{"label", Tensor(Shape{kSamples}, std::vector<std::int32_t>{0, 1, 0, 1, 1})}},
                      Tensor(Shape{kSamples}, {1, 0, 0.5F, 2, 1}));
}

// One sample of a data set.
struct LoadedSample {
  LoadedSample(const Dataset& data, std::int64_t position)
      : features(data.input_layout().words()), targets(data.target_layout().words()) {
    data.load(1, 0, position, {.features = features, .targets = targets});
  }

  std::vector<float> features;
  std::vector<float> targets;
};

TEST(FromTensors, GivesEachArrayUnderItsNameAndType) {
  const Dataset data = mixed();
  LoadedSample sample(data, 3);

  EXPECT_THAT(ArrayRow(data.input_layout(), sample.features).elements<std::int64_t>("ids"), ElementsAre(6, 7));
  EXPECT_THAT(ArrayRow(data.input_layout(), sample.features).elements<std::uint8_t>("pixels"), ElementsAre(9, 9, 9));
  EXPECT_THAT(ArrayRow(data.target_layout(), sample.targets).elements<std::int32_t>("label"), ElementsAre(1));
  EXPECT_THAT(ArrayRow(data.target_layout(), sample.targets).elements<float>("sample_weight"), ElementsAre(2));
  EXPECT_EQ(data.targets().size(), 1U);
  EXPECT_TRUE(data.has_sample_weights());
}

TEST(FromTensors, DescribesItsArraysAndTheirContent) {
  const std::string text = mixed().description();

  EXPECT_THAT(text, HasSubstr(R"("inputs":[{"name":"ids","shape":[2],"dtype":"i64"},{"name":"pixels","shape":[3],)"));
  EXPECT_THAT(text, HasSubstr(R"("sample_weights":true)"));
  EXPECT_EQ(text, mixed().description());
  EXPECT_NE(text, mixed().map([](const SampleArrays&, Random&) {}, "other").description());
}

TEST(FromTensors, DescribesOneArrayOfFloatsAsBefore) {
  const std::string text = from_tensors(Tensor(Shape{4, 2}), Tensor(Shape{4, 1})).description();

  EXPECT_THAT(text, testing::StartsWith(R"({"size":4,"features":[2],"targets":[1],"stages":[{"kind":"tensors",)"));
}

TEST(FromTensors, RefusesTensorsThatDoNotFitTogether) {
  const auto refusal = [](const auto& make) { return sentence_thrown_by(make); };
  const Tensor four(Shape{4, 1});
  const Tensor five(Shape{5, 1});

  EXPECT_THAT(refusal([&] {
                from_tensors({{"a", four}, {"b", five}}, {{"y", four}});
              }),
              HasSubstr("input \"b\" has the shape [5, 1], but the first input has 4 samples"));
  EXPECT_THAT(refusal([&] { from_tensors({{"a", four}, {"a", four}}, {{"y", four}}); }), HasSubstr("called \"a\""));
  EXPECT_THAT(refusal([&] { from_tensors({}, {{"y", four}}); }), HasSubstr("at least one input"));
  EXPECT_THAT(refusal([&] {
                from_tensors({{"a", four}}, {{"y", four}}, Tensor(Shape{4}, {1, 1, -1, 1}));
              }),
              HasSubstr("sample weight 2 is -1"));
}

// A terminal obeys a control character, and a name may come from a file.
TEST(FromTensors, ShowsNamesEscaped) {
  const Tensor four(Shape{4, 1});
  const std::string name = "x\x1b[2J";
  using Weights = std::vector<NamedTensor>;

  EXPECT_THAT(sentence_thrown_by([&] {
                from_tensors({{"a", four}, {name, Tensor(Shape{5, 1})}}, {{"y", four}});
              }),
              HasSubstr(R"(input "x\x1b[2J" has the shape)"));
  EXPECT_THAT(sentence_thrown_by([&] {
                from_tensors({{"a", four}}, {{name, four}}, Weights{{name, Tensor(Shape{4, 3})}});
              }),
              HasSubstr(R"(target "x\x1b[2J" have the shape)"));
  EXPECT_THAT(sentence_thrown_by([&] {
                from_tensors({{"a", four}}, {{"y", four}}, Weights{{name, four}});
              }),
              HasSubstr(R"(weights for "x\x1b[2J")"));
}

// A model divided by their number.
TEST(FromTensors, RefusesWeightsWithoutANumberForASample) {
  const Tensor four(Shape{4, 1});
  const Tensor empty_targets(Shape{4, 0});

  EXPECT_THAT(sentence_thrown_by([&] {
                from_tensors({{"a", four}}, {{"y", four}}, Tensor(Shape{4, 0}));
              }),
              HasSubstr("sample weights have the shape [4, 0], which has no number for a sample"));
  EXPECT_THAT(
      sentence_thrown_by([&] {
        from_tensors({{"a", four}}, {{"y", empty_targets}}, std::vector<NamedTensor>{{"y", Tensor(Shape{4, 0})}});
      }),
      HasSubstr("which has no number for a sample"));
  EXPECT_NO_THROW(from_tensors({{"a", Tensor(Shape{0, 1})}}, {{"y", Tensor(Shape{0, 1})}}, Tensor(Shape{0})));
}

TEST(ArrayMap, ChangesArraysInPlace) {
  const Dataset data = mixed().map([](const SampleArrays& sample, Random&) {
    for (std::int64_t& id : sample.inputs.elements<std::int64_t>("ids")) id += 100;
    sample.targets.elements<float>("sample_weight")[0] = 7;
  });
  LoadedSample sample(data, 0);

  EXPECT_THAT(ArrayRow(data.input_layout(), sample.features).elements<std::int64_t>(0), ElementsAre(100, 101));
  EXPECT_THAT(ArrayRow(data.target_layout(), sample.targets).elements<float>(1), ElementsAre(7));
}

TEST(ArrayMap, RefusesIntegersThatModelsCannotRead) {
  const Dataset data = mixed().map([](const SampleArrays& sample, Random&) {
    sample.inputs.elements<std::int64_t>("ids")[1] = std::int64_t{1} << 40;
  });

  EXPECT_THAT(sentence_thrown_by([&] { LoadedSample(data, 2); }),
              HasSubstr("element 1 of array 0 (\"ids\" of i64 [2]) of sample 2 is 1099511627776"));
}

TEST(InputMap, MakesOtherArrays) {
  const Dataset data =
      mixed().map({{"sum", {}, DType::i32}, {"mean", {1}}}, [](const ArrayRow& before, const ArrayRow& after, Random&) {
        const auto ids = before.elements<std::int64_t>("ids");
        after.elements<std::int32_t>("sum")[0] = static_cast<std::int32_t>(ids[0] + ids[1]);
        after.elements<float>("mean")[0] = static_cast<float>(ids[0] + ids[1]) / 2;
      });
  LoadedSample sample(data, 1);

  EXPECT_THAT(ArrayRow(data.input_layout(), sample.features).elements<std::int32_t>("sum"), ElementsAre(5));
  EXPECT_THAT(ArrayRow(data.input_layout(), sample.features).elements<float>("mean"), ElementsAre(2.5F));
  EXPECT_THAT(ArrayRow(data.target_layout(), sample.targets).elements<std::int32_t>("label"), ElementsAre(1));
}

TEST(Map, RefusesAFunctionOfFloatsForOtherArrays) {
  EXPECT_THAT(sentence_thrown_by([] { mixed().map([](Sample, Random&) {}); }), HasSubstr("SampleArrays"));
}

TEST(Split, ByLabelTakesIntegers) {
  const auto [training, validation] = mixed().split(2, {.by_label = true});
  LoadedSample first(validation, 0);
  LoadedSample second(validation, 1);

  EXPECT_NE(ArrayRow(validation.target_layout(), first.targets).elements<std::int32_t>(0)[0],
            ArrayRow(validation.target_layout(), second.targets).elements<std::int32_t>(0)[0]);
}

TEST(Split, ByLabelRefusesLabelsThatAreNotClasses) {
  const auto refusal = [](Tensor labels) {
    const Dataset data =
        from_tensors({{"x", Tensor(Shape{4, 1})}}, {{"y", std::move(labels)}}, Tensor(Shape{4}, {1, 1, 1, 1}));
    return sentence_thrown_by([&] { data.split(2, {.by_label = true}); });
  };

  EXPECT_THAT(refusal(Tensor(Shape{4}, {0, 0, 1, NAN})), HasSubstr("sample 3 has a target that is NaN"));
  EXPECT_THAT(refusal(Tensor(Shape{4}, std::vector<std::int32_t>{0, 0, 1 << 24, 1})),
              HasSubstr("sample 2 has a label of 2^24 or more"));
}

// The ways of a batch know words alone, whatever they mean.
TEST(BatchLoader, LoadsArraysOfAnyTypeWithAnyNumberOfThreads) {
  const Dataset data = mixed().shuffle().batch(3);
  const auto rows = [](const Dataset& from) {
    std::vector<float> all;
    BatchLoader loader(from, 4, 2, 0, 2, 0, 0, 2);
    while (const auto batch = loader.next()) {
      EXPECT_TRUE(batch->has_weights());
      for (const ShardSlice& shard : batch->shards) {
        all.insert(all.end(), shard.features.begin(), shard.features.end());
        all.insert(all.end(), shard.targets.begin(), shard.targets.end());
      }
    }
    return all;
  };

  const std::vector<float> alone = rows(data);
  const std::vector<float> ahead = rows(data.prefetch(2, {.threads = 3}));

  EXPECT_EQ(alone.size(), 2 * kSamples * (data.input_layout().words() + data.target_layout().words()));
  EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(alone)), std::as_bytes(std::span(ahead))));
}

}  // namespace
}  // namespace holdfast
