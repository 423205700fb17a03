// LAMB and Muon in a training: their norms and products are of whole arrays, however many threads and replicas there
// are.

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

Outcome train_with_muon(const ThreadRun& run) {
  const MuonOptions options = {.learning_rate = 0.01F,
                               .exclude_from_weight_decay = {"*/bias"},
                               .learning_rate_factors = {{"*/kernel", 0.5F}},
                               .use_ema = true};
  return outcomes_of(run, [&](Replica& replica) { return train_with(replica, Muon(options)); }).front();
}

TEST(WholeArrays, HaveTheSameBitsWithMuonOnAnyNumberOfReplicasAndThreads) {
  const Outcome alone = train_with_muon({});

  expect_equal(train_with_muon({.workers = 3}), alone);
  expect_equal(train_with_muon({.replicas = 3, .workers = 2}), alone);
}

// SGD with a learning rate of 1, which notes the arrays that it is given.
class NotesArrays final : public Optimizer {
 public:
  explicit NotesArrays(std::shared_ptr<std::vector<std::string>> arrays) : arrays_(std::move(arrays)) {}
  std::string name() const override { return "notes_arrays"; }
  std::string configuration() const override { return R"({"kind":"notes_arrays"})"; }
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<NotesArrays>(*this); }
  std::vector<std::string> slot_names() const override { return {}; }
  bool needs_whole_arrays() const override { return true; }
  void update(std::int64_t, std::span<float>, std::span<const float>,
              std::span<const std::span<float>>) const override {
    arrays_->push_back("a range");
  }
  void update_array(const ParameterArray& array, std::int64_t, std::span<float> parameters, std::span<const float>,
                    std::span<const std::span<float>>) const override {
    arrays_->push_back(std::string(array.name) + " " + array.shape->to_string());
    EXPECT_GE(parameters.size(), static_cast<std::size_t>(array.shape->element_count()));
  }

 private:
  std::shared_ptr<std::vector<std::string>> arrays_;
};

TEST(WholeArrays, AreGivenWithTheirNamesAndShapes) {
  const Model model = Sequential{Input{2}, Dense{3, {.name = "first"}}, Dense{1, {.use_bias = false, .name = "last"}}};
  const auto arrays = std::make_shared<std::vector<std::string>>();
  Replica alone = Replica::alone();
  Trainer trainer(alone, model, NotesArrays(arrays), MeanSquaredError{});

  trainer.fit(from_tensors(Tensor(Shape{1, 2}, {1.0F, 2.0F}), Tensor(Shape{1, 1})).batch(1));

  std::ranges::sort(*arrays);
  EXPECT_EQ(*arrays, (std::vector<std::string>{"first/bias [3]", "first/kernel [2, 3]", "last/kernel [3, 1]"}));
}

TEST(WholeArrays, RefuseAPatternOfMuonThatMatchesNothing) {
  const Model model = Sequential{Input{2}, Dense{1, {.name = "output"}}};
  Replica alone = Replica::alone();

  EXPECT_NO_THROW(Trainer(alone, model, Muon({.adam_arrays = {"output"}}), MeanSquaredError{}));
  EXPECT_THROW(Trainer(alone, model, Muon({.adam_arrays = {"outptu"}}), MeanSquaredError{}), Error);
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
