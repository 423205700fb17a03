#include "holdfast/torch/trainable_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/holdfast.h"
#include "holdfast/torch/dropout.h"
#include "unit/torch/support/plain_training.h"

namespace holdfast::torch {
namespace {

using ::testing::HasSubstr;

TEST(TrainableModule, TrainsAsLibTorchDoesWithSgd) {
  expect_bits_of_plain_training<Net>(
      [](Net& net) {
        return std::make_unique<optim::SGD>(net.parameters(),
                                            optim::SGDOptions(0.05).momentum(0.9).weight_decay(1e-3).nesterov(true));
      },
      {HOLDFAST_PLAIN_SLOT(SGDParamState, momentum_buffer)});
}

TEST(TrainableModule, TrainsAsLibTorchDoesWithSgdWithoutMomentum) {
  expect_bits_of_plain_training<Net>([](Net& net) { return std::make_unique<optim::SGD>(net.parameters(), 0.05); }, {});
}

TEST(TrainableModule, TrainsAsLibTorchDoesWithDampening) {
  expect_bits_of_plain_training<Net>(
      [](Net& net) {
        return std::make_unique<optim::SGD>(net.parameters(), optim::SGDOptions(0.05).momentum(0.8).dampening(0.3));
      },
      {HOLDFAST_PLAIN_SLOT(SGDParamState, momentum_buffer)});
}

TEST(TrainableModule, TrainsAsLibTorchDoesWithAdam) {
  expect_bits_of_plain_training<Net>(
      [](Net& net) {
        return std::make_unique<optim::Adam>(net.parameters(),
                                             optim::AdamOptions(1e-2).weight_decay(1e-3).amsgrad(true));
      },
      {HOLDFAST_PLAIN_SLOT(AdamParamState, exp_avg), HOLDFAST_PLAIN_SLOT(AdamParamState, exp_avg_sq),
       HOLDFAST_PLAIN_SLOT(AdamParamState, max_exp_avg_sq)});
}

TEST(TrainableModule, TrainsAsLibTorchDoesWithAdamW) {
  expect_bits_of_plain_training<Net>(
      [](Net& net) { return std::make_unique<optim::AdamW>(net.parameters(), optim::AdamWOptions(1e-2)); },
      {HOLDFAST_PLAIN_SLOT(AdamWParamState, exp_avg), HOLDFAST_PLAIN_SLOT(AdamWParamState, exp_avg_sq)});
}

TEST(TrainableModule, TrainsAsLibTorchDoesWithRmsprop) {
  expect_bits_of_plain_training<Net>(
      [](Net& net) {
        return std::make_unique<optim::RMSprop>(net.parameters(),
                                                optim::RMSpropOptions(1e-2).momentum(0.5).centered(true));
      },
      {HOLDFAST_PLAIN_SLOT(RMSpropParamState, square_avg), HOLDFAST_PLAIN_SLOT(RMSpropParamState, momentum_buffer),
       HOLDFAST_PLAIN_SLOT(RMSpropParamState, grad_avg)});
}

TEST(TrainableModule, TrainsAsLibTorchDoesWithAdagrad) {
  expect_bits_of_plain_training<Net>(
      [](Net& net) {
        return std::make_unique<optim::Adagrad>(
            net.parameters(), optim::AdagradOptions(1e-2).lr_decay(1e-2).initial_accumulator_value(0.1));
      },
      {HOLDFAST_PLAIN_SLOT(AdagradParamState, sum)});
}

// Two groups, a frozen array, one that no step uses, and one that has two names.
struct UnevenNet : nn::Module {
  UnevenNet() {
    frozen->weight.set_requires_grad(false);
    tied = register_module("tied", nn::Linear(3, 3));
    tied->weight = register_parameter("again", head->weight);
  }

  ::torch::Tensor forward(const ::torch::Tensor& x) { return head(::torch::tanh(frozen(x))); }

