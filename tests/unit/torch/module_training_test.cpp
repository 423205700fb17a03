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

// Drawn when it is made, and nowhere registered: a replica that takes the place of another one would train with others.
struct KeepsNoise : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) { return Net::forward(is_training() ? x + noise : x); }
  ::torch::Tensor noise = ::torch::randn({16});
};

TEST(ModuleTraining, RefusesWhatAModuleKeepsForTraining) {
  EXPECT_THAT(refusal(options_of<KeepsNoise>(sgd<KeepsNoise>())), HasSubstr("forward() of the module in train()"));
}

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

// A replica that takes the place of another one would draw its own "late".
struct RegistersLate : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    if (!late) late = register_module("late", nn::Linear(16, 16));
    return Net::forward(late(x));
  }
  nn::Linear late{nullptr};
};

struct RegistersInTraining : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    if (is_training() && !shift.defined()) shift = register_buffer("shift", ::torch::zeros({16}));
    return Net::forward(shift.defined() ? x + shift : x);
  }
  ::torch::Tensor shift;
};

TEST(ModuleTraining, RefusesArraysThatForwardRegisters) {
  EXPECT_THAT(refusal(options_of<RegistersLate>(sgd<RegistersLate>())),
              HasSubstr("forward() of the module registered \"late/weight\""));
  EXPECT_THAT(refusal(options_of<RegistersInTraining>(sgd<RegistersInTraining>())),
              HasSubstr("forward() of the module registered \"shift\""));
  // The function `module` may call forward() once.
  TrainableOptions<RegistersLate> options = options_of<RegistersLate>(sgd<RegistersLate>());
  options.module = [] {
    auto module = std::make_shared<RegistersLate>();
    const ::torch::NoGradGuard no_gradients;
    module->eval();
    module->forward(::torch::zeros({2, 16}));
    module->train();
    return module;
  };
  EXPECT_EQ(refusal(std::move(options)), "nothing was refused");
}

struct SharesMemory : Net {
  SharesMemory() { register_buffer("copy", head->weight.detach()); }
};

struct HasViewsOfOneTensor : Net {
  ::torch::Tensor both = ::torch::zeros({8});
  ::torch::Tensor low = register_buffer("low", both.slice(0, 0, 4));
  ::torch::Tensor high = register_buffer("high", both.slice(0, 4, 8));
};

TEST(ModuleTraining, RefusesTensorsInTheSameMemory) {
  EXPECT_THAT(refusal(options_of<SharesMemory>(sgd<SharesMemory>())),
              HasSubstr("are two tensors in the same memory; register one tensor under both names"));
  EXPECT_EQ(refusal(options_of<HasViewsOfOneTensor>(sgd<HasViewsOfOneTensor>())), "nothing was refused");
}

// Its own array and that of its part would both be "conv/weight".
struct HasNameOfAPart : Net {
  ::torch::Tensor same = register_parameter("conv/weight", ::torch::zeros({2}));
};

TEST(ModuleTraining, RefusesTwoArraysOfOneName) {
  EXPECT_THAT(refusal(options_of<HasNameOfAPart>(sgd<HasNameOfAPart>())),
              HasSubstr("two arrays of the module would be called \"conv/weight\" in savepoints"));
}

struct WritesToItsInput : Net {
  ::torch::Tensor forward(::torch::Tensor x) { return Net::forward(x.clamp_(-0.5, 0.5)); }
};

TEST(ModuleTraining, RefusesAForwardThatWritesToItsInput) {
  EXPECT_THAT(refusal(options_of<WritesToItsInput>(sgd<WritesToItsInput>())),
              HasSubstr("forward() of the module wrote to its input 0"));
}

struct Throws : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    if (is_training()) throw std::runtime_error("a problem of the application");
    return Net::forward(x);
  }
};

struct ThrowsANumber : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    if (is_training()) throw 7;
    return Net::forward(x);
  }
};

