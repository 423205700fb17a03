#include "nn/plan/sample_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "nn/model/description.h"
#include "nn/plan/fusion.h"
#include "nn/plan/memory_plan.h"
#include "unit/nn/support/random_model.h"

namespace holdfast {
namespace {

using namespace random_models;

TEST(SampleTiles, HaveTheBitsOfAllSamplesAtOnce) {
  std::size_t groups = 0;
  for (std::uint64_t number = 0; number < 200; ++number) {
    const Model model = random_model(number, number % 2 == 0 ? Segments::kept : Segments::recomputed);
    const auto samples = static_cast<std::int64_t>(2 + number % 8);
    const Result at_once = train(model, samples, {.tile_bytes = 0});

    // Tiles of one sample, and larger ones that do not divide the samples.
    for (const std::size_t bytes : {1, 200, 500}) {
      EXPECT_EQ(train(model, samples, {.tile_bytes = bytes}), at_once) << "model " << number << ", " << bytes;
      EXPECT_EQ(train(model, samples, {.fuses_elements = false, .tile_bytes = bytes}), at_once) << "model " << number;
      groups += find_sample_tiles(fuse_elements(model.description()->training), samples, bytes).groups.size();
    }
  }
  EXPECT_GT(groups, 500U);  // or this test would compare plans without groups
}

const Graph& training_of(const Model& model) {
  return model.description()->training;
}

Model normalized() {
  const Value x = input({1000});
  return Model(x, Dense{2}(LayerNormalization{}(Dense{1000}(x))));
}

TEST(SampleTiles, TakeANormalizationAndItsGradient) {
  const Model model = normalized();
  const Graph graph = fuse_elements(training_of(model));
  const SampleTiles tiles = find_sample_tiles(graph, 1000, 100'000);

  ASSERT_GE(tiles.groups.size(), 2U);
  EXPECT_LE(tiles.groups.front().end, graph.first_backward);
  EXPECT_GE(tiles.groups.back().first, graph.first_backward);
  for (const SampleGroup& group : tiles.groups) {
    EXPECT_GT(group.tile, 1);
    EXPECT_LT(group.tile, 100);
    for (std::size_t index = group.first; index < group.end; ++index) {
      EXPECT_NE(graph.operations[index].operation->name(), "dense");
    }
  }
}

TEST(SampleTiles, LeaveSmallArraysAndSingleOperationsAlone) {
  const Model model = normalized();
  const Graph graph = fuse_elements(training_of(model));
  const Value x = input({1000});
  const Model single(x, Dense{2}(relu(Dense{1000}(x)) * 2.0F));

  EXPECT_TRUE(find_sample_tiles(graph, 1000, 0).groups.empty());
  EXPECT_TRUE(find_sample_tiles(graph, 1, 100'000).groups.empty());
  EXPECT_TRUE(find_sample_tiles(graph, 1000, 1'000'000'000).groups.empty());
  EXPECT_TRUE(find_sample_tiles(fuse_elements(single.description()->inference), 1000, 1000).groups.empty());
}

TEST(SampleTiles, KeepWhatTheBackwardPassNeeds) {
  const Model model = normalized();
  const Graph graph = fuse_elements(training_of(model));
  const SampleTiles tiles = find_sample_tiles(graph, 1000, 100'000);

  std::size_t local = 0;
  for (std::size_t index = 0; index < graph.operations.size(); ++index) {
    for (const ArrayId input : graph.operations[index].inputs) {
      if (input == kNoArray || !tiles.is_local[input]) continue;
      const std::size_t maker = graph.arrays[graph.memory_of(input)].index;
      EXPECT_EQ(tiles.group_of[maker], tiles.group_of[index]);
      EXPECT_NE(tiles.group_of[index], kNoGroup);
      ++local;
    }
  }
  EXPECT_GT(local, 0U);
  for (const ArrayId output : graph.outputs) EXPECT_FALSE(tiles.is_local[output]);
}

TEST(SampleTiles, NeedNoMoreMemory) {
  const Model model = normalized();
  const ModelDescription& description = *model.description();
  const Graph graph = fuse_elements(description.inference);
  const MemoryOptions options = description.memory_options(1000);

  const std::size_t at_once = plan_memory(graph, options).arena_bytes;
  const std::size_t in_tiles = plan_memory(graph, options, find_sample_tiles(graph, 1000, 100'000)).arena_bytes;

  // Arrays that live through a group cannot take the place of one another.
  EXPECT_LE(static_cast<double>(in_tiles), 1.1 * static_cast<double>(at_once));
}

}  // namespace
}  // namespace holdfast
