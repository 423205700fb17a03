// Replicas whose programs differ by rank. They trained together without a word: the sums of a step were those of two
// models, or of two data sets.

#include "train/agreement/same_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "holdfast/base/utf8.h"
#include "holdfast/holdfast.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "train/step/model_trainable.h"
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

// A long name was cut in the middle of a character, and control characters were shown as they came.
TEST(SameProgram, ShowsNamesEscapedAndInWholeCharacters) {
  const auto error_with = [](const std::string& name) {
    return error_between_replicas([&](Replica& replica) {
      Trainer trainer(replica, small_model(), Adam(0.01F), loss_of_classes());
      const Dataset data = small_data().map([](Sample, Random&) {}, name + (replica.rank() == 0 ? " 0" : " 1"));
      trainer.fit(data.batch(10));
    });
  };

  // With its quotation mark, the first byte of the last character is the 80th.
  EXPECT_TRUE(is_utf8(error_with(std::string(78, 'a') + "é and more").what()));
  EXPECT_THAT(error_with("up\x7f").what(), HasSubstr(R"(is "up\x7f 1" there and "up\x7f 0" on replica 0)"));
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

// A model on a host whose libraries compute other bits.
class OnAnotherProcessor final : public Trainable {
 public:
  explicit OnAnotherProcessor(int rank) : rank_(rank) {}
  std::string graph() const override { return model_.graph(); }
  std::string configuration() const override { return model_.configuration(); }
  std::string arithmetic() const override { return rank_ == 0 ? "libraries for AVX512" : "libraries for AVX2"; }
  Shape feature_shape() const override { return model_.feature_shape(); }
  Shape target_shape() const override { return model_.target_shape(); }
  Shape output_shape() const override { return model_.output_shape(); }
  void prepare(const Workers& workers) override { model_.prepare(workers); }
  void initialize(std::uint64_t seed) override { model_.initialize(seed); }
  std::vector<StateSpan> state() override { return model_.state(); }
  std::vector<std::string> sum_names() const override { return model_.sum_names(); }
  std::size_t gradient_count() const override { return model_.gradient_count(); }
  void compute_gradients(const ShardBatch& batch, GradientSink& sink, std::span<float> sums) override {
    model_.compute_gradients(batch, sink, sums);
  }
  void compute_sums(const ShardBatch& batch, std::span<float> sums) override { model_.compute_sums(batch, sums); }
  void predict(const ShardBatch& batch, std::span<float> outputs) override { model_.predict(batch, outputs); }
  void apply_update(const Update& update) override { model_.apply_update(update); }

 private:
  const int rank_;
  ModelTrainable model_{small_model(), SGD(0.01F), {SparseCategoricalCrossentropy{{.from_logits = true}}}, {}};
};

Error error_between_hosts(bool accepts) {
  return error_between_replicas([accepts](Replica& replica) {
    replica.shared_context()->hosts = 2;
    replica.shared_context()->accept_other_arithmetic = accepts;
    OnAnotherProcessor model(replica.rank());
    Trainer trainer(replica, model);
    trainer.fit(small_data().batch(10));
  });
}

TEST(SameArithmetic, IsRequiredOfReplicasOnSeveralHosts) {
  const Error error = error_between_hosts(false);

  EXPECT_EQ(error.code(), ErrorCode::incompatible);
  EXPECT_THAT(error.what(), HasSubstr("replica 1 computes with libraries for AVX2, and replica 0 with libraries for "
                                      "AVX512, which gives other bits"));
  EXPECT_THAT(error.what(), HasSubstr("ONEDNN_MAX_CPU_ISA"));
}

TEST(SameArithmetic, IsNotRequiredWhereTheRunAcceptsAnother) {
  EXPECT_STREQ(error_between_hosts(true).what(), "nothing was refused");
}

}  // namespace
}  // namespace holdfast