TEST(ModuleTraining, SaysWhatTheApplicationThrew) {
  EXPECT_THAT(refusal(options_of<Throws>(sgd<Throws>())),
              HasSubstr("forward() of the module failed: a problem of the application"));
  EXPECT_THAT(refusal(options_of<ThrowsANumber>(sgd<ThrowsANumber>())),
              HasSubstr("forward() of the module failed: something that is not a std::exception"));
}

TEST(ModuleTraining, KeepsArraysAtTheBeginningsOfCacheLines) {
  TrainableModule<Net> model(options_of<Net>(sgd<Net>()));
  model.prepare({});
  for (const auto& [name, values] : spans_of(model)) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(values.data()) % 64, 0U) << name;
  }
}

// ---- What a user gives in other forms

// The parameters after one epoch of a plain program of LibTorch, by the names of the state.
template <class Forward>
void expect_plain_epoch(AnyTrainableModule& model, nn::Module& net, std::unique_ptr<optim::Optimizer> optimizer,
                        const Forward& loss_of_batch) {
  for (std::int64_t step = 0; step < kBatches; ++step) {
    optimizer->zero_grad();
    loss_of_batch(step * kBatch).backward();
    optimizer->step();
  }
  const std::map<std::string, std::span<float>> spans = spans_of(model);
  for (const auto& parameter : net.named_parameters()) {
    const std::span<float> values = spans.at("model/" + with_slashes(parameter.key()));
    EXPECT_TRUE(same_bits(values, parameter.value())) << parameter.key() << difference(values, parameter.value());
  }
}

nn::Sequential small_sequential() {
  return nn::Sequential(nn::Linear(16, 8), nn::ReLU(), nn::Linear(8, 3));
}

// Sequential is a holder, as TORCH_MODULE makes them.
TEST(ModuleTraining, TrainsASequentialAsAPlainProgramDoes) {
  const auto make_optimizer = [](nn::SequentialImpl& net) {
    return std::make_unique<optim::SGD>(net.parameters(), optim::SGDOptions(0.1).momentum(0.9));
  };
  TrainableOptions<nn::Sequential> options{
      .module = small_sequential,
      .inputs = {{.name = "x", .shape = {16}}},
      .targets = {{.name = "y", .shape = {}, .dtype = DType::i64}},
      .loss = [](const at::Tensor& output,
                 const Batch& batch) { return ::torch::cross_entropy_loss(output, batch.target()); },
      .optimizer = make_optimizer};
  TrainableModule<nn::Sequential> model(std::move(options));
  fit(model, 1, 1);

  ::torch::manual_seed(seed_of_initial_parameters(kSeed));
  nn::Sequential net = small_sequential();
  std::vector<float> x = features();
  std::vector<std::int64_t> y = labels();
  expect_plain_epoch(model, *net, make_optimizer(*net), [&](std::int64_t first) {
    const at::Tensor input = at::from_blob(x.data() + first * 16, {kBatch, 16}, at::kFloat);
    return ::torch::cross_entropy_loss(net->forward(input), at::from_blob(y.data() + first, {kBatch}, at::kLong));
  });
}

// Words and numbers in, a class and a number out.
struct TwoTowers : nn::Module {
  std::vector<at::Tensor> forward(const at::Tensor& numbers, const at::Tensor& words) {
    const at::Tensor both = ::torch::cat({numbers, table(words).flatten(1)}, 1);
    return {kind(both), amount(both).squeeze(1)};
  }
  static at::Tensor loss(const at::Tensor& kinds, const at::Tensor& amounts, const at::Tensor& kind,
                         const at::Tensor& amount) {
    return ::torch::cross_entropy_loss(kinds, kind) + ::torch::mse_loss(amounts, amount);
  }

  nn::Embedding table = register_module("table", nn::Embedding(5, 4));
  nn::Linear kind = register_module("kind", nn::Linear(16 + 2 * 4, 3));
  nn::Linear amount = register_module("amount", nn::Linear(16 + 2 * 4, 1));
};