  nn::Linear frozen = register_module("frozen", nn::Linear(16, 3));
  nn::Linear head = register_module("head", nn::Linear(3, 3));
  nn::Linear unused = register_module("unused", nn::Linear(4, 4));
  nn::Linear tied{nullptr};
};

TEST(TrainableModule, LeavesWhatLibTorchLeaves) {
  expect_bits_of_plain_training<UnevenNet>(
      [](UnevenNet& net) {
        std::vector<optim::OptimizerParamGroup> groups;
        groups.emplace_back(std::vector<at::Tensor>{net.head->weight},
                            std::make_unique<optim::AdamWOptions>(optim::AdamWOptions(1e-2)));
        groups.emplace_back(
            std::vector<at::Tensor>{net.head->bias, net.frozen->bias, net.frozen->weight, net.unused->weight},
            std::make_unique<optim::AdamWOptions>(optim::AdamWOptions(1e-3).weight_decay(0.1)));
        return std::make_unique<optim::AdamW>(groups, optim::AdamWOptions(1e-2));
      },
      {});
}

// parameters() lists a tensor with two names twice, and LibTorch updates it twice.
TEST(TrainableModule, UpdatesATiedParameterAsOftenAsLibTorchDoes) {
  expect_bits_of_plain_training<UnevenNet>(
      [](UnevenNet& net) { return std::make_unique<optim::Adam>(net.parameters(), 1e-2); }, {});
}

// A normalization that is to stay as it is.
struct KeepsStatistics : Net {
  KeepsStatistics() { norm->eval(); }
};

TEST(TrainableModule, LeavesAPartInTheModeInWhichItWasMade) {
  const MakeOptimizer<KeepsStatistics> sgd_of_net = [](KeepsStatistics& net) {
    return std::make_unique<optim::SGD>(net.parameters(), 0.05);
  };
  expect_bits_of_plain_training<KeepsStatistics>(sgd_of_net, {});

  TrainableModule<KeepsStatistics> model(options_of<KeepsStatistics>(sgd_of_net));
  Replica replica = Replica::alone({.seed = kSeed});
  Trainer trainer(replica, model);
  trainer.evaluate(data().batch(kBatch));
  trainer.fit(data().batch(kBatch), {.epochs = 1});
  for (const float mean : spans_of(model).at("model/norm/running_mean")) EXPECT_EQ(mean, 0);
}

// Each weight counts for its sample alone, whatever its shape.
TEST(TrainableModule, WeighsEachSampleByItsWeight) {
  const auto losses = [](const Shape& shape) {
    TrainableOptions<Net> options =
        options_of<Net>([](Net& net) { return std::make_unique<optim::SGD>(net.parameters(), 0); });
    options.loss = [](const at::Tensor& output, const Batch& batch) {
      return ::torch::cross_entropy_loss(output, batch.target(), {}, at::Reduction::None);
    };
    TrainableModule<Net> model(std::move(options));
    Replica replica = Replica::alone({.seed = kSeed});
    Trainer trainer(replica, model);
    std::vector<float> weights(kBatch * kBatches);
    weights[7] = 2;
    const Dataset weighted = from_tensors({{"x", Tensor({kBatch * kBatches, 16}, features())}},
                                          {{"y", Tensor({kBatch * kBatches}, labels())}}, Tensor(shape, weights));
    const Dataset one = data().skip(7).take(1);
    return std::pair(trainer.evaluate(weighted.batch(kBatch)).at("loss"), trainer.evaluate(one.batch(1)).at("loss"));
  };
  for (const Shape& shape : {Shape{kBatch * kBatches}, Shape{kBatch * kBatches, 1}}) {
    const auto [weighted, alone] = losses(shape);
    EXPECT_NEAR(weighted, alone, 1e-6);
  }
}

MakeOptimizer<Net> adam() {
  return [](Net& net) { return std::make_unique<optim::Adam>(net.parameters(), 1e-3); };
}

TEST(TrainableModule, PredictsWhatItsModulePredicts) {
  TrainableModule<Net> model(options_of<Net>(adam()));
  Replica replica = Replica::alone({.seed = kSeed});
  Trainer trainer(replica, model);
  trainer.fit(data().batch(kBatch), {.epochs = 1});
  const Tensor predicted = trainer.predict(data().batch(kBatch));
  std::vector<float> x = features();
  const at::NoGradGuard no_gradients;
  // As many samples as predict() takes: products of more rows may have other bits.
  const at::Tensor expected =
      dynamic_cast<Net&>(*model.module()).forward(at::from_blob(x.data(), {kBatch, 16}, at::kFloat));
  EXPECT_EQ(predicted.shape(), (Shape{kBatch * kBatches, 3}));
  EXPECT_TRUE(same_bits(predicted.values().first(3 * kBatch), expected));
}

struct Doubles : Net {
  ::torch::Tensor more = register_parameter("more", ::torch::zeros({3}, ::torch::kDouble));
};

struct DrawsUnseen : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) { return Net::forward(x + ::torch::rand(x.sizes(), generator)); }
  at::Generator generator = at::detail::createCPUGenerator(7);
};

