#include "holdfast/nn/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "holdfast/base/error.h"
#include "holdfast/holdfast.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/reference_check.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using reference::Values;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names_of(const Model& model) {
  std::vector<std::string> names;
  for (const ModelLayer& layer : model.layers()) names.push_back(layer.name);
  return names;
}

std::vector<std::string> weights_of(const Model& model) {
  std::vector<std::string> names;
  for (const ArenaEntry& entry : model.parameters().entries()) names.push_back(entry.name);
  return names;
}

Model residual() {
  const Value x = input({6});
  const Value hidden = Dense{6, {.activation = Activation::tanh}}(x);
  return Model(x, Dense{3}(hidden + x));
}

Values plus(Values a, const Values& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

TEST(Model, AResidualConnectionMatchesTheReference) {
  const auto reference = [](const Values& x, const std::vector<Values>& p) {
    const Values hidden = reference::activation("tanh", reference::dense(x, 6, p[0], p[1], 6), 6);
    return reference::dense(plus(hidden, x), 6, p[2], p[3], 3);
  };

  // Two samples, six units, three outputs; some 20 roundings.
  reference::expect_training_matches(residual(), 2, reference,
                                     {.paths = 2 * 6 * 3, .roundings = 20, .largest_path = 2});
}

TEST(Model, ALayerThatIsCalledTwiceHasOneSetOfWeights) {
  const Value x = input({4});
  const Dense shared{4, {.activation = Activation::tanh, .name = "shared"}};
  const Model model(x, shared(shared(x)));
  const auto reference = [](const Values& features, const std::vector<Values>& p) {
    const Values once = reference::activation("tanh", reference::dense(features, 4, p[0], p[1], 4), 4);
    return reference::activation("tanh", reference::dense(once, 4, p[0], p[1], 4), 4);
  };

  EXPECT_THAT(weights_of(model), ElementsAre("shared/kernel", "shared/bias"));
  reference::expect_training_matches(model, 2, reference, {.paths = 2 * 4 * 4, .roundings = 20, .largest_path = 2});
}

TEST(Model, CopiesOfALayerShareItsWeightsAndTheListOfASequentialDoesNot) {
  const Value x = input({4});
  const Dense layer{4};
  const Dense copy = layer;

  EXPECT_EQ(weights_of(Model(x, copy(layer(x)))).size(), 2U);
  EXPECT_EQ(weights_of(Model(x, Dense{4}(layer(x)))).size(), 4U);
  EXPECT_EQ(weights_of(Sequential(Input{4}, layer, layer)).size(), 4U);
}

TEST(Model, ANestedModelIsFlattenedUnderItsNameAndSharedLikeALayer) {
  const Value left = input({5}, {.name = "left"});
  const Value right = input({5}, {.name = "right"});
  const Sequential tower{Input{5}, Dense{4, {.activation = Activation::relu}}, Dense{2}};
  const Value a = tower.call({left}, "tower").at(0);
  const Value b = tower.call({right}, "tower").at(0);
  const Model model({left, right}, {sum(square(a - b), {0}), a});

  EXPECT_THAT(weights_of(model),
              ElementsAre("tower/dense/kernel", "tower/dense/bias", "tower/dense_1/kernel", "tower/dense_1/bias"));
  EXPECT_EQ(model.inputs().size(), 2U);
  EXPECT_EQ(model.inputs()[1].name, "right");
  EXPECT_EQ(model.outputs()[0].spec.shape, Shape());
  EXPECT_EQ(model.outputs()[1].spec.shape, (Shape{2}));
}

TEST(Model, ANestedModelHasOneName) {
  const Value x = input({5});
  const Sequential tower{Input{5}, Dense{5}}, other{Input{5}, Dense{5}};

  EXPECT_THAT(refusal([&] { Model(x, tower.call({x}, "e1")[0] + tower.call({x}, "e2")[0]); }),
              HasSubstr("one model is called as \"e1\" and as \"e2\", but its calls share their layers"));
  EXPECT_EQ(refusal([&] { Model(x, tower.call({x}, "e1")[0] + other.call({x}, "e2")[0]); }), "");
  // A part of another model is called under the path of that model.
  const Model around({x}, tower.call({x}, "tower"));
  EXPECT_EQ(refusal([&] { Model(x, tower.call({x}, "tower")[0] + around.call({x}, "around")[0]); }), "");
}

std::vector<std::string> output_names(const Model& model) {
  std::vector<std::string> names;
  for (const ModelArray& output : model.outputs()) names.push_back(output.name);
  return names;
}

TEST(Model, OutputsOfOneLayerHaveTwoNames) {
  const Value a = input({5}), b = input({5});
  const Dense score{5, {.name = "score"}};
  const Value of_a = score(a);

  EXPECT_THAT(output_names(Model({a, b}, {of_a, score(b)})), ElementsAre("score", "score_1"));
  EXPECT_THAT(output_names(Model({a}, {of_a, of_a, of_a})), ElementsAre("score", "score_1", "score_2"));
  // A name that a layer has is not taken from it.
  EXPECT_THAT(output_names(Model({a}, {of_a, of_a, Dense{2, {.name = "score_1"}}(of_a)})),
              ElementsAre("score", "score_2", "score_1"));
}

TEST(Model, NamesOfOutputsStandInItsFileWhereTheyWereGiven) {
  const Value a = input({5}), b = input({5});
  const Dense score{1};
  const Model named({a, b}, {{"of_a", score(a)}, {"of_b", score(b)}});
  const Model plain({a, b}, {score(a), score(b)});

  EXPECT_THAT(output_names(named), ElementsAre("of_a", "of_b"));
  EXPECT_THAT(output_names(Model::from_graph(named.graph())), ElementsAre("of_a", "of_b"));
  EXPECT_EQ(Model::from_graph(named.graph()).graph(), named.graph());
  EXPECT_THAT(output_names(named.frozen()), ElementsAre("of_a", "of_b"));
  EXPECT_THAT(plain.graph(), testing::Not(HasSubstr("output_names")));
  EXPECT_THAT(refusal([&] {
                Model({a}, {{"of_a", score(a)}, {"of_a", score(a)}});
              }),
              HasSubstr("two outputs of the model are named \"of_a\""));
  EXPECT_THAT(refusal([&] {
                std::string text = named.graph();
                Model::from_graph(text.replace(text.find("[\"of_a\",\"of_b\"]"), 15, "[\"of_a\"]"));
              }),
              HasSubstr("does not have a name for each output"));
}

// Runs a training pass of a model with several inputs and outputs on random data, and returns the gradients.
std::vector<float> gradients_of(const Model& model, std::int64_t samples) {
  std::vector<std::vector<float>> inputs, output_gradients;
  ModelProgram::Inputs addresses;
  std::vector<const float*> gradient_addresses;
  for (const ModelArray& array : model.inputs()) {
    inputs.push_back(reference::random_values(static_cast<std::size_t>(samples * array.spec.shape.element_count()),
                                              10 + inputs.size()));
    addresses.push_back(reinterpret_cast<const std::byte*>(inputs.back().data()));
  }
  for (const ModelArray& array : model.outputs()) {
    output_gradients.push_back(reference::random_values(
        static_cast<std::size_t>(samples * array.spec.shape.element_count()), 20 + output_gradients.size()));
    gradient_addresses.push_back(output_gradients.back().data());
  }
  std::vector<float> parameters(model.parameters().float_count()), buffers(model.buffers().float_count());
  model.initialize(1, parameters, buffers);
  std::vector<float> gradients(parameters.size(), 77.0F);
  ModelProgram program(model, 1);
  std::vector<float> contributions(program.contribution_count());
  program.prepare_training(samples, {});
  program.run_training(addresses, samples, parameters);
  for (const BackwardPart& part : program.backward_parts(samples, 1)) {
    program.backward_part(part, samples,
                          {.inputs = addresses,
                           .output_gradients = gradient_addresses,
                           .parameters = parameters,
                           .gradients = gradients,
                           .contributions = contributions});
  }
  return gradients;
}

TEST(Model, SharedTowersGetTheSumOfBothGradients) {
  // With the same input on both sides the difference is zero, and so is its gradient.
  const Value x = input({5});
  const Dense tower{3};
  const Model model(x, sum(square(tower(x) - tower(x)), {0}));

  for (const float gradient : gradients_of(model, 3)) EXPECT_EQ(gradient, 0.0F);
}

TEST(Model, AWeightThatNoOutputDependsOnGetsAGradientOfZero) {
  const Value x = input({4});
  const Value used = Dense{2, {.name = "used"}}(x);
  const Value stopped = stop_gradient(Dense{2, {.name = "stopped"}}(x));
  const Model model(x, used + stopped);
  const std::vector<float> gradients = gradients_of(model, 2);

  const auto of = [&](std::size_t entry) { return model.parameters().view(std::span(gradients), entry); };
  EXPECT_NE(of(0)[0], 0.0F);
  for (const float gradient : of(2)) EXPECT_EQ(gradient, 0.0F);
  for (const float gradient : of(3)) EXPECT_EQ(gradient, 0.0F);
}

TEST(Model, AParameterThatIsAddedGetsAGradientOfItsOwn) {
  // The gradients of both summands are one array of the graph.
  class Bias final : public LayerOf<Bias> {
   public:
    Bias() : LayerOf("") {}
    std::string_view kind() const override { return "test.Bias"; }
    std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override {
      const Value a = builder.parameter("a", inputs[0].shape(), Initializer::ones());
      const Value b = builder.parameter("b", inputs[0].shape(), Initializer::ones());
      return {inputs[0] + (a + b)};
    }
    void write_config(ConfigWriter&) const override {}
  };
  const Value x = input({3});
  const Model model(x, Bias{}(x));
  const std::vector<float> gradients = gradients_of(model, 4);

  const auto of = [&](std::size_t entry) { return model.parameters().view(std::span(gradients), entry); };
  EXPECT_THAT(std::vector(of(0).begin(), of(0).end()), testing::ElementsAreArray(of(1)));
  EXPECT_NE(of(0)[0], 0.0F);
}

TEST(Model, AChainIsWrittenAsASequential) {
  const Value x = input({28, 28, 1});
  const Model model(x, Dense{10}(Flatten{}(Conv2D{4, 3}(x))));
  const Sequential same{Input{28, 28, 1}, Conv2D{4, 3}, Flatten{}, Dense{10}};

  EXPECT_TRUE(model.is_chain());
  EXPECT_EQ(model.graph(), same.graph());
  EXPECT_EQ(Sequential(model).graph(), same.graph());
  EXPECT_THAT(refusal([] { Sequential{residual()}; }), HasSubstr("is not a Sequential"));
}

TEST(Model, ItsGraphDescribesTheSameModel) {
  const Value left = input({5}, {.name = "left"});
  const Value right = input({5}, {.name = "right"});
  const Sequential tower{Input{5}, Dense{4, {.activation = Activation::relu}}, Dropout{0.5F}, Dense{2}};
  const Value a = tower.call({left}, "tower").at(0);
  const Value b = tower.call({right}, "tower").at(0);
  const Value joined = concatenate({a, b * 2.0F, permute(broadcast(a, {3, 2}), {1, 0}).shape() == Shape{2, 3} ? a : b});
  const Model model({left, right},
                    {Dense{1}(joined), sum(square(a - b), {0}), maximum(relu(a), pad(slice(b, 0, 0, 1), 0, 0, 1))});

  const Model read = Model::from_graph(model.graph());

  EXPECT_EQ(read.graph(), model.graph());
  EXPECT_EQ(read.summary(), model.summary());
  EXPECT_EQ(names_of(read), names_of(model));
  EXPECT_EQ(gradients_of(read, 3), gradients_of(model, 3));
}

TEST(Model, OperationsAreNamedAfterWhatTheyDo) {
  const Value x = input({4});
  const Model model(x, relu(x + x) + x * 2.0F);

  EXPECT_THAT(names_of(model), testing::UnorderedElementsAre("add", "relu", "multiply", "add_1"));
}

TEST(Model, ItsSummaryShowsConnections) {
  EXPECT_EQ(residual().summary(),
            "Layer (type)      Output shape   Param #   Connected to\n"
            "-------------------------------------------------------\n"
            "input (Input)     [6]                  0   \n"
            "dense (Dense)     [6]                 42   input\n"
            "add (Operation)   [6]                  0   dense, input\n"
            "dense_1 (Dense)   [3]                 21   add\n"
            "-------------------------------------------------------\n"
            "Total params: 63\nTrainable params: 63\nNon-trainable params: 0\n");
}

TEST(Model, PredictsWithTheWeightsThatItWasGiven) {
  Model model = residual();
  std::vector<float> parameters(model.parameters().float_count()), buffers;
  model.initialize(3, parameters, buffers);
  model.set_weights(parameters, buffers);

  const Tensor y = model.predict(Tensor(Shape{5, 6}), 2);

  EXPECT_EQ(y.shape(), (Shape{5, 3}));
}

TEST(Model, RefusesDescriptionsThatAreWrongWithTheLayerAndTheShapes) {
  const Value x = input({4}, {.name = "x"});
  const Value other = input({4}, {.name = "other"});
  const Value image = input({8, 8, 1});
  const Dense shared{3, {.name = "shared"}};
  const Sequential tower{Input{4}, Dense{2}};

  EXPECT_THAT(refusal([&] { Model(x, x + other); }), HasSubstr("need the input \"other\" of shape [4]"));
  EXPECT_THAT(refusal([&] { Model({x, x}, {x + x}); }), HasSubstr("listed twice"));
  EXPECT_THAT(refusal([&] { Model(shared(x), x); }), HasSubstr("not outputs of layers"));
  EXPECT_THAT(refusal([&] { Model(std::vector<Value>{}, {x}); }), HasSubstr("at least one input"));
  EXPECT_THAT(refusal([&] {
                Model({x, input({4}, {.name = "x"})}, {x});
              }),
              HasSubstr("two inputs of the model are named"));
  EXPECT_THAT(refusal([&] {
                Conv2D{4, 3}(x);
              }),
              HasSubstr("layer \"conv2d\" (Conv2D) cannot take an input of shape [4]: it needs an input [height"));
  EXPECT_THAT(refusal([&] { Dense{2}(x, other); }), HasSubstr("inputs of shapes [4] and [4]: it takes one input"));
  EXPECT_THAT(refusal([&] { Add{}(x); }), HasSubstr("it takes two inputs or more, not 1"));
  EXPECT_THAT(refusal([&] { Add{}(x, input({3})); }), HasSubstr("cannot be broadcast"));
  EXPECT_THAT(refusal([&] {
                Model({x, image}, {concatenate({shared(x), sum(shared(image), {0, 1})})});
              }),
              HasSubstr("its kernel is [4, 3] in another call of the layer, but [1, 3] in this one"));
  EXPECT_THAT(refusal([&] { tower.call({image}, "tower"); }), HasSubstr("has shape [4], but it was called with"));
  EXPECT_THAT(refusal([&] { tower.call({x, x}, "tower"); }), HasSubstr("takes 1 inputs, not 2"));
  EXPECT_THAT(refusal([&] { tower.call({x}, ""); }), HasSubstr("a name of a layer, a model or an output has"));
  EXPECT_THAT(refusal([&] {
                Model(x, Dense{2, {.name = "a"}}(Dense{2, {.name = "a"}}(x)));
              }),
              HasSubstr("two layers of the model are named \"a\""));
  EXPECT_THAT(refusal([&] { Model({x, other}, {x + other}).input_shape(); }), HasSubstr("the model has 2 inputs"));
}

// A terminal obeys a control character, and a name may come from a file.
TEST(Model, ShowsNamesOfInputsEscaped) {
  const Value x = input({4}, {.name = "x\x1b[2J"});
  Model model(x, Dense{2}(x));
  model.set_weights(std::vector<float>(model.parameters().float_count()), {});

  EXPECT_THAT(refusal([&] {
                Model({x, input({4}, {.name = "x\x1b[2J"})}, {x});
              }),
              HasSubstr(R"(two inputs of the model are named "x\x1b[2J")"));
  EXPECT_THAT(refusal([&] { Model(input({4}), x); }), HasSubstr(R"("x\x1b[2J")"));
  EXPECT_THAT(refusal([&] { model.call({input({3})}, "m"); }), HasSubstr(R"(input "x\x1b[2J" of model "m" has shape)"));
  EXPECT_THAT(refusal([&] { model.call({input({4}, {.dtype = DType::i32})}, "m"); }),
              HasSubstr(R"(input "x\x1b[2J" of model "m" is of f32)"));
  EXPECT_THAT(refusal([&] {
                model.predict(Tensor(Shape{1, 4}, std::vector<std::int32_t>(4)));
              }),
              HasSubstr(R"(input "x\x1b[2J")"));
}

// A function after a dense layer, as a file has it.
std::string graph_with(const std::string& function, const std::string& constants) {
  const Value x = input({2});
  std::string text = Model(x, Dense{2}(x)*3.0F).graph();
  const std::string from = "\"multiply\",\"constants\":[null,3.0]";
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << text;
  return text.replace(place, from.size(), "\"" + function + "\",\"constants\":" + constants);
}

TEST(Model, ReadsFunctionsWithAConstantAtAnyPlace) {
  using compute::ElementFunction;
  for (int number = static_cast<int>(ElementFunction::add); number <= static_cast<int>(ElementFunction::equal);
       ++number) {
    const std::string function(name_of(static_cast<ElementFunction>(number)));
    for (const std::string constants : {"[2.0,null]", "[null,2.0]"}) {
      const Model model = Model::from_graph(graph_with(function, constants));
      EXPECT_EQ(gradients_of(model, 2).size(), model.parameters().float_count()) << function;
    }
    EXPECT_THROW(Model::from_graph(graph_with(function, "[1.0,2.0]")), Error) << function;
  }
  // A file cannot name functions that have no gradient of their own.
  EXPECT_THROW(Model::from_graph(graph_with("gelu_slope", "[null]")), Error);
  EXPECT_NO_THROW(Model::from_graph(graph_with("square", "[null]")));
}

TEST(Model, RefusesGraphsThatDoNotDescribeAModel) {
  const std::string graph = residual().graph();
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = graph;
    const std::size_t place = text.find(from);
    EXPECT_NE(place, std::string::npos) << from << " is not in " << text;
    return text.replace(place, from.size(), to);
  };
  const std::string last_call = "{\"layer\":2,\"inputs\":[[1,0]]}";

  for (const std::string& text :
       {changed(last_call, "{\"layer\":2,\"inputs\":[[2,0]]}"), changed(last_call, "{\"layer\":2,\"inputs\":[[1,1]]}"),
        changed(last_call, "{\"layer\":3,\"inputs\":[[1,0]]}"), changed(last_call, "{\"layer\":2,\"inputs\":[]}"),
        changed(last_call, "{\"layer\":2,\"inputs\":[[-1,1]]}"), changed(last_call, "{\"layer\":0,\"inputs\":[[1,0]]}"),
        changed(last_call, "{\"layer\":2,\"inputs\":[[1]]}"), changed(last_call, "{\"layer\":2,\"inputs\":[[1,-1]]}"),
        changed("\"outputs\":[[2,0]]", "\"outputs\":[[3,0]]"), changed("\"outputs\":[[2,0]]", "\"outputs\":[]"),
        changed("\"operation\":\"add\"", "\"operation\":\"gelu_slopes\""), changed("[null,null]", "[null,null,null]"),
        changed("[null,null]", "[1,2]"), changed("\"dtype\":\"f32\"", "\"dtype\":\"f33\""),
        changed("\"name\":\"add\"", "\"name\":\"dense\""), changed("\"name\":\"add\"", "\"name\":\"a//b\"")}) {
    try {
      Model::from_graph(text);
      ADD_FAILURE() << "read " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_file) << text;
    }
  }
}

}  // namespace
}  // namespace holdfast
