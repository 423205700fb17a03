#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "holdfast/holdfast.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "unit/train/support/small_training.h"

namespace holdfast {

TEST(Trainer, LoadsTheBaseModelAndItsOutputs) {
  const TemporaryFolder folder;
  Tensor expected;
  train_on_threads({.replicas = 2, .run_directory = folder.path()}, [&](Replica& replica) {
    Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
    trainer.fit(small_data().batch(10), {.callbacks = {ModelCheckpoint()}});
    if (replica.is_primary()) expected = trainer.predict(Tensor(Shape{2, 6, 6, 1}, std::vector<float>(72, 0.5F)));
  });

  const Sequential model = load_model(folder / savepoint_files(folder.path()).back());
  const Tensor outputs = model.predict(Tensor(Shape{2, 6, 6, 1}, std::vector<float>(72, 0.5F)));

  ASSERT_EQ(outputs.shape(), expected.shape());
  EXPECT_TRUE(std::equal(outputs.values().begin(), outputs.values().end(), expected.values().begin()));
}

TEST(Trainer, GivesTheTrainedWeightsToTheModel) {
  const Sequential model = small_model();
  Replica replica = Replica::alone();
  Trainer trainer(replica, model, SGD(0.1F), SparseCategoricalCrossentropy({.from_logits = true}));

  trainer.fit(small_data().batch(10));

  EXPECT_EQ(model.parameters().digest(model.parameter_values()), trainer.weights_digest());
}

TEST(Trainer, StartsFromTheWeightsOfAGivenModel) {
  const TemporaryFolder folder;
  outcome_of({.run_directory = folder.path()}, checkpoint);
  const Sequential model = load_model(folder / savepoint_files(folder.path()).back());

  Replica replica = Replica::alone({.seed = 77});
  Trainer trainer(replica, model, Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));

  EXPECT_EQ(trainer.weights_digest(), model.parameters().digest(model.parameter_values()));
}

}  // namespace holdfast