struct WritesParameters : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    {
      const at::NoGradGuard no_gradients;
      head->weight.clamp_(-1, 1);
    }
    return Net::forward(x);
  }
};

struct Grows : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    if (is_training()) named_buffers()["cache"].resize_({8});
    return Net::forward(x);
  }
  ::torch::Tensor cache = register_buffer("cache", ::torch::zeros({2}));
};

TEST(TrainableModule, RefusesWhatWouldNotComeBackAfterAFailure) {
  EXPECT_THAT(refusal(options_of<Doubles>(sgd<Doubles>())),
              HasSubstr("\"more\" of the module has elements of type Double"));
  EXPECT_THAT(refusal(options_of<CountsCalls>(sgd<CountsCalls>())), HasSubstr("changed the integer buffer \"calls\""));
  EXPECT_THAT(refusal(options_of<WritesParameters>(sgd<WritesParameters>())),
              HasSubstr("changed its parameters in place"));
  EXPECT_THAT(refusal(options_of<Grows>(sgd<Grows>())), HasSubstr("the shape or type of the buffer \"cache\""));
  EXPECT_THAT(refusal(options_of<Remembers>(sgd<Remembers>())), HasSubstr("remembers earlier calls"));
  EXPECT_THAT(refusal(options_of<DrawsUnseen>(sgd<DrawsUnseen>())), HasSubstr("draws from a generator of its own"));
  EXPECT_THAT(refusal(options_of<Net>([](Net& net) { return std::make_unique<optim::LBFGS>(net.parameters()); })),
              HasSubstr("give SGD, Adam, AdamW, RMSprop or Adagrad"));
}

TEST(TrainableModule, RefusesDrawsThatWereDeniedAtOptions) {
  TrainableOptions<Net> options = options_of<Net>(adam());
  options.draws = false;
  EXPECT_THAT(refusal(std::move(options)), HasSubstr("TrainableOptions::draws is false"));
}

TEST(TrainableModule, SaysWhichOptionIsMissing) {
  TrainableOptions<Net> options = options_of<Net>(adam());
  options.loss = nullptr;
  EXPECT_THAT(refusal(options), HasSubstr("give TrainableOptions::loss"));
  options = options_of<Net>(adam());
  options.inputs.clear();
  EXPECT_THAT(refusal(options), HasSubstr("give TrainableOptions::inputs"));
  options = options_of<Net>(adam());
  options.inputs = {{.name = "x", .shape = {15}}};
  // Versions of LibTorch differ in what they throw there: "LibTorch refused forward() ...", "forward() ... failed".
  EXPECT_THAT(refusal(options), HasSubstr("forward() with two samples of zeros of the module"));
}

