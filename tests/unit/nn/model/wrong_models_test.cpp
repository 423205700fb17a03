// Models that cannot be, as people write them. Each meets an error when it is described, long before a step, whose
// sentence says where, what was needed, what was given, and what to do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <stdexcept>

#include "holdfast/holdfast.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

struct WrongModel {
  std::string what;
  std::function<void()> describe;
  // Parts of the sentence.
  std::string where;
  std::string needed;
  std::string given;
  std::string remedy;
};

// The sentence of a layer's build() begins with the layer, its kind and its inputs.
std::string at(const std::string& name, const std::string& kind) {
  return "layer \"" + name + "\" (" + kind + ") cannot take ";
}

void expect_refused(const std::vector<WrongModel>& models) {
  for (const WrongModel& model : models) {
    SCOPED_TRACE(model.what);
    const std::string sentence = refusal(model.describe);
    EXPECT_THAT(sentence, HasSubstr(model.where));
    EXPECT_THAT(sentence, HasSubstr(model.needed));
    EXPECT_THAT(sentence, HasSubstr(model.given));
    EXPECT_THAT(sentence, HasSubstr(model.remedy));
  }
}

// A range is what is needed and, at the same time, what to choose from.
TEST(WrongModels, NameTheLayerAndTheRangeForAWrongOption) {
  const std::string extents = "from 1 to 2147483647";
  const std::string finite = "finite epsilon above 0";
  expect_refused({
      {"no units", [] { Dense{0}; }, "Dense needs", "units", "not 0", extents},
      {"negative units", [] { Dense{-3}; }, "Dense needs", "units", "not -3", extents},
      {"no filters", [] { Conv2D(0, 3); }, "Conv2D needs", "filters", "not 0", extents},
      {"no kernel",
       [] {
         Conv2D(4, {3, 0});
       },
       "Conv2D needs", "kernel extents", "not 0", extents},
      {"no stride", [] { Conv2D(4, 3, {.strides = 0}); }, "Conv2D needs", "strides", "not 0", extents},
      {"strides with dilation", [] { Conv2D(4, 3, {.strides = 2, .dilation_rate = 2}); }, "Conv2D needs",
       "strides or a dilation rate of 1", "not strides [2, 2]", "use two layers"},
      {"no window", [] { MaxPooling2D(0); }, "MaxPooling2D needs", "window extents", "not 0", extents},
      {"all dropped", [] { Dropout(1.0F); }, "Dropout needs", "a rate", "not 1", "from 0 to below 1"},
      {"a negative rate", [] { Dropout(-0.5F); }, "Dropout needs", "a rate", "not -0.5", "from 0 to below 1"},
      {"momentum above 1", [] { BatchNormalization({.momentum = 1.5F}); }, "BatchNormalization needs", "a momentum",
       "not 1.5", "from 0 to 1"},
      {"epsilon 0", [] { BatchNormalization({.epsilon = 0}); }, "BatchNormalization needs", "epsilon", "not 0", finite},
      {"epsilon below 0", [] { LayerNormalization({.epsilon = -1}); }, "LayerNormalization needs", "epsilon", "not -1",
       finite},
      {"axis 0 of Keras",
       [] {
         Permute({0, 1});
       },
       "Permute", "axes from 1", "no axis 0", "counts axes from 1"},
      {"repeated 0 times", [] { RepeatVector(0); }, "RepeatVector needs", "a count", "not 0", extents},
      {"a negative margin",
       [] {
         ZeroPadding2D({-1, 0, 0, 0});
       },
       "ZeroPadding2D needs", "margins", "not -1", "from 0 to"},
      {"a scale of NaN", [] { Rescaling{std::numeric_limits<float>::quiet_NaN()}; }, "Rescaling needs", "scale",
       "not nan", "a finite scale"},
      {"a spread of infinity", [] { Initializer::normal(std::numeric_limits<float>::infinity()); },
       "a normal initializer", "standard deviation", "is inf", "must be finite and not negative"},
      {"a sample of nothing",
       [] {
         input({4, 0});
       },
       "Input needs", "extents", "not 0", extents},
      {"a sample without axes", [] { input(Shape{}); }, "Input needs", "the extents of a sample", "at least one",
       "at least one"},
      {"a name with a space", [] { Dense(4, {.name = "my layer"}); }, "a name of a layer, a model or an output",
       "letters, digits", "unlike \"my layer\"", "letters, digits"},
  });
}

