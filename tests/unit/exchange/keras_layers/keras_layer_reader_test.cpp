// Each class of Keras that Holdfast has, with options away from their defaults, and the options that it lacks.

#include "keras_layers/keras_layer_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/exchange/support/keras_trees.h"

namespace holdfast::format {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct FoundSteps {
  std::vector<HoldfastStep> steps;
  std::vector<std::string> notes;
};

FoundSteps steps_of(const char* class_name, const char* text,
                    const std::vector<MaybeShape>& inputs = {SampleShape{9, 8, 2}}) {
  const Json config = Json::parse(text);
  FoundSteps found;
  found.steps = steps_of_keras_call(
      {.path = "net/x", .class_name = class_name, .config = config, .inputs = inputs, .arguments = {}}, found.notes);
  return found;
}

FoundSteps steps_of_function(const char* class_name, const char* text, std::vector<std::optional<double>> arguments,
                             const std::vector<MaybeShape>& inputs = {SampleShape{9, 8, 2}}) {
  const Json config = Json::parse(text);
  FoundSteps found;
  found.steps = steps_of_keras_call({.path = "net/x",
                                     .class_name = class_name,
                                     .is_operation = true,
                                     .config = config,
                                     .inputs = inputs,
                                     .arguments = std::move(arguments)},
                                    found.notes);
  return found;
}

// "KIND {options}" of each step, with the suffix of its name.
std::vector<std::string> step_lines(const FoundSteps& found) {
  std::vector<std::string> result;
  for (const HoldfastStep& step : found.steps) {
    result.push_back((step.suffix.empty() ? "" : step.suffix + " ") + step.kind + " " + step.config.dump());
  }
  return result;
}

// What stands between the brackets of x[...], for samples [4, 6].
std::vector<std::string> lines_of_index(const char* index) {
  const Json config = Json::object();
  const Json key = Json::parse(index);
  FoundSteps found;
  found.steps = steps_of_keras_call({.path = "net/x",
                                     .class_name = "GetItem",
                                     .is_operation = true,
                                     .config = config,
                                     .inputs = {SampleShape{4, 6}},
                                     .arguments = {std::nullopt},
                                     .index = &key},
                                    found.notes);
  return step_lines(found);
}

std::string range_text(const char* start, const char* stop, const char* step = "null") {
  return fmt::format(R"({{"class_name": "__slice__", "config": {{"start": {}, "stop": {}, "step": {}}}}})", start, stop,
                     step);
}

const std::string kAll = range_text("null", "null");
const std::string kEllipsis = R"({"class_name": "__ellipsis__", "config": {}})";

TEST(KerasLayerReader, HasPartsOfValues) {
  EXPECT_THAT(lines_of_index(fmt::format("[{}, {}]", kAll, range_text("1", "-1")).c_str()),
              ElementsAre(R"(Operation {"axis":0,"begin":1,"end":3,"operation":"slice"})"));
  EXPECT_THAT(lines_of_index(fmt::format("[{}, 0, {}]", kAll, range_text("2", "99")).c_str()),
              ElementsAre(R"(.0 Operation {"axis":0,"begin":0,"end":1,"operation":"slice"})",
                          R"(.1 Operation {"axis":1,"begin":2,"end":6,"operation":"slice"})",
                          R"(Operation {"operation":"reshape","shape":[4]})"));
  EXPECT_THAT(lines_of_index(fmt::format("[{}, -1]", kEllipsis).c_str()),
              ElementsAre(R"(.0 Operation {"axis":1,"begin":5,"end":6,"operation":"slice"})",
                          R"(Operation {"operation":"reshape","shape":[4]})"));
  EXPECT_THAT(lines_of_index(kAll.c_str()), ElementsAre(R"(Activation {"activation":"linear"})"));
}

TEST(KerasLayerReader, RefusesOtherPartsOfValues) {
  for (const std::string& index :
       {std::string("0"), fmt::format("[{}, 4]", kAll), fmt::format("[{}, null]", kAll),
        fmt::format("[{}, {}]", kAll, range_text("null", "null", "2")), fmt::format("[{}]", range_text("0", "2")),
        fmt::format("[{}, {}]", kAll, range_text("3", "2")), fmt::format("[{0}, {0}, {0}, {0}]", kAll),
        fmt::format("[{}, 1.5]", kAll)}) {
    EXPECT_THAT(error_of([&] { lines_of_index(index.c_str()); }), HasSubstr("takes a part that Holdfast does not"))
        << index;
  }
}

TEST(KerasLayerReader, HasStacksOfValues) {
  const std::vector<MaybeShape> two = {SampleShape{4, 6}, SampleShape{4, 6}};
  const auto lines = [&](const char* config) {
    return step_lines(steps_of_function("Stack", config, {std::nullopt, std::nullopt}, two));
  };

  EXPECT_THAT(lines(R"({"axis": 1})"),
              ElementsAre(R"(.0 Concatenate {"axis":0})", R"(Operation {"operation":"reshape","shape":[2,4,6]})"));
  EXPECT_THAT(lines(R"({"axis": -1})"),
              ElementsAre(R"(.0 Concatenate {"axis":1})", R"(.1 Operation {"operation":"reshape","shape":[4,2,6]})",
                          R"(Operation {"operation":"permute","order":[0,2,1]})"));
  EXPECT_THAT(error_of([&] { lines(R"({"axis": 0})"); }), HasSubstr("stacks along the samples"));
  const auto stack_of_numbers = [] {
    steps_of_function("Stack", R"({"axis": 1})", {std::nullopt, std::nullopt}, {SampleShape{}, SampleShape{}});
  };
  EXPECT_THAT(error_of(stack_of_numbers), HasSubstr("stacks values of one number a sample"));
}

TEST(KerasLayerReader, HasComparisonsAndChoices) {
  const auto lines = [](const char* name, std::vector<std::optional<double>> arguments) {
    return step_lines(steps_of_function(name, "{}", std::move(arguments), {SampleShape{2}, SampleShape{2}}));
  };

  EXPECT_THAT(lines("LessEqual", {std::nullopt, 1}),
              ElementsAre(R"(Operation {"constants":[null,1.0],"operation":"less_equal"})"));
  EXPECT_THAT(lines("GreaterEqual", {std::nullopt, 1}),
              ElementsAre(R"(Operation {"constants":[1.0,null],"operation":"less_equal"})"));
  EXPECT_THAT(lines("GreaterEqual", {std::nullopt, std::nullopt}),
              ElementsAre(R"(.0 Operation {"constants":[null,null],"operation":"subtract"})",
                          R"(Operation {"constants":[0,null],"operation":"less_equal"})"));
  EXPECT_THAT(lines("Where", {std::nullopt, std::nullopt, 0}),
              ElementsAre(R"(Operation {"constants":[null,null,0.0],"operation":"select"})"));
}

TEST(KerasLayerReader, HasFunctionsOfShapesAndComparisons) {
  const auto lines = [](const char* name, const char* text, std::vector<std::optional<double>> arguments = {{}},
                        const SampleShape& sample = {3, 1, 2}) {
    return step_lines(steps_of_function(name, text, std::move(arguments), {sample, sample}));
  };

  EXPECT_THAT(lines("Transpose", R"({"axes": [0, 3, -3, 2]})"), ElementsAre(R"(Permute {"dims":[3,1,2]})"));
  EXPECT_THAT(lines("ExpandDims", R"({"axis": -1})"),
              ElementsAre(R"(Operation {"operation":"reshape","shape":[3,1,2,1]})"));
  EXPECT_THAT(lines("ExpandDims", R"({"axis": 1})"),
              ElementsAre(R"(Operation {"operation":"reshape","shape":[1,3,1,2]})"));
  EXPECT_THAT(lines("Squeeze", R"({"axis": 2})"), ElementsAre(R"(Operation {"operation":"reshape","shape":[3,2]})"));
  EXPECT_THAT(lines("Clip", R"({"x_min": -1, "x_max": 6})"),
              ElementsAre(R"(.0 Operation {"constants":[null,-1],"operation":"maximum"})",
                          R"(Operation {"constants":[null,6],"operation":"minimum"})"));
  EXPECT_THAT(lines("Greater", "{}", {{}, 0.5}),
              ElementsAre(R"(Operation {"constants":[0.5,null],"operation":"less"})"));
  EXPECT_THAT(lines("Less", "{}", {{}, 0.5}), ElementsAre(R"(Operation {"constants":[null,0.5],"operation":"less"})"));
  EXPECT_THAT(lines("Greater", "{}", {{}, {}}),
              ElementsAre(R"(.0 Operation {"constants":[null,null],"operation":"subtract"})",
                          R"(Operation {"constants":[0,null],"operation":"less"})"));
  EXPECT_THAT(error_of([&] { lines("Transpose", R"({"axes": [1, 0, 2, 3]})"); }),
              HasSubstr("moves the axis of samples"));
  EXPECT_THAT(error_of([&] { lines("Transpose", R"({"axes": null})"); }), HasSubstr("does not say all axes"));
  EXPECT_THAT(error_of([&] { lines("ExpandDims", R"({"axis": 0})"); }), HasSubstr("adds or removes an axis"));
  EXPECT_THAT(error_of([&] { lines("Squeeze", R"({"axis": 1})"); }), HasSubstr("adds or removes an axis"));
  EXPECT_THAT(error_of([&] { lines("Clip", R"({"x_min": null, "x_max": 1})"); }), HasSubstr("not numbers"));
}

TEST(KerasLayerReader, ReadsTheNoiseShapeOfADropout) {
  const auto lines = [](const char* noise, const SampleShape& sample) {
    return step_lines(
        steps_of("Dropout", fmt::format(R"({{"rate": 0.25, "noise_shape": {}}})", noise).c_str(), {sample}));
  };
  const SampleShape image = {9, 8, 2};

  EXPECT_THAT(lines("[null, 1, 1, 2]", image), ElementsAre(R"(SpatialDropout2D {"rate":0.25})"));
  EXPECT_THAT(lines("[null, 1, null]", {9, 2}), ElementsAre(R"(SpatialDropout1D {"rate":0.25})"));
  EXPECT_THAT(lines("[null, null, 8, 2]", image), ElementsAre(R"(Dropout {"rate":0.25})"));
  // As in EfficientNet: a sample is dropped as a whole.
  EXPECT_THAT(lines("[null, 1, 1, 1]", image), ElementsAre(R"(.0 Operation {"operation":"reshape","shape":[144,1]})",
                                                           R"(.1 SpatialDropout1D {"rate":0.25})",
                                                           R"(Operation {"operation":"reshape","shape":[9,8,2]})"));
  for (const char* noise : {"[null, 9, 1, 1]", "[null, 9, 1, 2]", "[3, 1, 1, 2]", "[null, 1, 2]", "[null, 1, 1, 3]"}) {
    EXPECT_THAT(error_of([&] { lines(noise, image); }), HasSubstr("has the option noise_shape")) << noise;
  }
  EXPECT_THAT(error_of([&] { lines("[null]", {}); }), HasSubstr("has the option noise_shape"));
  EXPECT_THAT(error_of([] { steps_of("Rescaling", R"({"scale": [1, 2]})", {SampleShape{}}); }),
              HasSubstr("has the option scale"));
}

TEST(KerasLayerReader, ReadsListsOfRescaling) {
  const FoundSteps found = steps_of("Rescaling", R"({"scale": [0.5, 2], "offset": [1, -4]})");

  EXPECT_THAT(step_lines(found),
              ElementsAre(R"(Normalization {"axis":[-1],"invert":false,"mean":[-2.0,2.0],"variance":[4.0,0.25]})"));
  ASSERT_EQ(found.steps[0].weights.size(), 2U);
  EXPECT_EQ(found.steps[0].weights[0].shape, (SampleShape{2}));
  EXPECT_THAT(step_lines(steps_of("Rescaling", R"({"scale": [0.5, 0.5], "offset": 1})")),
              ElementsAre(R"(Rescaling {"offset":1,"scale":0.5})"));
  EXPECT_THAT(error_of([] { steps_of("Rescaling", R"({"scale": [0.5, -2]})"); }), HasSubstr("has the option scale"));
  EXPECT_THAT(error_of([] { steps_of("Rescaling", R"({"scale": [1, 2, 3]})"); }), HasSubstr("has the option scale"));
  EXPECT_THAT(error_of([] { steps_of("Rescaling", R"({"scale": [[1], [2]]})"); }), HasSubstr("has the option scale"));
}

TEST(KerasLayerReader, HasTheInitializersOfNormalizations) {
  for (const char* class_name : {"BatchNormalization", "LayerNormalization", "GroupNormalization"}) {
    const FoundSteps found =
        steps_of(class_name, R"({"gamma_initializer": "zeros", "beta_initializer": "zeros"})", {SampleShape{9, 8, 32}});
    EXPECT_THAT(found.notes, IsEmpty());
    EXPECT_EQ(found.steps[0].config["gamma_initializer"], "zeros");
    EXPECT_FALSE(found.steps[0].config.contains("beta_initializer")) << "it is the default";
  }
  const FoundSteps found =
      steps_of("BatchNormalization",
               R"({"gamma_initializer": {"class_name": "Ones", "config": {}}, "moving_mean_initializer": "ones",
                   "moving_variance_initializer": "ones", "synchronized": true})");
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("synchronized")));
  EXPECT_EQ(found.steps[0].config["moving_mean_initializer"], "ones");
  EXPECT_FALSE(found.steps[0].config.contains("gamma_initializer"));
}

