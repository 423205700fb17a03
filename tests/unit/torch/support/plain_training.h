#pragma once

// A module, samples, and the training that a program of LibTorch would write for them.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/holdfast.h"
#include "holdfast/torch/dropout.h"
#include "holdfast/torch/trainable_module.h"

namespace holdfast::torch {

namespace nn = ::torch::nn;
namespace optim = ::torch::optim;

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

// A module whose only draws are Holdfast's.
struct Masked : nn::Module {
  ::torch::Tensor forward(const ::torch::Tensor& x) { return head(second(::torch::relu(hidden(first(x))))); }

  Dropout first = register_module("first", Dropout(0.25));
  Dropout second = register_module("second", Dropout(0.5));
  nn::Linear hidden = register_module("hidden", nn::Linear(16, 8));
  nn::Linear head = register_module("head", nn::Linear(8, 3));
};

// Changes an integer buffer.
struct CountsCalls : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    calls += 1;
    return Net::forward(x);
  }
  ::torch::Tensor calls = register_buffer("calls", ::torch::zeros({}, ::torch::kLong));
};

// Keeps a number that no state has.
struct Remembers : Net {
  ::torch::Tensor forward(const ::torch::Tensor& x) {
    scale += is_training() ? 0.5F : 0;
    return Net::forward(x * scale);
  }
  float scale = 1;
};

inline std::vector<float> features() {
  Random random(3, Purpose::synthetic_data, 0, 0);
  std::vector<float> values(kBatch * kBatches * 16);
  for (float& value : values) value = random.normal();
  return values;
}

inline std::vector<std::int64_t> labels() {
  Random random(4, Purpose::synthetic_data, 0, 0);
  std::vector<std::int64_t> values(kBatch * kBatches);
  for (std::int64_t& value : values) value = static_cast<std::int64_t>(random.below(3));
  return values;
}

inline Dataset data() {
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

// Where both are trained, and for how long: `place` is LibTorch's name of `device`.
struct Course {
  std::int64_t steps = kEpochs * kBatches;  // whole epochs, or less than one
  std::string device = "cpu";
  at::Device place = at::kCPU;
  Precision precision = Precision::f32;
};

inline FitResult fit(AnyTrainableModule& model, int shards = 1, int epochs = kEpochs, const Course& course = {}) {
  Replica replica =
      Replica::alone({.seed = kSeed, .shards = shards, .device = course.device, .precision = course.precision});
  Trainer trainer(replica, model);
  const std::int64_t samples = std::min(course.steps, kBatches) * kBatch;
  return trainer.fit(data().take(samples).batch(kBatch), {.epochs = epochs});
}

// The same training as a program of LibTorch writes it. `before_update` gets the number of the update, from 1.
template <class M>
using BeforeUpdate = std::function<void(std::int64_t step, M& net, optim::Optimizer& optimizer)>;
template <class M>
std::pair<std::shared_ptr<M>, std::unique_ptr<optim::Optimizer>> plain_training(
    const MakeOptimizer<M>& make_optimizer, const BeforeUpdate<M>& before_update = {}, const Course& course = {}) {
  ::torch::manual_seed(seed_of_initial_parameters(kSeed));
  auto net = std::make_shared<M>();
  net->to(course.place);
  auto optimizer = make_optimizer(*net);
  std::vector<float> x = features();
  std::vector<std::int64_t> y = labels();
  for (std::int64_t step = 0; step < course.steps; ++step) {
    const std::int64_t first = step % kBatches * kBatch;
    const at::Tensor input = at::from_blob(x.data() + first * 16, {kBatch, 16}, at::kFloat).to(course.place);
    const at::Tensor target = at::from_blob(y.data() + first, {kBatch}, at::kLong).to(course.place);
    ::torch::manual_seed(seed_of_shard(kSeed, step, 0));
    const at::Tensor loss = ::torch::cross_entropy_loss(net->forward(input), target);
    for (at::Tensor& parameter : net->parameters()) parameter.mutable_grad() = at::Tensor();
    loss.backward();
    if (before_update) before_update(step + 1, *net, *optimizer);
    optimizer->step();
  }
  return {net, std::move(optimizer)};
}

inline std::string with_slashes(std::string name) {
  std::ranges::replace(name, '.', '/');
  return name;
}

inline bool same_bits(std::span<const float> a, const at::Tensor& tensor) {
  const at::Tensor b = tensor.detach().cpu().contiguous();
  return a.size() == static_cast<std::size_t>(b.numel()) &&
         std::memcmp(a.data(), b.data_ptr<float>(), a.size_bytes()) == 0;
}

// How many elements differ, and by how much, for a failure's message.
inline std::string difference(std::span<const float> a, const at::Tensor& tensor) {
  const at::Tensor b = tensor.detach().cpu().contiguous().flatten();
  if (a.size() != static_cast<std::size_t>(b.numel())) return "the sizes differ";
  std::size_t count = 0;
  float largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float other = b.data_ptr<float>()[i];
    count += std::memcmp(&a[i], &other, sizeof other) == 0 ? 0 : 1;
    largest = std::max(largest, std::abs(a[i] - other));
  }
  return std::to_string(count) + " of " + std::to_string(a.size()) + " differ, by at most " + std::to_string(largest);
}