TEST(WrongModels, NameTheLayerAndItsInputsForAWrongShape) {
  const Value row = input({4});
  const Value image = input({2, 2, 3});
  const std::string an_image = "it needs an input [height, width, channels]";
  expect_refused({
      {"a convolution of a row", [&] { Conv2D(4, 3, {.name = "conv"})(row); }, at("conv", "Conv2D"), an_image,
       "shape [4]", "Reshape"},
      {"a window larger than the image", [&] { Conv2D(4, 3, {.name = "conv"})(image); }, at("conv", "Conv2D"),
       "at least 3 x 3", "not 2 x 2", "Padding::same"},
      {"pooling of a row", [&] { MaxPooling2D(2)(row); }, at("max_pooling2d", "MaxPooling2D"), an_image, "shape [4]",
       "Reshape"},
      {"a pool larger than the image", [&] { AveragePooling2D(5)(image); }, at("average_pooling2d", "AveragePooling2D"),
       "at least 5 x 5", "not 2 x 2", "a smaller window"},
      {"features of one number", [&] { Dense(3)(sum(row)); }, at("dense", "Dense"), "[..., features]", "shape []",
       "Reshape"},
      {"two inputs for one", [&] { Dense(3)(row, row); }, at("dense", "Dense"), "it takes one input", "not 2",
       "Concatenate"},
      {"one input for two", [&] { Multiply{}(row); }, at("multiply", "Multiply"), "two inputs or more", "not 1",
       "call it on all of them"},
      {"three inputs for two", [&] { Subtract{}(row, row, row); }, at("subtract", "Subtract"), "two inputs", "not 3",
       "call it again"},
      {"shapes that do not fit", [&] { Add{}(row, input({3})); }, at("add", "Add"), "extents must be equal or 1",
       "shapes [4] and [3]", "reshape() one of them"},
      {"rows of two lengths",
       [&] {
         Concatenate({.axis = 0})(image, input({2, 5, 3}));
       },
       at("concatenate", "Concatenate"), "all other extents must be equal", "[2, 2, 3] and [2, 5, 3]",
       "choose another axis"},
      {"factors of two lengths", [&] { Dot{0}(row, input({3})); }, at("dot", "Dot"), "the same extent", "[4] and [3]",
       "choose other axes"},
      {"a product of three", [&] { Dot{0}(row, row, row); }, at("dot", "Dot"), "two inputs", "not 3", "call it again"},
      {"channels that groups do not divide", [&] { Conv2D(4, 2, {.groups = 2})(image); }, at("conv2d", "Conv2D"),
       "its 2 groups divide", "not 3", "groups that divide 3"},
      {"an axis that is not there", [&] { Concatenate({.axis = 3})(image, image); }, at("concatenate", "Concatenate"),
       "which has 3 axes", "axis 3", "count from 0"},
      {"another number of elements", [&] { Reshape({5})(row); }, at("reshape", "Reshape"),
       "the number of elements must stay the same", "shape [4]", "one extent may be -1"},
      {"an axis twice",
       [&] {
         Permute({1, 1})(input({2, 3}));
       },
       at("permute", "Permute"), "each axis", "[0, 0]", "once"},
      {"repetition of an image", [&] { RepeatVector(2)(image); }, at("repeat_vector", "RepeatVector"),
       "an input [features]", "shape [2, 2, 3]", "Flatten"},
      {"nothing left",
       [&] {
         Cropping2D({1, 1, 0, 0})(image);
       },
       at("cropping2d", "Cropping2D"), "leave nothing of 2 x 2", "margins of 1 + 1 rows", "take smaller ones"},
      {"scaling up a row", [&] { UpSampling2D(2)(row); }, at("up_sampling2d", "UpSampling2D"), an_image, "shape [4]",
       "reshape the input"},
      {"the mean of no positions", [&] { GlobalAveragePooling{}(row); },
       at("global_average_pooling", "GlobalAveragePooling"), "positions and channels", "shape [4]",
       "leave the layer out"},
  });
}

