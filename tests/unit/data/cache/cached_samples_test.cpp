#include "data/cache/cached_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "data/batches/batch_loader.h"
#include "holdfast/base/error.h"
#include "holdfast/data/picture_changes.h"
#include "holdfast/data/source.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "unit/data/support/loaded.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

// Pictures of 2 x 3 whose loads are counted.
struct CountedSource {
  std::shared_ptr<std::atomic<int>> loads = std::make_shared<std::atomic<int>>(0);
  Dataset data;

  explicit CountedSource(const std::string& content = "one", std::int64_t size = 10)
      : data(from_source(
            {.size = size, .inputs = {{"picture", {2, 3, 1}}}, .targets = {{"label", {}}}, .content = content},
            [loads = loads](std::int64_t sample, const SampleArrays& into) {
              ++*loads;
              float value = static_cast<float>(sample);
              for (float& pixel : into.inputs.elements<float>(0)) pixel = value += 0.25F;
              into.targets.elements<float>(0)[0] = static_cast<float>(sample);
            })) {}
};

std::vector<std::vector<float>> cached_rows(const Dataset& data, std::int64_t epoch) {
  std::vector<std::vector<float>> rows;
  for (std::int64_t i = 0; i < data.size(); ++i) rows.push_back(loaded(data, 4, epoch, i));
  return rows;
}

// The stages of training, with a draw after the cache.
Dataset trained_on(const Dataset& data) {
  return data.shuffle().map(augment({.flip = Flip::both}));
}

class Cache : public testing::Test {
 protected:
  std::string path() const { return folder_ / "cache"; }

  // Loads everything from the file, and expects an error.
  void expect_refused(const CountedSource& source, ErrorCode code, const std::string& reason) const {
    try {
      cached_rows(source.data.cache(path()), 0);
      ADD_FAILURE() << "nothing was wrong; expected: " << reason;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(reason));
      EXPECT_THAT(error.what(), HasSubstr(path()));
    }
  }

  void change_byte(std::int64_t at) const {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 1));
  }

  TemporaryFolder folder_;
};

}  // namespace

TEST_F(Cache, ChangesNoBitAndNoDescription) {
  const CountedSource source;
  const Dataset plain = trained_on(source.data);
  for (const Dataset& cached : {trained_on(source.data.cache()), trained_on(source.data.cache(path()))}) {
    EXPECT_EQ(cached.description(), plain.description());
    for (const std::int64_t epoch : {0, 1, 5}) EXPECT_EQ(cached_rows(cached, epoch), cached_rows(plain, epoch));
  }
}

TEST_F(Cache, LoadsEachSampleOnce) {
  const CountedSource source;
  const Dataset cached = trained_on(source.data.cache());
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) cached_rows(cached, epoch);

  EXPECT_EQ(*source.loads, 10);
}

TEST_F(Cache, ReadsAFileThatExistsWithoutLoadingAnything) {
  const CountedSource first;
  const std::vector<std::vector<float>> rows = cached_rows(first.data.cache(path()), 0);
  EXPECT_EQ(*first.loads, 10);

  const CountedSource second;
  EXPECT_EQ(cached_rows(second.data.cache(path()), 3), rows);
  EXPECT_EQ(*second.loads, 0);
}

TEST_F(Cache, IsFilledByOneOfSeveralThatNeedItAtOnce) {
  const CountedSource source;
  std::vector<std::vector<std::vector<float>>> rows(4);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : rows) threads.emplace_back([&] { mine = cached_rows(source.data.cache(path()), 0); });
  }

  EXPECT_EQ(*source.loads, 10);
  for (const auto& mine : rows) EXPECT_EQ(mine, rows[0]);
}

TEST_F(Cache, RefusesAFileThatWasMadeOfOtherData) {
  static_cast<void>(CountedSource().data.cache(path()));

  expect_refused(CountedSource("two"), ErrorCode::incompatible, "was made of other data");
  expect_refused(CountedSource("one", 11), ErrorCode::incompatible, "was made of other data");
}

