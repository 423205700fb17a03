// weight_of(): weights of layers as values between layers. Gradients are compared with those of formulas by hand.

#include "nn/operations/weight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/holdfast.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// y = x K K^T without biases: an autoencoder of two numbers with a code of one.
Model tied_autoencoder() {
  const Value x = input({2});
  const Value code = Dense{1, {.use_bias = false, .name = "encoder"}}(x);
  return Model(x, matmul(code, permute(weight_of(code, "kernel"), {1, 0})));
}

std::vector<float> gradients_of(const Model& model, const std::vector<float>& parameters, const std::vector<float>& x,
                                const std::vector<float>& output_gradient, std::int64_t samples = 1) {
  ModelProgram program(model, 1);
  std::vector<float> padded(model.parameters().float_count());
  std::ranges::copy(parameters, padded.begin());
  std::vector<float> gradients(padded.size(), 77);
  program.prepare_training(samples, {});
  program.run_training({reinterpret_cast<const std::byte*>(x.data())}, samples, padded);
  program.backward(output_gradient, padded, gradients, {});
  return gradients;
}

TEST(WeightOf, IsOneArrayWithItsLayer) {
  Model model = tied_autoencoder();
  std::vector<float> kernel(model.parameters().float_count());
  kernel[0] = 2;
  kernel[1] = 3;

  ASSERT_EQ(model.parameters().entries().size(), 1U);
  EXPECT_EQ(model.parameters().entries()[0].name, "encoder/kernel");
  model.set_weights(kernel, {});
  // x K = 2 + 3 * 10 = 32.
  EXPECT_THAT(model.predict(Tensor(Shape{1, 2}, {1, 10})).values(), ElementsAre(64, 96));
}

// With a = x K and the gradient g of y: dK = x^T (g K) + (a g)^T.
TEST(WeightOf, GetsTheSumOfTheGradientsOfAllUses) {
  const std::vector<float> gradients = gradients_of(tied_autoencoder(), {2, 3}, {1, 10}, {5, 7});

  // g K = 5 * 2 + 7 * 3 = 31, and a = 32.
  EXPECT_THAT(std::span(gradients).first(2), ElementsAre(1 * 31 + 32 * 5, 10 * 31 + 32 * 7));
}

TEST(WeightOf, StopsItsGradientWhereItIsToldTo) {
  const Value x = input({2});
  const Value code = Dense{1, {.use_bias = false}}(x);
  const Model model(x, matmul(code, permute(stop_gradient(weight_of(code, "kernel")), {1, 0})));

  const std::vector<float> gradients = gradients_of(model, {2, 3}, {1, 10}, {5, 7});

  EXPECT_THAT(std::span(gradients).first(2), ElementsAre(31, 310));
}

TEST(WeightOf, StandsInTextsOfGraphs) {
  const Value ids = input({3}, {.dtype = DType::i32, .name = "ids"});
  const Value vectors = Embedding{5, 2, {.name = "words"}}(ids);
  const Value table = weight_of(vectors, "embeddings");
  const Value scores = matmul(vectors, permute(table * 0.5F, {1, 0}));
  const Model model(ids, scores + sum(gather(table, ids), {1}, ReducedAxes::keep));

  const Model read = Model::from_graph(model.graph());

  EXPECT_EQ(read.graph(), model.graph());
  EXPECT_THAT(model.graph(), HasSubstr(R"({"kind":"Operation","name":"weight","config":{"operation":"weight","weight":)"
                                       R"("embeddings"}})"));
  EXPECT_EQ(read.parameters().entries().size(), 1U);
  EXPECT_EQ(read.output_shape(), (Shape{3, 5}));
}

// A weight that was broadcast has no samples either, and a text must say so.
TEST(WeightOf, KeepsWhatHasNoSamplesInTexts) {
  const Value x = input({2});
  const Value code = Dense{1, {.use_bias = false}}(x);
  const Model model(x, matmul(code, reshape(broadcast(weight_of(code, "kernel"), {2, 3}), {1, 6})));

  EXPECT_EQ(Model::from_graph(model.graph()).graph(), model.graph());
}

