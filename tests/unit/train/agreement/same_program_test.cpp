// Replicas whose programs differ by rank. They trained together without a word: the sums of a step were those of two
// models, or of two data sets.

#include "train/agreement/same_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "holdfast/holdfast.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

const SparseCategoricalCrossentropy& loss_of_classes() {
  static const SparseCategoricalCrossentropy instance({.from_logits = true});
  return instance;
}

// The error of the first rank that throws.
Error error_between_replicas(const std::function<void(Replica&)>& train, int replicas = 2) {
  const TemporaryFolder folder;
  try {
    train_on_threads({.replicas = replicas, .run_directory = folder.path()}, train);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::invalid_argument, "nothing was refused");
}

class CountSteps final : public Callback {
 public:
  explicit CountSteps(int& begun) : begun_(begun) {}
  std::string name() const override { return "count_steps"; }
  void on_fit_begin(TrainingContext& context) override { begun_ += context.is_primary() ? 1 : 0; }

 private:
  int& begun_;
};

TEST(SameProgram, RefusesReplicasThatTrainOnOtherData) {
  int begun = 0;
  const Error error = error_between_replicas([&](Replica& replica) {
    Trainer trainer(replica, small_model(), Adam(0.01F), loss_of_classes());
    trainer.fit(small_data(53 - replica.rank()).batch(10), {.callbacks = {CountSteps(begun)}});
  });

  EXPECT_EQ(error.code(), ErrorCode::incompatible);  // for which the watchdog starts no other process
  EXPECT_THAT(error.what(), HasSubstr("replica 1 runs call 1 of the Trainer with other choices than replica 0"));
  EXPECT_THAT(error.what(), HasSubstr("data/size is 52 there and 53 on replica 0"));
  EXPECT_THAT(error.what(), HasSubstr("the program must not divide the data by rank"));
  EXPECT_EQ(begun, 0);
}

TEST(SameProgram, NamesTheFirstOfThreeReplicasThatDiffers) {
  const Error error = error_between_replicas(
      [](Replica& replica) {
        Trainer trainer(replica, small_model(), Adam(0.01F), loss_of_classes());
        trainer.fit(small_data().batch(replica.rank() == 2 ? 11 : 10));
      },
      3);

  EXPECT_THAT(error.what(), HasSubstr("replica 2 runs call 1"));
  EXPECT_THAT(error.what(), HasSubstr("data/batch is 11 there and 10 on replica 0"));
}

TEST(SameProgram, RefusesOtherDataForValidation) {
  const Error error = error_between_replicas([](Replica& replica) {
    Trainer trainer(replica, small_model(), Adam(0.01F), loss_of_classes());
    trainer.fit(small_data().batch(10), {.validation = small_data(20 + replica.rank()).batch(7)});
  });

  EXPECT_THAT(error.what(), HasSubstr("options/validation/size is 21 there and 20 on replica 0"));
}

TEST(SameProgram, RefusesOtherDataToEvaluateAndToPredict) {
  const Error evaluated = error_between_replicas([](Replica& replica) {
    Trainer trainer(replica, small_model(), Adam(0.01F), loss_of_classes());
    trainer.fit(small_data().batch(10));
    trainer.evaluate(small_data(20 + replica.rank()).batch(7));
  });
  const Error predicted = error_between_replicas([](Replica& replica) {
    Trainer trainer(replica, small_model(), Adam(0.01F), loss_of_classes());
    trainer.predict(small_data(20 + replica.rank()).batch(7));
  });

  EXPECT_THAT(evaluated.what(), HasSubstr("replica 1 runs call 2 of the Trainer"));
  EXPECT_THAT(evaluated.what(), HasSubstr("data/size is 21 there and 20"));
  EXPECT_THAT(predicted.what(), HasSubstr("data/size is 21 there and 20"));
}

TEST(SameProgram, RefusesOtherCalls) {
  const Error error = error_between_replicas([](Replica& replica) {
    Trainer trainer(replica, small_model(), Adam(0.01F), loss_of_classes());
    if (replica.rank() == 0) trainer.fit(small_data().batch(10));
    if (replica.rank() == 1) trainer.evaluate(small_data().batch(10));
  });

  EXPECT_THAT(error.what(), HasSubstr("call is \"evaluate\" there and \"fit\" on replica 0"));
}

// Both have as many parameters, so only their texts differ.
TEST(SameProgram, RefusesAnotherModelAndAnotherOptimizer) {
  const Error model = error_between_replicas([](Replica& replica) {
    const Activation activation = replica.rank() == 0 ? Activation::relu : Activation::tanh;
    Trainer trainer(replica, Sequential{Input{6, 6, 1}, Flatten{}, Dense{3, {.activation = activation}}}, Adam(0.01F),
                    loss_of_classes());
    trainer.fit(small_data().batch(10));
  });
  const Error optimizer = error_between_replicas([](Replica& replica) {
    Trainer trainer(replica, small_model(), Adam(replica.rank() == 0 ? 0.5F : 0.25F), loss_of_classes());
    trainer.fit(small_data().batch(10));
  });

  EXPECT_THAT(model.what(), HasSubstr("replica 1 runs a model with other choices than replica 0: model/"));
  EXPECT_THAT(model.what(), HasSubstr("\"tanh\" there and \"relu\" on replica 0"));
  EXPECT_THAT(optimizer.what(), HasSubstr("training/optimizer/learning_rate is 0.25 there and 0.5 on replica 0"));
}

}  // namespace
}  // namespace holdfast
