// Modules of LibTorch on a CUDA device. A plain program of LibTorch on the same device must get the same bits; the CPU
// gets others, and nearly the same losses.

#include <ATen/Version.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compute/backend.h"
#include "compute/cublas_workspace.h"
#include "holdfast/torch/dropout.h"
#include "torch_device.h"
#include "unit/torch/support/plain_training.h"

namespace holdfast::torch {
namespace {

using ::testing::HasSubstr;

class TorchOnADevice : public testing::Test {
 protected:
  // Before CUDA starts in this process.
  static void SetUpTestSuite() {
    ::setenv(compute::kCublasWorkspaceVariable, compute::kCublasWorkspace, 1);
    // A difference of bits may be one of libraries.
    std::cout << at::show_config() << "\n";
  }
  void SetUp() override {
    if (!std::filesystem::exists("/dev/nvidiactl")) {
      GTEST_SKIP() << "this machine has no CUDA device (no /dev/nvidiactl)";
    }
  }
};

// A copy by Holdfast comes after what LibTorch was asked for before, however long that takes.
TEST_F(TorchOnADevice, QueuesItsWorkOnHoldfastsStream) {
  const auto backend = compute::make_cuda_backend("cuda:0");
  const std::unique_ptr<TorchDevice> device = torch_device_maker()("cuda:0", *backend);
  std::cout << backend->description() << "\n";
  constexpr std::int64_t kFloats = 1000;
  const std::shared_ptr<float[]> array = backend->memory().allocate(kFloats);
  const c10::impl::VirtualGuardImpl streams(at::kCUDA);
  const c10::Stream before = streams.getStream(device->place());

  {
    const std::shared_ptr<void> scope = device->enter();
    EXPECT_NE(streams.getStream(device->place()), before);
    at::Tensor product = ::torch::ones({4096, 4096}, at::TensorOptions().device(device->place()));
    for (int i = 0; i < 50; ++i) product = product.mm(product).clamp_max(1);
    tensor_at(array.get(), {kFloats}, at::kFloat, device->place()).add_(product[0][0] + 1);
  }
  std::vector<float> values(kFloats);
  backend->memory().copy_to_host({array.get(), kFloats}, values);

  EXPECT_EQ(values, std::vector<float>(kFloats, 2));
  EXPECT_EQ(streams.getStream(device->place()), before);
}

Course course(std::int64_t steps, Precision precision = Precision::f32) {
  return {.steps = steps, .device = "cuda:0", .place = at::Device("cuda:0"), .precision = precision};
}

// One step alone says more of what differs, if it does.
template <class M>
void expect_bits_of_libtorch(const MakeOptimizer<M>& optimizer, const Slots& slots,
                             const std::function<void(TrainableOptions<M>&)>& change = {}) {
  for (const std::int64_t steps : {std::int64_t{1}, 2 * kBatches}) {
    SCOPED_TRACE(std::to_string(steps) + " steps");
    expect_bits_of_plain_training<M>(optimizer, slots, change, {}, course(steps));
    if (testing::Test::HasFailure()) return;
  }
}

const Slots kAdamSlots{HOLDFAST_PLAIN_SLOT(AdamWParamState, exp_avg), HOLDFAST_PLAIN_SLOT(AdamWParamState, exp_avg_sq)};

// A convolution, moving statistics, draws of LibTorch and a layer.
TEST_F(TorchOnADevice, TrainsAConvolutionAsLibTorchDoesWithSgd) {
  expect_bits_of_libtorch<Net>(
      [](Net& net) {
        return std::make_unique<optim::SGD>(net.parameters(),
                                            optim::SGDOptions(0.05).momentum(0.9).weight_decay(1e-3).dampening(0.2));
      },
      {HOLDFAST_PLAIN_SLOT(SGDParamState, momentum_buffer)});
}

TEST_F(TorchOnADevice, TrainsAConvolutionAsLibTorchDoesWithAdamW) {
  expect_bits_of_libtorch<Net>(
      [](Net& net) { return std::make_unique<optim::AdamW>(net.parameters(), optim::AdamWOptions(1e-2)); }, kAdamSlots);
}

// Attention, normalization of layers, an embedding of positions, draws.
struct Attentive : nn::Module {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    const ::torch::Tensor tokens = (embedding(x.reshape({-1, 4, 4})) + positions).transpose(0, 1);
    return head(encoder(tokens).transpose(0, 1).flatten(1));
  }

