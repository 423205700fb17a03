#include "holdfast/data/cached_outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "holdfast/base/error.h"
#include "holdfast/data/picture_changes.h"
#include "holdfast/data/source.h"
#include "holdfast/nn/conv2d.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/dropout.h"
#include "holdfast/nn/embedding.h"
#include "holdfast/nn/flatten.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/input.h"
#include "holdfast/nn/sequential.h"
#include "support/temporary_folder.h"
#include "unit/data/support/loaded.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

Model with_drawn_weights(Model model, std::uint64_t seed) {
  std::vector<float> parameters(model.parameters().float_count());
  std::vector<float> buffers(model.buffers().float_count());
  model.initialize(seed, parameters, buffers);
  model.set_weights(std::move(parameters), std::move(buffers));
  return model;
}

Model picture_part(std::uint64_t seed = 1) {
  return with_drawn_weights(
      Sequential{Input{6, 5, 2}, Conv2D{4, 3, {.activation = Activation::relu}}, Flatten{}, Dropout{0.5F}, Dense{7}},
      seed);
}

// Pictures of 6 x 5 with two channels, whose loads are counted.
struct CountedPictures {
  std::shared_ptr<std::atomic<int>> loads = std::make_shared<std::atomic<int>>(0);
  Dataset data;

  explicit CountedPictures(std::int64_t size = 10)
      : data(from_source(
            {.size = size, .inputs = {{"picture", {6, 5, 2}}}, .targets = {{"label", {}}}, .content = "pictures"},
            [loads = loads](std::int64_t sample, const SampleArrays& into) {
              ++*loads;
              float value = static_cast<float>(sample);
              for (float& pixel : into.inputs.elements<float>(0)) pixel = std::sin(value += 0.7F);
              into.targets.elements<float>(0)[0] = static_cast<float>(sample);
            })) {}
};

using Rows = std::vector<std::vector<float>>;

Rows rows_in_epoch(const Dataset& data, std::int64_t epoch = 0) {
  Rows rows;
  for (std::int64_t i = 0; i < data.size(); ++i) rows.push_back(loaded(data, 4, epoch, i));
  return rows;
}

// Sample `position` of the data into the arrays of another source.
void loaded_into(const Dataset& data, std::int64_t position, const SampleArrays& into) {
  data.load(0, 0, position, {.features = into.inputs.elements<float>(0), .targets = into.targets.elements<float>(0)});
}

class CachedOutputs : public testing::Test {
 protected:
  std::string path() const { return folder_ / "outputs"; }

  static void expect_error(ErrorCode code, const std::string& reason, const std::function<void()>& run) {
    try {
      run();
      ADD_FAILURE() << "nothing was wrong; expected: " << reason;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(reason));
    }
  }

  TemporaryFolder folder_;
};

}  // namespace

TEST_F(CachedOutputs, AreThoseOfTheModelWithTheTargetsOfTheData) {
  const CountedPictures pictures;
  const Model part = picture_part();
  Tensor all(Shape{10, 6, 5, 2});
  for (std::int64_t i = 0; i < 10; ++i) {
    float label = 0;
    pictures.data.load(0, 0, i, {.features = all.sample(i), .targets = std::span(&label, 1)});
  }
  const Tensor expected = part.predict(all);

  const Dataset outputs = cached_outputs(part, pictures.data, {.block = 4});

  EXPECT_EQ(outputs.feature_shape(), (Shape{7}));
  const Rows rows = rows_in_epoch(outputs, 3);
  for (std::int64_t i = 0; i < 10; ++i) {
    const std::vector<float>& row = rows[static_cast<std::size_t>(i)];
    for (std::size_t j = 0; j < 7; ++j) EXPECT_NEAR(row[j], expected.sample(i)[j], 1e-5F);
    EXPECT_EQ(row[7], static_cast<float>(i));
  }
}

TEST_F(CachedOutputs, HaveTheSameBitsInMemoryAndFilesOnAnyNumberOfThreads) {
  const CountedPictures pictures;
  const Rows expected = rows_in_epoch(cached_outputs(picture_part(), pictures.data, {.block = 3, .threads = 1}));

  EXPECT_EQ(rows_in_epoch(cached_outputs(picture_part(), pictures.data, {.block = 3, .threads = 3})), expected);
  EXPECT_EQ(rows_in_epoch(cached_outputs(picture_part(), pictures.data, {.block = 3, .threads = 32})), expected);
  EXPECT_EQ(rows_in_epoch(cached_outputs(picture_part(), pictures.data, {.file = path(), .block = 3, .threads = 2})),
            expected);
}

TEST_F(CachedOutputs, ComputeALastBlockThatIsShortAsAFullOne) {
  const Rows full = rows_in_epoch(cached_outputs(picture_part(), CountedPictures(12).data, {.block = 4}));

  const Rows cut = rows_in_epoch(cached_outputs(picture_part(), CountedPictures(9).data, {.block = 4}));

  EXPECT_EQ(cut, Rows(full.begin(), full.begin() + 9));
}

