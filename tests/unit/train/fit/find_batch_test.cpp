#include "holdfast/train/find_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <mutex>

#include "holdfast/train/training_memory.h"
#include "support/sanitizer.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kMegabyte = 1'000'000;

// 100 kB a sample between the layers.
Sequential wide_model() {
  return Sequential{Input{8}, Dense{12'500, {.activation = Activation::relu}}, Dense{1}};
}

Dataset wide_data(std::int64_t samples = 100'000) {
  return from_tensors(Tensor(Shape{samples, 8}), Tensor(Shape{samples, 1}));
}

FoundBatch find_wide(const Replica& replica, const FindBatchOptions& options, const Dataset& data = wide_data()) {
  return find_batch(replica, wide_model(), Adam{}, MeanSquaredError{}, data, options);
}

std::string sentence_of_search(const FindBatchOptions& options, const Dataset& data = wide_data(),
                               ErrorCode code = ErrorCode::invalid_argument) {
  try {
    find_wide(Replica::alone(), options, data);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST(FindBatch, FindsTheLargestWhosePlanStaysWithinTheLimit) {
  const FindBatchOptions options = {.memory_bytes = 300 * kMegabyte};
  const FoundBatch found = find_wide(Replica::alone(), options);

  EXPECT_GT(found.batch, 200);
  EXPECT_LE(found.planned_bytes, options.memory_bytes);
  EXPECT_FALSE(found.was_recorded);
  if (!runs_under_a_sanitizer()) {
    EXPECT_GT(found.tried_bytes, 0U);
    EXPECT_LE(found.tried_bytes, options.memory_bytes);
  }
  const TrainingMemory plan =
      training_memory(Replica::alone(), wide_model(), Adam{}, {MeanSquaredError{}}, wide_data().batch(found.batch));
  EXPECT_EQ(found.planned_bytes, plan.total() + (std::uint64_t{64} << 20));
}

TEST(FindBatch, FindsMoreWithMoreMemoryAndNeverMoreThanAsked) {
  const std::int64_t little = find_wide(Replica::alone(), {.memory_bytes = 200 * kMegabyte}).batch;
  const std::int64_t more = find_wide(Replica::alone(), {.memory_bytes = 400 * kMegabyte}).batch;

  EXPECT_GT(more, 2 * little);
  EXPECT_EQ(find_wide(Replica::alone(), {.memory_bytes = 400 * kMegabyte, .highest = 100}).batch, 100);
  EXPECT_EQ(find_wide(Replica::alone(), {.memory_bytes = 400 * kMegabyte}, wide_data(90)).batch, 90);
  EXPECT_EQ(find_wide(Replica::alone(), {.memory_bytes = 400 * kMegabyte, .highest = 100, .multiple_of = 32}).batch,
            96);
  EXPECT_EQ(find_wide(Replica::alone({.shards = 8}), {.memory_bytes = 400 * kMegabyte, .highest = 99}).batch, 96);
}

TEST(FindBatch, CountsAveragesKeptWeightsAndAccumulatedBatches) {
  // 1.5 MB of parameters, and rows of 8 KB.
  const Sequential model{Input{2000}, Dense{187}, Dense{1}};
  const Dataset data = from_tensors(Tensor(Shape{4000, 2000}), Tensor(Shape{4000, 1}));
  const auto planned = [&](const AdamOptions& adam, FindBatchOptions options) {
    options.memory_bytes = 500 * kMegabyte;
    options.highest = 50;
    return find_batch(Replica::alone(), model, Adam{adam}, MeanSquaredError{}, data, options).planned_bytes;
  };
  const std::uint64_t plain = planned({}, {});
  const std::uint64_t parameters = model.parameters().float_count() * sizeof(float);

  EXPECT_EQ(planned({.use_ema = true}, {}), plain + parameters);
  EXPECT_EQ(planned({}, {.keeps_weights = true}), plain + parameters);
  EXPECT_EQ(planned({.use_ema = true}, {.keeps_weights = true}), plain + 3 * parameters);
  // Three more batches of rows, and two sums that wait.
  EXPECT_GE(planned({}, {.accumulate = 4}), plain + 3 * 50 * 2001 * sizeof(float) + 2 * parameters);
}

TEST(FindBatch, IsMadeSmallerWhereATrialDoesNotFit) {
  if (runs_under_a_sanitizer()) GTEST_SKIP() << "without a limit for the address space there is no trial";
  // The plan knows nothing of what a map() takes.
  const Dataset greedy = wide_data().map(Shape{8}, [](std::span<const float> from, std::span<float> to, Random&) {
    static std::vector<std::vector<float>> kept;
    kept.emplace_back(30'000, 1.0F);
    std::ranges::copy(from, to.begin());
  });
  const FindBatchOptions options = {.memory_bytes = 300 * kMegabyte};

  const std::int64_t batch = find_wide(Replica::alone(), options, greedy).batch;

  EXPECT_LT(batch, find_wide(Replica::alone(), options).batch);
  EXPECT_GT(batch, 20);
}

TEST(FindBatch, IsRecordedForAllReplicasAndLaterStarts) {
  const TemporaryFolder folder;
  const FindBatchOptions options = {.memory_bytes = 250 * kMegabyte, .highest = 1000};
  std::mutex mutex;
  std::vector<FoundBatch> found;
  const auto find = [&](Replica& replica) {
    const FoundBatch mine = find_wide(replica, options);
    const std::lock_guard lock(mutex);
    found.push_back(mine);
  };
  train_on_threads({.replicas = 3, .run_directory = folder.path()}, find);
  train_on_threads({.replicas = 1, .run_directory = folder.path()}, find);

  ASSERT_EQ(found.size(), 4U);
  for (const FoundBatch& each : found) EXPECT_EQ(each.batch, found[0].batch);
  EXPECT_EQ(std::ranges::count(found, false, &FoundBatch::was_recorded), 1);
  EXPECT_TRUE(found.back().was_recorded);
}

TEST(FindBatch, RefusesTheRecordOfAnotherQuestionAndADamagedOne) {
  const TemporaryFolder folder;
  const ThreadRun run = {.run_directory = folder.path()};
  const auto sentence = [&](std::uint64_t bytes, std::int64_t accumulate = 1) -> std::string {
    try {
      train_on_threads(run, [&](Replica& replica) {
        find_wide(replica, {.memory_bytes = bytes, .highest = 50, .accumulate = accumulate});
      });
    } catch (const Error& error) {
      return std::string(to_string(error.code())) + ": " + error.what();
    }
    return "";
  };
  EXPECT_EQ(sentence(300 * kMegabyte), "");

  EXPECT_THAT(sentence(400 * kMegabyte), HasSubstr("incompatible: the batch of this run was found for memory_bytes"));
  EXPECT_THAT(sentence(300 * kMegabyte, 2), HasSubstr("incompatible: the batch of this run was found for accumulate"));
  std::ofstream(folder / "batch.json") << R"({"batch": 0})";
  EXPECT_THAT(sentence(300 * kMegabyte), HasSubstr("invalid_file"));
}

TEST(FindBatch, RefusesWhatCannotFitOrMakesNoSense) {
  EXPECT_THAT(sentence_of_search({}), HasSubstr("got no limit"));
  EXPECT_THAT(sentence_of_search({.memory_bytes = kMegabyte, .highest = 0}), HasSubstr("at most 0 samples"));
  EXPECT_THAT(sentence_of_search({.memory_bytes = kMegabyte, .multiple_of = 9}, wide_data(8)),
              HasSubstr("a multiple of 9"));
  EXPECT_THAT(sentence_of_search({.memory_bytes = kMegabyte, .accumulate = 0}), HasSubstr("accumulate 1 or more"));
  EXPECT_THAT(sentence_of_search({.memory_bytes = kMegabyte}, wide_data().batch(3)), HasSubstr("in batches"));
  EXPECT_THAT(sentence_of_search({.memory_bytes = 50 * kMegabyte}, wide_data(), ErrorCode::out_of_memory),
              HasSubstr("does not fit into the 50000000 bytes"));
}

}  // namespace holdfast
