// Recording and repeating steps on a pretended runtime, with recordings that fail and generations that end in between.

#include "compute/cuda/runtime/graph_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "compute/cuda/runtime/cuda_memory_space.h"
#include "unit/compute/cuda/memory/support/pretended_cuda.h"

namespace holdfast::compute {
namespace {

using Floats = std::vector<float>;
using Key = std::array<std::uint64_t, 1>;

// Each step adds one array to another.
class GraphCacheTest : public testing::Test {
 protected:
  GraphCacheTest() { space_->copy_from_host(Floats{1, 2, 3}, summand()); }

  std::span<float> summand() { return {memory_.get(), 3}; }
  std::span<float> sum() { return {memory_.get() + 3, 3}; }
  using Parts = std::vector<std::function<void()>>;
  static void run(
      GraphCache& graphs, std::uint64_t key, const Parts& parts,
      const std::function<void(std::size_t)>& after_part = [](std::size_t) {}) {
    graphs.run(Key{key}, parts, after_part);
  }
  void step(GraphCache& graphs, std::uint64_t key = 1) {
    run(graphs, key, {[this] {
          ++calls_;
          space_->add(summand(), sum());
        }});
  }
  Floats content_of(std::span<const float> array) {
    Floats content(array.size());
    space_->copy_to_host(array, content);
    return content;
  }

  const pretended_cuda::FreshDevice fresh_;
  const std::shared_ptr<CudaMemorySpace> space_ = std::make_shared<CudaMemorySpace>(0);
  const std::shared_ptr<float[]> memory_ = space_->allocate(6);
  GraphCache graphs_{space_->context(), true};
  int calls_ = 0;
};

TEST_F(GraphCacheTest, RecordsTheSecondTimeAndThenRepeats) {
  for (int i = 0; i < 5; ++i) step(graphs_);

  EXPECT_EQ(content_of(sum()), (Floats{5, 10, 15}));
  EXPECT_EQ(calls_, 2);
  EXPECT_EQ(pretended_cuda::device().launched_graphs, 4);
}

TEST_F(GraphCacheTest, ReadsWhatTheArraysHoldByThen) {
  for (int i = 0; i < 3; ++i) step(graphs_);
  space_->copy_from_host(Floats{100, 200, 300}, summand());

  step(graphs_);

  EXPECT_EQ(content_of(sum()), (Floats{103, 206, 309}));
}

TEST_F(GraphCacheTest, TellsKeysApart) {
  for (int i = 0; i < 3; ++i) step(graphs_, 1);
  calls_ = 0;

  step(graphs_, 2);

  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(content_of(sum()), (Floats{4, 8, 12}));
}

TEST_F(GraphCacheTest, ForgetsWhatWasNotUsedForLongest) {
  for (int i = 0; i < 2; ++i) step(graphs_, 0);
  for (std::uint64_t key = 1; key <= GraphCache::kGraphsKept; ++key) step(graphs_, key);
  calls_ = 0;

  step(graphs_, GraphCache::kGraphsKept);
  step(graphs_, GraphCache::kGraphsKept);
  EXPECT_EQ(calls_, 1) << "was recorded";
  step(graphs_, 0);

  EXPECT_EQ(calls_, 2) << "was forgotten";
  EXPECT_FALSE(pretended_cuda::device().freed_too_early);
}

// CUDA allows destroying an executable graph while it runs.
TEST_F(GraphCacheTest, ForgetsWithoutWaitingForTheDevice) {
  space_->set_time_limit(std::chrono::milliseconds(20));
  for (int i = 0; i < 2; ++i) step(graphs_, 0);
  pretended_cuda::device().hangs = true;

  for (std::uint64_t key = 1; key <= 2 * GraphCache::kGraphsKept; ++key) step(graphs_, key);

  pretended_cuda::device().hangs = false;
  const auto steps = static_cast<float>(2 + 2 * GraphCache::kGraphsKept);
  EXPECT_EQ(content_of(sum()), (Floats{steps, 2 * steps, 3 * steps}));
  EXPECT_FALSE(space_->context().lost_device().is_set());
}

// A device may have many shards, each with its own slots, or batches of many sizes.
TEST_F(GraphCacheTest, KeepsAsManyGraphsAsACycleNeeds) {
  constexpr std::uint64_t kKeys = 5 * GraphCache::kGraphsKept;
  const auto go_round = [&](int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (std::uint64_t key = 0; key < kKeys; ++key) step(graphs_, key);
    }
  };
  go_round(5);
  calls_ = 0;

  go_round(1);