TEST(ModuleTraining, TakesSeveralInputsAndTargetsOfTheirTypesByName) {
  constexpr std::int64_t kSamples = kBatch * kBatches;
  std::vector<std::int32_t> words;
  for (std::int64_t i = 0; i < 2 * kSamples; ++i) words.push_back(static_cast<std::int32_t>(i * 7 % 5));
  std::vector<float> amounts;
  for (std::int64_t i = 0; i < kSamples; ++i) amounts.push_back(static_cast<float>(i % 9) / 4);
  const auto make_optimizer = [](TwoTowers& net) { return std::make_unique<optim::Adam>(net.parameters(), 1e-2); };
  TrainableOptions<TwoTowers> options{
      .inputs = {{.name = "numbers", .shape = {16}}, {.name = "words", .shape = {2}, .dtype = DType::i32}},
      .targets = {{.name = "kind", .shape = {}, .dtype = DType::i64}, {.name = "amount", .shape = {}}},
      .forward = [](TwoTowers& net,
                    const Batch& batch) { return Outputs(net.forward(batch.input("numbers"), batch.input("words"))); },
      .loss =
          [](const Outputs& outputs, const Batch& batch) {
            EXPECT_EQ(batch.input("words").scalar_type(), at::kInt);
            EXPECT_EQ(batch.target("kind").scalar_type(), at::kLong);
            return TwoTowers::loss(outputs[0], outputs[1], batch.target("kind"), batch.target("amount"));
          },
      .optimizer = make_optimizer};
  TrainableModule<TwoTowers> model(std::move(options));
  Replica replica = Replica::alone({.seed = kSeed});
  Trainer trainer(replica, model);
  const Dataset samples =
      from_tensors({{"numbers", Tensor({kSamples, 16}, features())}, {"words", Tensor({kSamples, 2}, words)}},
                   {{"kind", Tensor({kSamples}, labels())}, {"amount", Tensor({kSamples}, amounts)}});
  trainer.fit(samples.batch(kBatch), {.epochs = 1});

  ::torch::manual_seed(seed_of_initial_parameters(kSeed));
  TwoTowers net;
  std::vector<float> x = features();
  std::vector<std::int64_t> y = labels();
  expect_plain_epoch(model, net, make_optimizer(net), [&](std::int64_t first) {
    const std::vector<at::Tensor> outputs = net.forward(at::from_blob(x.data() + first * 16, {kBatch, 16}, at::kFloat),
                                                        at::from_blob(words.data() + first * 2, {kBatch, 2}, at::kInt));
    return TwoTowers::loss(outputs[0], outputs[1], at::from_blob(y.data() + first, {kBatch}, at::kLong),
                           at::from_blob(amounts.data() + first, {kBatch}, at::kFloat));
  });
}

// ---- Buffers and what is kept elsewhere

// Its buffer is the mean over the samples that it was last called with.
struct KeepsMean : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    if (is_training()) mean.copy_(x.detach().mean(0));
    return Net::forward(x);
  }
  ::torch::Tensor mean = register_buffer("mean", ::torch::zeros({16}));
};

// Six samples on four shards: one, two, one and two of them. Means of shards count by their samples, so that the result
// is the mean over the batch, which is computed here in f64.
TEST(ModuleTraining, WeighsBuffersOfShardsByTheirSamples) {
  TrainableModule<KeepsMean> model(options_of<KeepsMean>(sgd<KeepsMean>()));
  fit(model, 4, 1, {.steps = 1});

  const std::vector<float> x = features();
  const std::span<float> mean = spans_of(model).at("model/mean");
  for (std::size_t i = 0; i < 16; ++i) {
    double sum = 0;
    for (std::size_t sample = 0; sample < kBatch; ++sample) sum += static_cast<double>(x[sample * 16 + i]);
    EXPECT_NEAR(mean[i], sum / kBatch, 1e-6) << i;
  }
}