TEST_F(Cache, RefusesAFileOfWhichAnyByteIsWrong) {
  const CountedSource source;
  static_cast<void>(source.data.cache(path()));
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path()));

  for (std::int64_t at = 0; at < size; ++at) {
    change_byte(at);
    EXPECT_THROW(cached_rows(source.data.cache(path()), 0), Error) << "byte " << at;
    change_byte(at);
  }
  EXPECT_NO_THROW(cached_rows(source.data.cache(path()), 0));
}

TEST_F(Cache, RefusesAFileThatIsCutOffOrNoCacheAndLeavesItAlone) {
  const CountedSource source;
  static_cast<void>(source.data.cache(path()));
  const auto size = std::filesystem::file_size(path());
  for (const std::uintmax_t cut : {size - 1, size / 2, std::uintmax_t{40}}) {
    std::filesystem::resize_file(path(), cut);
    expect_refused(source, ErrorCode::invalid_file, "cannot read the cache");
    EXPECT_EQ(std::filesystem::file_size(path()), cut);
  }
  std::ofstream(path()) << "a text of mine";

  expect_refused(source, ErrorCode::invalid_file, "it is not a cache of samples");
}

TEST_F(Cache, KeepsWhatMapsMadeThatDrawNothing) {
  const CountedSource source;
  const auto calls = std::make_shared<std::atomic<int>>(0);
  const Dataset doubled = source.data.map(
      [calls](const SampleArrays& sample, Random&) {
        ++*calls;
        for (float& pixel : sample.inputs.elements<float>(0)) pixel *= 2;
      },
      "doubled", {.draws = false});
  const std::vector<std::vector<float>> rows = cached_rows(doubled, 0);
  *calls = 0;

  const Dataset cached = doubled.cache();

  for (const std::int64_t epoch : {0, 1, 5}) EXPECT_EQ(cached_rows(cached, epoch), rows);
  EXPECT_EQ(*calls, 10);
  EXPECT_EQ(cached.description(), doubled.description());
}

TEST_F(Cache, RefusesTheDrawsOfAMapThatPromisedNone) {
  const CountedSource source;
  const Dataset data = source.data.map(
      [](const SampleArrays& sample, Random& random) { sample.inputs.elements<float>(0)[0] = random.uniform(); },
      "noise", {.draws = false});

  EXPECT_THAT(sentence_thrown_by([&] { cached_rows(data.cache(), 0); }),
              HasSubstr("the function of map() \"noise\" drew a number for sample 0"));
}

TEST_F(Cache, LeavesNoFileWhenASampleCannotBeLoaded) {
  const Dataset failing = from_source({.size = 3, .inputs = {{"x", {1}}}, .targets = {}, .content = "fails"},
                                      [](std::int64_t sample, const SampleArrays&) {
                                        if (sample == 2) throw Error(ErrorCode::invalid_file, "sample 2 is broken");
                                      });

  EXPECT_THROW(static_cast<void>(failing.cache(path())), Error);
  EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::path(path()).parent_path()));
}

TEST_F(Cache, GivesOneSampleToSeveralThreadsAtOnce) {
  const CountedSource source;
  const Dataset cached = source.data.cache();
  const std::vector<std::vector<float>> expected = cached_rows(source.data, 0);
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] { right += cached_rows(cached, 0) == expected ? 1 : 0; });
    }
  }

  EXPECT_EQ(right, 4);
}

TEST_F(Cache, RefusesSamplesThatDifferFromEpochToEpoch) {
  const CountedSource source;
  const auto nothing = [](const SampleArrays&, Random&) {};
  for (const Dataset& data : {source.data.shuffle(), source.data.map(augment({})), source.data.map(nothing, "mine"),
                              source.data.shuffle().take(2), source.data.map(random_crop(1, 1)).repeat(2)}) {
    EXPECT_THROW(static_cast<void>(data.cache()), Error);
    EXPECT_THROW(static_cast<void>(data.cache(path())), Error);
  }
  EXPECT_NO_THROW(static_cast<void>(source.data.map(center_crop(1, 1)).take(3).repeat(2).cache()));
}

