#include <gtest/gtest.h>

#include <numeric>

#include "holdfast/holdfast.h"
#include "unit/nn/support/reference_check.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

void give_weights(Model& model) {
  std::vector<float> parameters(model.parameters().float_count()), buffers(model.buffers().float_count());
  model.initialize(7, parameters, buffers);
  model.set_weights(std::move(parameters), std::move(buffers));
}

Tensor some_samples(std::int64_t samples, std::int64_t elements) {
  Tensor x({samples, elements});
  const std::vector<float> values = reference::random_values(x.values().size(), 5);
  std::copy(values.begin(), values.end(), x.values().begin());
  return x;
}

std::vector<float> values_of(const Tensor& x) {
  return {x.values().begin(), x.values().end()};
}

std::vector<std::string> layer_names_of(const Model& model) {
  std::vector<std::string> names;
  for (const ModelLayer& layer : model.layers()) names.push_back(layer.name);
  return names;
}

TEST(PartOfAModel, ComputesTheOutputOfALayerWithTheWeightsOfTheModel) {
  const Value x = input({4});
  const Value hidden = Dense{8, {.activation = Activation::tanh, .name = "hidden"}}(x);
  Model model(x, Dense{3, {.name = "head"}}(hidden));
  Model same(x, hidden);
  give_weights(model);
  const Tensor samples = some_samples(5, 4);
  std::vector<float> weights(same.parameters().float_count());
  const auto begin = model.parameter_values().begin();
  std::copy(begin, begin + static_cast<std::ptrdiff_t>(weights.size()), weights.begin());
  same.set_weights(weights, {});

  const Model features = model.output_of("hidden");

  EXPECT_EQ(layer_names_of(features), std::vector<std::string>{"hidden"});
  EXPECT_EQ(features.output_shape(), (Shape{8}));
  EXPECT_EQ(values_of(features.predict(samples)), values_of(same.predict(samples)));
  EXPECT_EQ(values_of(model.output_of("head").predict(samples)), values_of(model.predict(samples)));
}

TEST(PartOfAModel, HasTheBuffersOfItsLayers) {
  Model model = Sequential{Input{4}, Dense{6}, BatchNormalization{}, Dense{6}, BatchNormalization{{.name = "last"}}};
  std::vector<float> parameters(model.parameters().float_count()), buffers(model.buffers().float_count());
  model.initialize(7, parameters, buffers);
  std::iota(buffers.begin(), buffers.end(), 1.0F);
  model.set_weights(parameters, buffers);

  const Model part = model.output_of("batch_normalization");

  ASSERT_EQ(part.buffers().entries().size(), 2U);
  EXPECT_EQ(part.buffers().view(part.buffer_values(), 1)[0], model.buffers().view(model.buffer_values(), 1)[0]);
  EXPECT_TRUE(part.is_chain());
}

TEST(PartOfAModel, NeedsOnlyTheInputsThatItReads) {
  const Value left = input({3}, {.name = "left"}), right = input({5}, {.name = "right"});
  const Value b = Dense{2, {.name = "b"}}(right);
  const Model model({left, right}, {Add{}(Dense{2, {.name = "a"}}(left), b)});

  const Model part = model.output_of("b");

  ASSERT_EQ(part.inputs().size(), 1U);
  EXPECT_EQ(part.inputs()[0].name, "right");
  EXPECT_EQ(layer_names_of(part), std::vector<std::string>{"b"});
}

TEST(PartOfAModel, MayEndAtALaterCallOfALayer) {
  const Dense shared{3, {.name = "shared"}};
  const Value x = input({3});
  Model model(x, shared(relu(shared(x))));
  give_weights(model);
  const Tensor samples = some_samples(4, 3);

  EXPECT_EQ(values_of(model.output_of("shared", 1).predict(samples)), values_of(model.predict(samples)));
  EXPECT_EQ(layer_names_of(model.output_of("shared", 0)), std::vector<std::string>{"shared"});
  EXPECT_EQ(refusal([&] { model.output_of("shared", 2); }),
            "layer \"shared\" is called 2 times, so it has no call number 2; the first one is number 0");
}