inline std::map<std::string, std::span<float>> spans_of(Trainable& model) {
  std::map<std::string, std::span<float>> spans;
  for (const StateSpan& span : model.state()) spans[span.name] = span.values;
  return spans;
}

// Copies of the same arrays, from wherever they lie.
inline std::map<std::string, std::vector<float>> values_of(Trainable& model) {
  std::map<std::string, std::vector<float>> all;
  for (const auto& [name, span] : spans_of(model)) {
    std::vector<float>& values = all[name];
    values.resize(span.size());
    model.memory().copy_to_host(span, values);
  }
  return all;
}

// Keys of states are the address as text in LibTorch 1.13, and the address itself later.
inline bool is_key_of(const std::string& key, const at::Tensor& parameter) {
  std::ostringstream address;
  address << parameter.unsafeGetTensorImpl();
  return key == address.str();
}
inline bool is_key_of(const void* key, const at::Tensor& parameter) {
  return key == parameter.unsafeGetTensorImpl();
}

template <class State>
const State& plain_state(optim::Optimizer& optimizer, const at::Tensor& parameter) {
  for (const auto& [key, state] : optimizer.state()) {
    if (is_key_of(key, parameter)) return static_cast<const State&>(*state);
  }
  throw std::runtime_error("no state");
}

using Slots = std::map<std::string, std::function<at::Tensor(optim::Optimizer&, const at::Tensor&)>>;

template <class M>
void expect_bits_of_plain_training(const MakeOptimizer<M>& make_optimizer, const Slots& slots,
                                   const std::function<void(TrainableOptions<M>&)>& change = {},
                                   const BeforeUpdate<M>& before_update = {}, const Course& course = {}) {
  TrainableOptions<M> options = options_of<M>(make_optimizer);
  if (change) change(options);
  TrainableModule<M> model(std::move(options));
  fit(model, 1, static_cast<int>(std::max<std::int64_t>(1, course.steps / kBatches)), course);
  const auto [net, optimizer] = plain_training<M>(make_optimizer, before_update, course);
  const std::map<std::string, std::vector<float>> values = values_of(model);
  const auto expect_same = [&](const std::string& name, const at::Tensor& tensor) {
    EXPECT_TRUE(same_bits(values.at(name), tensor)) << name << ": " << difference(values.at(name), tensor);
  };
  for (const auto& parameter : net->named_parameters()) {
    // A second name of a tensor.
    if (parameter.key() == "head.weight" && !values.contains("model/head/weight")) continue;
    expect_same("model/" + with_slashes(parameter.key()), parameter.value());
    if (!parameter.value().requires_grad()) continue;
    for (const auto& [name, slot] : slots) {
      expect_same("optimizer/" + name + "/" + with_slashes(parameter.key()), slot(*optimizer, parameter.value()));
    }
  }
  for (const auto& buffer : net->named_buffers()) {
    if (buffer.value().scalar_type() != at::kFloat) continue;
    expect_same("model/" + with_slashes(buffer.key()), buffer.value());
  }
}

#define HOLDFAST_PLAIN_SLOT(State, member)                                                                        \
  {                                                                                                               \
#member, [](optim::Optimizer & optimizer,                                                                     \
                const at::Tensor& parameter) { return plain_state<optim::State>(optimizer, parameter).member(); } \
  }

// The step with this number, from 1, on a batch of one shard.
inline void take_step(AnyTrainableModule& model, std::int64_t step) {
  const std::vector<float> x = features();
  const std::vector<std::int64_t> y = labels();
  const RowLayout inputs({{.name = "x", .shape = {16}}});
  const RowLayout targets({{.name = "y", .shape = {}, .dtype = DType::i64}});
  const auto first = static_cast<std::size_t>((step - 1) % kBatches * kBatch);
  std::vector<float> rows(kBatch * targets.words());
  std::memcpy(rows.data(), y.data() + first, kBatch * sizeof(std::int64_t));
  ShardBatch batch{.seed = kSeed,
                   .step = step - 1,
                   .first_sample = 0,
                   .samples = kBatch,
                   .batch_samples = kBatch,
                   .features = std::span(x).subspan(first * 16, kBatch * 16),
                   .targets = rows};
  batch.input_layout = &inputs;
  batch.target_layout = &targets;
  std::vector<float> gradients(model.gradient_count());
  std::vector<float> sums(model.sum_names().size());
  GradientSink sink(gradients);
  model.compute_gradients(batch, sink, sums);
  model.apply_update({.step = step, .batch_samples = kBatch, .gradients = gradients});
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

template <class M>
MakeOptimizer<M> sgd() {
  return [](M& net) { return std::make_unique<optim::SGD>(net.parameters(), 0.1); };
}

}  // namespace holdfast::torch
