// Trainings on a pretended device. Its memory is the host's, which only LibTorch's work may access, and LibTorch's
// tensors there are those of its CPU. So the results must be those of the CPU.

#include "torch_device.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/program.h"
#include "unit/torch/support/plain_training.h"

namespace holdfast::torch {
namespace {

using ::testing::HasSubstr;

template <typename Function>
Function* function_of_the_library(const char* name) {
  void* const library = ::dlopen(built_program("libpretended_device.so").c_str(), RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

class PretendedTorchDevice final : public TorchDevice {
 public:
  at::Device place() const override { return at::kCPU; }
  std::shared_ptr<void> enter() const override { return {open_(), close_}; }

 private:
  void* (*const open_)() = function_of_the_library<void*()>("pretended_open");
  void (*const close_)(void*) = function_of_the_library<void(void*)>("pretended_close");
};

class OnAPretendedDevice : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("HOLDFAST_CUDA_LIBRARY", built_program("libpretended_device.so").c_str(), 1);
    ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 1);
    torch_device_maker() = [](const std::string&, compute::Backend&) -> std::unique_ptr<TorchDevice> {
      return std::make_unique<PretendedTorchDevice>();
    };
  }
  void TearDown() override {
    torch_device_maker() = maker_;
    ::unsetenv("HOLDFAST_CUDA_LIBRARY");
    ::unsetenv("CUBLAS_WORKSPACE_CONFIG");
  }

  const MakeTorchDevice maker_ = torch_device_maker();
};

constexpr std::int64_t kSteps = 2 * kBatches;

template <class M>
void expect_bits_on_the_device(const MakeOptimizer<M>& optimizer, const Slots& slots,
                               const std::function<void(TrainableOptions<M>&)>& change = {}) {
  expect_bits_of_plain_training<M>(optimizer, slots, change, {}, {.steps = kSteps, .device = "cuda:0"});
}

TEST_F(OnAPretendedDevice, TrainsAsLibTorchDoesWithSgd) {
  expect_bits_on_the_device<Net>(
      [](Net& net) {
        return std::make_unique<optim::SGD>(net.parameters(), optim::SGDOptions(0.05).momentum(0.9).dampening(0.3));
      },
      {HOLDFAST_PLAIN_SLOT(SGDParamState, momentum_buffer)});
}

TEST_F(OnAPretendedDevice, TrainsAsLibTorchDoesWithAdamW) {
  expect_bits_on_the_device<Net>(
      [](Net& net) { return std::make_unique<optim::AdamW>(net.parameters(), optim::AdamWOptions(1e-2)); },
      {HOLDFAST_PLAIN_SLOT(AdamWParamState, exp_avg), HOLDFAST_PLAIN_SLOT(AdamWParamState, exp_avg_sq)});
}

TEST_F(OnAPretendedDevice, TrainsAsLibTorchDoesWithAdagrad) {
  expect_bits_on_the_device<Net>(
      [](Net& net) {
        return std::make_unique<optim::Adagrad>(net.parameters(),
                                                optim::AdagradOptions(1e-2).initial_accumulator_value(0.1));
      },
      {HOLDFAST_PLAIN_SLOT(AdagradParamState, sum)});
}

// What several shards add, whatever the optimizer, is compared with the CPU.
template <class M>
void expect_the_state_of_the_cpu(const std::function<TrainableOptions<M>()>& options, int shards) {
  TrainableModule<M> on_the_cpu(options());
  const FitResult expected = fit(on_the_cpu, shards, 2);
  TrainableModule<M> on_the_device(options());
  const FitResult found = fit(on_the_device, shards, 2, {.device = "cuda:0"});
  EXPECT_EQ(values_of(on_the_device), values_of(on_the_cpu));
  EXPECT_EQ(found.results, expected.results);
  EXPECT_EQ(on_the_device.memory().device(), "cuda:0");
}

// One that no step uses, one that is frozen, and a buffer that no step changes.
struct Uneven : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) { return Net::forward(x) + scale * frozen(x); }

  nn::Linear unused = register_module("unused", nn::Linear(4, 4));
  nn::Linear frozen = register_module("frozen", nn::Linear(16, 3));
  ::torch::Tensor scale = register_buffer("scale", ::torch::full({3}, 0.1F));
  ::torch::Tensor numbers = register_buffer("numbers", ::torch::arange(4));
};

