#include "module_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "unit/torch/support/plain_training.h"

namespace holdfast::torch {
namespace {

using ::testing::HasSubstr;

void fit_in_batches(AnyTrainableModule& model, int shards, std::int64_t batch, std::int64_t accumulate) {
  Replica replica = Replica::alone({.seed = kSeed, .shards = shards});
  Trainer trainer(replica, model);
  trainer.fit(data().batch(batch), {.epochs = 2, .accumulate = accumulate});
}

// A step of two batches of one shard is a step of one batch of two shards.
TEST(ModuleTraining, AddsTheGradientsAndStatisticsOfTheBatchesOfAStep) {
  const auto optimizer = [](Net& net) { return std::make_unique<optim::Adam>(net.parameters(), 1e-2); };
  TrainableModule<Net> accumulated(options_of<Net>(optimizer));
  fit_in_batches(accumulated, 1, kBatch, 2);
  TrainableModule<Net> whole(options_of<Net>(optimizer));
  fit_in_batches(whole, 2, 2 * kBatch, 1);
  const std::map<std::string, std::span<float>> expected = spans_of(whole);
  for (const auto& [name, values] : spans_of(accumulated)) {
    EXPECT_EQ(std::memcmp(values.data(), expected.at(name).data(), values.size_bytes()), 0) << name;
  }
  EXPECT_EQ(expected.at("optimizer/updates").front(), kBatches);
  // An epoch has 5 steps.
  EXPECT_EQ(dynamic_cast<Net&>(*accumulated.module()).norm->num_batches_tracked.item<std::int64_t>(), kBatches);
}

struct TwoHeads : nn::Module {
  std::vector<at::Tensor> forward(const ::torch::Tensor& x) { return {first(x), second(x).reshape({-1, 2, 4})}; }

  nn::Linear first = register_module("first", nn::Linear(16, 3));
  nn::Linear second = register_module("second", nn::Linear(16, 8));
};

TEST(ModuleTraining, TrainsAndPredictsSeveralOutputs) {
  TrainableOptions<TwoHeads> options =
      options_of<TwoHeads>([](TwoHeads& net) { return std::make_unique<optim::SGD>(net.parameters(), 0.1); });
  options.loss = [](const Outputs& outputs, const Batch& batch) {
    return ::torch::cross_entropy_loss(outputs[0], batch.target("y")) + outputs[1].square().mean();
  };
  options.metrics = {{"second", [](const Outputs& outputs, const Batch& /*batch*/) { return outputs[1].mean(); }}};
  TrainableModule<TwoHeads> model(std::move(options));
  Replica replica = Replica::alone({.seed = kSeed, .shards = 2});
  Trainer trainer(replica, model);
  trainer.fit(data().batch(kBatch), {.epochs = 2});

  std::vector<float> x = features();
  const Tensor four({4, 16}, std::vector<float>(x.begin(), x.begin() + 64));
  const std::vector<Tensor> predicted = trainer.predict(std::vector<Tensor>{four});

  const at::NoGradGuard no_gradients;
  const std::vector<at::Tensor> expected =
      dynamic_cast<TwoHeads&>(*model.module()).forward(at::from_blob(x.data(), {4, 16}, at::kFloat));
  ASSERT_EQ(predicted.size(), 2U);
  EXPECT_EQ(predicted[1].shape(), (Shape{4, 2, 4}));
  EXPECT_TRUE(same_bits(predicted[0].values(), expected[0]));
  EXPECT_TRUE(same_bits(predicted[1].values(), expected[1]));
}

// An average of its own that only eval() reads.
struct RemembersForEval : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    if (!is_training()) return Net::forward(x - mean);
    mean = 0.9 * mean + 0.1 * x.detach().mean();
    return Net::forward(x);
  }
  ::torch::Tensor mean = ::torch::zeros({});
};

// The same in a buffer, which a replica that is replaced gets.
struct SavesForEval : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    if (!is_training()) return Net::forward(x - mean);
    mean.mul_(0.9).add_(0.1 * x.detach().mean());
    return Net::forward(x);
  }
  ::torch::Tensor mean = register_buffer("mean", ::torch::zeros({}));
};

TEST(ModuleTraining, RefusesWhatAModuleKeepsForEval) {
  EXPECT_THAT(refusal(options_of<RemembersForEval>(sgd<RemembersForEval>())),
              HasSubstr("it remembers earlier calls, or the function"));
  EXPECT_EQ(refusal(options_of<SavesForEval>(sgd<SavesForEval>())), "nothing was refused");
}

// The last of several values for one place stays.
struct PutsSeveralTimes : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    const ::torch::Tensor twice = ::torch::zeros({2}, ::torch::kLong);
    return Net::forward(x) + ::torch::zeros({1}).put_(twice, x.flatten().slice(0, 0, 2));
  }
};

TEST(ModuleTraining, NamesAnOperationThatIsNotDeterministic) {
  const std::string sentence = refusal(options_of<PutsSeveralTimes>(sgd<PutsSeveralTimes>()));
  EXPECT_THAT(sentence, HasSubstr("put_"));
  EXPECT_THAT(sentence, HasSubstr("replace this operation"));
}

TEST(ModuleTraining, KeepsArraysAtTheBeginningsOfCacheLines) {
  TrainableModule<Net> model(options_of<Net>(sgd<Net>()));
  model.prepare({});
  for (const auto& [name, values] : spans_of(model)) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(values.data()) % 64, 0U) << name;
  }
}

}  // namespace
}  // namespace holdfast::torch
