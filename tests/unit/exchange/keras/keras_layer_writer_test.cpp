// The layers and functions of Keras for Holdfast's layers.

#include "keras/keras_layer_writer.h"

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
  EXPECT_EQ(object_line(written("GlobalMaxPooling", R"({"keepdims": true})")),
            R"(GlobalMaxPooling2D {"keepdims":true} [null])");
  EXPECT_EQ(object_line(written("GlobalAveragePooling", R"({"keepdims": false})", {SampleShape{4, 2}})),
            R"(GlobalAveragePooling1D {"keepdims":false} [null])");
  EXPECT_EQ(object_line(written("RMSNormalization", R"({"epsilon": 0.5})")),
            R"(RMSNormalization {"axis":-1,"epsilon":0.5} [null])");
  EXPECT_EQ(object_line(written("UpSampling2D", R"({"size": [2, 3]})")),
            R"(UpSampling2D {"interpolation":"nearest","size":[2,3]} [null])");
  EXPECT_EQ(written("Conv2D", "{}").object["config"]["data_format"], "channels_last");
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

}  // namespace
}  // namespace holdfast::format
