#include "nn/plan/row_fusion.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "nn/model/description.h"
#include "nn/plan/memory_plan.h"
#include "unit/nn/support/random_model.h"

namespace holdfast {
namespace {

using namespace random_models;

constexpr std::int64_t kAnyRow = 2;

using Names = std::vector<std::string>;

Names operations_of(const Graph& graph, std::size_t first = 0) {
  Names names;
  for (std::size_t index = first; index < graph.operations.size(); ++index) {
    names.push_back(graph.operations[index].operation->name());
  }
  return names;
}

Names joined_by_rows(const Value& x, const Value& y) {
  return operations_of(fuse_rows(Model(x, y).description()->inference, kAnyRow));
}

TEST(RowFusion, HasTheBitsOfOperationsOneByOne) {
  std::size_t joined = 0;
  for (std::uint64_t number = 0; number < 200; ++number) {
    const Model model = random_model(number, number % 2 == 0 ? Segments::kept : Segments::recomputed);
    const auto samples = static_cast<std::int64_t>(1 + number % 5);
    const Graph& graph = model.description()->training;

    const Result apart = train(model, samples, {.fuses_elements = false});

    EXPECT_EQ(train(model, samples, {.least_row = kAnyRow}), apart) << "model " << number;
    EXPECT_EQ(train(model, samples, {.shares_memory = false, .least_row = kAnyRow}), apart) << "model " << number;
    EXPECT_EQ(train(model, samples, {.fuses_elements = false, .tile_bytes = 200, .least_row = kAnyRow}), apart)
        << "model " << number;
    joined += graph.operations.size() - fuse_rows(graph, kAnyRow).operations.size();
  }
  EXPECT_GT(joined, 1000U);  // or this test would compare graphs without groups
}

TEST(RowFusion, NeedsNoMoreMemory) {
  for (std::uint64_t number = 0; number < 100; ++number) {
    const Model described = random_model(number);
    const ModelDescription& model = *described.description();
    const MemoryOptions options = {
        .samples = 64, .inputs = model.inputs.size(), .parameters = model.parameters, .buffers = model.buffers};
    // The placement is a heuristic, so that fewer arrays may lie a little worse.
    constexpr double kPlacement = 1.1;
    for (const Graph* const graph : {&model.training, &model.inference}) {
      EXPECT_LE(static_cast<double>(plan_memory(fuse_rows(*graph, kAnyRow), options).arena_bytes),
                kPlacement * static_cast<double>(plan_memory(*graph, options).arena_bytes))
          << "model " << number;
    }
  }
}

TEST(RowFusion, MakesOneOperationOfANormalization) {
  const Value x = input({40});

  EXPECT_EQ(joined_by_rows(x, LayerNormalization{}(x)), Names{"rows"});
  EXPECT_EQ(joined_by_rows(x, exponential(RMSNormalization{}(x))), Names{"rows"});
}

TEST(RowFusion, MakesOneOperationOfTheGradientOfANormalization) {
  const Value x = input({40});
  const Model model(x, LayerNormalization{}(Dense{40}(x)));
  const Graph graph = fuse_rows(model.description()->training, kAnyRow);

  EXPECT_EQ(operations_of(graph), (Names{"dense", "rows", "rows", "gradients of dense"}));
}

TEST(RowFusion, JoinsPositionsOfASampleWithoutSumsOverSamples) {
  const Value x = input({3, 40});
  const Model model(x, LayerNormalization{}(Dense{40}(x)));
  const Graph& training = model.description()->training;
  const Graph graph = fuse_rows(training, kAnyRow);
  const Names names = operations_of(graph, graph.first_backward);

  EXPECT_EQ(std::count(names.begin(), names.end(), "rows"), 1);
  // Those of scale and center: each over samples, then over positions.
  EXPECT_EQ(std::count(names.begin(), names.end(), "sum"), 4);
}

TEST(RowFusion, LeavesFunctionsOfElementsAlone) {
  const Value x = input({40});

  EXPECT_EQ(joined_by_rows(x, exponential(x) * 2.0F), (Names{"exponential", "multiply"}));
}

TEST(RowFusion, LeavesShortRowsAndOtherAxes) {
  const Value x = input({4, 40});
  const Model model(x, LayerNormalization{}(x));

  EXPECT_EQ(fuse_rows(model.description()->inference, 41).operations.size(),
            model.description()->inference.operations.size());
  EXPECT_EQ(joined_by_rows(x, x - mean(x, {0}, ReducedAxes::keep)), (Names{"mean", "subtract"}));
}

TEST(RowFusion, EndsWhereAnotherOperationStands) {
  const Value x = input({40});
  const Value y = x - mean(x, {0}, ReducedAxes::keep);

  EXPECT_EQ(joined_by_rows(x, y * Dense{40}(y)), (Names{"rows", "dense", "multiply"}));
}

TEST(RowFusion, ReadsNoSumOverSamplesBeforeItIsComplete) {
  for (std::uint64_t number = 0; number < 100; ++number) {
    const Model model = random_model(number);
    const Graph graph = fuse_rows(model.description()->training, kAnyRow);
    for (std::size_t index = 0; index < graph.operations.size(); ++index) {
      for (const ArrayId input : graph.operations[index].inputs) {
        if (input == kNoArray || graph.arrays[input].source != GraphArray::Source::operation) continue;
        EXPECT_LT(graph.arrays[input].index, index) << "model " << number;
      }
    }
  }
}

}  // namespace
}  // namespace holdfast
