// Training with an operation of an application.

#include "holdfast/nn/custom_operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "unit/nn/support/function_layer.h"
#include "unit/nn/support/running_sum.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

Outcome train_sums(Replica& replica) {
  const Sequential model{Input{6, 6, 1},
                         Flatten{},
                         Dense{12, {.activation = Activation::tanh}},
                         FunctionLayer(running_sum),
                         Dense{3},
                         FunctionLayer(running_sum)};
  Trainer trainer(replica, model, Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
  const FitResult fit = trainer.fit(small_data().shuffle().batch(10), {.epochs = 2});
  return {trainer.weights_digest().hex(), trainer.step(), fit.results, trainer.evaluate(small_data(31).batch(8)),
          fit.history};
}

TEST(CustomOperation, TrainsToTheSameBitsOnOneTwoAndFourReplicas) {
  for (const int shards : {1, 2, 4}) {
    const Outcome alone = outcomes_of({.replicas = 1, .shards = shards}, train_sums)[0];
    EXPECT_LT(alone.history[1].at("loss"), alone.history[0].at("loss"));
    for (int replicas = 2; replicas <= shards; replicas *= 2) {
      SCOPED_TRACE(replicas);
      for (const Outcome& outcome : outcomes_of({.replicas = replicas, .shards = shards}, train_sums)) {
        expect_equal(outcome, alone);
      }
    }
    // The threads of one replica share the operation.
    expect_equal(outcomes_of({.replicas = 1, .shards = shards, .workers = shards}, train_sums)[0], alone);
  }
}

// Takes no number above 1.
class FailingSum final : public CustomOperation {
 public:
  std::string name() const override { return "test.failing_sum"; }
  std::vector<ValueSpec> infer(std::span<const ValueSpec> inputs) const override { return {inputs[0]}; }
  void run(const OperationArrays& arrays) const override {
    std::ranges::copy(arrays.inputs[0].floats(), arrays.outputs[0].floats().begin());
    for (const float x : arrays.inputs[0].floats()) {
      if (x > 1) throw std::runtime_error("a number above 1");
    }
  }
};

TEST(CustomOperation, ThatThrowsEndsFitWithASentence) {
  Tensor features(Shape{8, 2}), targets(Shape{8, 2});
  features.values()[11] = 2;
  const Dataset data = from_tensors(std::move(features), std::move(targets)).batch(2);
  const auto train = [&](Replica& replica) {
    const FunctionLayer failing(
        [](const Value& x) { return apply_custom(std::make_shared<const FailingSum>(), {stop_gradient(x)})[0] + x; });
    Trainer trainer(replica, Sequential{Input{2}, failing}, SGD(0.1F), MeanSquaredError{});
    trainer.fit(data, {.epochs = 1});
    return Outcome{};
  };

  try {
    outcomes_of({.replicas = 1, .shards = 2}, train);
    ADD_FAILURE() << "trains with an operation that fails";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("operation \"test.failing_sum\" failed: a number above 1"));
  }
}

}  // namespace
}  // namespace holdfast