TEST_F(CachedOutputs, LoadEachSampleOnceAndNoneFromAFileThatExists) {
  const CountedPictures first;
  const Dataset in_memory = cached_outputs(picture_part(), first.data, {.block = 4});
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) rows_in_epoch(in_memory.shuffle(), epoch);
  EXPECT_EQ(*first.loads, 10);

  const Rows rows = rows_in_epoch(cached_outputs(picture_part(), first.data, {.file = path(), .block = 4}));
  const CountedPictures second;
  EXPECT_EQ(rows_in_epoch(cached_outputs(picture_part(), second.data, {.file = path(), .block = 4})), rows);
  EXPECT_EQ(*second.loads, 0);
}

TEST_F(CachedOutputs, KeepWhatTheModelWasAtThatTime) {
  const CountedPictures pictures;
  Model part = picture_part();
  const Dataset outputs = cached_outputs(part, pictures.data);
  const Rows before = rows_in_epoch(outputs);

  part.set_weights(std::vector<float>(part.parameters().float_count()),
                   std::vector<float>(part.buffers().float_count()));

  EXPECT_EQ(rows_in_epoch(outputs), before);
}

TEST_F(CachedOutputs, DescribeModelWeightsAndBlock) {
  const CountedPictures pictures;
  const std::string described = cached_outputs(picture_part(), pictures.data).description();

  EXPECT_EQ(cached_outputs(picture_part(), pictures.data, {.file = path(), .threads = 1}).description(), described);
  EXPECT_NE(cached_outputs(picture_part(), pictures.data, {.block = 5}).description(), described);
  EXPECT_NE(cached_outputs(picture_part(2), pictures.data).description(), described);
  EXPECT_NE(cached_outputs(picture_part().output_of("flatten"), pictures.data).description(), described);
}

TEST_F(CachedOutputs, RefuseAFileOfOtherWeightsOrADamagedOne) {
  const CountedPictures pictures;
  rows_in_epoch(cached_outputs(picture_part(), pictures.data, {.file = path()}));

  expect_error(ErrorCode::incompatible, "was made of other data",
               [&] { static_cast<void>(cached_outputs(picture_part(2), pictures.data, {.file = path()})); });
  {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-3, std::ios::end);
    file.put('x');
  }
  expect_error(ErrorCode::invalid_file, "digest of sample 9",
               [&] { rows_in_epoch(cached_outputs(picture_part(), pictures.data, {.file = path()})); });
}

TEST_F(CachedOutputs, AreComputedByOneOfSeveralThatNeedThemAtOnce) {
  const CountedPictures pictures;
  std::vector<Rows> rows(4);
  {
    std::vector<std::jthread> threads;
    for (Rows& mine : rows) {
      threads.emplace_back(
          [&] { mine = rows_in_epoch(cached_outputs(picture_part(), pictures.data, {.file = path(), .block = 4})); });
    }
  }

  EXPECT_EQ(*pictures.loads, 10);
  for (const Rows& mine : rows) EXPECT_EQ(mine, rows[0]);
}

TEST_F(CachedOutputs, DoNotWaitLongerThanTheyWereTold) {
  const CountedPictures pictures;
  std::atomic<int> right = 0;
  const Rows expected = rows_in_epoch(cached_outputs(picture_part(), pictures.data));
  const CachedOutputsOptions at_once = {.file = path(), .wait = std::chrono::milliseconds(0)};
  // The source asks for the same file again while the first caller has the lock.
  std::atomic<bool> is_nested = false;
  const Dataset nested = from_source(
      {.size = 10, .inputs = {{"picture", {6, 5, 2}}}, .targets = {{"label", {}}}, .content = "pictures"},
      [&](std::int64_t sample, const SampleArrays& into) {
        if (!is_nested.exchange(true)) {
          right += rows_in_epoch(cached_outputs(picture_part(), pictures.data, at_once)) == expected ? 1 : 0;
        }
        pictures.data.load(0, 0, sample, {.features = into.inputs.words(), .targets = into.targets.words()});
      });

  right += rows_in_epoch(cached_outputs(picture_part(), nested, at_once)) == expected ? 1 : 0;

  EXPECT_EQ(right, 2);
}

TEST_F(CachedOutputs, LeaveNoFileWhenASampleCannotBeLoaded) {
  const Dataset failing =
      from_source({.size = 9, .inputs = {{"picture", {6, 5, 2}}}, .targets = {}, .content = "fails"},
                  [](std::int64_t sample, const SampleArrays&) {
                    if (sample == 7) throw Error(ErrorCode::invalid_file, "sample 7 is broken");
                  });

  expect_error(ErrorCode::invalid_file, "sample 7 is broken",
               [&] { static_cast<void>(cached_outputs(picture_part(), failing, {.file = path(), .block = 2})); });
  EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::path(path()).parent_path()));
}