TEST(ModuleTraining, CountsBatchesAsAPlainProgramDoes) {
  TrainableModule<Net> model(options_of<Net>(sgd<Net>()));
  fit(model);
  const auto [net, optimizer] = plain_training<Net>(sgd<Net>());

  const at::Tensor counted = dynamic_cast<Net&>(*model.module()).norm->num_batches_tracked;
  EXPECT_EQ(counted.item<std::int64_t>(), net->norm->num_batches_tracked.item<std::int64_t>());
}

// Behaves in the first steps, in which a shard is computed twice.
struct RemembersLater : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    calls += is_training() ? 1 : 0;
    return Net::forward(calls > 20 ? x * static_cast<double>(calls) : x);
  }
  int calls = 0;
};

TEST(ModuleTraining, RefusesWhatAModuleKeepsFromALaterStepOnByTheChecksOfGradients) {
  TrainableModule<RemembersLater> model(options_of<RemembersLater>(sgd<RemembersLater>()));
  Replica replica = Replica::alone({.seed = kSeed});
  Trainer trainer(replica, model);
  try {
    trainer.fit(data().batch(kBatch), {.epochs = kEpochs, .check_gradients = {.every = 1}});
    FAIL() << "a module that remembers its calls was trained to the end";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("gradients"));
  }
}

// ---- Limits

struct HasTable : Net {
  ::torch::Tensor table = register_buffer("table", ::torch::zeros({1 << 18}, ::torch::kLong));
};

TEST(ModuleTraining, RefusesLargeConstantsAndAverages) {
  EXPECT_THAT(refusal(options_of<HasTable>(sgd<HasTable>())),
              HasSubstr("2097152 bytes of buffers that are not f32, and savepoints hold at most 1048576"));
  TrainableOptions<Net> averaging = options_of<Net>(sgd<Net>());
  averaging.optimizer = Adam{{.use_ema = true}};
  EXPECT_THAT(refusal(averaging), HasSubstr("keeps no moving averages; leave use_ema out"));
}

// A run refuses to go on with another graph.
TEST(ModuleTraining, HasItsDescriptionInTheGraph) {
  const auto graph_with = [](const std::string& description) {
    TrainableOptions<Net> options = options_of<Net>(sgd<Net>());
    options.description = description;
    return TrainableModule<Net>(std::move(options)).graph();
  };
  EXPECT_EQ(graph_with("3 channels"), graph_with("3 channels"));
  EXPECT_NE(graph_with("3 channels"), graph_with("4 channels"));
  EXPECT_THAT(graph_with("4 channels"), HasSubstr("4 channels"));
}

struct HasUnusedPart : Net {
  nn::Linear unused = register_module("unused", nn::Linear(4, 4));
};

// Holdfast's optimizers see zeros, by which momentum would go on if there were any, and weights decay.
TEST(ModuleTraining, GivesZerosForUnusedParametersToHoldfastsOptimizers) {
  TrainableOptions<HasUnusedPart> options = options_of<HasUnusedPart>(sgd<HasUnusedPart>());
  options.optimizer = AdamW{{.learning_rate = 0.1F, .weight_decay = 0.5F}};
  TrainableModule<HasUnusedPart> model(std::move(options));
  fit(model, 1, 1);

  ::torch::manual_seed(seed_of_initial_parameters(kSeed));
  const at::Tensor begin = HasUnusedPart().unused->weight.detach().flatten();
  const std::span<float> end = spans_of(model).at("model/unused/weight");
  std::vector<float> expected(begin.data_ptr<float>(), begin.data_ptr<float>() + begin.numel());
  for (std::int64_t step = 0; step < kBatches; ++step) {
    for (float& weight : expected) weight *= 1 - 0.1F * 0.5F;
  }
  for (std::size_t i = 0; i < end.size(); ++i) EXPECT_NEAR(end[i], expected[i], 1e-6) << i;
  for (const float momentum : spans_of(model).at("optimizer/m/unused/weight")) EXPECT_EQ(momentum, 0);
}

}  // namespace
}  // namespace holdfast::torch