// The gradients of one batch, of shards [first, first + samples).
std::vector<float> gradients_of(TrainableModule<Masked>& model, std::int64_t first, std::int64_t samples) {
  const std::vector<float> x = features();
  const std::vector<std::int64_t> y = labels();
  const RowLayout targets({{.name = "y", .shape = {}, .dtype = DType::i64}});
  std::vector<float> rows(static_cast<std::size_t>(samples) * targets.words());
  std::memcpy(rows.data(), y.data() + first, static_cast<std::size_t>(samples) * sizeof(std::int64_t));
  const RowLayout inputs({{.name = "x", .shape = {16}}});
  ShardBatch batch{.seed = kSeed,
                   .step = 3,
                   .first_sample = first,
                   .samples = samples,
                   .batch_samples = samples,
                   .features = {},
                   .targets = {}};
  batch.features = std::span(x).subspan(static_cast<std::size_t>(first) * 16, static_cast<std::size_t>(samples) * 16);
  batch.targets = rows;
  batch.input_layout = &inputs;
  batch.target_layout = &targets;
  std::vector<float> gradients(model.gradient_count());
  std::vector<float> sums(1);
  GradientSink sink(gradients);
  model.compute_gradients(batch, sink, sums);
  gradients.push_back(sums[0]);
  return gradients;
}

TEST(Dropout, DrawsTheMaskOfASampleWhereverItIsComputed) {
  TrainableOptions<Masked> options = options_of<Masked>(sgd<Masked>());
  options.draws = false;
  TrainableModule<Masked> model(std::move(options));
  model.prepare({});
  model.initialize(kSeed);
  const std::vector<float> both = gradients_of(model, 2, 2);
  const std::vector<float> first = gradients_of(model, 2, 1);
  const std::vector<float> second = gradients_of(model, 3, 1);
  // The mean over two samples is half of the sum: exact but for the order of the products.
  for (std::size_t i = 0; i + 1 < both.size() - 4; ++i) EXPECT_NEAR(2 * both[i], first[i] + second[i], 1e-5F) << i;
  EXPECT_NEAR(both.back(), first.back() + second.back(), 1e-5F);
  EXPECT_NE(first.back(), second.back());
}

// As on one replica that computes four shards, and on two that compute two each.
TEST(Dropout, GivesAShardItsBitsWhateverAProcessComputedBefore) {
  const auto made = [] {
    TrainableOptions<Masked> options = options_of<Masked>(sgd<Masked>());
    options.draws = false;
    auto model = std::make_unique<TrainableModule<Masked>>(std::move(options));
    model->prepare({});
    model->initialize(kSeed);
    return model;
  };
  const auto alone = made();
  std::vector<std::vector<float>> of_one;
  for (std::int64_t shard = 0; shard < 4; ++shard) of_one.push_back(gradients_of(*alone, shard, 1));
  const auto second = made();
  const auto have_same_bits = [](const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  };
  EXPECT_TRUE(have_same_bits(gradients_of(*second, 3, 1), of_one[3]));
  EXPECT_TRUE(have_same_bits(gradients_of(*second, 2, 1), of_one[2]));
  EXPECT_FALSE(have_same_bits(of_one[2], of_one[3]));
}

struct Turned : nn::Module {
  ::torch::Tensor forward(const ::torch::Tensor& x) { return head(dropout(x.transpose(0, 1)).transpose(0, 1)); }

  Dropout dropout = register_module("dropout", Dropout(0.25));
  nn::Linear head = register_module("head", nn::Linear(16, 3));
};

TEST(Dropout, RefusesAnInputWhoseFirstAxisIsAnother) {
  EXPECT_THAT(refusal(options_of<Turned>(sgd<Turned>())), HasSubstr("has 16 elements, and there are 6 samples"));
}

TEST(Dropout, DropsAsManyAsItsRateSays) {
  Dropout dropout(0.25);
  dropout->eval();
  const at::Tensor ones = ::torch::ones({4, 5});
  EXPECT_TRUE(at::equal(dropout(ones), ones));
  dropout->train();
  EXPECT_THROW(dropout(ones), Error);
  EXPECT_THROW(Dropout(1.0), Error);
}

}  // namespace
}  // namespace holdfast::torch
