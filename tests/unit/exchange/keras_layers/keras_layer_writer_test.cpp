// The layers and functions of Keras for Holdfast's layers.

#include "keras_layers/keras_layer_writer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/exchange/support/keras_trees.h"

namespace holdfast::format {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

KerasObject written(const char* kind, const char* config,
                    const std::vector<MaybeShape>& inputs = {SampleShape{9, 8, 2}}) {
  const std::string name = "x";
  return keras_layer_object({.kind = kind, .name = "net/x", .config = Json::parse(config)}, name, inputs);
}

// "CLASS {options} ARGUMENTS", without what every layer has.
std::string object_line(const KerasObject& object) {
  Json config = object.object["config"];
  for (const char* key : {"name", "trainable", "dtype", "data_format"}) config.erase(key);
  return object.object["class_name"].get<std::string>() + " " + config.dump() + " " + object.arguments.dump();
}

TEST(KerasLayerWriter, HasTheOptionsThatKerasNamesOtherwise) {
  EXPECT_EQ(object_line(written("Concatenate", R"({"axis": 1})", {SampleShape{2, 3}, SampleShape{2, 4}})),
            R"(Concatenate {"axis":2} [[null,null]])");
  EXPECT_EQ(object_line(written("ZeroPadding2D", R"({"padding": [1, 2, 3, 4]})")),
            R"(ZeroPadding2D {"padding":[[1,2],[3,4]]} [null])");
  EXPECT_EQ(object_line(written("Cropping1D", R"({"cropping": [1, 2]})", {SampleShape{9, 2}})),
            R"(Cropping1D {"cropping":[1,2]} [null])");
  EXPECT_EQ(object_line(written("PReLU", R"({"alpha_initializer": "zeros", "shared_axes": [-2, 0]})")),
            R"(PReLU {"alpha_initializer":"zeros","shared_axes":[2,1]} [null])");
  EXPECT_EQ(object_line(written("Dot", R"({"axes": [0, -1], "normalize": true})", {SampleShape{3}, SampleShape{2, 3}})),
            R"(Dot {"axes":[1,2],"normalize":true} [[null,null]])");
  EXPECT_EQ(object_line(written("Embedding", R"({"vocabulary": 5, "width": 3, "initializer": "ones"})")),
            R"(Embedding {"embeddings_initializer":"ones","input_dim":5,"output_dim":3} [null])");
  EXPECT_EQ(object_line(written("GlobalMaxPooling", R"({"keepdims": true})")),
            R"(GlobalMaxPooling2D {"keepdims":true} [null])");
  EXPECT_EQ(object_line(written("GlobalAveragePooling", R"({"keepdims": false})", {SampleShape{4, 2}})),
            R"(GlobalAveragePooling1D {"keepdims":false} [null])");
  EXPECT_EQ(object_line(written("RMSNormalization", R"({"epsilon": 0.5})")),
            R"(RMSNormalization {"axis":-1,"epsilon":0.5} [null])");
  EXPECT_EQ(object_line(written("BatchNormalization", R"({"momentum": 0.5, "epsilon": 0.25})")),
            R"(BatchNormalization {"axis":-1,"center":true,"epsilon":0.25,"momentum":0.5,"scale":true} [null])");
  EXPECT_EQ(object_line(written("BatchNormalization", R"({"momentum": 0.5, "epsilon": 0.25, "scale": false})")),
            R"(BatchNormalization {"axis":-1,"center":true,"epsilon":0.25,"momentum":0.5,"scale":false} [null])");
  EXPECT_EQ(object_line(written("UpSampling2D", R"({"size": [2, 3]})")), R"(UpSampling2D {"size":[2,3]} [null])");
  EXPECT_EQ(object_line(written("UpSampling2D", R"({"size": [2, 3], "interpolation": "bilinear"})")),
            R"(UpSampling2D {"interpolation":"bilinear","size":[2,3]} [null])");
  EXPECT_EQ(object_line(written("LayerNormalization", R"({"axis": [-2, 2], "epsilon": 0.5, "scale": true,
                                                          "center": true, "gamma_initializer": "zeros"})")),
            R"(LayerNormalization {"axis":[2,3],"center":true,"epsilon":0.5,"gamma_initializer":"zeros","scale":true})"
            " [null]");
  EXPECT_EQ(object_line(written("ReversibleEmbedding", R"({"vocabulary": 5, "width": 3, "tie_weights": true,
                                                           "logit_soft_cap": [null], "initializer": "ones"})")),
            R"(ReversibleEmbedding {"embeddings_initializer":"ones","input_dim":5,"logit_soft_cap":null,)"
            R"("output_dim":3,"tie_weights":true} [null])");
  EXPECT_EQ(written("Conv2D", "{}").object["config"]["data_format"], "channels_last");
}

TEST(KerasLayerWriter, MakesLayersOrFunctionsOfActivationsWithNumbers) {
  const auto activation = [](const std::string& text) {
    return object_line(written("Activation", Json{{"activation", text}}.dump().c_str()));
  };
  EXPECT_EQ(activation("elu(1)"), R"(Activation {"activation":"elu"} [null])");
  EXPECT_EQ(activation("elu(0.1)"), R"(ELU {"alpha":0.1} [null])");
  EXPECT_EQ(activation("leaky_relu(-0.5)"), R"(LeakyRelu {"negative_slope":-0.5} [null])");
  EXPECT_EQ(activation("relu(0.5,none,0)"), R"(ReLU {"max_value":null,"negative_slope":0.5,"threshold":0.0} [null])");
  EXPECT_EQ(activation("celu(2)"), R"(Celu {"alpha":2.0} [null])");
  EXPECT_EQ(activation("gelu_tanh"), R"(Gelu {"approximate":true} [null])");
  for (const char* text : {"glu", "elu(", "elu(x)", "elu(1,2)", "relu(1,2)", "selu(1)", "elu(none)", ""}) {
    EXPECT_THAT(error_of([&] { activation(text); }), HasSubstr("which has no counterpart")) << text;
  }
}

TEST(KerasLayerWriter, PrefersLayersToFunctions) {
  const std::vector<MaybeShape> unequal = {SampleShape{9, 8, 2}, SampleShape{2}};
  EXPECT_EQ(object_line(written("Operation", R"({"operation": "subtract", "constants": [null, null]})", unequal)),
            "Subtract {} [[null,null]]");
  EXPECT_EQ(object_line(written("Operation", R"({"operation": "relu"})")),
            R"(Activation {"activation":"relu"} [null])");
  EXPECT_EQ(object_line(written("Operation", R"({"operation": "reshape", "shape": [72, 2]})")),
            R"(Reshape {"target_shape":[72,2]} [null])");
  EXPECT_EQ(object_line(written("Operation", R"({"operation": "permute", "order": [2, 0, 1]})")),
            R"(Permute {"dims":[3,1,2]} [null])");
}

TEST(KerasLayerWriter, HasFunctionsWithTheirNumbers) {
  const KerasObject object = written("Operation", R"({"operation": "divide", "constants": [1.5, null]})");
  EXPECT_EQ(object_line(object), "Divide {} [1.5,null]");
  EXPECT_EQ(object.object["module"], "keras.src.ops.numpy");
  EXPECT_EQ(object.object["registered_name"], "Divide");
  EXPECT_EQ(object_line(written("Operation", R"({"operation": "largest", "axes": [0, 2]})")),
            R"(Max {"axis":[1,2],"keepdims":true} [null])");
  EXPECT_EQ(object_line(written("Operation", R"({"operation": "pad", "axis": 1, "before": 2, "after": 3})")),
            R"(Pad {"mode":"constant","pad_width":[[0,0],[0,0],[2,3],[0,0]]} [null])");
}

TEST(KerasLayerWriter, WritesPartsOfValues) {
  const KerasObject object = written("Operation", R"({"operation": "slice", "axis": 1, "begin": 2, "end": 5})");

  EXPECT_EQ(object.object["class_name"], "GetItem");
  ASSERT_EQ(object.arguments.size(), 2U);
  ASSERT_EQ(object.arguments[1].size(), 3U) << "of the samples, and of two axes";
  EXPECT_EQ(object.arguments[1][2],
            Json::parse(R"({"class_name": "__slice__", "config": {"start": 2, "stop": 5, "step": null}})"));
}

TEST(KerasLayerWriter, RefusesActivationsThatRecurrentLayersDoNotHave) {
  const std::vector<MaybeShape> steps = {SampleShape{9, 2}};
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"LSTM", R"({"units": 2, "activation": "elu"})"},
      {"GRU", R"({"units": 2, "recurrent_activation": "gelu"})"},
      {"SimpleRNN", R"({"units": 2, "activation": 3})"},
      {"Bidirectional", R"({"layer": "LSTM", "merge_mode": "sum", "units": 2, "activation": "elu"})"}};
  for (const auto& [kind, config] : cases) {
    EXPECT_THAT(error_of([&, kind = kind, config = config] { written(kind, config, steps); }),
                HasSubstr("which recurrent layers do not have"))
        << kind;
  }
}

