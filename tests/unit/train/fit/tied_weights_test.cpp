// Trainings of models in which several layers use one array. Bits are compared exactly.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

constexpr std::int64_t kTexts = 37;

// Reads two ids and scores all ids with the same table; and an autoencoder whose decoder is the kernel of its encoder.
Model tied_model() {
  const Value ids = input({2}, {.dtype = DType::i32, .name = "ids"});
  const Value numbers = input({3}, {.name = "numbers"});
  const ReversibleEmbedding words{5, 4, {.embeddings_regularizer = Regularizer::l2(0.01F), .name = "words"}};
  const Value code = Dense{2, {.name = "encoder"}}(numbers);
  const Value decoded = matmul(code, permute(weight_of(code, "kernel"), {1, 0}));
  return Model({ids, numbers}, {{"next", words.reverse(Dense{4}(words(ids)))}, {"decoded", decoded}});
}

Dataset texts() {
  std::vector<std::int32_t> ids, next;
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < kTexts; ++i) {
    Random random(9, Purpose::user, 0, static_cast<std::uint64_t>(i));
    for (int place = 0; place < 2; ++place) {
      ids.push_back(static_cast<std::int32_t>(random.below(5)));
      next.push_back((ids.back() + 1) % 5);
    }
    for (int place = 0; place < 3; ++place) numbers.push_back(random.normal());
  }
  return from_tensors({{"ids", Tensor(Shape{kTexts, 2}, ids)}, {"numbers", Tensor(Shape{kTexts, 3}, numbers)}},
                      {{"next", Tensor(Shape{kTexts, 2}, next)}, {"decoded", Tensor(Shape{kTexts, 3}, numbers)}});
}

Outcome train_tied(Replica& replica, const Model& model = tied_model()) {
  Trainer trainer(replica, model, Adam(0.02F),
                  {SparseCategoricalCrossentropy({.from_logits = true}), MeanSquaredError{}});
  const FitResult fit = trainer.fit(texts().shuffle().batch(8), {.epochs = 3});
  return {trainer.weights_digest().hex(), trainer.step(), fit.results, {}, fit.history};
}

TEST(TiedWeights, GiveTheSameBitsOnAnyNumberOfReplicas) {
  const auto trained = [](int replicas) {
    return outcomes_of({.replicas = replicas}, [](Replica& replica) { return train_tied(replica); });
  };
  const Outcome alone = trained(1).front();

  EXPECT_LT(alone.history.back().at("loss"), alone.history.front().at("loss"));
  for (const int replicas : {2, 4}) {
    for (const Outcome& outcome : trained(replicas)) expect_equal(outcome, alone);
  }
}

TEST(TiedWeights, StayWhereTheirLayerIsFrozen) {
  Replica replica = Replica::alone();
  Model model = tied_model().frozen("words").frozen("encoder");
  std::vector<float> parameters(model.parameters().float_count()), buffers(model.buffers().float_count());
  model.initialize(3, parameters, buffers);
  model.set_weights(parameters, buffers);

  train_tied(replica, model);

  EXPECT_TRUE(std::ranges::equal(model.buffer_values(), buffers));
  EXPECT_FALSE(std::ranges::equal(model.parameter_values(), parameters)) << "the layers between them are trained";
}

TEST(TiedWeights, AreInASavepointOnce) {
  const TemporaryFolder folder;
  Replica replica = Replica::alone();
  Model model = tied_model();
  Trainer trainer(replica, model, Adam(0.02F),
                  {SparseCategoricalCrossentropy({.from_logits = true}), MeanSquaredError{}});
  trainer.fit(texts().batch(8));
  trainer.save(folder / "a.h5");

  const Model loaded = load_model(folder / "a.h5");

  EXPECT_EQ(loaded.graph(), model.graph());
  ASSERT_EQ(loaded.parameters().entries().size(), 5U) << "a table, two kernels and two biases";
  EXPECT_TRUE(std::ranges::equal(loaded.parameter_values(), model.parameter_values()));
}

}  // namespace
}  // namespace holdfast