TEST(KerasLayerReader, HasTheLastAxesOfALayerNormalization) {
  EXPECT_EQ(steps_of("LayerNormalization", R"({"axis": [3, 2]})").steps[0].config["axis"], Json::array({-2, -1}));
  EXPECT_FALSE(steps_of("LayerNormalization", R"({"axis": [3]})").steps[0].config.contains("axis"));
  for (const char* axes : {R"({"axis": [1, 3]})", R"({"axis": 2})", R"({"axis": [1, 2]})"}) {
    EXPECT_THAT(error_of([&] { steps_of("LayerNormalization", axes); }),
                HasSubstr("and Holdfast the last ones alone; permute the value before it"))
        << axes;
  }
  // Keras would sort -1 before 2, and its gamma has the extents of the axes in that order.
  for (const char* axes : {R"({"axis": [-1, 3]})", R"({"axis": [2, -1]})", R"({"axis": [3, 3]})"}) {
    EXPECT_THAT(error_of([&] { steps_of("LayerNormalization", axes); }), HasSubstr("has the option axis = ")) << axes;
  }
}

TEST(KerasLayerReader, HasBothDirectionsOfAReversibleEmbedding) {
  EXPECT_THAT(step_lines(steps_of("ReversibleEmbedding", R"({"input_dim": 9, "output_dim": 2, "logit_soft_cap": 30.0,
                                                             "embeddings_initializer": "uniform", "mask_zero": false,
                                                             "tie_weights": false, "reverse_dtype": null})")),
              ElementsAre(R"x(ReversibleEmbedding {"initializer":"uniform(-0.05,0.05)","logit_soft_cap":[30.0],)x"
                          R"x("tie_weights":false,"vocabulary":9,"width":2})x"));
}

