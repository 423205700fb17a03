#include "nn/plan/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "holdfast/holdfast.h"
#include "nn/model/description.h"
#include "unit/nn/support/random_model.h"

namespace holdfast {
namespace {

using namespace random_models;

TEST(MemoryPlan, ArraysThatShareMemoryHaveTheBitsOfArraysThatDoNot) {
  for (std::uint64_t number = 0; number < 200; ++number) {
    const Model model = random_model(number);
    const auto samples = static_cast<std::int64_t>(1 + number % 5);

    const Result apart = train(model, samples, kApart);

    EXPECT_EQ(train(model, samples), apart) << "model " << number;
    for (const float gradient : apart.gradients) ASSERT_FALSE(std::isnan(gradient)) << "model " << number;
    for (const float sum : apart.contributions) ASSERT_FALSE(std::isnan(sum)) << "model " << number;
  }
}

// Both arrays of the sum fill one line of memory, and the first is read for each row of the second.
TEST(MemoryPlan, DoesNotOverwriteWhatIsRepeated) {
  const Value x = input({4}), y = input({3, 4});
  Model model({x, y}, {exponential(x) + y});
  model.set_weights(std::vector<float>(model.parameters().float_count()), {});
  const Tensor ones(Shape{1, 3, 4}, std::vector<float>(12, 1));

  const std::vector<Tensor> sums = model.predict({Tensor(Shape{1, 4}), ones});

  for (const float sum : sums[0].values()) EXPECT_EQ(sum, 2.0F);
}

TEST(RecomputedSegments, HaveTheBitsOfSegmentsThatAreKept) {
  std::size_t recomputed = 0;
  for (std::uint64_t number = 0; number < 200; ++number) {
    const Model kept = random_model(number);
    const Model model = random_model(number, Segments::recomputed);
    const auto samples = static_cast<std::int64_t>(1 + number % 5);

    EXPECT_EQ(train(model, samples), train(kept, samples)) << "model " << number;
    EXPECT_EQ(train(model, samples, kApart), train(kept, samples, kApart)) << "model " << number;
    const Model read = Model::from_graph(model.graph());
    EXPECT_EQ(read.graph(), model.graph());
    const Graph& graph = model.description()->training;
    const auto is_copy = [](const GraphOperation& operation) { return operation.repeats != kNoOperation; };
    recomputed += static_cast<std::size_t>(std::count_if(graph.operations.begin(), graph.operations.end(), is_copy));
    EXPECT_EQ(read.description()->training.operations.size(), graph.operations.size());
  }
  EXPECT_GT(recomputed, 500U);  // or this test would compare models without segments
}

TEST(MemoryPlan, GraphTextsOfRandomModelsDescribeModelsWithTheSameBits) {
  for (std::uint64_t number = 0; number < 50; ++number) {
    const Model model = random_model(number);
    const Model read = Model::from_graph(model.graph());

    EXPECT_EQ(read.graph(), model.graph());
    EXPECT_EQ(train(read, 3), train(model, 3)) << "model " << number;
  }
}

std::size_t arena_bytes(const Model& model, std::int64_t samples, bool is_training) {
  const ModelDescription& description = *model.description();
  return plan_memory(is_training ? description.training : description.inference, {.samples = samples,
                                                                                  .inputs = description.inputs.size(),
                                                                                  .parameters = description.parameters,
                                                                                  .buffers = description.buffers})
      .arena_bytes;
}

TEST(MemoryPlan, InferenceOfADeepChainTakesTwoArrays) {
  const Value x = input({64});
  Value y = x;
  for (int layer = 0; layer < 20; ++layer) y = Dense{64, {.activation = Activation::relu}}(y);

  EXPECT_EQ(arena_bytes(Model(x, y), 8, false), 2U * 8 * 64 * sizeof(float));
}

TEST(MemoryPlan, TrainingKeepsEachOutputOnceAndTwoGradients) {
  const Value x = input({64});
  Value y = x;
  for (int layer = 0; layer < 20; ++layer) y = Dense{64, {.activation = Activation::relu}}(y);

  // Gradients take the place of outputs that are needed no longer, so the peak is near the end of the forward pass.
  EXPECT_LE(arena_bytes(Model(x, y), 8, true), 22U * 8 * 64 * sizeof(float));
  EXPECT_GE(arena_bytes(Model(x, y), 8, true), 20U * 8 * 64 * sizeof(float));
}

TEST(RecomputedSegments, NeedLessMemory) {
  const auto deep = [](bool recomputes) {
    const Value x = input({64});
    Value y = x;
    for (int block = 0; block < 6; ++block) {
      y = recompute(recomputes, [&] {
        Value z = y;
        for (int layer = 0; layer < 6; ++layer) z = Dense{64, {.activation = Activation::relu}}(z);
        return z;
      });
    }
    return Model(x, y);
  };
  constexpr std::size_t kArray = std::size_t{8} * 64 * sizeof(float);

  EXPECT_GE(arena_bytes(deep(false), 8, true), 36 * kArray);
  // The output of each block, the arrays of one block, and two gradients.
  EXPECT_LE(arena_bytes(deep(true), 8, true), (6 + 6 + 2) * kArray);
  EXPECT_EQ(arena_bytes(deep(true), 8, false), arena_bytes(deep(false), 8, false));
}

}  // namespace
}  // namespace holdfast
