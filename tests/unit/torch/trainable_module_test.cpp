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

#include "holdfast/data/dataset.h"
#include "holdfast/holdfast.h"
#include "holdfast/torch/dropout.h"

namespace holdfast::torch {
namespace {

namespace nn = ::torch::nn;
namespace optim = ::torch::optim;
using ::testing::HasSubstr;

constexpr std::int64_t kBatch = 6;
constexpr std::int64_t kBatches = 10;
constexpr int kEpochs = 5;
constexpr std::uint64_t kSeed = 11;

// What most modules have: a convolution, moving statistics, draws, a layer.
struct Net : nn::Module {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    const ::torch::Tensor y = ::torch::relu(norm(conv(x.reshape({-1, 1, 4, 4}))));
    return head(dropout(y.flatten(1)));
  }

  nn::Conv2d conv = register_module("conv", nn::Conv2d(nn::Conv2dOptions(1, 3, 3).bias(false)));
  nn::BatchNorm2d norm = register_module("norm", nn::BatchNorm2d(3));
  nn::Dropout dropout = register_module("dropout", nn::Dropout(0.25));
  nn::Linear head = register_module("head", nn::Linear(12, 3));
};

std::vector<float> features() {
  Random random(3, Purpose::synthetic_data, 0, 0);
  std::vector<float> values(kBatch * kBatches * 16);
  for (float& value : values) value = random.normal();
  return values;
}

std::vector<std::int64_t> labels() {
  Random random(4, Purpose::synthetic_data, 0, 0);
  std::vector<std::int64_t> values(kBatch * kBatches);
  for (std::int64_t& value : values) value = static_cast<std::int64_t>(random.below(3));
  return values;
}

Dataset data() {
  return from_tensors({{"x", Tensor({kBatch * kBatches, 16}, features())}},
                      {{"y", Tensor({kBatch * kBatches}, labels())}});
}

template <class M>
using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(M&)>;

template <class M>
TrainableOptions<M> options_of(MakeOptimizer<M> optimizer) {
  return {.inputs = {{.name = "x", .shape = {16}}},
          .targets = {{.name = "y", .shape = {}, .dtype = DType::i64}},
          .loss = [](const at::Tensor& output,
                     const Batch& batch) { return ::torch::cross_entropy_loss(output, batch.target()); },
          .optimizer = optimizer};
}

void fit(AnyTrainableModule& model, int shards = 1, int epochs = kEpochs) {
  Replica replica = Replica::alone({.seed = kSeed, .shards = shards});
  Trainer trainer(replica, model);
  trainer.fit(data().batch(kBatch), {.epochs = epochs});
}

// The same training as a program of LibTorch writes it.
template <class M>
std::pair<std::shared_ptr<M>, std::unique_ptr<optim::Optimizer>> plain_training(
    const MakeOptimizer<M>& make_optimizer) {
  ::torch::manual_seed(seed_of_initial_parameters(kSeed));
  auto net = std::make_shared<M>();
  auto optimizer = make_optimizer(*net);
  std::vector<float> x = features();
  std::vector<std::int64_t> y = labels();
  for (std::int64_t step = 0; step < kEpochs * kBatches; ++step) {
    const std::int64_t first = step % kBatches * kBatch;
    const at::Tensor input = at::from_blob(x.data() + first * 16, {kBatch, 16}, at::kFloat);
    const at::Tensor target = at::from_blob(y.data() + first, {kBatch}, at::kLong);
    ::torch::manual_seed(seed_of_shard(kSeed, step, 0));
    const at::Tensor loss = ::torch::cross_entropy_loss(net->forward(input), target);
    for (at::Tensor& parameter : net->parameters()) parameter.mutable_grad() = at::Tensor();
    loss.backward();
    optimizer->step();
  }
  return {net, std::move(optimizer)};
}

std::string with_slashes(std::string name) {
  std::ranges::replace(name, '.', '/');
  return name;
}

bool same_bits(std::span<const float> a, const at::Tensor& tensor) {
  const at::Tensor b = tensor.detach().contiguous();
  return a.size() == static_cast<std::size_t>(b.numel()) &&
         std::memcmp(a.data(), b.data_ptr<float>(), a.size_bytes()) == 0;
}

std::map<std::string, std::span<float>> spans_of(Trainable& model) {
  std::map<std::string, std::span<float>> spans;
  for (const StateSpan& span : model.state()) spans[span.name] = span.values;
  return spans;
}

template <class State>
const State& plain_state(optim::Optimizer& optimizer, const at::Tensor& parameter) {
  for (const auto& [key, state] : optimizer.state()) {
    if constexpr (std::is_same_v<std::decay_t<decltype(key)>, std::string>) {
      if (key == c10::guts::to_string(parameter.unsafeGetTensorImpl())) return static_cast<const State&>(*state);
    } else {
      if (key == parameter.unsafeGetTensorImpl()) return static_cast<const State&>(*state);
    }
  }
  throw std::runtime_error("no state");
}

using Slots = std::map<std::string, std::function<at::Tensor(optim::Optimizer&, const at::Tensor&)>>;

template <class M>
void expect_bits_of_plain_training(const MakeOptimizer<M>& make_optimizer, const Slots& slots) {
  TrainableModule<M> model(options_of<M>(make_optimizer));
  fit(model);
  const auto [net, optimizer] = plain_training<M>(make_optimizer);
  const std::map<std::string, std::span<float>> spans = spans_of(model);
  for (const auto& parameter : net->named_parameters()) {
    // A second name of a tensor.
    if (parameter.key() == "head.weight" && !spans.contains("model/head/weight")) continue;
    EXPECT_TRUE(same_bits(spans.at("model/" + with_slashes(parameter.key())), parameter.value())) << parameter.key();
    if (!parameter.value().requires_grad()) continue;
    for (const auto& [name, slot] : slots) {
      EXPECT_TRUE(same_bits(spans.at("optimizer/" + name + "/" + with_slashes(parameter.key())),
                            slot(*optimizer, parameter.value())))
          << name << " of " << parameter.key();
    }
  }
  for (const auto& buffer : net->named_buffers()) {
    if (buffer.value().scalar_type() != at::kFloat) continue;
    EXPECT_TRUE(same_bits(spans.at("model/" + with_slashes(buffer.key())), buffer.value())) << buffer.key();
  }
}

#define HOLDFAST_PLAIN_SLOT(State, member)                                                                        \
  {                                                                                                               \
#member, [](optim::Optimizer & optimizer,                                                                     \
                const at::Tensor& parameter) { return plain_state<optim::State>(optimizer, parameter).member(); } \
  }

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
  const at::Tensor expected = dynamic_cast<Net&>(*model.module())
                                  .forward(at::from_blob(x.data(), {kBatch * kBatches, 16}, at::kFloat))
                                  .narrow(0, 0, kBatch);
  EXPECT_EQ(predicted.shape(), (Shape{kBatch * kBatches, 3}));
  EXPECT_TRUE(same_bits(predicted.values().first(3 * kBatch), expected));
}

