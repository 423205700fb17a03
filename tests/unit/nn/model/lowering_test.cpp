// What the build() of an application's layer may not do, and the sentences that say so.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "holdfast/nn/dense.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/layer.h"
#include "holdfast/nn/layer_builder.h"
#include "holdfast/nn/sequential.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

// A layer whose build() a test writes.
class BuiltLayer final : public LayerOf<BuiltLayer> {
 public:
  using Build = std::function<std::vector<Value>(LayerBuilder& builder, const Value& x)>;

  explicit BuiltLayer(Build build) : LayerOf("built"), build_(std::move(build)) {}
  std::string_view kind() const override { return "test.Built"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override {
    return build_(builder, inputs[0]);
  }
  void write_config(ConfigWriter&) const override {}

 private:
  const Build build_;
};

std::string refusal_of_build(const BuiltLayer::Build& build) {
  return refusal([&] { Sequential{Input{4}, BuiltLayer(build)}; });
}

// Follows `sums` with a buffer of four elements.
std::string refusal_of_sums(const std::function<Value(const Value& x, const Value& weight)>& sums,
                            float momentum = 0.5F) {
  return refusal_of_build([&](LayerBuilder& builder, const Value& x) {
    const Value weight = builder.parameter("weight", {5}, Initializer::ones());
    const Value buffer = builder.buffer("mean", {4}, Initializer::zeros());
    if (builder.is_training()) builder.follow_batch(sums(x, weight), {buffer}, momentum);
    return std::vector<Value>{x};
  });
}

// Elements that are kept are twice what they were.
TEST(OwnDropout, DrawsAnewForEachCallAndNothingInInference) {
  Sequential model{Input{64}, BuiltLayer([](LayerBuilder& builder, const Value& x) {
                     return std::vector<Value>{concatenate({builder.dropout(x, 0.5F), builder.dropout(x, 0.5F)})};
                   })};
  model.set_weights({}, {});
  ModelProgram program(model, 1);
  const std::vector<float> ones(64, 1.0F);
  const auto outputs_of_step = [&](std::int64_t step) {
    const std::span<const float> outputs = program.forward_training(ones, 1, {}, {.seed = 7, .step = step});
    return std::vector<float>(outputs.begin(), outputs.end());
  };

  const std::vector<float> first = outputs_of_step(1);

  EXPECT_THAT(first, testing::Each(testing::AnyOf(0.0F, 2.0F)));
  EXPECT_NE(std::vector(first.begin(), first.begin() + 64), std::vector(first.begin() + 64, first.end()));
  EXPECT_EQ(outputs_of_step(1), first);
  EXPECT_NE(outputs_of_step(2), first);
  EXPECT_THAT(model.predict(Tensor({1, 64}, ones)).values(), testing::Each(1.0F));
}

TEST(OwnDropout, RefusesARateThatLeavesNothing) {
  for (const float rate : {-0.1F, 1.0F, std::nanf("")}) {
    EXPECT_THAT(refusal_of_build([rate](LayerBuilder& builder, const Value& x) {
                  return std::vector<Value>{builder.dropout(x, rate)};
                }),
                HasSubstr("dropout() needs a rate from 0 to below 1"));
  }
}

TEST(FollowBatch, RefusesSumsThatDoNotFitTheBuffers) {
  const std::string needed = "one for each of the 4 elements of the buffers, then the number of rows";

  EXPECT_THAT(refusal_of_sums([](const Value&, const Value& weight) { return reshape(weight, {5, 1}); }), "");
  EXPECT_THAT(refusal_of_sums([](const Value&, const Value& weight) { return slice(weight, 0, 0, 4); }),
              HasSubstr(needed));
  EXPECT_THAT(refusal_of_sums([](const Value& x, const Value&) { return pad(x, 0, 0, 1); }),
              HasSubstr("[5] for each sample"));
}

TEST(FollowBatch, RefusesAMomentumOutsideOfItsRange) {
  const auto weights = [](const Value&, const Value& weight) { return weight + 1.0F; };

  for (const float momentum : {-0.1F, 1.1F, std::nanf("")}) {
    EXPECT_THAT(refusal_of_sums(weights, momentum), HasSubstr("a momentum from 0 to 1"));
  }
  EXPECT_EQ(refusal_of_sums(weights, 1), "");
}

TEST(FollowBatch, RefusesWhatIsNotABufferOfTheLayer) {
  const auto with = [](const std::function<Value(LayerBuilder&, const Value&)>& buffer) {
    return refusal_of_build([&](LayerBuilder& builder, const Value& x) {
      const Value weight = builder.parameter("weight", {5}, Initializer::ones());
      const Value followed = buffer(builder, x);
      if (builder.is_training()) builder.follow_batch(weight + 1.0F, {followed}, 0.5F);
      return std::vector<Value>{x};
    });
  };

  EXPECT_THAT(with([](LayerBuilder&, const Value& x) { return x; }), HasSubstr("not a buffer of the layer"));
  EXPECT_THAT(with([](LayerBuilder&, const Value& x) { return x + 1.0F; }), HasSubstr("not a buffer of the layer"));
  EXPECT_THAT(
      with([](LayerBuilder& builder, const Value&) { return builder.parameter("other", {4}, Initializer::ones()); }),
      HasSubstr("not a buffer of the layer"));
}

TEST(FollowBatch, IsRefusedInInferenceAndForABufferThatTrainingReads) {
  const auto sums = [](LayerBuilder& builder) { return builder.parameter("w", {5}, Initializer::ones()) * 2.0F; };

  EXPECT_THAT(refusal_of_build([&](LayerBuilder& builder, const Value& x) {
                builder.follow_batch(sums(builder), {builder.buffer("mean", {4}, Initializer::zeros())}, 0.5F);
                return std::vector<Value>{x};
              }),
              HasSubstr("only where is_training() is true"));
  EXPECT_THAT(refusal_of_build([&](LayerBuilder& builder, const Value& x) {
                const Value mean = builder.buffer("mean", {4}, Initializer::zeros());
                if (builder.is_training()) builder.follow_batch(sums(builder), {mean}, 0.5F);
                builder.parameter("w", {5}, Initializer::ones());
                return std::vector<Value>{x - mean};
              }),
              HasSubstr("\"built/mean\" follows the batch, so training must not read it"));
}

TEST(FollowBatch, TakesSumsThatAreAnArrayOfTheCaller) {
  const Sequential model{Input{4}, BuiltLayer([](LayerBuilder& builder, const Value& x) {
                           const Value weight = builder.parameter("weight", {5}, Initializer::ones());
                           const Value first = builder.buffer("first", {4}, Initializer::zeros());
                           const Value second = builder.buffer("second", {4}, Initializer::zeros());
                           if (builder.is_training()) {
                             builder.follow_batch(weight, {first}, 0);
                             builder.follow_batch(weight, {second}, 0);
                           }
                           return std::vector<Value>{x};
                         })};
  std::vector<float> parameters(model.parameters().float_count()), gradients(parameters.size());
  std::vector<float> buffers(model.buffers().float_count()), contributions(10);
  model.initialize(1, parameters, buffers);
  const std::vector<float> x(4, 1.0F);
  ModelProgram program(model, 1);

  program.forward_training(x, 1, parameters, {});
  program.backward(x, parameters, gradients, contributions);

  EXPECT_THAT(contributions, testing::Each(1.0F));
}

TEST(Lowering, RefusesALayerWhoseOutputsDifferInTrainingAndInference) {
  EXPECT_THAT(refusal_of_build([](LayerBuilder& builder, const Value& x) {
                return std::vector<Value>{builder.is_training() ? x : reshape(x, {2, 2})};
              }),
              HasSubstr("its output is [4] of f32 in training but [2, 2] of f32 in inference"));
  EXPECT_THAT(refusal_of_build([](LayerBuilder& builder, const Value& x) {
                return builder.is_training() ? std::vector<Value>{x} : std::vector<Value>{x, x};
              }),
              HasSubstr("in inference"));
}

TEST(Lowering, RefusesALayerThatAsksForAWeightInInferenceAlone) {
  EXPECT_THAT(refusal_of_build([](LayerBuilder& builder, const Value& x) {
                if (builder.is_training()) return std::vector<Value>{x};
                return std::vector<Value>{x * builder.parameter("late", {4}, Initializer::ones())};
              }),
              HasSubstr("asks for the weight \"built/late\" in inference and not in training"));
}

TEST(Lowering, RefusesALayerWithoutAnOutput) {
  EXPECT_THAT(refusal_of_build([](LayerBuilder&, const Value&) { return std::vector<Value>(); }),
              HasSubstr("build() returned no value"));
}

TEST(Lowering, RefusesALayerThatCallsALayerOrUsesAForeignInput) {
  const Value foreign = input({4});

  EXPECT_THAT(refusal_of_build([](LayerBuilder&, const Value& x) { return std::vector<Value>{Dense{3}(x)}; }),
              HasSubstr("a call of a layer (Dense)"));
  EXPECT_THAT(refusal_of_build([&](LayerBuilder&, const Value& x) { return std::vector<Value>{x + foreign}; }),
              HasSubstr("an input of a model"));
}

}  // namespace
}  // namespace holdfast