TEST(WeightOf, DoesNotTrainAFrozenLayer) {
  const Model frozen = tied_autoencoder().frozen("encoder");

  EXPECT_TRUE(frozen.parameters().entries().empty());
  ASSERT_EQ(frozen.buffers().entries().size(), 1U);
  EXPECT_EQ(frozen.buffers().entries()[0].name, "encoder/kernel");
  EXPECT_EQ(frozen.unfrozen().graph(), tied_autoencoder().graph());
}

TEST(WeightOf, ComesWithANestedModel) {
  Model inner = tied_autoencoder();
  std::vector<float> kernel(inner.parameters().float_count());
  kernel[0] = 2;
  kernel[1] = 3;
  inner.set_weights(kernel, {});
  const Value x = input({2});
  Model outer(x, inner.call({inner.call({x}, "part").at(0)}, "part").at(0));
  outer.take_weights(inner, "part");

  EXPECT_EQ(outer.parameters().entries().size(), 1U);
  EXPECT_EQ(outer.predict(Tensor(Shape{1, 2}, {1, 10})).values()[0], 2 * (64 * 2 + 96 * 3));
}

TEST(WeightOf, CountsOnceInTheSummary) {
  EXPECT_THAT(tied_autoencoder().summary(), HasSubstr("weight (Operation)    [2, 1]               0   encoder"));
  EXPECT_THAT(tied_autoencoder().summary(), HasSubstr("Total params: 2\n"));
}

// A layer of an application that takes a weight.
class Backwards final : public LayerOf<Backwards> {
 public:
  Backwards() : LayerOf("") {}
  std::string_view kind() const override { return "weight_test.Backwards"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override {
    const std::int64_t width = inputs[1].shape()[0];
    return {matmul(inputs[0], permute(inputs[1], {1, 0})) + builder.parameter("bias", {width}, Initializer::zeros())};
  }
  void write_config(ConfigWriter&) const override {}
};

TEST(WeightOf, IsTakenByLayersOfApplications) {
  const Value x = input({4});
  const Value code = Dense{3}(x);

  EXPECT_EQ(Model(x, Backwards()(code, weight_of(code, "kernel"))).output_shape(), (Shape{4}));
}

TEST(WeightOf, RefusesWhatHasNoSuchWeight) {
  const Value x = input({2});
  const Value code = Dense{1, {.name = "code"}}(x);

  EXPECT_THAT(refusal([&] { weight_of(code, "kernle"); }),
              HasSubstr("layer \"code\" (Dense) has no weight \"kernle\"; it has \"kernel\", \"bias\""));
  EXPECT_THAT(refusal([&] { weight_of(Flatten{}(x), "kernel"); }), HasSubstr("it has no weights"));
  EXPECT_THAT(refusal([&] { weight_of(x, "kernel"); }), HasSubstr("that no layer has made"));
  EXPECT_THAT(refusal([&] { weight_of(code * 2.0F, "kernel"); }), HasSubstr("before functions of values"));
  EXPECT_THAT(refusal([&] { Model(x, weight_of(code, "kernel")); }), HasSubstr("made of weights alone"));
  EXPECT_THAT(refusal([&] { Dense{3}(weight_of(code, "kernel")); }), HasSubstr("and not a weight"));
  EXPECT_THAT(refusal([&] { max_pooling(weight_of(code, "kernel"), {.size = {1}}); }), HasSubstr("not a weight"));
  const Value normal = BatchNormalization{}(x);
  EXPECT_THAT(refusal([&] { Model(x, normal * weight_of(normal, "moving_mean")); }), HasSubstr("follows the batch"));
}

TEST(WeightOf, RefusesATextOfAWeightOfAnInput) {
  std::string text = tied_autoencoder().graph();
  const std::string call = R"({"layer":1,"inputs":[[0,0]]})";
  ASSERT_NE(text.find(call), std::string::npos);
  text.replace(text.find(call), call.size(), R"({"layer":1,"inputs":[[-1,0]]})");

  EXPECT_THAT(refusal([&] { Model::from_graph(text); }), HasSubstr("an input has none"));
}

}  // namespace
}  // namespace holdfast