TEST(KerasLayerReader, HasTheOptionsOfDenseAndConv2D) {
  EXPECT_THAT(
      step_lines(steps_of("Dense", R"({"units": 3, "activation": "tanh", "use_bias": false,
                                      "kernel_initializer": {"class_name": "HeNormal", "config": {"seed": null}}})")),
      ElementsAre(R"(Dense {"activation":"tanh","bias_initializer":"zeros","kernel_initializer":"truncated_he_normal",)"
                  R"("units":3,"use_bias":false})"));
  EXPECT_THAT(step_lines(steps_of("Conv2D", R"({"filters": 4, "kernel_size": [3, 2], "strides": 2, "padding": "same",
                                       "data_format": "channels_last", "dilation_rate": [1, 1], "groups": 1,
                                       "activation": "linear", "use_bias": true})")),
              ElementsAre(R"(Conv2D {"activation":"linear","bias_initializer":"zeros","filters":4,)"
                          R"("kernel_initializer":"glorot_uniform","kernel_size":[3,2],"padding":"same",)"
                          R"("strides":[2,2],"use_bias":true})"));
  EXPECT_THAT(
      step_lines(steps_of("Conv2D", R"({"filters": 4, "kernel_size": 3, "dilation_rate": [2, 1], "groups": 2})")),
      ElementsAre(R"(Conv2D {"activation":"linear","bias_initializer":"zeros","dilation_rate":[2,1],)"
                  R"("filters":4,"groups":2,"kernel_initializer":"glorot_uniform","kernel_size":[3,3],)"
                  R"("padding":"valid","strides":[1,1],"use_bias":true})"));
}