// A process dies while it writes the file, at each sample in turn; the next one finds no file, and makes it.
TEST_F(CachedOutputs, AreMadeAnewAfterTheProcessThatWroteThemWasKilled) {
  const CountedPictures pictures;
  const Rows expected = rows_in_epoch(cached_outputs(picture_part(), pictures.data, {.block = 3, .threads = 1}));
  const CachedOutputsOptions to_file{.file = path(), .block = 3, .threads = 1};
  for (std::int64_t last = 0; last < 10; ++last) {
    const Dataset deadly =
        from_source({.size = 10, .inputs = {{"picture", {6, 5, 2}}}, .targets = {{"label", {}}}, .content = "pictures"},
                    [&](std::int64_t sample, const SampleArrays& into) {
                      if (sample == last) ::raise(SIGKILL);
                      loaded_into(pictures.data, sample, into);
                    });

    const pid_t writer = ::fork();
    if (writer == 0) {
      cached_outputs(picture_part(), deadly, to_file);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(writer, &status, 0), writer);

    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_FALSE(std::filesystem::exists(path())) << "killed at sample " << last;
    EXPECT_EQ(rows_in_epoch(cached_outputs(picture_part(), pictures.data, to_file)), expected);
    std::filesystem::remove(path());
  }
}

TEST_F(CachedOutputs, TakeSeveralArraysOfAnyTypesAndGiveSeveral) {
  const Value user = input({1}, {.dtype = DType::u16, .name = "user"});
  const Value traits = input({3}, {.name = "traits"});
  const Value of_user = Flatten{}(Embedding{20, 3}(user));
  const Model part = with_drawn_weights(Model({user, traits}, {Dense{4, {.name = "sums"}}(of_user + traits),
                                                               Dense{2, {.name = "products"}}(of_user * traits)}),
                                        3);
  const auto data_of = [](std::uint16_t last) {
    return from_source({.size = 5,
                        .inputs = {{"user", {1}, DType::u16}, {"traits", {3}}},
                        .targets = {{"liked", {1}}, {"stars", {2}}},
                        .content = "users"},
                       [last](std::int64_t sample, const SampleArrays& into) {
                         into.inputs.elements<std::uint16_t>("user")[0] =
                             sample == 4 ? last : static_cast<std::uint16_t>(3 * sample);
                         for (float& trait : into.inputs.elements<float>("traits"))
                           trait = 0.1F * static_cast<float>(sample);
                         into.targets.elements<float>("stars")[1] = 7;
                       });
  };

  const Dataset outputs = cached_outputs(part, data_of(19), {.block = 2});

  ASSERT_EQ(outputs.inputs().size(), 2U);
  EXPECT_EQ(outputs.inputs()[1], (ArraySpec{.name = "products", .shape = {2}}));
  const std::vector<Tensor> expected =
      part.predict({Tensor({1, 1}, std::vector<std::uint16_t>{6}), Tensor({1, 3}, {0.2F, 0.2F, 0.2F})});
  const std::vector<float> row = loaded(outputs, 0, 0, 2);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(row[i], expected[0].values()[i], 1e-6F);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(row[4 + i], expected[1].values()[i], 1e-6F);
  EXPECT_EQ(row[8], 7);
  expect_error(ErrorCode::invalid_argument, "sample 4 of the data set given to cached_outputs()",
               [&] { static_cast<void>(cached_outputs(part, data_of(20), {.block = 3})); });
}

TEST_F(CachedOutputs, RefuseWhatTheyCannotKeep) {
  const CountedPictures pictures;
  const auto expect_refused = [&](const Model& part, const Dataset& data, const CachedOutputsOptions& options,
                                  const std::string& reason) {
    expect_error(ErrorCode::invalid_argument, reason, [&] { static_cast<void>(cached_outputs(part, data, options)); });
  };

  expect_refused(picture_part(), pictures.data.shuffle(), {}, "may differ from epoch to epoch");
  expect_refused(picture_part(), pictures.data.map(augment({})), {}, "may differ from epoch to epoch");
  expect_refused(picture_part(), pictures.data.batch(2), {}, "in batches");
  expect_refused(picture_part(), pictures.data.map(center_crop(4, 4)), {}, "the model takes");
  expect_refused(Sequential{Input{6, 5, 2}, Flatten{}, Dense{2}}, pictures.data, {}, "without weights");
  expect_refused(picture_part(), pictures.data, {.block = 0}, "blocks of 0 samples");
  expect_refused(picture_part(), pictures.data, {.threads = -1}, "-1 threads");
}

}  // namespace holdfast