  nn::Linear embedding = register_module("embedding", nn::Linear(4, 32));
  ::torch::Tensor positions = register_parameter("positions", 0.02 * ::torch::randn({4, 32}));
  nn::TransformerEncoder encoder = register_module(
      "encoder",
      nn::TransformerEncoder(
          nn::TransformerEncoderLayer(nn::TransformerEncoderLayerOptions(32, 4).dim_feedforward(64).dropout(0.1)), 2));
  nn::Linear head = register_module("head", nn::Linear(128, 3));
};

TEST_F(TorchOnADevice, TrainsATransformerAsLibTorchDoesWithSgd) {
  expect_bits_of_libtorch<Attentive>(
      [](Attentive& net) {
        return std::make_unique<optim::SGD>(net.parameters(), optim::SGDOptions(0.05).momentum(0.9).nesterov(true));
      },
      {HOLDFAST_PLAIN_SLOT(SGDParamState, momentum_buffer)});
}

TEST_F(TorchOnADevice, TrainsATransformerAsLibTorchDoesWithAdamW) {
  expect_bits_of_libtorch<Attentive>(
      [](Attentive& net) { return std::make_unique<optim::AdamW>(net.parameters(), optim::AdamWOptions(3e-3)); },
      kAdamSlots);
}

TEST_F(TorchOnADevice, TrainsInTf32AsLibTorchDoes) {
  expect_bits_of_plain_training<Attentive>(
      [](Attentive& net) { return std::make_unique<optim::AdamW>(net.parameters(), optim::AdamWOptions(3e-3)); },
      kAdamSlots, {}, {}, course(2 * kBatches, Precision::tf32));
  EXPECT_TRUE(at::globalContext().allowTF32CuDNN());
}

// Draws nothing of LibTorch's, so that the CPU computes the same function.
struct MaskedConvolution : nn::Module {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    const ::torch::Tensor y = ::torch::relu(norm(conv(x.reshape({-1, 1, 4, 4}))));
    return head(dropout(y.flatten(1)));
  }

  nn::Conv2d conv = register_module("conv", nn::Conv2d(nn::Conv2dOptions(1, 8, 3)));
  nn::BatchNorm2d norm = register_module("norm", nn::BatchNorm2d(8));
  Dropout dropout = register_module("dropout", Dropout(0.25));
  nn::Linear head = register_module("head", nn::Linear(32, 3));
};

TrainableOptions<MaskedConvolution> masked(const OptimizerOf<MaskedConvolution>& optimizer) {
  TrainableOptions<MaskedConvolution> options = options_of<MaskedConvolution>({});
  options.optimizer = optimizer;
  options.draws = false;
  options.metrics = {{"accuracy", [](const at::Tensor& output, const Batch& batch) {
                        return output.argmax(1).eq(batch.target()).to(at::kFloat);
                      }}};
  return options;
}

void expect_the_losses_of_the_cpu(const std::function<TrainableOptions<MaskedConvolution>()>& options) {
  TrainableModule<MaskedConvolution> on_the_cpu(options());
  const double expected = fit(on_the_cpu, 2, 4).results.at("loss");
  TrainableModule<MaskedConvolution> on_the_device(options());
  const double found = fit(on_the_device, 2, 4, course(kBatches)).results.at("loss");
  std::cout << "loss " << found << " on the device, " << expected << " on the CPU; " << on_the_device.arithmetic()
            << "\n";
  EXPECT_NEAR(found, expected, 0.01 * expected);
  EXPECT_EQ(on_the_device.memory().device(), "cuda:0");
}

TEST_F(TorchOnADevice, HasTheLossesOfTheCpuWithAnOptimizerOfLibTorch) {
  expect_the_losses_of_the_cpu([] {
    return masked([](MaskedConvolution& net) {
      return std::make_unique<optim::AdamW>(net.parameters(), optim::AdamWOptions(1e-3));
    });
  });
}

TEST_F(TorchOnADevice, HasTheLossesOfTheCpuWithAnOptimizerOfHoldfast) {
  expect_the_losses_of_the_cpu([] { return masked(AdamW(1e-3F)); });
}

TEST_F(TorchOnADevice, HasTheLossesOfTheCpuWithClippedGradients) {
  expect_the_losses_of_the_cpu([] {
    TrainableOptions<MaskedConvolution> options =
        masked([](MaskedConvolution& net) { return std::make_unique<optim::SGD>(net.parameters(), 0.05); });
    options.clipping.global_norm = 0.5F;
    return options;
  });
}

TEST_F(TorchOnADevice, GivesTheSameBitsAgainAndForSamplesThatLieThere) {
  std::vector<std::map<std::string, std::vector<float>>> states;
  for (const bool keeps : {false, false, true}) {
    TrainableModule<Net> model(options_of<Net>(
        [](Net& net) { return std::make_unique<optim::Adam>(net.parameters(), optim::AdamOptions(1e-3)); }));
    Replica replica = Replica::alone({.seed = kSeed, .shards = 2, .device = "cuda:0"});
    Trainer trainer(replica, model);
    const Dataset samples = keeps ? data().keep_on_device() : data();
    trainer.fit(samples.batch(kBatch), {.epochs = 2});
    states.push_back(values_of(model));
  }
  EXPECT_EQ(states[1], states[0]);
  EXPECT_EQ(states[2], states[0]) << "samples that lie on the device";
}