TEST(KerasLayerWriter, RefusesWhatKerasDoesNotHaveByName) {
  const std::vector<MaybeShape> unequal = {SampleShape{9, 8, 2}, SampleShape{2}};
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"my_app.Scale", "{}"},
      {"Operation", R"({"operation": "select", "constants": [null, 1, 2]})"},
      {"Operation", R"({"operation": "broadcast", "shape": [9, 8, 2]})"},
      {"Operation", R"({"operation": "mean", "axes": [2, 4]})"},
      {"Operation", R"({"operation": "add", "constants": [1, 2]})"},
      {"Operation", R"({"operation": "permute", "order": [0, 3]})"},
      {"Operation", "{}"},
      {"Concatenate", R"({"axis": 3})"},
      {"ZeroPadding2D", R"({"padding": [1, 2]})"},
      {"GroupNormalization", R"({"groups": 2, "axis": 0})"},
      {"GaussianNoise", R"({"stddev": 2})"},
      {"Dot", R"({"axes": [0]})"},
      {"Softmax", "{}"},
      {"MultiHeadAttention", R"({"num_heads": 2, "key_dim": 4, "value_dim": 4, "rotary_max_wavelength": 10000})"},
  };
  for (const auto& [kind, config] : cases) {
    const std::string error = error_of([&, kind = kind, config = config] { written(kind, config); });
    EXPECT_THAT(error, HasSubstr("unsupported: the savepoint cannot become a Keras model: its layer \"net/x\""))
        << kind << config;
  }
  EXPECT_THAT(error_of([&] { written("Operation", R"({"operation": "divide", "constants": [null, null]})", unequal); }),
              HasSubstr("different numbers of axes"));
  EXPECT_THAT(error_of([] { written("GlobalMaxPooling", "{}", {MaybeShape()}); }), HasSubstr("cannot be derived"));
  EXPECT_THAT(error_of([] { written("GlobalMaxPooling", "{}", {SampleShape{3}}); }), HasSubstr("1 axes"));
}