// A layer of an application whose output is a weight.
class ConstantLayer final : public LayerOf<ConstantLayer> {
 public:
  ConstantLayer() : LayerOf("constant") {}
  std::string_view kind() const override { return "test.Constant"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override {
    return {builder.parameter("weight", inputs[0].shape(), Initializer::ones())};
  }
  void write_config(ConfigWriter&) const override {}
};

// A layer of an application with mistakes in build().
class MistakenLayer final : public LayerOf<MistakenLayer> {
 public:
  using Mistake = std::function<void(LayerBuilder& builder)>;

  explicit MistakenLayer(Mistake mistake) : LayerOf("mistaken"), mistake_(std::move(mistake)) {}
  std::string_view kind() const override { return "test.Mistaken"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override {
    mistake_(builder);
    return {relu(inputs[0])};
  }
  void write_config(ConfigWriter&) const override {}

 private:
  const Mistake mistake_;
};

TEST(WrongModels, NameAMistakenLayer) {
  const Value row = input({4});
  const auto with = [&](const MistakenLayer::Mistake& mistake) {
    return [=] { Model(row, MistakenLayer{mistake}(row)); };
  };
  const auto named = [](const char* name) {
    return [=](LayerBuilder& builder) { builder.parameter(name, {4}, Initializer::ones()); };
  };
  const std::string where = at("mistaken", "test.Mistaken");
  expect_refused({
      {"a weight that is called like a folder", with(named("..")), where, "no savepoint can hold", "called \"..\"",
       "letters, digits"},
      {"a weight without a name", with(named("")), where, "no savepoint can hold", "called \"\"", "letters, digits"},
      {"a parameter and a buffer of one name", with([](LayerBuilder& builder) {
         builder.parameter("scale", {4}, Initializer::ones());
         builder.buffer("scale", {4}, Initializer::ones());
       }),
       where, "a parameter and for a buffer", "\"scale\"", "give one another name"},
      {"an exception of the application", with([](LayerBuilder&) { throw std::runtime_error("a table is missing"); }),
       where, "an input of shape", "[4]", "a table is missing"},
  });
}

TEST(WrongModels, NameBothWeightsIfOneLiesInsideTheOther) {
  const Value inner = input({4});
  const Model nested(inner, Dense{2, {.name = "kernel"}}(inner));
  const Value x = input({4});
  EXPECT_THAT(refusal([&] {
                Model(x, concatenate({nested.call({x}, "n").front(), Dense{2, {.name = "n"}}(x)}));
              }),
              HasSubstr("\"n/kernel/kernel\" would lie inside the weight \"n/kernel\""));
}

TEST(WrongModels, NameTheWrongLayerOrFunction) {
  const Value row = input({4});
  const Dense shared{2, {.name = "shared"}};
  Value deep = input({2, 3, 2, 3, 2, 3}), wide = input({1, 3, 1, 3, 1, 3});
  expect_refused({
      {"a shared layer of two sizes",
       [&] {
         Model({row}, {shared(row), shared(concatenate({row, row}))});
       },
       at("shared", "Dense"), "inputs of the same size", "[4, 2] in another call of the layer, but [8, 2]",
       "need inputs of the same size"},
      {"an output without samples", [&] { ConstantLayer{}(row); }, at("constant", "test.Constant"),
       "depend on the samples", "shape [4]", "compute it from an input"},
      {"a sum over an axis that is not there", [&] { sum(row, {1}); }, "sum was given", "which has 1 axes", "axis 1",
       "count from 0"},
      {"a mean over an axis twice",
       [&] {
         mean(row, {0, -1});
       },
       "mean was given", "twice", "axis -1", "twice"},
      {"a slice outside", [&] { slice(row, 0, 2, 9); }, "elements 2 to 9", "a part of it", "shape [4]",
       "not after the axis"},
      {"a matrix with samples",
       [&] {
         matmul(row, input({4, 2}));
       },
       "matmul() multiplies", "without samples", "[4] by [4, 2]", "permute() or reshape() one of them"},
      {"sums of shapes that do not fit", [&] { row + input({5}); }, "shapes [4] and [5]", "equal or 1", "[5]",
       "reshape() one of them"},
      {"more axes than kernels have", [&] { deep + wide; }, "a value takes 7 axes", "at most 6", "7 axes",
       "join axes by reshape()"},
  });
}

TEST(WrongModels, NameTheInputOrLayerThatMakesAGraphWrong) {
  const Value x = input({4}, {.name = "x"}), other = input({3}, {.name = "other"});
  const Value inner = input({4}, {.name = "inner"});
  const Model tower(inner, Dense{2}(inner));
  const Value ids = input({4}, {.dtype = DType::u8});
  expect_refused({
      {"an input that is not listed",
       [&] {
         Model(x, Dense{2}(concatenate({x, other})));
       },
       "the input \"other\"", "among the inputs of the model", "shape [3]", "list it there"},
      {"an input twice",
       [&] {
         Model({x, x}, {Dense{2}(x)});
       },
       "input 1", "listed twice", "shape [4]", "list each input once"},
      {"an output for an input", [&] { Model(Dense{2}(x), Dense{2}(x)); }, "a model's inputs", "input() has made",
       "not outputs of layers", "describe it as a model of its own"},
      {"no input", [&] { Model(std::vector<Value>{}, {x}); }, "a model", "at least one input and one output",
       "not 0 and 1", "list them"},
      {"no output", [&] { Model({x}, std::vector<Value>{}); }, "a model", "at least one input and one output",
       "not 1 and 0", "list them"},
      {"inputs of one name",
       [&] {
         Model({x, input({4}, {.name = "x"})}, {relu(x)});
       },
       "two inputs", "named", "\"x\"", "give one another name"},
      {"layers of one name",
       [&] {
         Model(x, Dense{4, {.name = "d"}}(Dense{4, {.name = "d"}}(x)));
       },
       "two layers", "named", "\"d\"", "give one another name"},
      {"too many inputs of a nested model",
       [&] {
         tower.call({x, x}, "tower");
       },
       "model \"tower\"", "takes 1 inputs", "not 2", "a value for each of them"},
      {"another shape for a nested model", [&] { tower.call({other}, "tower"); }, "\"inner\" of model \"tower\"",
       "has shape [4]", "called with [3]", "reshape the value"},
      {"another type for a nested model", [&] { tower.call({ids}, "tower"); }, "\"inner\" of model \"tower\"",
       "is of f32", "called with u8", "write cast(x, DType::f32)"},
      {"a nested model without a name", [&] { tower.call({x}, ""); }, "a name of a layer, a model or an output",
       "letters", "unlike \"\"", "letters, digits"},
      {"more layers than a model has",
       [&] {
         Value y = x;
         for (std::size_t layer = 0; layer <= Model::kMaximumLayers; ++layer) y = relu(y);
         Model(x, y);
       },
       "a model", "at most 1024 layers", "not 1025", "one layer of your own"},
      {"an infinite constant", [&] { Model(x, minimum(x, std::numeric_limits<float>::infinity())); },
       "the constant inf", "outside of a layer", "cannot be written to files", "use a large number"},
      {"a graph for a chain", [&] { Sequential{Model(x, Add{}(relu(x), x))}; }, "the model", "follow one another",
       "is not a Sequential", "use it as a Model"},
  });
}

}  // namespace
}  // namespace holdfast
