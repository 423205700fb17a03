#include "torch_optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "unit/torch/support/plain_training.h"

namespace holdfast::torch {
namespace {

using ::testing::HasSubstr;

// Parameters that are computed in several pieces, the last of which is short.
struct WideNet : nn::Module {
  ::torch::Tensor forward(const ::torch::Tensor& x) { return head(::torch::tanh(wide(x))); }

  nn::Linear wide = register_module("wide", nn::Linear(16, 4099));
  nn::Linear head = register_module("head", nn::Linear(4099, 3));
};

TEST(TorchOptimizer, UpdatesPiecesAsLibTorchUpdatesWholeArrays) {
  expect_bits_of_plain_training<WideNet>(
      [](WideNet& net) {
        return std::make_unique<optim::SGD>(net.parameters(), optim::SGDOptions(0.01).momentum(0.9).nesterov(true));
      },
      {});
  expect_bits_of_plain_training<WideNet>(
      [](WideNet& net) {
        return std::make_unique<optim::Adam>(net.parameters(),
                                             optim::AdamOptions(1e-3).weight_decay(1e-3).amsgrad(true));
      },
      {});
  expect_bits_of_plain_training<WideNet>(
      [](WideNet& net) { return std::make_unique<optim::AdamW>(net.parameters(), optim::AdamWOptions(1e-3)); }, {});
  expect_bits_of_plain_training<WideNet>(
      [](WideNet& net) {
        return std::make_unique<optim::RMSprop>(net.parameters(),
                                                optim::RMSpropOptions(1e-3).momentum(0.5).centered(true));
      },
      {});
  expect_bits_of_plain_training<WideNet>(
      [](WideNet& net) {
        return std::make_unique<optim::Adagrad>(net.parameters(), optim::AdagradOptions(1e-3).lr_decay(1e-2));
      },
      {});
}

TEST(TorchOptimizer, RefusesToTrainNothing) {
  EXPECT_THAT(refusal(options_of<Net>([](Net&) {
                return std::make_unique<optim::SGD>(std::vector<at::Tensor>{}, optim::SGDOptions(0.1));
              })),
              HasSubstr("it would train nothing"));
}

std::unique_ptr<optim::Optimizer> sgd_of_two_groups(Net& net) {
  std::vector<optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<at::Tensor>{net.head->weight, net.head->bias},
                      std::make_unique<optim::SGDOptions>(0.08));
  groups.emplace_back(std::vector<at::Tensor>{net.conv->weight, net.norm->weight, net.norm->bias},
                      std::make_unique<optim::SGDOptions>(0.02));
  return std::make_unique<optim::SGD>(groups, optim::SGDOptions(0.08));
}

TEST(TorchOptimizer, FollowsAScheduleInTheRatioOfItsGroups) {
  const ExponentialDecay schedule(0.1F, 10, 0.5F);
  expect_bits_of_plain_training<Net>(
      sgd_of_two_groups, {}, [&](TrainableOptions<Net>& options) { options.learning_rate = schedule; },
      [&](std::int64_t step, Net& /*net*/, optim::Optimizer& optimizer) {
        const double rate = LearningRate(schedule).of_update(step);
        optimizer.param_groups()[0].options().set_lr(rate);
        optimizer.param_groups()[1].options().set_lr(rate * (0.02 / 0.08));
      });
}

TEST(TorchOptimizer, GetsGradientsWhoseElementsAreClipped) {
  expect_bits_of_plain_training<Net>(
      sgd_of_two_groups, {}, [](TrainableOptions<Net>& options) { options.clipping.value = 0.01F; },
      [](std::int64_t /*step*/, Net& net, optim::Optimizer& /*optimizer*/) {
        nn::utils::clip_grad_value_(net.parameters(), 0.01F);
      });
}

// How far one step with a rate of 1 goes.
std::vector<float> step_of_net(const GradientClipping& clipping) {
  TrainableOptions<Net> options =
      options_of<Net>([](Net& net) { return std::make_unique<optim::SGD>(net.parameters(), 1); });
  options.clipping = clipping;
  TrainableModule<Net> model(std::move(options));
  std::vector<float> moves;
  model.prepare({});
  model.initialize(kSeed);
  for (const auto& [name, values] : spans_of(model)) moves.insert(moves.end(), values.begin(), values.end());
  take_step(model, 1);
  std::size_t next = 0;
  for (const auto& [name, values] : spans_of(model)) {
    const bool is_trained = name.starts_with("model/") && name.find("running") == std::string::npos;
    for (const float value : values) {
      moves[next] = is_trained ? value - moves[next] : 0;
      ++next;
    }
  }
  return moves;
}

double norm_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

TEST(TorchOptimizer, GetsGradientsOfNoLargerNormThanAsked) {
  const std::vector<float> whole = step_of_net({});
  ASSERT_GT(norm_of(whole), 0.1);
  const std::vector<float> clipped = step_of_net({.global_norm = 0.1F});
  EXPECT_NEAR(norm_of(clipped), 0.1, 1e-5);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(clipped[i], whole[i] * 0.1 / norm_of(whole), 1e-6);
  }
  EXPECT_GT(norm_of(step_of_net({.norm = 0.1F})), 0.1);
}

