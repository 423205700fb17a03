#include "data/skipped/skip_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"
#include "holdfast/core/random.h"
#include "holdfast/data/pictures.h"
#include "holdfast/data/source.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "unit/data/support/loaded.h"
#include "unit/data/support/numbers.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Sample i holds i, unless it is one of `bad`. Loads are counted.
struct PartlyBad {
  std::shared_ptr<std::atomic<int>> loads = std::make_shared<std::atomic<int>>(0);
  Dataset data;

  PartlyBad(std::int64_t size, std::set<std::int64_t> bad, ErrorCode code = ErrorCode::invalid_file,
            const std::string& content = "one")
      : data(from_source({.size = size, .inputs = {{"x", {1}}}, .targets = {{"y", {}}}, .content = content},
                         [loads = loads, bad = std::move(bad), code](std::int64_t sample, const SampleArrays& into) {
                           ++*loads;
                           if (bad.contains(sample)) throw Error(code, "line " + std::to_string(sample) + " is cut");
                           into.inputs.elements<float>(0)[0] = static_cast<float>(sample);
                         })) {}
};

class SkipBad : public testing::Test {
 protected:
  std::string index() const { return folder_ / "bad.json"; }
  std::string text_of_index() const {
    std::ifstream file(index());
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TemporaryFolder folder_;
};

}  // namespace