TEST(KerasLayerReader, KnowsInitializersOfEveryVersion) {
  const auto initializer = [](const char* json) {
    const std::string text = std::string(R"({"units": 3, "kernel_initializer": )") + json + "}";
    return steps_of("Dense", text.c_str()).steps[0].config["kernel_initializer"].get<std::string>();
  };

  EXPECT_EQ(initializer(R"("he_uniform")"), "he_uniform");
  EXPECT_EQ(initializer(R"({"class_name": "RandomNormal", "config": {"mean": 0.0, "stddev": 0.25}})"), "normal(0.25)");
  EXPECT_EQ(initializer(R"({"class_name": "VarianceScaling",
                            "config": {"scale": 1.0, "mode": "fan_avg", "distribution": "uniform"}})"),
            "glorot_uniform");
  EXPECT_EQ(initializer(R"({"class_name": "VarianceScaling",
                            "config": {"scale": 2.0, "mode": "fan_in", "distribution": "truncated_normal"}})"),
            "truncated_he_normal");
  EXPECT_THAT(steps_of("Dense", R"({"units": 3, "kernel_initializer": {"class_name": "Mine"}})").notes,
              ElementsAre(HasSubstr("layer \"net/x\" has the kernel_initializer \"Mine\"")));
}

TEST(KerasLayerReader, HasEveryOtherLayer) {
  EXPECT_THAT(step_lines(steps_of("ReLU", R"({"max_value": null, "negative_slope": 0.0, "threshold": 0.0})")),
              ElementsAre(R"(ReLU {"max_value":[null],"negative_slope":0.0,"threshold":0.0})"));
  EXPECT_THAT(step_lines(steps_of("Softmax", R"({"axis": -1})")), ElementsAre(R"(Softmax {"axis":-1})"));
  EXPECT_THAT(step_lines(steps_of("Dropout", R"({"rate": 0.25, "noise_shape": null})")),
              ElementsAre(R"(Dropout {"rate":0.25})"));
  EXPECT_THAT(step_lines(steps_of("BatchNormalization",
                                  R"({"axis": [3], "momentum": 0.5, "epsilon": 0.125, "renorm": false})")),
              ElementsAre(R"(BatchNormalization {"epsilon":0.125,"momentum":0.5})"));
  EXPECT_THAT(step_lines(steps_of("BatchNormalization", R"({"epsilon": 0.125, "momentum": 0.5, "scale": false})")),
              ElementsAre(R"(BatchNormalization {"epsilon":0.125,"momentum":0.5,"scale":false})"));
  EXPECT_THAT(step_lines(steps_of("BatchNormalization",
                                  R"({"epsilon": 0.125, "momentum": 0.5, "scale": true, "center": false})")),
              ElementsAre(R"(BatchNormalization {"center":false,"epsilon":0.125,"momentum":0.5})"));
  EXPECT_THAT(step_lines(steps_of("LayerNormalization", R"({"axis": [-1], "epsilon": 0.5, "center": false})")),
              ElementsAre(R"(LayerNormalization {"center":false,"epsilon":0.5,"scale":true})"));
  EXPECT_THAT(step_lines(steps_of("RMSNormalization", R"({"axis": -1, "epsilon": 0.5})")),
              ElementsAre(R"(RMSNormalization {"epsilon":0.5})"));
  EXPECT_THAT(step_lines(steps_of("MaxPooling2D", R"({"pool_size": [3, 2], "strides": null, "padding": "valid"})")),
              ElementsAre(R"(MaxPooling2D {"padding":"valid","pool_size":[3,2],"strides":[3,2]})"));
  EXPECT_THAT(step_lines(steps_of("GlobalMaxPooling2D", R"({"keepdims": true})")),
              ElementsAre(R"(GlobalMaxPooling {"keepdims":true})"));
  EXPECT_THAT(step_lines(steps_of("GlobalAveragePooling1D", "{}", {SampleShape{4, 2}})),
              ElementsAre(R"(GlobalAveragePooling {"keepdims":false})"));
  EXPECT_THAT(step_lines(steps_of("Concatenate", R"({"axis": 3})")), ElementsAre(R"(Concatenate {"axis":2})"));
  EXPECT_THAT(step_lines(steps_of("Concatenate", R"({"axis": -2})")), ElementsAre(R"(Concatenate {"axis":-2})"));
  EXPECT_THAT(step_lines(steps_of("Reshape", R"({"target_shape": [-1, 4]})")),
              ElementsAre(R"(Reshape {"target_shape":[-1,4]})"));
  EXPECT_THAT(step_lines(steps_of("ZeroPadding2D", R"({"padding": [[1, 2], [3, 4]]})")),
              ElementsAre(R"(ZeroPadding2D {"padding":[1,2,3,4]})"));
  EXPECT_THAT(step_lines(steps_of("Cropping2D", R"({"cropping": [1, 2]})")),
              ElementsAre(R"(Cropping2D {"cropping":[1,1,2,2]})"));
  EXPECT_THAT(step_lines(steps_of("ZeroPadding2D", R"({"padding": 2})")),
              ElementsAre(R"(ZeroPadding2D {"padding":[2,2,2,2]})"));
  EXPECT_THAT(step_lines(steps_of("UpSampling2D", R"({"size": 2, "interpolation": "bilinear"})")),
              ElementsAre(R"(UpSampling2D {"interpolation":"bilinear","size":[2,2]})"));
  EXPECT_THAT(step_lines(steps_of("UpSampling2D", R"({"size": 2, "interpolation": "nearest"})")),
              ElementsAre(R"(UpSampling2D {"size":[2,2]})"));
  EXPECT_THAT(step_lines(steps_of("Rescaling", R"({"scale": 0.5, "offset": 0.0})")),
              ElementsAre(R"(Rescaling {"offset":0.0,"scale":0.5})"));
  for (const char* kind : {"Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Flatten"}) {
    EXPECT_THAT(step_lines(steps_of(kind, "{}")), ElementsAre(kind + std::string(" {}")));
  }
}

