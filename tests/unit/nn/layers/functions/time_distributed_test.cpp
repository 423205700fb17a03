#include "holdfast/nn/time_distributed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "holdfast/holdfast.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

Tensor counted_tensor(const Shape& shape) {
  std::vector<float> numbers(static_cast<std::size_t>(shape.element_count()));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 17) * 0.125F - 1;
  return Tensor(shape, numbers);
}

void give_numbers(Model& model) {
  std::vector<float> weights(model.parameters().float_count());
  for (const ArenaEntry& entry : model.parameters().entries()) {
    for (std::int64_t i = 0; i < entry.shape.element_count(); ++i) {
      weights[entry.offset + static_cast<std::size_t>(i)] = static_cast<float>(i % 5) * 0.25F - 0.5F;
    }
  }
  model.set_weights(weights, std::vector<float>(model.buffers().float_count()));
}

TEST(TimeDistributed, AppliesOneLayerToEachStep) {
  const Value x = input({3, 5, 4, 2});
  const Conv2D filters{3, 2, {.name = "filters"}};
  Model model(x, time_distributed(filters, x));
  const Value picture = input({5, 4, 2});
  Model of_a_step(picture, Conv2D{3, 2, {.name = "filters"}}(picture));
  give_numbers(model);
  give_numbers(of_a_step);
  // The weights are there once.
  ASSERT_EQ(model.parameters().float_count(), of_a_step.parameters().float_count());

  const Tensor all = counted_tensor(Shape{2, 3, 5, 4, 2});
  const Tensor found = model.predict(all);

  // Samples and steps in one row are the samples of the model of a step.
  const Tensor expected = of_a_step.predict(Tensor(Shape{6, 5, 4, 2}, {all.values().begin(), all.values().end()}));
  EXPECT_EQ(found.shape(), (Shape{2, 3, 4, 3, 3}));
  EXPECT_TRUE(std::ranges::equal(found.values(), expected.values()));
}

// Dense takes a further axis by itself, so both trainings are the same but for the order of sums.
TEST(TimeDistributed, TrainsAsALayerOfAllSteps) {
  const auto train = [](bool distributes) {
    const Value x = input({3, 4});
    const Dense layer{2, {.name = "d"}};
    Model model(x, distributes ? time_distributed(layer, x) : layer(x));
    give_numbers(model);
    Replica alone = Replica::alone();
    Trainer trainer(alone, model, SGD(0.1F), MeanSquaredError());
    trainer.fit(from_tensors(counted_tensor(Shape{6, 3, 4}), counted_tensor(Shape{6, 3, 2})).batch(3), {.epochs = 5});
    return std::vector<float>(model.parameter_values().begin(), model.parameter_values().end());
  };

  const std::vector<float> found = train(true), expected = train(false);

  ASSERT_EQ(found.size(), expected.size());
  // Ten steps, each of which rounds sums of at most 36 numbers below 2 otherwise.
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
}

TEST(TimeDistributed, TakesAFunctionAndASequenceOfOneStep) {
  const Value x = input({1, 6});
  const Value y = time_distributed([](const Value& step) { return relu(step) * 2.0F; }, x);

  EXPECT_EQ(y.shape(), (Shape{1, 6}));
  EXPECT_THAT(
      sentence_thrown_by([] { time_distributed([](const Value& step) { return step; }, mean(input({2}), {0})); }),
      HasSubstr("an axis of steps"));
}

}  // namespace
}  // namespace holdfast