TrainableOptions<Uneven> uneven_options() {
  TrainableOptions<Uneven> options = options_of<Uneven>(
      [](Uneven& net) { return std::make_unique<optim::Adam>(net.parameters(), optim::AdamOptions(1e-2)); });
  options.metrics = {{"accuracy", [](const at::Tensor& output, const Batch& batch) {
                        return output.argmax(1).eq(batch.target()).to(at::kFloat);
                      }}};
  options.clipping.global_norm = 0.5F;
  return options;
}

TEST_F(OnAPretendedDevice, AddsShardsAsTheCpuDoes) {
  expect_the_state_of_the_cpu<Uneven>(uneven_options, 3);
}

TEST_F(OnAPretendedDevice, TrainsWithAnOptimizerOfHoldfast) {
  expect_the_state_of_the_cpu<Net>(
      [] {
        TrainableOptions<Net> options = options_of<Net>({});
        options.optimizer = AdamW(1e-2F);
        return options;
      },
      2);
}

TEST_F(OnAPretendedDevice, DrawsTheMasksOfTheCpu) {
  expect_the_state_of_the_cpu<Masked>(
      [] {
        TrainableOptions<Masked> options = options_of<Masked>(sgd<Masked>());
        options.draws = false;
        return options;
      },
      2);
}

TEST_F(OnAPretendedDevice, TakesSamplesThatLieThereAndPredicts) {
  std::vector<Tensor> predicted;
  for (const char* device : {"cpu", "cuda:0"}) {
    TrainableModule<Net> model(options_of<Net>(sgd<Net>()));
    Replica replica = Replica::alone({.seed = kSeed, .device = device});
    Trainer trainer(replica, model);
    trainer.fit(data().keep_on_device().batch(kBatch), {.epochs = 1});
    predicted.push_back(trainer.predict(data().batch(kBatch)));
  }
  const auto values = [&](std::size_t i) {
    return std::vector<float>(predicted[i].values().begin(), predicted[i].values().end());
  };
  EXPECT_EQ(values(1), values(0));
}

struct CountsTwice : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    if (is_training()) norm->num_batches_tracked += 1;
    return Net::forward(x);
  }
};

template <class M>
std::string refusal_on(const std::string& device, Precision precision = Precision::f32) {
  try {
    TrainableModule<M> model(options_of<M>(sgd<M>()));
    fit(model, 1, 1, {.device = device, .precision = precision});
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST_F(OnAPretendedDevice, RefusesWhatTheCpuRefuses) {
  EXPECT_THAT(refusal_on<CountsCalls>("cuda:0"), HasSubstr("changed the integer buffer \"calls\""));
  EXPECT_THAT(refusal_on<CountsTwice>("cuda:0"), HasSubstr("the counter \"norm/num_batches_tracked\""));
  EXPECT_THAT(refusal_on<Remembers>("cuda:0"), HasSubstr("remembers earlier calls"));
}

TEST_F(OnAPretendedDevice, RefusesWhatLibTorchWouldNotComputeTheSameWay) {
  EXPECT_THAT(refusal_on<Net>("cuda:0", Precision::bf16), HasSubstr("give SuperviseOptions::precision f32 or tf32"));
  // Also where this CPU has bf16.
  EXPECT_THAT(
      refusal_on<Net>("cpu", Precision::bf16),
      ::testing::AnyOf(HasSubstr("give SuperviseOptions::precision f32, and"), HasSubstr("no instructions for it")));
}

TEST_F(OnAPretendedDevice, RefusesADeviceThatItsLibTorchLacks) {
  torch_device_maker() = nullptr;
  EXPECT_THAT(refusal_on<Net>("cuda:0"), HasSubstr("was built without CUDA"));
}

}  // namespace
}  // namespace holdfast::torch