TEST(KerasLayerReader, HasActivationsWithTheNumbersOfKeras) {
  const auto activation = [](const std::string& json) {
    return steps_of("Dense", (R"({"units": 3, "activation": )" + json + "}").c_str())
        .steps[0]
        .config["activation"]
        .get<std::string>();
  };
  EXPECT_EQ(activation(R"("swish")"), "silu");
  EXPECT_EQ(activation(R"("elu")"), "elu(1)");
  EXPECT_EQ(activation(R"("leaky_relu")"), "leaky_relu(0.2)");
  EXPECT_EQ(activation(R"("squareplus")"), "squareplus(4)");
  EXPECT_EQ(activation(R"("sparse_plus")"), "sparse_plus");
  EXPECT_EQ(activation(R"({"class_name": "function", "config": "mish"})"), "mish");
  EXPECT_EQ(activation(R"({"class_name": "LeakyReLU", "config": {"negative_slope": 0.5}})"), "leaky_relu(0.5)");
  EXPECT_EQ(activation(R"({"class_name": "LeakyReLU", "config": {"alpha": 0.5}})"), "leaky_relu(0.5)");
  EXPECT_EQ(activation(R"({"class_name": "LeakyReLU", "config": {}})"), "leaky_relu(0.3)");
  EXPECT_EQ(activation(R"({"class_name": "ReLU", "config": {"max_value": 6, "threshold": 0.5}})"), "relu(0,6,0.5)");
  EXPECT_THAT(step_lines(steps_of("LeakyReLU", R"({"alpha": 0.25})")),
              ElementsAre(R"(LeakyReLU {"negative_slope":0.25})"));
}