TEST_F(SkipBad, LeavesOutTheSamplesThatCannotBeLoadedInAllEpochs) {
  const Dataset data = PartlyBad(7, {0, 3, 4}).data.skip_bad({.at_most = 3});

  ASSERT_EQ(data.size(), 4);
  EXPECT_THAT(first_features(data, 0), ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(first_features(data, 9), ElementsAre(1, 2, 5, 6));
}

TEST_F(SkipBad, CountsAndNamesWhatItLeftOut) {
  const Dataset data = PartlyBad(20, {1, 2, 3, 5, 8, 13}).data.skip_bad({.at_most = 10});

  const SkippedSamples skipped = data.shuffle().batch(4).skipped_samples();

  EXPECT_EQ(skipped.count, 6);
  ASSERT_EQ(skipped.first.size(), SkippedSamples::kMostNamed);
  EXPECT_EQ(skipped.first[0], "sample 1: the function of from_source() failed: line 1 is cut");
  EXPECT_EQ(skipped.first[4], "sample 8: the function of from_source() failed: line 8 is cut");
  EXPECT_EQ(numbers(4).skipped_samples().count, 0);
}

TEST_F(SkipBad, CountsAStageThatSeveralDataSetsShareOnce) {
  const auto [training, validation] = PartlyBad(20, {4}).data.skip_bad({.at_most = 1}).split(0.5);

  EXPECT_EQ(Dataset::concatenate({training, validation}).skipped_samples().count, 1);
}

TEST_F(SkipBad, LeavesOutSamplesForWhichAMapThrows) {
  const Dataset data = numbers(6)
                           .map(
                               [](Sample sample, Random&) {
                                 if (sample.features[0] == 2) throw Error(ErrorCode::invalid_argument, "a ragged row");
                               },
                               "rows")
                           .skip_bad({.at_most = 1});

  EXPECT_THAT(first_features(data, 0), ElementsAre(0, 1, 3, 4, 5));
  EXPECT_THAT(data.skipped_samples().first,
              ElementsAre("sample 2: the function of map() \"rows\" failed: a ragged row"));
}

TEST_F(SkipBad, LeavesOutPicturesThatAreCutOff) {
  std::filesystem::create_directories(folder_ / "pictures/rose");
  std::ofstream(folder_ / "pictures/rose/a.png") << "\x89PNG";
  std::ofstream(folder_ / "pictures/rose/b.jpg") << "no picture";

  const Dataset data = read_pictures(folder_ / "pictures", {.height = 2, .width = 2});

  EXPECT_THAT(sentence_thrown_by([&] { data.skip_bad({.at_most = 2}); }), HasSubstr("a.png"));
}

TEST_F(SkipBad, PassesOnWhatSaysNothingOfTheSample) {
  for (const ErrorCode code : {ErrorCode::input_output, ErrorCode::out_of_memory, ErrorCode::deadline_exceeded}) {
    EXPECT_EQ(code_thrown_by([&] { PartlyBad(6, {2}, code).data.skip_bad({.at_most = 5}); }), code);
  }
  const Dataset broken = numbers(4).map([](Sample, Random&) { throw std::logic_error("a mistake"); });
  EXPECT_THROW(broken.skip_bad({.at_most = 4}), std::runtime_error);
}

TEST_F(SkipBad, RefusesMoreBadSamplesThanWereAllowed) {
  const std::string sentence = sentence_thrown_by([] {
    PartlyBad(6, {1, 4, 5}).data.skip_bad({.at_most = 2, .threads = 3});
  });

  EXPECT_THAT(sentence, HasSubstr("3 bad samples among the first 6, and at_most allows 2"));
  EXPECT_THAT(sentence, HasSubstr("sample 1: the function of from_source() failed: line 1 is cut"));
}

TEST_F(SkipBad, RefusesWrongOptionsAndPlaces) {
  EXPECT_EQ(code_thrown_by([] { numbers(4).skip_bad({}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_thrown_by([] { numbers(4).skip_bad({.at_most = 1, .threads = 0}); }), ErrorCode::invalid_argument);
  EXPECT_THAT(sentence_thrown_by([] { numbers(4).shuffle().skip_bad({.at_most = 1}); }), HasSubstr("after shuffle()"));
  EXPECT_THAT(sentence_thrown_by([] { numbers(4).batch(2).skip_bad({.at_most = 1}); }), HasSubstr("after batch()"));
  EXPECT_THAT(sentence_thrown_by([] { PartlyBad(2, {0, 1}).data.skip_bad({.at_most = 5}); }), HasSubstr("2 of 2"));
}

// Partners are drawn anew in each epoch: a sample that was found bad came back as the partner of a good one.
TEST_F(SkipBad, IsRefusedAfterStagesThatDrawPartners) {
  const std::int64_t samples = 6;
  const Dataset pictures =
      from_source({.size = samples, .inputs = {{"x", {2, 2, 1}}}, .targets = {{"y", {2}}}, .content = "pictures"},
                  [](std::int64_t sample, const SampleArrays&) {
                    if (sample == 4) throw Error(ErrorCode::invalid_file, "it is cut off");
                  });
  const auto refusal_of = [](const Dataset& data) {
    return sentence_thrown_by([&] { data.skip_bad({.at_most = 5}); });
  };

  EXPECT_THAT(refusal_of(pictures.mixup()), HasSubstr("after mixup(), which draws other partners in each epoch"));
  EXPECT_THAT(refusal_of(pictures.cutmix().take(4)), HasSubstr("after cutmix(), which draws other partners"));
  EXPECT_THAT(refusal_of(Dataset::concatenate({pictures, pictures.mixup()})), HasSubstr("after mixup()"));
  const Dataset data = pictures.skip_bad({.at_most = 1}).mixup();
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    for (std::int64_t position = 0; position < data.size(); ++position) {
      EXPECT_NO_THROW(loaded(data, 0, epoch, position));
    }
  }
}

TEST_F(SkipBad, FindsTheSameOnAnyNumberOfThreads) {
  Random random(3, Purpose::user, 0, 0);
  for (int trial = 0; trial < 20; ++trial) {
    const auto size = static_cast<std::int64_t>(1 + random.below(3000));
    std::set<std::int64_t> bad;
    for (int i = 0; i < 30; ++i) {
      bad.insert(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(size) + 1)));
    }
    bad.erase(0);
    const Dataset one = PartlyBad(size, bad).data.skip_bad({.at_most = 40});
    const Dataset four = PartlyBad(size, bad).data.skip_bad({.at_most = 40, .threads = 4});

    EXPECT_EQ(one.description(), four.description());
    EXPECT_EQ(first_features(one, 0), first_features(four, 0));
    EXPECT_EQ(one.skipped_samples().first, four.skipped_samples().first);
    EXPECT_EQ(one.size(), size - one.skipped_samples().count);
  }
}

TEST_F(SkipBad, IsDescribedByWhatItLeavesOut) {
  const auto described = [](const std::set<std::int64_t>& bad) {
    return PartlyBad(9, bad).data.skip_bad({.at_most = 5}).description();
  };

  EXPECT_EQ(described({2, 3}), described({2, 3}));
  EXPECT_NE(described({2, 3}), described({2, 4}));
  EXPECT_THAT(described({2, 3}), HasSubstr(R"({"kind":"skip_bad","skipped":2,"digest":")"));
}

TEST_F(SkipBad, LooksAtNoSampleAgainWhereAnIndexIsThere) {
  const PartlyBad first(50, {7, 9});
  const PartlyBad again(50, {7, 9});

  const Dataset made = first.data.skip_bad({.at_most = 2, .index = index()});
  const Dataset read = again.data.skip_bad({.at_most = 2, .index = index()});

  EXPECT_EQ(*first.loads, 50);
  EXPECT_EQ(*again.loads, 0);
  EXPECT_EQ(made.description(), read.description());
  EXPECT_EQ(made.skipped_samples().first, read.skipped_samples().first);
  EXPECT_THAT(sentence_thrown_by([&] { again.data.skip_bad({.at_most = 1, .index = index()}); }),
              HasSubstr("2 of 50 samples bad, and at_most allows 1"));
}

TEST_F(SkipBad, LeavesNoIndexWhereItFails) {
  EXPECT_EQ(code_thrown_by([&] {
              PartlyBad(9, {1, 2}).data.skip_bad({.at_most = 1, .index = index()});
            }),
            ErrorCode::invalid_argument);

  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(SkipBad, RefusesAnIndexOfOtherData) {
  PartlyBad(9, {1}).data.skip_bad({.at_most = 1, .index = index()});
  const PartlyBad other(9, {1}, ErrorCode::invalid_file, "two");

  EXPECT_EQ(code_thrown_by([&] { other.data.skip_bad({.at_most = 1, .index = index()}); }), ErrorCode::incompatible);
}

// Any byte of the file may be another one, and the file may end anywhere.
TEST_F(SkipBad, RefusesEachIndexThatWasDamaged) {
  const PartlyBad source(9, {1, 5});
  const std::string description = source.data.skip_bad({.at_most = 2, .index = index()}).description();
  const std::string whole = text_of_index();
  const auto outcome_of = [&](const std::string& text) {
    std::ofstream(index()) << text;
    try {
      return source.data.skip_bad({.at_most = 2, .index = index()}).description() == description;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("bad.json"));
      return error.code() == ErrorCode::invalid_file || error.code() == ErrorCode::incompatible;
    }
  };

  for (std::size_t at = 0; at < whole.size(); ++at) {
    EXPECT_TRUE(outcome_of(whole.substr(0, at))) << "cut at " << at;
    for (const char other : {static_cast<char>(whole[at] ^ 1), '{', '"', '9', '\xff'}) {
      std::string changed = whole;
      changed[at] = other;
      EXPECT_TRUE(outcome_of(changed)) << "byte " << at;
    }
  }
  EXPECT_TRUE(outcome_of(std::string(200000, '[')));
}

// The JSON library made sample 1 of -4294967295, of 1.5 and of true.
TEST_F(SkipBad, RefusesAnIndexWhosePositionsAreOtherNumbers) {
  const PartlyBad source(9, {1});
  source.data.skip_bad({.at_most = 1, .index = index()});
  nlohmann::json whole = nlohmann::json::parse(text_of_index());
  const nlohmann::json content = nlohmann::json::parse(whole.at("content").get<std::string>());
  const auto write_with = [&](const nlohmann::json& position) {
    nlohmann::json changed = content;
    changed["bad"] = nlohmann::json::array({position});
    const std::string text = changed.dump();
    whole["content"] = text;
    whole["digest"] = digest(std::as_bytes(std::span(text))).hex();
    std::ofstream(index()) << whole;
  };

  write_with(1);
  EXPECT_EQ(source.data.skip_bad({.at_most = 1, .index = index()}).size(), 8);
  for (const nlohmann::json& position : {nlohmann::json(-4294967295), nlohmann::json(4294967297), nlohmann::json(1.5),
                                         nlohmann::json(1.0), nlohmann::json(true), nlohmann::json("1")}) {
    write_with(position);
    EXPECT_EQ(code_thrown_by([&] { source.data.skip_bad({.at_most = 1, .index = index()}); }), ErrorCode::invalid_file)
        << position;
  }
}

}  // namespace holdfast