// A module that refuses, with the words that its sentence must have.
template <class M>
std::string refusal(TrainableOptions<M> options) {
  try {
    TrainableModule<M> model(std::move(options));
    fit(model, 1, 1);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

struct Doubles : Net {
  ::torch::Tensor more = register_parameter("more", ::torch::zeros({3}, ::torch::kDouble));
};

struct CountsCalls : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    calls += 1;
    return Net::forward(x);
  }
  ::torch::Tensor calls = register_buffer("calls", ::torch::zeros({}, ::torch::kLong));
};

struct Remembers : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    scale += is_training() ? 0.5F : 0;
    return Net::forward(x * scale);
  }
  float scale = 1;
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

template <class M>
MakeOptimizer<M> sgd() {
  return [](M& net) { return std::make_unique<optim::SGD>(net.parameters(), 0.1); };
}

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
  EXPECT_THAT(refusal(options), HasSubstr("LibTorch refused forward() with two samples of zeros"));
}

// A module whose only draws are Holdfast's.
struct Masked : nn::Module {
  ::torch::Tensor forward(const ::torch::Tensor& x) { return head(second(::torch::relu(hidden(first(x))))); }

  Dropout first = register_module("first", Dropout(0.25));
  Dropout second = register_module("second", Dropout(0.5));
  nn::Linear hidden = register_module("hidden", nn::Linear(16, 8));
  nn::Linear head = register_module("head", nn::Linear(8, 3));
};

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