  EXPECT_EQ(calls_, 0);
}

TEST_F(GraphCacheTest, KeepsNoMoreGraphsForKeysThatAreNotUsedAgain) {
  for (std::uint64_t key = 0; key < 100 * GraphCache::kGraphsKept; ++key) step(graphs_, key);
  calls_ = 0;

  step(graphs_, 99 * GraphCache::kGraphsKept - 1);

  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(pretended_cuda::device().launched_graphs, 0) << "was forgotten";
}

TEST_F(GraphCacheTest, QueuesWhatCannotBeRecordedAndSaysWhy) {
  pretended_cuda::device().refuses_to_capture = true;

  for (int i = 0; i < 4; ++i) step(graphs_);

  EXPECT_EQ(content_of(sum()), (Floats{4, 8, 12}));
  EXPECT_EQ(pretended_cuda::device().launched_graphs, 0);
  EXPECT_THAT(graphs_.obstacle(), testing::StartsWith("cudaStreamEndCapture of a step failed: cudaError"));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "a later check would take the refusal for its own";
}

TEST_F(GraphCacheTest, QueuesWorkThatAGraphMustNotContain) {
  for (int i = 0; i < 3; ++i) {
    run(graphs_, 1, {[this] {
          space_->add(summand(), sum());
          space_->allocate(1);
        }});
  }

  EXPECT_EQ(content_of(sum()), (Floats{3, 6, 9}));
  EXPECT_THAT(graphs_.obstacle(), testing::HasSubstr("cudaMalloc"));
}

TEST_F(GraphCacheTest, LeavesAWorkingStreamAfterACancelledRecording) {
  step(graphs_);

  EXPECT_THROW(run(graphs_, 1, {[] { throw Error(ErrorCode::cancelled, "a generation ended"); }}), Error);

  EXPECT_EQ(graphs_.obstacle(), "");
  step(graphs_);
  EXPECT_EQ(content_of(sum()), (Floats{2, 4, 6}));
}

TEST_F(GraphCacheTest, CallsBackAfterEachPartHoweverItIsQueued) {
  std::vector<Floats> seen;
  const Parts parts = {[this] { space_->add(summand(), sum()); }, [this] { space_->add(sum(), sum()); }};

  for (int i = 0; i < 4; ++i) run(graphs_, 1, parts, [&](std::size_t) { seen.push_back(content_of(sum())); });

  EXPECT_THAT(seen,
              testing::ElementsAre(Floats{1, 2, 3}, Floats{2, 4, 6}, Floats{3, 6, 9}, Floats{6, 12, 18},
                                   Floats{7, 14, 21}, Floats{14, 28, 42}, Floats{15, 30, 45}, Floats{30, 60, 90}));
  EXPECT_EQ(pretended_cuda::device().launched_graphs, 3 * 2);
}

TEST_F(GraphCacheTest, KeepsWhatItRecordedWhereAGenerationEndsBetweenTwoParts) {
  int first_calls = 0;
  const Parts parts = {[&] {
                         ++first_calls;
                         space_->add(summand(), sum());
                       },
                       [this] { space_->add(sum(), sum()); }};
  run(graphs_, 1, parts);
  const auto end_generation = [](std::size_t) { throw Error(ErrorCode::cancelled, "a generation ended"); };
  EXPECT_THROW(run(graphs_, 1, parts, end_generation), Error);
  EXPECT_EQ(first_calls, 2);

  run(graphs_, 1, parts);

  EXPECT_EQ(first_calls, 2);
  EXPECT_EQ(content_of(sum()), (Floats{8, 16, 24}));
  EXPECT_FALSE(pretended_cuda::device().freed_too_early);
}

// Products at bf16 do this: they keep what they rounded for a later pass.
TEST_F(GraphCacheTest, RecordsNoPartWhereOneCannotBeSinceOperationsKeepSomethingBetweenThem) {
  bool is_copied = false;
  const std::shared_ptr<float[]> kept = space_->allocate(3);
  const Parts parts = {[&] {
                         is_copied = false;
                         space_->add(summand(), summand());
                       },
                       [&] {
                         const std::span<float> copy(kept.get(), 3);
                         if (!std::exchange(is_copied, true)) space_->copy(summand(), copy);
                         space_->add(copy, sum());
                         space_->allocate(1);
                       }};

  for (int i = 0; i < 3; ++i) run(graphs_, 1, parts);

  EXPECT_EQ(content_of(sum()), (Floats{2 + 4 + 8, 4 + 8 + 16, 6 + 12 + 24}));
  EXPECT_THAT(graphs_.obstacle(), testing::HasSubstr("cudaMalloc"));
  EXPECT_EQ(pretended_cuda::device().launched_graphs, 0);
}

TEST_F(GraphCacheTest, QueuesAllPartsWhereOneCannotBeRecorded) {
  const Parts parts = {[this] { space_->add(summand(), sum()); },
                       [this] {
                         space_->add(sum(), sum());
                         space_->allocate(1);
                       },
                       [this] { space_->add(summand(), sum()); }};

  for (int i = 0; i < 3; ++i) run(graphs_, 1, parts);

  EXPECT_EQ(content_of(sum()), (Floats{21, 42, 63}));
  EXPECT_THAT(graphs_.obstacle(), testing::HasSubstr("cudaMalloc"));
}

TEST_F(GraphCacheTest, RecordsNothingWhereThatIsNotWanted) {
  GraphCache graphs(space_->context(), false);

  for (int i = 0; i < 4; ++i) step(graphs);

  EXPECT_EQ(calls_, 4);
  EXPECT_EQ(content_of(sum()), (Floats{4, 8, 12}));
  EXPECT_EQ(graphs.obstacle(), "");
}

}  // namespace
}  // namespace holdfast::compute
