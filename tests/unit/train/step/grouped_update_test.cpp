// LAMB in a training: its norms are of whole arrays, however many threads and replicas there are.

#include <gtest/gtest.h>

#include "holdfast/holdfast.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

Outcome train_with_lamb(const ThreadRun& run) {
  const LambOptions options = {.learning_rate = 0.01F, .exclude_from_weight_decay = {"*/bias"}, .use_ema = true};
  return outcomes_of(run, [&](Replica& replica) { return train_with(replica, Lamb(options)); }).front();
}

TEST(WholeArrays, HaveTheSameBitsOnAnyNumberOfReplicasAndThreads) {
  const Outcome alone = train_with_lamb({});

  expect_equal(train_with_lamb({.workers = 3}), alone);
  expect_equal(train_with_lamb({.replicas = 2}), alone);
  expect_equal(train_with_lamb({.replicas = 3, .workers = 2}), alone);
}

TEST(WholeArrays, AreUpdatedByTheNormOfEachArray) {
  const Model model = Sequential{Input{2}, Dense{1, {.kernel_initializer = Initializer::ones()}}};
  const LossFunction loss("output",
                          [](const Value& outputs, const Value& targets) { return outputs + 0.0F * targets; });
  Replica alone = Replica::alone();
  Trainer trainer(alone, model, Lamb({.learning_rate = 0.25F}), loss);

  trainer.fit(from_tensors(Tensor(Shape{1, 2}, {1.0F, 2.0F}), Tensor(Shape{1, 1})).batch(1));

  // The norms of kernel and direction are both the root of 2, and the bias is 0, so each moves by the rate.
  const std::span<const float> weights = model.parameter_values();
  for (std::size_t entry = 0; entry < 2; ++entry) {
    const bool is_bias = model.parameters().entries()[entry].name == "dense/bias";
    for (const float weight : model.parameters().view(weights, entry)) {
      EXPECT_NEAR(weight, is_bias ? -0.25F : 0.75F, 1e-6);
    }
  }
}

}  // namespace
}  // namespace holdfast
