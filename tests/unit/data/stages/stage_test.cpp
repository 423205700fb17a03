// A file is read ahead only where each stage passes expect() on to the samples that its load() takes.

#include "data/stages/stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "data/lengths/bucket_stage.h"
#include "data/lengths/padded_stage.h"
#include "data/stages/joined_stage.h"
#include "data/stages/mixup_stage.h"
#include "data/stages/window_stage.h"

namespace holdfast {
namespace {

using Positions = std::vector<std::int64_t>;

// Remembers which samples it was told of, and which it was asked for.
class WatchedSource final : public SourceStage {
 public:
  WatchedSource(SampleLayouts layouts, std::int64_t size) : SourceStage(std::move(layouts), size) {}

  bool reads_files() const override { return true; }
  void expect(std::uint64_t, std::int64_t, std::int64_t position) const override { expected_.push_back(position); }
  void load(std::uint64_t, std::int64_t, std::int64_t position, Sample destination) const override {
    loaded_.push_back(position);
    std::ranges::fill(destination.features, 0.0F);
    std::ranges::fill(destination.targets, 0.0F);
  }
  void describe(nlohmann::ordered_json& stages) const override { stages.push_back({{"kind", "watched"}}); }

  // Since the last call, in rising order.
  Positions take_expected() const { return sorted(std::exchange(expected_, {})); }
  Positions take_loaded() const { return sorted(std::exchange(loaded_, {})); }

 private:
  static Positions sorted(Positions positions) {
    std::ranges::sort(positions);
    return positions;
  }

  mutable Positions expected_;
  mutable Positions loaded_;
};

using Source = std::shared_ptr<WatchedSource>;

// Pictures with targets that have a mean.
Source pictures(std::int64_t size) {
  return std::make_shared<WatchedSource>(plain_layouts(Shape{2, 2, 1}, Shape{3}), size);
}

Source sequences(std::int64_t size) {
  return std::make_shared<WatchedSource>(SampleLayouts{.inputs = RowLayout({{.name = "words", .shape = Shape{5}},
                                                                            {.name = "length", .dtype = DType::i32}}),
                                                       .targets = RowLayout({{.name = "y", .shape = Shape{1}}})},
                                         size);
}

void check_that_expected_samples_are_loaded(const Stage& stage, const std::vector<Source>& sources) {
  EXPECT_TRUE(stage.reads_files());
  std::vector<float> features(stage.feature_words());
  std::vector<float> targets(stage.target_words());
  // Stages may have loaded samples when they were made.
  for (const Source& source : sources) source->take_loaded();
  for (const std::int64_t epoch : {0, 1}) {
    for (std::int64_t position = 0; position < stage.size(); ++position) {
      SCOPED_TRACE("epoch " + std::to_string(epoch) + ", position " + std::to_string(position));
      stage.expect(7, epoch, position);
      stage.load(7, epoch, position, {.features = features, .targets = targets});
      std::size_t loaded = 0;
      for (const Source& source : sources) {
        const Positions taken = source->take_loaded();
        EXPECT_EQ(source->take_expected(), taken);
        loaded += taken.size();
      }
      EXPECT_GT(loaded, 0U);
    }
  }
}

TEST(Expect, FollowsTheOrderOfBuckets) {
  const Source source = sequences(11);
  std::int64_t next = 0;
  // Every third sample is long.
  const auto length_of = [&next](const SampleArrays&) { return next++ % 3 == 0 ? 5 : 1; };

  check_that_expected_samples_are_loaded(BucketStage(source, 2, {.bounds = {2}, .length_of = length_of}), {source});
}

TEST(Expect, IsPassedOnBeforePadding) {
  const Source source = sequences(3);

  check_that_expected_samples_are_loaded(PaddedStage(source, 4, {}), {source});
}

TEST(Expect, NamesAllSamplesOfAWindow) {
  const Source source = pictures(12);

  check_that_expected_samples_are_loaded(WindowStage(source, 3, {.stride = 2, .shift = 3}), {source});
}

TEST(Expect, FollowsJoinedDataSets) {
  const Source three = pictures(3);
  const Source five = pictures(5);
  const Source other_three = pictures(3);

  check_that_expected_samples_are_loaded(ConcatenateStage({three, five}), {three, five});
  check_that_expected_samples_are_loaded(InterleaveStage({three, five}), {three, five});
  check_that_expected_samples_are_loaded(ZipStage({three, other_three}), {three, other_three});
}

TEST(Expect, NamesThePartnerOfAMixedSample) {
  const Source source = pictures(6);

  check_that_expected_samples_are_loaded(MixupStage(source, 0.4F), {source});
  check_that_expected_samples_are_loaded(CutmixStage(source, 0.4F), {source});
}

// Stages before a joined one draw with the seed of their part.
TEST(Expect, FollowsTheDrawsOfAPart) {
  const Source first = pictures(4);
  const Source second = pictures(5);
  const auto mixed = [](const Source& source) { return std::make_shared<MixupStage>(source, 1.0F); };

  check_that_expected_samples_are_loaded(ConcatenateStage({mixed(first), mixed(second)}), {first, second});
}

}  // namespace
}  // namespace holdfast