TEST(KerasLayerReader, AddsNoWeightsToABatchNormalizationWithoutScale) {
  const FoundSteps found = steps_of("BatchNormalization", R"({"scale": false, "center": false})");

  EXPECT_THAT(found.steps[0].weights, IsEmpty());
  EXPECT_THAT(found.notes, IsEmpty());
}

TEST(KerasLayerReader, AddsWeightsThatKerasLayersLack) {
  const FoundSteps given = steps_of("Normalization", R"({"axis": [-1], "mean": [[1, 2]], "variance": [3, 4]})");
  ASSERT_EQ(given.steps[0].weights.size(), 2U);
  EXPECT_THAT(given.steps[0].weights[1].values, ElementsAre(3.0F, 4.0F));
  EXPECT_THAT(steps_of("Normalization", R"({"axis": null})").steps[0].weights, IsEmpty());
  EXPECT_THAT(
      error_of([] { steps_of("Normalization", R"({"axis": null, "mean": 0, "variance": 1})", {MaybeShape()}); }),
      HasSubstr("unsupported: "));
  // No file of a few bytes may ask for memory without end.
  EXPECT_THAT(error_of([] {
                steps_of("Normalization", R"({"axis": 1, "mean": 0, "variance": 1})", {SampleShape{1 << 30, 2}});
              }),
              HasSubstr("more than 16777216 numbers"));
}

TEST(KerasLayerReader, HasFunctionsOfElementsWithTheirNumbers) {
  EXPECT_THAT(step_lines(steps_of_function("Subtract", "{}", {2.5, std::nullopt})),
              ElementsAre(R"(Operation {"constants":[2.5,null],"operation":"subtract"})"));
  EXPECT_THAT(step_lines(steps_of_function("Rsqrt", "{}", {std::nullopt})),
              ElementsAre(R"(Operation {"constants":[null],"operation":"reciprocal_root"})"));
  EXPECT_THAT(step_lines(steps_of_function("Relu", "{}", {std::nullopt})),
              ElementsAre(R"(Activation {"activation":"relu"})"));
  EXPECT_THAT(error_of([] {
                steps_of_function("Add", "{}", {std::nullopt, std::nullopt}, {SampleShape{2}, SampleShape{3, 2}});
              }),
              HasSubstr("different numbers of axes"));
  EXPECT_THAT(error_of([] { steps_of_function("Add", "{}", {std::nullopt}); }), HasSubstr("1 arguments instead of 2"));
  EXPECT_THAT(error_of([] { steps_of_function("Einsum", "{}", {std::nullopt}); }), HasSubstr("has no counterpart"));
}

TEST(KerasLayerReader, ReducesInStepsOverNeighbouringAxes) {
  EXPECT_THAT(step_lines(steps_of_function("Sum", R"({"axis": [1, -1], "keepdims": false})", {std::nullopt})),
              ElementsAre(R"(.0 Operation {"axes":[0,1],"operation":"sum"})",
                          R"(.1 Operation {"axes":[2,3],"operation":"sum"})",
                          R"(Operation {"operation":"reshape","shape":[8]})"));
  EXPECT_THAT(step_lines(steps_of_function("Max", R"({"axis": [1, 2], "keepdims": true})", {std::nullopt})),
              ElementsAre(R"(Operation {"axes":[0,2],"operation":"largest"})"));
  EXPECT_THAT(error_of([] { steps_of_function("Sum", R"({"axis": [], "keepdims": true})", {std::nullopt}); }),
              HasSubstr("an empty list of axes"));
  for (const char* over_samples :
       {"{}", R"({"axis": 0})", R"({"axis": [1, 0]})", R"({"axis": 4})", R"({"axis": -4})"}) {
    EXPECT_THAT(error_of([&] { steps_of_function("Mean", over_samples, {std::nullopt}); }), HasSubstr("samples"))
        << over_samples;
  }
}