// What a savepoint holds is all that an optimizer goes on from.
void expect_to_go_on_from_its_state(const MakeOptimizer<WideNet>& optimizer) {
  TrainableModule<WideNet> whole(options_of<WideNet>(optimizer));
  whole.prepare({});
  whole.initialize(kSeed);
  TrainableModule<WideNet> resumed(options_of<WideNet>(optimizer));
  resumed.prepare({});
  resumed.initialize(kSeed + 1);
  for (std::int64_t step = 1; step <= 6; ++step) {
    take_step(whole, step);
    if (step > 3) take_step(resumed, step);
    const std::map<std::string, std::span<float>> from = spans_of(whole);
    for (const auto& [name, values] : spans_of(resumed)) {
      if (step == 3) std::ranges::copy(from.at(name), values.begin());
      if (step <= 3) continue;
      EXPECT_EQ(std::memcmp(from.at(name).data(), values.data(), values.size_bytes()), 0) << name;
    }
  }
}

TEST(TorchOptimizer, GoesOnFromItsState) {
  expect_to_go_on_from_its_state([](WideNet& net) {
    return std::make_unique<optim::SGD>(net.parameters(), optim::SGDOptions(0.01).momentum(0.9).dampening(0.5));
  });
  expect_to_go_on_from_its_state([](WideNet& net) { return std::make_unique<optim::Adam>(net.parameters(), 1e-3); });
  expect_to_go_on_from_its_state([](WideNet& net) { return std::make_unique<optim::AdamW>(net.parameters(), 1e-3); });
  expect_to_go_on_from_its_state([](WideNet& net) {
    return std::make_unique<optim::RMSprop>(net.parameters(), optim::RMSpropOptions(1e-3).momentum(0.5));
  });
  expect_to_go_on_from_its_state([](WideNet& net) {
    return std::make_unique<optim::Adagrad>(net.parameters(), optim::AdagradOptions(1e-2).lr_decay(1e-1));
  });
}

// SGD that an application changed: its state may be anything.
struct OwnSgd : optim::SGD {
  using optim::SGD::SGD;
};

TEST(TorchOptimizer, RefusesWhatItCannotSaveOrUpdate) {
  const auto refused = [](const MakeOptimizer<Net>& optimizer) { return refusal(options_of<Net>(optimizer)); };
  EXPECT_THAT(refused([](Net& net) { return std::make_unique<OwnSgd>(net.parameters(), optim::SGDOptions(0.1)); }),
              HasSubstr("is of a class whose state Holdfast cannot save"));
  EXPECT_THAT(refused([](Net& /*net*/) { return std::unique_ptr<optim::Optimizer>(); }),
              HasSubstr("returned no optimizer"));
  EXPECT_THAT(refused([](Net& /*net*/) {
                Net other;
                return std::make_unique<optim::SGD>(other.parameters(), 0.1);
              }),
              HasSubstr("has a parameter that the module does not have"));
  EXPECT_THAT(refused([](Net& net) {
                std::vector<optim::OptimizerParamGroup> groups;
                groups.emplace_back(std::vector<at::Tensor>{net.head->weight}, std::make_unique<optim::SGDOptions>(0));
                groups.emplace_back(std::vector<at::Tensor>{net.head->bias}, std::make_unique<optim::SGDOptions>(0.1));
                return std::make_unique<optim::SGD>(groups, optim::SGDOptions(0.1));
              }),
              HasSubstr("has the learning rate 0"));
}

}  // namespace
}  // namespace holdfast::torch
