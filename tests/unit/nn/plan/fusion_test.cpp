#include "nn/plan/fusion.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "nn/model/description.h"
#include "nn/plan/memory_plan.h"
#include "unit/nn/support/random_model.h"

namespace holdfast {
namespace {

using namespace random_models;

std::vector<std::string> names_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const GraphOperation& operation : graph.operations) names.push_back(operation.operation->name());
  return names;
}

using Names = std::vector<std::string>;

// What a prediction needs.
Names fused(const Value& x, const Value& y) {
  return names_of(fuse_elements(Model(x, y).description()->inference));
}

TEST(Fusion, HasTheBitsOfOperationsOneByOne) {
  std::size_t joined = 0;
  for (std::uint64_t number = 0; number < 200; ++number) {
    const Model model = random_model(number, number % 2 == 0 ? Segments::kept : Segments::recomputed);
    const auto samples = static_cast<std::int64_t>(1 + number % 5);
    const Graph& graph = model.description()->training;

    const Result apart = train(model, samples, {.shares_memory = true, .fuses_elements = false});

    EXPECT_EQ(train(model, samples), apart) << "model " << number;
    EXPECT_EQ(train(model, samples, kApart), apart) << "model " << number;
    joined += graph.operations.size() - fuse_elements(graph).operations.size();
  }
  EXPECT_GT(joined, 1000U);  // or this test would compare graphs without fusion
}

TEST(Fusion, NeedsNoMoreMemory) {
  for (std::uint64_t number = 0; number < 100; ++number) {
    const Model described = random_model(number);
    const ModelDescription& model = *described.description();
    const MemoryOptions options = {
        .samples = 64, .inputs = model.inputs.size(), .parameters = model.parameters, .buffers = model.buffers};
    // The placement is a heuristic, so that fewer arrays may lie a little worse.
    constexpr double kPlacement = 1.1;
    for (const Graph* const graph : {&model.training, &model.inference}) {
      EXPECT_LE(static_cast<double>(plan_memory(fuse_elements(*graph), options).arena_bytes),
                kPlacement * static_cast<double>(plan_memory(*graph, options).arena_bytes))
          << "model " << number;
    }
  }
}

TEST(Fusion, JoinsAChainIntoOneOperation) {
  const Value x = input({4});

  EXPECT_EQ(fused(x, square(exponential(x) + 1.0F) * 2.0F), Names{"elements"});
}

TEST(Fusion, JoinsTheProducersOfBothOperands) {
  const Value x = input({4});

  EXPECT_EQ(fused(x, exponential(x) * (x + 1.0F)), Names{"elements"});
}

TEST(Fusion, LeavesWhatTwoOperationsRead) {
  const Value x = input({4});
  const Value y = exponential(x);

  EXPECT_EQ(fused(x, sum(y, {0}, ReducedAxes::keep) * y), (Names{"exponential", "sum", "multiply"}));
  // One operation that reads it twice is one reader.
  EXPECT_EQ(fused(x, y * y), Names{"elements"});
}

TEST(Fusion, LeavesOutputsOfTheModel) {
  const Value x = input({4});
  const Value y = exponential(x);

  EXPECT_EQ(names_of(fuse_elements(Model({x}, {y, y + 1.0F}).description()->inference)), (Names{"exponential", "add"}));
}

TEST(Fusion, LeavesArraysThatAreBroadcast) {
  const Value x = input({3, 4});
  const Value y = exponential(sum(x, {0}, ReducedAxes::keep));

  EXPECT_EQ(fused(x, x + y), (Names{"sum", "exponential", "add"}));
}

TEST(Fusion, StopsWhereAProgramIsFull) {
  const Value x = input({4});
  Value y = x;
  for (int i = 0; i < 40; ++i) y = square(y);

  EXPECT_EQ(fused(x, y), (Names{"elements", "elements", "elements"}));

  y = x;
  for (int i = 0; i < 20; ++i) y = y + static_cast<float>(i);
  EXPECT_EQ(fused(x, y), (Names{"elements", "elements", "elements"}));
}

TEST(Fusion, DoesNotKeepTwoArraysForOne) {
  // Both operands of the sum would live until the product; the sum alone is less.
  const Value x = input({4});
  const Value a = Dense{4}(x), b = Dense{4}(x);
  const Value late = Dense{4}(Dense{4}(x));
  const Model model(x, (a + b) * late);
  const Names names = names_of(fuse_elements(model.description()->inference));

  EXPECT_EQ(std::count(names.begin(), names.end(), "elements"), 0);
}

TEST(Fusion, JoinsNothingAcrossTheTwoPasses) {
  const Model model = random_model(3);
  const Graph& graph = model.description()->training;
  const Graph result = fuse_elements(graph);

  EXPECT_EQ(result.outputs, graph.outputs);
  EXPECT_EQ(result.parameter_gradients, graph.parameter_gradients);
  for (std::size_t index = 0; index < result.first_backward; ++index) {
    for (const ArrayId output : result.operations[index].outputs) {
      EXPECT_LT(graph.arrays[output].index, graph.first_backward);
    }
  }
}

}  // namespace
}  // namespace holdfast