TEST(KerasLayerReader, RefusesOptionsThatHoldfastLacks) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"Conv2D", R"({"filters": 4, "kernel_size": [3, 3], "data_format": "channels_first"})"},
      {"Conv2D", R"({"filters": 4, "kernel_size": [3, 3], "padding": "causal"})"},
      {"Conv2D", R"({"filters": 4})"},
      {"Conv2D", R"({"filters": 4, "kernel_size": [0, 3]})"},
      {"Dense", R"({"units": 0})"},
      {"Dense", R"({"units": 1e300})"},
      {"Dense", R"({"units": 3, "activation": "glu"})"},
      {"Dense", R"({"units": 3, "activation": {"class_name": "ELU", "config": {"alpha": 1e99}}})"},
      {"Dense", R"({"units": 3, "activation": 3})"},
      {"Dense", R"({"units": 3, "lora_rank": 2})"},
      {"ReLU", R"({"max_value": -1})"},
      {"Softmax", R"({"axis": [1, 2]})"},
      {"Softmax", R"({"axis": 4})"},
      {"PReLU", R"({"shared_axes": [-1]})"},
      {"GaussianNoise", R"({"stddev": 2})"},
      {"GroupNormalization", R"({"groups": -2})"},
      {"GroupNormalization", R"({"groups": 2, "axis": 1})"},
      {"Embedding", R"({"input_dim": 3, "output_dim": 2, "mask_zero": true})"},
      {"Conv2DTranspose", R"({"filters": 4, "kernel_size": 2, "output_padding": [1]})"},
      {"Normalization", R"({"axis": -1, "mean": [1, 2, 3], "variance": [1, 2, 3]})"},
      {"Normalization", R"({"axis": -1, "mean": 1, "variance": -1})"},
      {"Normalization", R"({"axis": -1, "mean": 1})"},
      {"Dropout", R"({"rate": 1.0})"},
      {"Dropout", R"({"rate": 0.5, "noise_shape": [null, 1]})"},
      {"BatchNormalization", R"({"axis": 1})"},
      {"BatchNormalization", R"({"epsilon": 1e-60})"},
      {"ReversibleEmbedding", R"({"input_dim": 3, "output_dim": 2, "mask_zero": true})"},
      {"ReversibleEmbedding", R"({"input_dim": 3, "output_dim": 2, "reverse_dtype": "bfloat16"})"},
      {"UpSampling2D", R"({"interpolation": "bicubic"})"},
      {"Rescaling", R"({"scale": [1, -2]})"},
      {"Permute", R"({"dims": [0, 1]})"},
      {"Concatenate", R"({"axis": 0})"},
      {"ZeroPadding2D", R"({"padding": [[1, -2], [3, 4]]})"},
  };
  for (const auto& [class_name, config] : cases) {
    const std::string error = error_of([&, class_name = class_name, config = config] { steps_of(class_name, config); });
    EXPECT_THAT(error, HasSubstr("unsupported: ")) << class_name << config;
    EXPECT_THAT(error, HasSubstr("its layer \"net/x\" (\"" + std::string(class_name))) << config;
    EXPECT_THAT(error, HasSubstr("has the option")) << config;
  }
}

TEST(KerasLayerReader, SaysHowMasksAreGivenInstead) {
  EXPECT_THAT(error_of([] { steps_of("Embedding", R"({"input_dim": 3, "output_dim": 2, "mask_zero": true})"); }),
              HasSubstr("recurrent layers take with takes_mask"));
}

// A later Keras may have it, an older one had it, or somebody's class has the name of one of Keras's.
TEST(KerasLayerReader, RefusesOptionsThatNobodyKnows) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"Dense", R"({"units": 3, "sparsity": 0.5})"},
      {"BatchNormalization", R"({"virtual_batch_size": 8})"},
      // Keras 1 could take the moments of each sample.
      {"BatchNormalization", R"({"mode": 1})"},
      // Keras 2 had it as an option of the layer.
      {"Attention", R"({"causal": true})"},
      {"UpSampling1D", R"({"size": 2, "data_format": "channels_first"})"},
      {"DepthwiseConv1D", R"({"kernel_size": 2, "groups": 2})"},
      {"Bidirectional", R"({"merge_mode": "sum", "depth": 2, "layer": {"class_name": "GRU", "config": {"units": 3}}})"},
      {"Bidirectional", R"({"merge_mode": "sum", "layer": {"class_name": "GRU", "config": {"units": 3, "depth": 2}}})"},
  };
  for (const auto& [class_name, config] : cases) {
    const std::string error = error_of([&, class_name = class_name, config = config] {
      steps_of(class_name, config, {SampleShape{9, 8}});
    });
    EXPECT_THAT(error, HasSubstr("has the option")) << class_name << config;
  }
  const auto off = R"({"units": 3, "sparsity": null, "is_sparse": false, "axes": [], "seed": 7, "lora_alpha": 2})";
  EXPECT_THAT(step_lines(steps_of("Dense", off)), ElementsAre(HasSubstr(R"("units":3)")));
}

