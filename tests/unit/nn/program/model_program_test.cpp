#include "nn/program/model_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <omp.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <thread>

#include "holdfast/nn/activation_layer.h"
#include "holdfast/nn/average_pooling2d.h"
#include "holdfast/nn/batch_normalization.h"
#include "holdfast/nn/conv2d.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/dropout.h"
#include "holdfast/nn/flatten.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/max_pooling2d.h"
#include "holdfast/nn/recurrent_layers.h"
#include "unit/nn/support/reference_check.h"

namespace holdfast {
namespace {

using reference::random_values;
using reference::Values;

Sequential small_model() {
  return Sequential{Input{12, 12, 1},
                    Conv2D{6, 3, {.activation = Activation::relu}},
                    MaxPooling2D{2},
                    BatchNormalization{},
                    Dropout{0.25F},
                    Flatten{},
                    Dense{10, {.activation = Activation::softmax}}};
}

struct Step {
  std::vector<float> outputs;
  std::vector<float> gradients;
  std::vector<float> contributions;

  friend bool operator==(const Step&, const Step&) = default;
};

constexpr std::size_t kWhole = std::numeric_limits<std::size_t>::max();

// One training step of the small model on the first samples of fixed data, with the backward pass in parts of so many
// gradients. `after_part` gets the step as it is after each part, and the first gradient that is complete.
Step train(
    ModelProgram& program, const Sequential& model, std::int64_t samples, std::size_t least_floats = kWhole,
    const std::function<void(const Step&, std::size_t)>& after_part = [](const Step&, std::size_t) {}) {
  const auto count = static_cast<std::size_t>(samples);
  const std::vector<float> features = random_values(count * 144, 1);
  const std::vector<float> output_gradient = random_values(count * 10, 2);
  std::vector<float> parameters(model.parameters().float_count());
  std::vector<float> buffers(model.buffers().float_count());
  model.initialize(3, parameters, buffers);
  // Not zero, so that what is not written shows.
  Step step = {.outputs = {},
               .gradients = std::vector<float>(parameters.size(), 77.0F),
               .contributions = std::vector<float>(program.contribution_count(), 77.0F)};
  const auto outputs =
      program.forward_training(features, samples, parameters, {.seed = 4, .step = 5, .first_sample = 6});
  step.outputs.assign(outputs.begin(), outputs.end());
  if (least_floats == kWhole) {
    program.backward(output_gradient, parameters, step.gradients, step.contributions);
    return step;
  }
  for (const BackwardPart& part : program.backward_parts(samples, least_floats)) {
    program.backward_part(part, samples,
                          {.inputs = {reinterpret_cast<const std::byte*>(features.data())},
                           .output_gradients = {output_gradient.data()},
                           .parameters = parameters,
                           .gradients = step.gradients,
                           .contributions = step.contributions});
    after_part(step, part.gradients_begin);
  }
  return step;
}

Step train_anew(std::int64_t samples, int threads) {
  const Sequential model = small_model();
  ModelProgram program(model, threads);
  return train(program, model, samples);
}

TEST(ModelProgram, ADeepModelMatchesTheReference) {
  const Sequential model{Input{8, 8, 1},
                         Conv2D{3, 3, {.activation = Activation::tanh}},
                         AveragePooling2D{2},
                         Conv2D{4, 3, {.padding = Padding::same, .activation = Activation::gelu}},
                         MaxPooling2D{{1, 3}},
                         Flatten{},
                         Dense{6, {.activation = Activation::sigmoid}},
                         Dense{3, {.activation = Activation::softmax}}};
  const auto reference = [](const Values& x, const std::vector<Values>& p) {
    using namespace reference;
    Values y = activation("tanh", convolution(x, {2, 8, 8, 1}, p[0], p[1], 3, {3, 3, 1, 1, false}), 3);
    y = average_pooling(y, {2, 6, 6, 3}, {2, 2, 2, 2, false});
    y = activation("gelu", convolution(y, {2, 3, 3, 3}, p[2], p[3], 4, {3, 3, 1, 1, true}), 4);
    y = max_pooling(y, {2, 3, 3, 4}, {1, 3, 1, 3, false});
    y = activation("sigmoid", dense(y, 12, p[4], p[5], 6), 6);
    return activation("softmax", dense(y, 6, p[6], p[7], 3), 3);
  };

  // Paths of a gradient of the first kernel: 2 samples x 36 positions, divided by 4 in pooling, then 9 windows x 4
  // filters, 6 and 3 units; slopes are at most 1.2, 1/4 (sigmoid) and 1/2 (softmax, over all its outputs). Some 100
  // roundings of sums and functions.
  reference::expect_training_matches(model, 2, reference,
                                     {.paths = 2 * 36 / 4 * 9 * 4 * 6 * 3 * 1.2 / 8, .roundings = 100});
}

TEST(ModelProgram, GivesTheSameBitsEachTime) {
  EXPECT_EQ(train_anew(16, 1), train_anew(16, 1));
  EXPECT_EQ(train_anew(16, 2), train_anew(16, 2));
}

TEST(ModelProgram, GivesTheSameBitsInParts) {
  const Sequential model = small_model();
  ModelProgram program(model, 1);
  const Step whole = train(program, model, 7);

  // Each array is padded to lines of 16 floats: 1,504 and 16 of Dense, before them 16 and 16 of the normalization.
  for (const auto& [least, parts] : std::map<std::size_t, std::size_t>{{1, 3}, {1540, 2}, {100'000, 1}}) {
    const std::size_t least_floats = least;
    std::size_t complete_from = model.parameters().float_count();
    std::size_t seen = 0;

    const Step step = train(program, model, 7, least_floats, [&](const Step& so_far, std::size_t begin) {
      ++seen;
      const auto at = static_cast<std::ptrdiff_t>(begin);
      EXPECT_TRUE(std::equal(so_far.gradients.begin() + at, so_far.gradients.end(), whole.gradients.begin() + at));
      EXPECT_EQ(so_far.contributions, whole.contributions);
      EXPECT_TRUE(begin == 0 || complete_from - begin >= least_floats);
      complete_from = begin;
    });

    EXPECT_EQ(step, whole) << least_floats;
    EXPECT_EQ(complete_from, 0U);
    EXPECT_EQ(seen, parts) << least_floats;
  }
}

TEST(ModelProgram, WhatRanBeforeLeavesNoTrace) {
  const Sequential model = small_model();
  ModelProgram program(model, 1);
  const Step first = train(program, model, 5);

  // More sizes than are kept, larger ones too.
  for (std::int64_t samples = 1; samples <= 3 * static_cast<std::int64_t>(ModelProgram::kPlansKept); ++samples) {
    train(program, model, samples);
  }

  EXPECT_EQ(train(program, model, 5), first);
}

TEST(ModelProgram, TwoThreadsAtOnceGiveTheSameBits) {
  const Step alone = train_anew(16, 1);
  std::vector<Step> steps(2);
  std::vector<std::thread> threads;

  for (Step& step : steps) {
    threads.emplace_back([&step] {
      const Sequential model = small_model();
      ModelProgram program(model, 1);
      for (int repetition = 0; repetition < 5; ++repetition) step = train(program, model, 16);
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(steps[0], alone);
  EXPECT_EQ(steps[1], alone);
}

TEST(ModelProgram, MayBeMadeOnOneThreadAndRunOnAnother) {
  const Sequential model = small_model();
  ModelProgram program(model, 1);
  const Step here = train(program, model, 7);
  Step there;

  std::thread([&] { there = train(program, model, 7); }).join();

  EXPECT_EQ(there, here);
}

TEST(ModelProgram, BitsDoNotDependOnTheApplicationsThreads) {
  const int before = omp_get_max_threads();
  const Step expected = train_anew(16, 2);

  omp_set_num_threads(5);
  const Step step = train_anew(16, 2);
  const int after = omp_get_max_threads();
  omp_set_num_threads(before);

  EXPECT_EQ(step, expected);
  EXPECT_EQ(after, 5);
}

TEST(ModelProgram, WritesEveryGradientAndZeroPadding) {
  const Sequential model = small_model();
  ModelProgram program(model, 1);

  const Step step = train(program, model, 3);

  std::vector<float> padding = step.gradients;
  for (std::size_t entry = 0; entry < model.parameters().entries().size(); ++entry) {
    const auto view = model.parameters().view(std::span(padding), entry);
    EXPECT_EQ(std::count(view.begin(), view.end(), 77.0F), 0);
    std::fill(view.begin(), view.end(), 0.0F);
  }
  EXPECT_EQ(padding, std::vector<float>(padding.size(), 0.0F));
}

TEST(ModelProgram, NoSamplesGiveNoGradient) {
  const Sequential model = small_model();
  ModelProgram program(model, 1);

  const Step step = train(program, model, 0);

  EXPECT_TRUE(step.outputs.empty());
  EXPECT_EQ(step.gradients, std::vector<float>(step.gradients.size(), 0.0F));
  EXPECT_EQ(step.contributions, std::vector<float>(step.contributions.size(), 0.0F));
  EXPECT_TRUE(program
                  .forward_inference({}, 0, std::vector<float>(step.gradients.size()),
                                     std::vector<float>(model.buffers().float_count()))
                  .empty());
}

TEST(ModelProgram, AnInferenceBetweenTheTwoPassesDoesNoHarm) {
  const Sequential model = small_model();
  ModelProgram program(model, 1);
  const Step expected = train(program, model, 4);
  const std::vector<float> features = random_values(4 * 144, 1);
  const std::vector<float> others = random_values(40 * 144, 9);
  std::vector<float> parameters(model.parameters().float_count()), buffers(model.buffers().float_count());
  model.initialize(3, parameters, buffers);
  std::vector<float> gradients(parameters.size()), contributions(program.contribution_count());

  program.forward_training(features, 4, parameters, {.seed = 4, .step = 5, .first_sample = 6});
  // As many sizes as push the training plan out of those that are kept.
  for (std::int64_t samples = 40; samples > 20; --samples) {
    const std::span<const float> some = std::span(others).first(static_cast<std::size_t>(samples) * 144);
    program.forward_inference(some, samples, parameters, buffers);
  }
  program.backward(random_values(40, 2), parameters, gradients, contributions);

  EXPECT_EQ(gradients, expected.gradients);
}

// A shard whose result is not needed can be stopped before its end, without harm to what is computed next.
TEST(ModelProgram, CanBeLeftBeforeAnyLayer) {
  const Sequential model = small_model();
  ModelProgram program(model, 1);
  const Step expected = train(program, model, 4);
  int calls = 0;
  program.call_before_operations([&](const std::string&) { ++calls; });
  train(program, model, 4);
  const int all_calls = calls;
  ASSERT_GE(all_calls, 4);

  for (int last = 1; last <= all_calls; ++last) {
    program.call_before_operations([&, left = last](const std::string&) mutable {
      if (--left == 0) throw std::runtime_error("left");
    });
    EXPECT_THROW(train(program, model, 4), std::runtime_error) << last;
    program.call_before_operations([](const std::string&) {});

    EXPECT_EQ(train(program, model, 4).gradients, expected.gradients) << last;
  }
}

TEST(ModelProgram, InferenceEqualsTrainingIfNoLayerDistinguishesThem) {
  const Sequential model{Input{6, 6, 2},
                         Conv2D{4, 3, {.activation = Activation::gelu}},
                         AveragePooling2D{2},
                         ActivationLayer{Activation::relu},
                         ActivationLayer{Activation::softmax},
                         Flatten{},
                         Dense{5, {.activation = Activation::tanh}}};
  const std::vector<float> features = random_values(3 * 72, 1);
  std::vector<float> parameters(model.parameters().float_count());
  model.initialize(1, parameters, {});
  ModelProgram program(model, 1);

  const auto trained = program.forward_training(features, 3, parameters, {});
  const auto inferred = program.forward_inference(features, 3, parameters, {});

  // The same operations on the same layouts.
  EXPECT_TRUE(std::ranges::equal(trained, inferred));
}

TEST(ModelProgram, LayersBeforeTheFirstParametersNeedNoGradient) {
  const Sequential model{Input{4, 4, 1}, MaxPooling2D{2}, Flatten{}, ActivationLayer{Activation::tanh}, Dense{2}};
  const auto reference = [](const Values& x, const std::vector<Values>& p) {
    const Values pooled = reference::max_pooling(x, {3, 4, 4, 1}, {2, 2, 2, 2, false});
    return reference::dense(reference::activation("tanh", pooled, 4), 4, p[0], p[1], 2);
  };

  // 3 samples, or 4 inputs and a bias, meet; tanh and the sums round.
  reference::expect_training_matches(model, 3, reference, {.paths = 5, .roundings = 16});
}

TEST(ModelProgram, AModelWithoutParametersRunsBothPasses) {
  const Sequential model{Input{2, 2, 1}, MaxPooling2D{2}, Flatten{}};
  ModelProgram program(model, 1);
  const std::vector<float> features = {1, 4, 3, 2};

  const auto outputs = program.forward_training(features, 1, {}, {});
  program.backward(std::vector<float>{1}, {}, {}, {});

  EXPECT_EQ(std::vector<float>(outputs.begin(), outputs.end()), std::vector<float>{4});
}

TEST(ModelProgram, ItsArithmeticNamesThatOfItsOperationsOnce) {
  const Sequential dense{Input{1}, Dense{1}};
  const Sequential recurrent{Input{4, 3}, LSTM{8, {.return_sequences = true}}, LSTM{8}};
  const std::string of_backend = ModelProgram(dense, 1).arithmetic();
  const std::string of_products = compute::make_cpu_backend(1)->repeated_product_arithmetic();

  EXPECT_EQ(of_backend, compute::make_cpu_backend(1)->description());
  EXPECT_EQ(ModelProgram(recurrent, 1).arithmetic(),
            of_products.empty() ? of_backend : of_backend + ", " + of_products);
}

TEST(ModelProgram, ItsArithmeticNamesTheThreads) {
  const Sequential model{Input{1}, Dense{1}};

  EXPECT_NE(ModelProgram(model, 1).arithmetic(), ModelProgram(model, 2).arithmetic());
  EXPECT_TRUE(ModelProgram(model, 2).arithmetic().ends_with(", 2 threads per shard"));
}

// Those of an embedding, a bias and a convolution are not products of dense layers; a kernel that two layers use, or
// that another operation reads, is written more than once; and one of positions has several rows for a sample.
TEST(ModelProgram, KnowsTheGradientsThatOneProductWrites) {
  const Value x = input({6});
  const Dense shared{6};
  const Value y = Dense{4, {.name = "once"}}(shared(shared(x)));
  const Value tied = matmul(y, permute(weight_of(y, "kernel"), {1, 0}));
  const Value of_positions = Dense{3, {.name = "positions"}}(reshape(x, {2, 3}));
  const Model model({x}, {Dense{3, {.name = "last"}}(Dense{5, {.name = "first"}}(x)), tied, of_positions});
  ModelProgram program(model, 1);

  std::vector<std::string> names;
  for (const ArenaEntry& entry : model.parameters().entries()) {
    if (std::ranges::binary_search(program.gradients_of_one_product(), entry.offset)) names.push_back(entry.name);
  }

  EXPECT_THAT(names, testing::UnorderedElementsAre("first/kernel", "last/kernel"));
}

}  // namespace
}  // namespace holdfast
