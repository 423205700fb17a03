#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "holdfast/holdfast.h"
#include "nn/program/model_program.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

Model dense_model() {
  const Value x = input({3});
  const Value hidden = Dense{4, {.activation = Activation::tanh, .name = "block1_dense"}}(x);
  const Value normal = BatchNormalization{{.name = "block1_norm"}}(hidden);
  return Model(x, Dense{2, {.name = "head"}}(normal));
}

std::vector<std::string> names_of(const ArenaLayout& layout) {
  std::vector<std::string> names;
  for (const ArenaEntry& entry : layout.entries()) names.push_back(entry.name);
  return names;
}

std::vector<float> ascending(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  for (float& value : values) value *= 0.01F;
  return values;
}

TEST(Freeze, MovesTheParametersOfFrozenLayersToTheBuffers) {
  const Model model = dense_model().frozen("block1_*");

  EXPECT_EQ(names_of(model.parameters()), (std::vector<std::string>{"head/kernel", "head/bias"}));
  EXPECT_EQ(names_of(model.buffers()),
            (std::vector<std::string>{"block1_dense/kernel", "block1_dense/bias", "block1_norm/gamma",
                                      "block1_norm/beta", "block1_norm/moving_mean", "block1_norm/moving_variance"}));
  EXPECT_EQ(model.frozen_layers(), (std::vector<std::string>{"block1_dense", "block1_norm"}));
}

TEST(Freeze, DrawsTheWeightsThatTheModelWithoutFrozenLayersDraws) {
  Model plain = dense_model();
  Model frozen = plain.frozen("block1_*");
  std::vector<float> parameters(plain.parameters().float_count()), buffers(plain.buffers().float_count());
  plain.initialize(7, parameters, buffers);
  plain.set_weights(parameters, buffers);
  parameters.assign(frozen.parameters().float_count(), 0);
  buffers.assign(frozen.buffers().float_count(), 0);

  frozen.initialize(7, parameters, buffers);

  const Model same = plain.frozen("block1_*");
  EXPECT_TRUE(std::ranges::equal(parameters, same.parameter_values()));
  EXPECT_TRUE(std::ranges::equal(buffers, same.buffer_values()));
}

TEST(Freeze, KeepsPredictionsAndHasWeightsOfItsOwn) {
  Model model = dense_model();
  std::vector<float> parameters(model.parameters().float_count()), buffers(model.buffers().float_count());
  model.initialize(1, parameters, buffers);
  model.set_weights(parameters, buffers);
  Tensor x{Shape{5, 3}};
  std::ranges::copy(ascending(15), x.values().begin());
  const Tensor before = model.predict(x);

  const Model frozen = model.frozen();
  model.set_weights(std::vector<float>(parameters.size()), std::vector<float>(buffers.size()));

  EXPECT_TRUE(std::ranges::equal(frozen.predict(x).values(), before.values()));
  EXPECT_TRUE(std::ranges::equal(frozen.unfrozen().predict(x).values(), before.values()));
}

TEST(Freeze, WritesTheFlagInTheTextOfTheModelAndReadsIt) {
  const Model model = dense_model();
  const Model frozen = model.frozen("*norm");

  EXPECT_EQ(model.graph().find("trainable"), std::string::npos);
  EXPECT_EQ(Model::from_graph(frozen.graph()).frozen_layers(), (std::vector<std::string>{"block1_norm"}));
  EXPECT_EQ(Model::from_graph(frozen.graph()).graph(), frozen.graph());
  EXPECT_EQ(frozen.unfrozen("block1_norm").graph(), model.graph());
}

TEST(Freeze, RefusesAPatternThatMatchesNoLayer) {
  const std::string sentence = sentence_thrown_by([] { dense_model().frozen("heat"); });

  EXPECT_NE(sentence.find("names close to it are \"head\""), std::string::npos) << sentence;
}

// d loss / d parameters of both models, with loss = sum of the outputs.
std::vector<float> gradients_of(const Model& model) {
  ModelProgram program(model, 1);
  program.read_buffers_from(model.buffer_values());
  const std::vector<float> x = ascending(5 * 3);
  const std::vector<float> ones(5 * 2, 1.0F);
  std::vector<float> gradients(model.parameters().float_count());
  std::vector<float> contributions(program.contribution_count());
  program.forward_training(x, 5, model.parameter_values(), {});
  program.backward(ones, model.parameter_values(), gradients, contributions);
  return gradients;
}

TEST(Freeze, NormalizesWithMovingAveragesAndPassesTheirGradientOn) {
  // Layers on both sides of a frozen BatchNormalization are trained.
  Model model = dense_model().frozen("block1_norm");
  std::vector<float> parameters(model.parameters().float_count()), buffers(model.buffers().float_count());
  model.initialize(3, parameters, buffers);
  std::ranges::copy(ascending(buffers.size()), buffers.begin());
  model.set_weights(parameters, buffers);
  ModelProgram program(model, 1);
  EXPECT_EQ(program.contribution_count(), 0U);
  const std::vector<float> x = ascending(5 * 3);

  const std::vector<float> gradients = gradients_of(model);

  // Numerical derivatives, in float: a step of 1/64 and outputs of about 1 leave an error below 1e-3 of the values.
  program.read_buffers_from(model.buffer_values());
  const auto loss = [&](const std::vector<float>& at) {
    const std::span<const float> outputs = program.forward_training(x, 5, at, {});
    return std::accumulate(outputs.begin(), outputs.end(), 0.0);
  };
  for (std::size_t i = 0; i < 12; ++i) {  // block1_dense/kernel
    std::vector<float> up = parameters, down = parameters;
    up[i] += 1.0F / 64;
    down[i] -= 1.0F / 64;
    const double slope = (loss(up) - loss(down)) * 32;
    EXPECT_NEAR(gradients[i], slope, 2e-3 * std::max(1.0, std::abs(slope))) << i;
  }
}

TEST(Freeze, StaysFrozenWhereTheModelIsCalled) {
  const Model base = dense_model().output_of("block1_norm").frozen();
  const Value x = input({3});
  Model model(x, Dense{2, {.name = "new_head"}}(base.call({x}, "base").at(0)));

  EXPECT_EQ(model.frozen_layers(), (std::vector<std::string>{"base/block1_dense", "base/block1_norm"}));
  EXPECT_EQ(names_of(model.parameters()), (std::vector<std::string>{"new_head/kernel", "new_head/bias"}));
}

TEST(TakeWeights, GivesANestedModelItsWeightsAndDrawsTheRest) {
  Model base = dense_model().output_of("block1_norm").frozen();
  base.set_weights({}, ascending(base.buffers().float_count()));
  const Value x = input({3});
  Model model(x, Dense{2, {.name = "new_head"}}(base.call({x}, "base").at(0)));

  model.take_weights(base, "base", 5);

  std::vector<float> parameters(model.parameters().float_count()), buffers(model.buffers().float_count());
  model.initialize(5, parameters, buffers);
  EXPECT_TRUE(std::ranges::equal(model.parameter_values(), parameters));
  for (std::size_t entry = 0; entry < base.buffers().entries().size(); ++entry) {
    EXPECT_TRUE(std::ranges::equal(model.buffers().view(model.buffer_values(), entry),
                                   base.buffers().view(base.buffer_values(), entry)));
  }
  const std::string sentence = sentence_thrown_by([&] { model.take_weights(base, "bass"); });
  EXPECT_NE(sentence.find("bass/block1_dense"), std::string::npos) << sentence;
}

}  // namespace
}  // namespace holdfast