TEST(KerasLayerWriter, WritesTheLimitsOfWeights) {
  const auto kernel = [](const std::string& key, const std::string& text) {
    return written("Dense", Json{{"units", 2}, {"kernel_" + key, text}}.dump().c_str())
        .object["config"]["kernel_" + key];
  };

  EXPECT_EQ(kernel("constraint", "min_max_norm(0.5,2.0,1.0,[0,1])")["config"],
            Json::parse(R"({"min_value": 0.5, "max_value": 2.0, "rate": 1.0, "axis": [0, 1]})"));
  EXPECT_EQ(kernel("regularizer", "l1_l2(0.25,0.5)")["config"], Json::parse(R"({"l1": 0.25, "l2": 0.5})"));
}

// Numbers that no constraint can have went into the file for Keras.
TEST(KerasLayerWriter, RefusesLimitsOfWeightsThatHoldfastDoesNotHave) {
  const std::vector<std::pair<const char*, const char*>> texts = {{"constraint", "max_norm(-1)"},
                                                                  {"constraint", "max_norm(null)"},
                                                                  {"constraint", "max_norm(1e39)"},
                                                                  {"constraint", "min_max_norm(2,1,1)"},
                                                                  {"constraint", "min_max_norm(0,1,1.5)"},
                                                                  {"constraint", "min_max_norm(0,1,-1)"},
                                                                  {"regularizer", "l2(-1)"},
                                                                  {"regularizer", "l1_l2(0.5,-1)"},
                                                                  {"regularizer", "orthogonal(-1,rows)"},
                                                                  {"regularizer", "l1(1e39)"}};
  for (const auto& [key, text] : texts) {
    const Json config = {{"units", 2}, {fmt::format("kernel_{}", key), text}};
    EXPECT_THAT(error_of([&] { written("Dense", config.dump().c_str()); }), HasSubstr("which Keras does not have"))
        << text;
  }
}

}  // namespace
}  // namespace holdfast::format