static std::string bytes_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(Cache, HasTheSameBytesFromAnyNumberOfThreads) {
  // More samples than are in memory at once.
  const CountedSource source("many", 5000);
  source.data.cache(path());
  const std::string by_one = bytes_of_file(path());
  std::filesystem::remove(path());

  source.data.cache(path(), {.threads = 3});

  EXPECT_EQ(*source.loads, 2 * 5000);
  EXPECT_TRUE(bytes_of_file(path()) == by_one);
}

// Several samples are read with one call of the system. A run of them is about 1 MiB, so 26 of these.
class CacheOfLargeSamples : public Cache {
 protected:
  static constexpr std::int64_t kFloats = 10'000;

  // The values of all samples, in order, and their labels.
  std::vector<float> loaded_by(int threads) const {
    const Dataset cached = source_.data.cache(path());
    std::vector<float> values;
    BatchLoader loader(cached.batch(50).prefetch(1, {.threads = threads}), 1, 1, 0, 1, 0, 0, 1);
    while (const std::optional<Batch> batch = loader.next()) {
      values.insert(values.end(), batch->shards[0].features.begin(), batch->shards[0].features.end());
      values.insert(values.end(), batch->shards[0].targets.begin(), batch->shards[0].targets.end());
    }
    return values;
  }

  struct Source {
    Dataset data =
        from_source({.size = 70, .inputs = {{"x", {kFloats}}}, .targets = {{"label", {}}}, .content = "large"},
                    [](std::int64_t sample, const SampleArrays& into) {
                      float value = static_cast<float>(sample);
                      for (float& element : into.inputs.elements<float>(0)) element = value += 0.5F;
                      into.targets.elements<float>(0)[0] = static_cast<float>(sample);
                    });
  } source_;
};

TEST_F(CacheOfLargeSamples, GivesTheSameRowsByAnyNumberOfThreads) {
  const std::vector<float> by_one = loaded_by(1);
  ASSERT_EQ(by_one.size(), 70U * (kFloats + 1));
  for (std::int64_t sample = 0; sample < 70; ++sample) {
    // Batches of 50 and of 20, each with its labels after its features.
    const std::int64_t first = sample < 50 ? 0 : 50 * (kFloats + 1);
    const auto at = static_cast<std::size_t>(first + sample % 50 * kFloats);
    EXPECT_EQ(by_one[at], static_cast<float>(sample) + 0.5F);
    EXPECT_EQ(by_one[static_cast<std::size_t>(first + (sample < 50 ? 50 : 20) * kFloats + sample % 50)],
              static_cast<float>(sample));
  }
  EXPECT_EQ(loaded_by(3), by_one);
}

TEST_F(CacheOfLargeSamples, NameTheSampleWhoseBytesAreWrong) {
  static_cast<void>(source_.data.cache(path()));
  const auto sample_bytes = static_cast<std::int64_t>((kFloats + 1) * sizeof(float));
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path()));
  for (const std::int64_t sample : {0, 25, 26, 33, 69}) {
    const std::int64_t end = size - (69 - sample) * sample_bytes;
    // A byte of its features, and one of its label, which is the last.
    for (const std::int64_t at : {end - sample_bytes + 100, end - 1}) {
      change_byte(at);
      for (const int threads : {1, 2}) {
        EXPECT_THAT(sentence_thrown_by([&] { loaded_by(threads); }),
                    HasSubstr("the digest of sample " + std::to_string(sample) + " is wrong"));
      }
      change_byte(at);
    }
  }
}

TEST_F(Cache, ReportsTheFirstSampleInOrderThatFails) {
  const Dataset failing = from_source({.size = 200, .inputs = {{"x", {1}}}, .targets = {}, .content = "fails"},
                                      [](std::int64_t sample, const SampleArrays&) {
                                        if (sample < 57) return;
                                        throw Error(ErrorCode::invalid_file, "sample " + std::to_string(sample));
                                      });

  EXPECT_EQ(sentence_thrown_by([&] { failing.cache(path(), {.threads = 4}); }),
            "sample 57 of the data set: the function of from_source() failed: sample 57");
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_EQ(code_thrown_by([&] { failing.cache(path(), {.threads = 0}); }), ErrorCode::invalid_argument);
}

}  // namespace holdfast