// Rows of 13 floats: the second shard of a batch that lies on the device begins at an address that is not a multiple
// of 16.
struct Narrow : nn::Module {
  ::torch::Tensor forward(const ::torch::Tensor& x) { return layer(x.narrow(1, 0, 13)); }
  nn::Linear layer = register_module("layer", nn::Linear(13, 3));
};

TEST_F(TorchOnADevice, GivesTheSameBitsWhereverAShardBegins) {
  constexpr std::int64_t kSamples = 40;
  std::vector<float> x(kSamples * 13);
  std::vector<std::int64_t> classes(kSamples);
  for (std::int64_t i = 0; i < kSamples; ++i) {
    Random random(17, Purpose::user, 0, static_cast<std::uint64_t>(i));
    for (std::int64_t j = 0; j < 13; ++j) x[static_cast<std::size_t>(i * 13 + j)] = random.normal();
    classes[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(random.below(3));
  }
  const Dataset data = from_tensors({{"x", Tensor(Shape{kSamples, 13}, x)}}, {{"y", Tensor(Shape{kSamples}, classes)}});
  std::vector<std::map<std::string, std::vector<float>>> states;
  for (const Dataset& samples : {data, data.keep_on_device()}) {
    TrainableOptions<Narrow> options = options_of<Narrow>(sgd<Narrow>());
    options.inputs = {{.name = "x", .shape = Shape{13}}};
    TrainableModule<Narrow> model(options);
    Replica replica = Replica::alone({.seed = kSeed, .shards = 2, .device = "cuda:0"});
    Trainer trainer(replica, model);
    trainer.fit(samples.batch(10), {.epochs = 3});
    states.push_back(values_of(model));
  }
  EXPECT_EQ(states[1], states[0]);
}

TEST_F(TorchOnADevice, PredictsWhatItsModulePredicts) {
  TrainableModule<Net> model(options_of<Net>(sgd<Net>()));
  Replica replica = Replica::alone({.seed = kSeed, .device = "cuda:0"});
  Trainer trainer(replica, model);
  trainer.fit(data().batch(kBatch), {.epochs = 1});
  const Tensor predicted = trainer.predict(data().batch(kBatch));
  const double loss = trainer.evaluate(data().batch(kBatch)).at("loss");

  std::vector<float> x = features();
  const at::NoGradGuard no_gradients;
  const at::Tensor input = at::from_blob(x.data(), {kBatch * kBatches, 16}, at::kFloat).to(at::Device("cuda:0"));
  const at::Tensor expected = dynamic_cast<Net&>(*model.module()).forward(input.narrow(0, 0, kBatch));
  EXPECT_TRUE(same_bits(predicted.values().first(3 * kBatch), expected))
      << difference(predicted.values().first(3 * kBatch), expected);
  EXPECT_GT(loss, 0);
}

struct CountsTwice : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    if (is_training()) norm->num_batches_tracked += 1;
    return Net::forward(x);
  }
};

struct Hungry : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    return is_training() ? Net::forward(x) + ::torch::empty({std::int64_t{1} << 42}, x.options())[0] : Net::forward(x);
  }
};

struct PutsSeveralTimes : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    const ::torch::Tensor twice = ::torch::zeros({2}, x.options().dtype(::torch::kLong));
    return Net::forward(x) + ::torch::zeros({1}, x.options()).put_(twice, x.flatten().slice(0, 0, 2));
  }
};

// The code and the sentence.
template <class M>
std::pair<ErrorCode, std::string> refusal_on_the_device(bool draws = true) {
  try {
    TrainableOptions<M> options = options_of<M>(sgd<M>());
    options.draws = draws;
    TrainableModule<M> model(std::move(options));
    fit(model, 1, 1, course(kBatches));
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ErrorCode::invalid_argument, "nothing was refused"};
}

TEST_F(TorchOnADevice, RefusesWhatTheCpuRefuses) {
  EXPECT_THAT(refusal_on_the_device<Net>(false).second, HasSubstr("TrainableOptions::draws is false"));
  EXPECT_THAT(refusal_on_the_device<CountsTwice>().second, HasSubstr("the counter \"norm/num_batches_tracked\""));
  EXPECT_THAT(refusal_on_the_device<PutsSeveralTimes>().second, HasSubstr("put_"));
}

TEST_F(TorchOnADevice, SaysThatMemoryIsMissing) {
  const auto [code, sentence] = refusal_on_the_device<Hungry>();
  EXPECT_EQ(code, ErrorCode::out_of_memory);
  EXPECT_THAT(sentence, HasSubstr("use smaller batches"));
}

}  // namespace
}  // namespace holdfast::torch