TEST(PartOfAModel, NumbersLayersByTheirFirstCallInThePart) {
  // In the whole model, the first call of "late" comes before "early"; in the part it comes after.
  const Dense late{3, {.name = "late"}};
  const Value x = input({3});
  const Value first = late(x);
  const Value early = Dense{3, {.name = "early"}}(x);
  const Value second = late(early);
  Model model({x}, {first, second});
  give_weights(model);

  const Model part = model.output_of("late", 1);

  EXPECT_EQ(layer_names_of(part), (std::vector<std::string>{"early", "late"}));
  EXPECT_EQ(Model::from_graph(part.graph()).graph(), part.graph());
  const auto kernel_of = [](const Model& of, std::size_t entry) {
    return of.parameters().view(of.parameter_values(), entry);
  };
  EXPECT_EQ(model.parameters().entries()[0].name, "late/kernel");
  EXPECT_EQ(part.parameters().entries()[2].name, "late/kernel");
  EXPECT_TRUE(std::equal(kernel_of(model, 0).begin(), kernel_of(model, 0).end(), kernel_of(part, 2).begin()));
}

TEST(PartOfAModel, EndsAtLayersOfNestedModelsByTheirPath) {
  const Value inner = input({4});
  const Model encoder(inner, Dense{2, {.name = "code"}}(Dense{3, {.name = "wide"}}(inner)));
  const Value x = input({4});
  const Model model(x, Dense{1}(encoder.call({x}, "encoder")[0]));

  EXPECT_EQ(model.output_of("encoder/wide").output_shape(), (Shape{3}));
  EXPECT_EQ(layer_names_of(model.outputs_of({"encoder/code", "encoder/wide"})),
            (std::vector<std::string>{"encoder/wide", "encoder/code"}));
  EXPECT_EQ(model.outputs_of({"encoder/code", "encoder/wide"}).outputs()[0].name, "encoder/code");
}

TEST(PartOfAModel, HasNoWeightsIfTheModelHasNone) {
  const Sequential model{Input{4}, Dense{2}, Dense{1}};

  EXPECT_FALSE(model.output_of("dense").has_weights());
}

std::string not_found(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    return error.what();
  }
  return {};
}

TEST(PartOfAModel, NamesLayersThatAreCloseToAWrongName) {
  const Value x = input({4});
  const Model encoder(x, Dense{2, {.name = "code"}}(Dense{3, {.name = "wide"}}(x)));
  const Model model(x, Dense{1, {.name = "head"}}(encoder.call({x}, "encoder")[0]));

  EXPECT_EQ(not_found([&] { model.output_of("haed"); }),
            "the model has no layer named \"haed\"; names close to it are \"head\"");
  EXPECT_EQ(not_found([&] { model.output_of("heads"); }),
            "the model has no layer named \"heads\"; names close to it are \"head\"");
  EXPECT_EQ(not_found([&] { model.output_of("code"); }),
            "the model has no layer named \"code\"; names close to it are \"encoder/code\"");
  EXPECT_EQ(not_found([&] { model.output_of("encoder"); }),
            "the model has no layer named \"encoder\"; names close to it are \"encoder/wide\", \"encoder/code\"");
  EXPECT_EQ(not_found([] { Sequential{Input{1}}.output_of("x"); }),
            "the model has no layers, so none has an output to ask for");
}

TEST(PartOfAModel, ListsTheFirstLayersWhereNoNameIsClose) {
  std::vector<std::shared_ptr<const Layer>> layers;
  for (int layer = 0; layer < 12; ++layer) layers.push_back(std::make_shared<const Dense>(1));
  const std::string sentence = not_found([&] { Sequential(Input{1}, layers).output_of("convolution"); });

  EXPECT_TRUE(sentence.ends_with("\"dense_8\", \"dense_9\", and more, which summary() lists")) << sentence;
}

}  // namespace
}  // namespace holdfast