TEST(KerasLayerReader, TakesWhatKeras2WroteBesides) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"DepthwiseConv2D", R"({"kernel_size": [3, 3], "groups": 1, "depth_multiplier": 1, "dilation_rate": [1, 1]})"},
      {"SeparableConv2D", R"({"filters": 3, "kernel_size": [3, 3], "groups": 1, "kernel_initializer": "zeros"})"},
      {"Conv2DTranspose", R"({"filters": 3, "kernel_size": [3, 3], "groups": 1, "activity_regularizer": null})"},
      {"Embedding", R"({"input_dim": 9, "output_dim": 2, "input_length": 4, "batch_input_shape": [null, 4]})"},
      {"BatchNormalization", R"({"axis": [3], "mode": 0, "renorm": false, "fused": true, "virtual_batch_size": null})"},
      {"Dropout", R"({"rate": 0.5, "noise_shape": null, "seed": 4})"},
      {"LSTM", R"({"units": 3, "implementation": 2, "unroll": true, "stateful": false, "time_major": false})"},
      {"Attention", R"({"use_scale": false, "causal": false, "dropout": 0.0})"},
  };
  for (const auto& [class_name, config] : cases) {
    const bool is_sequence = class_name == std::string("LSTM");
    const SampleShape input = is_sequence ? SampleShape{9, 8} : SampleShape{9, 8, 2};
    EXPECT_EQ(steps_of(class_name, config, {input}).steps.size(), 1U) << class_name;
  }
}

TEST(KerasLayerReader, RefusesAnUnknownClassWithAListOfThoseItKnows) {
  EXPECT_THAT(
      error_of([] { steps_of("ConvLSTM2D", "{}"); }),
      AllOf(HasSubstr("its layer \"net/x\" (\"ConvLSTM2D\") has no counterpart; Holdfast has Activation, Adapt"),
            HasSubstr("ZeroPadding2D")));
  EXPECT_THAT(error_of([] { steps_of("GlobalMaxPooling4D", "{}"); }), HasSubstr("has no counterpart"));
  EXPECT_THAT(error_of([] { steps_of("Conv1D", R"({"filters": 1, "kernel_size": 1})"); }),
              HasSubstr("3 axes instead of 2"));
}

TEST(KerasLayerReader, RefusesOtherTypesThanFloat32) {
  EXPECT_THAT(steps_of("Flatten", R"({"dtype": {"class_name": "DTypePolicy", "config": {"name": "float32"}}})").notes,
              IsEmpty());
  EXPECT_THAT(error_of([] { steps_of("Flatten", R"({"dtype": "float64"})"); }), HasSubstr("computes in"));
  EXPECT_THAT(error_of([] { steps_of("Flatten", R"({"dtype": {"config": {"name": "mixed_float16"}}})"); }),
              HasSubstr("mixed_float16"));
  EXPECT_THAT(error_of([] { steps_of("Flatten", R"({"dtype": 3})"); }), HasSubstr("computes in"));
}

TEST(KerasLayerReader, ReadsRegularizers) {
  const auto step = steps_of("Dense", R"({"units": 3,
      "kernel_regularizer": {"class_name": "L1L2", "config": {"l1": 0.25, "l2": 0.5}}, "bias_regularizer": "l2"})");

  EXPECT_THAT(step.notes, IsEmpty());
  EXPECT_EQ(step.steps.front().config["kernel_regularizer"], "l1_l2(0.25,0.5)");
  EXPECT_EQ(step.steps.front().config["bias_regularizer"], "l2(0.01)");
}

TEST(KerasLayerReader, ReadsConstraints) {
  const auto step = steps_of("Dense", R"({"units": 3, "bias_constraint": "non_neg",
      "kernel_constraint": {"class_name": "MinMaxNorm", "config": {"min_value": 0.5, "axis": [0, 1]}}})");

  EXPECT_THAT(step.notes, IsEmpty());
  EXPECT_EQ(step.steps.front().config["kernel_constraint"], "min_max_norm(0.5,1.0,1.0,[0,1])");
  EXPECT_EQ(step.steps.front().config["bias_constraint"], "non_neg()");
}

TEST(KerasLayerReader, NotesConstraintsThatHoldfastLacks) {
  for (const char* constraint :
       {R"({"class_name": "Own"})", R"({"class_name": "MaxNorm", "config": {"max_value": -1}})",
        R"({"class_name": "UnitNorm", "config": {"axis": [0, 0]}})",
        R"({"class_name": "UnitNorm", "config": {"axis": "0"}})",
        R"({"class_name": "MinMaxNorm", "config": {"min_value": 2}})", "3"}) {
    const std::string text = fmt::format(R"({{"units": 3, "kernel_constraint": {}}})", constraint);
    EXPECT_THAT(steps_of("Dense", text.c_str()).notes,
                ElementsAre("layer \"net/x\" has a kernel_constraint, which Holdfast leaves out"))
        << constraint;
  }
}

TEST(KerasLayerReader, NotesRegularizersThatHoldfastLacks) {
  EXPECT_THAT(
      steps_of("Dense", R"({"units": 3, "kernel_regularizer": {"class_name": "Own"}, "bias_constraint": null})").notes,
      ElementsAre("layer \"net/x\" has a kernel_regularizer, which Holdfast leaves out"));
}

}  // namespace
}  // namespace holdfast::format
