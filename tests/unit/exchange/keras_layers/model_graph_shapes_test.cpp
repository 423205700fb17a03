// The shape after each kind of layer, and no shape where the options do not fit.

#include "keras_layers/model_graph_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::format {
namespace {

MaybeShape shape_after_layer(const char* kind, const char* config, const std::vector<MaybeShape>& inputs) {
  return shape_after({.kind = kind, .name = "x", .config = Json::parse(config)}, inputs);
}

MaybeShape after_operation(const char* config, const std::vector<MaybeShape>& inputs) {
  return shape_after_layer("Operation", config, inputs);
}

const MaybeShape kNone;
const MaybeShape kImage = SampleShape{9, 8, 2};
const MaybeShape kVector = SampleShape{6};

TEST(ModelGraphShapes, FollowEachKindOfLayer) {
  EXPECT_EQ(shape_after_layer("Activation", "{}", {kImage}), kImage);
  EXPECT_EQ(shape_after_layer("Dense", R"({"units": 3})", {kImage}), (SampleShape{9, 8, 3}));
  EXPECT_EQ(shape_after_layer("Flatten", "{}", {kImage}), (SampleShape{144}));
  const char* window = R"({"filters": 5, "kernel_size": [3, 2], "strides": [2, 3], "padding": "same"})";
  EXPECT_EQ(shape_after_layer("Conv2D", window, {kImage}), (SampleShape{5, 3, 5}));
  const char* dilated = R"({"filters": 5, "kernel_size": [3, 2], "strides": [1, 1], "dilation_rate": [4, 1]})";
  EXPECT_EQ(shape_after_layer("Conv2D", dilated, {kImage}), (SampleShape{1, 7, 5}));
  EXPECT_EQ(
      shape_after_layer("MaxPooling2D", R"({"pool_size": [2, 2], "strides": [1, 2], "padding": "valid"})", {kImage}),
      (SampleShape{8, 4, 2}));
  EXPECT_EQ(shape_after_layer("GlobalAveragePooling", R"({"keepdims": false})", {kImage}), (SampleShape{2}));
  EXPECT_EQ(shape_after_layer("GlobalMaxPooling", R"({"keepdims": true})", {kImage}), (SampleShape{1, 1, 2}));
  EXPECT_EQ(shape_after_layer("AdaptiveMaxPooling", R"({"output_size": [4, 3]})", {kImage}), (SampleShape{4, 3, 2}));
  EXPECT_EQ(shape_after_layer("UnitNormalization", R"({"axis": [0]})", {kImage}), kImage);
  EXPECT_EQ(
      shape_after_layer("EinsumDense", R"({"equation": "abcd,dcef->aebf", "output_shape": [5, -1, 7]})", {kImage}),
      (SampleShape{5, 9, 7}));
  EXPECT_EQ(shape_after_layer("EinsumDense", R"({"equation": "...x,xy->...y", "output_shape": [5]})", {kImage}),
            (SampleShape{9, 8, 5}));
  EXPECT_EQ(shape_after_layer("Reshape", R"({"target_shape": [-1, 3]})", {kVector}), (SampleShape{2, 3}));
  EXPECT_EQ(shape_after_layer("Permute", R"({"dims": [3, 1, 2]})", {kImage}), (SampleShape{2, 9, 8}));
  EXPECT_EQ(shape_after_layer("RepeatVector", R"({"n": 4})", {kVector}), (SampleShape{4, 6}));
  EXPECT_EQ(shape_after_layer("ZeroPadding2D", R"({"padding": [1, 2, 0, 3]})", {kImage}), (SampleShape{12, 11, 2}));
  EXPECT_EQ(shape_after_layer("Cropping2D", R"({"cropping": [1, 2, 0, 3]})", {kImage}), (SampleShape{6, 5, 2}));
  EXPECT_EQ(shape_after_layer("UpSampling2D", R"({"size": [2, 3]})", {kImage}), (SampleShape{18, 24, 2}));
  EXPECT_EQ(shape_after_layer("Cropping1D", R"({"cropping": [1, 2]})", {MaybeShape(SampleShape{9, 2})}),
            (SampleShape{6, 2}));
  EXPECT_EQ(shape_after_layer("UpSampling1D", R"({"size": 3})", {MaybeShape(SampleShape{9, 2})}), (SampleShape{27, 2}));
  EXPECT_EQ(shape_after_layer("Embedding", R"({"vocabulary": 5, "width": 3})", {kVector}), (SampleShape{6, 3}));
  const ModelGraphLayer reversible{
      .kind = "ReversibleEmbedding", .name = "w", .config = {{"vocabulary", 5}, {"width", 6}}};
  EXPECT_EQ(shape_after(reversible, std::vector<MaybeShape>{kVector}), (SampleShape{6, 6}));
  EXPECT_EQ(shape_after(reversible, std::vector<MaybeShape>{kVector}, true), (SampleShape{5}));
  EXPECT_EQ(shape_after_layer("DepthwiseConv2D", R"({"kernel_size": [3, 2], "strides": [1, 1], "depth_multiplier": 4})",
                              {kImage}),
            (SampleShape{7, 7, 8}));
  const char* back = R"({"filters": 5, "kernel_size": [3, 2], "strides": [2, 3], "padding": "valid"})";
  EXPECT_EQ(shape_after_layer("Conv2DTranspose", back, {kImage}), (SampleShape{19, 24, 5}));
  const char* padded =
      R"({"filters": 5, "kernel_size": [3, 2], "strides": [2, 3], "padding": "same", "output_padding": [1, 0]})";
  EXPECT_EQ(shape_after_layer("Conv2DTranspose", padded, {kImage}), (SampleShape{18, 21, 5}));
  EXPECT_EQ(shape_after_layer("Dot", R"({"axes": [2, -1]})", {kImage, MaybeShape(SampleShape{5, 2})}),
            (SampleShape{9, 8, 5}));
  EXPECT_EQ(shape_after_layer("Dot", R"({"axes": [0, 0]})", {kVector, kVector}), SampleShape{1});
  EXPECT_EQ(shape_after_layer("Add", "{}", {kImage, SampleShape{8, 1}, SampleShape{}}), kImage);
  EXPECT_EQ(shape_after_layer("Concatenate", R"({"axis": -1})", {kImage, SampleShape{9, 8, 3}}),
            (SampleShape{9, 8, 5}));
}

TEST(ModelGraphShapes, FollowEachOperation) {
  EXPECT_EQ(after_operation(R"({"operation": "add", "constants": [null, 2]})", {kImage}), kImage);
  EXPECT_EQ(after_operation(R"({"operation": "reshape", "shape": []})", {SampleShape{1, 1}}), SampleShape{});
  EXPECT_EQ(after_operation(R"({"operation": "broadcast", "shape": [4, 6]})", {kVector}), (SampleShape{4, 6}));
  EXPECT_EQ(after_operation(R"({"operation": "mean", "axes": [0, 2]})", {kImage}), (SampleShape{1, 1, 2}));
  EXPECT_EQ(after_operation(R"({"operation": "slice", "axis": 1, "begin": 2, "end": 5})", {kImage}),
            (SampleShape{9, 3, 2}));
  EXPECT_EQ(after_operation(R"({"operation": "pad", "axis": 0, "before": 2, "after": 5})", {kImage}),
            (SampleShape{16, 8, 2}));
  EXPECT_EQ(after_operation(R"({"operation": "permute", "order": [2, 0, 1]})", {kImage}), (SampleShape{2, 9, 8}));
}

TEST(ModelGraphShapes, AreUnknownWhereOptionsDoNotFit) {
  EXPECT_EQ(shape_after_layer("Mine", "{}", {kImage}), kNone);
  EXPECT_EQ(shape_after_layer("Dense", R"({"units": 3})", {kNone}), kNone);
  EXPECT_EQ(shape_after_layer("Dense", R"({"units": 3})", {}), kNone);
  for (const char* units : {R"({"units": 0})", R"({"units": -1})", R"({"units": "x"})", R"({"units": 1e300})",
                            R"({"units": 18446744073709551615})", "{}"}) {
    EXPECT_EQ(shape_after_layer("Dense", units, {kVector}), kNone) << units;
  }
  EXPECT_EQ(shape_after_layer("Conv2D", R"({"filters": 5, "kernel_size": [3, 2], "strides": [0, 1]})", {kImage}),
            kNone);
  EXPECT_EQ(
      shape_after_layer("MaxPooling2D", R"({"pool_size": [10, 2], "strides": [1, 1], "padding": "valid"})", {kImage}),
      kNone);
  EXPECT_EQ(shape_after_layer("Reshape", R"({"target_shape": [-1, 4]})", {kVector}), kNone);
  EXPECT_EQ(shape_after_layer("Dot", R"({"axes": [0, 0]})", {kImage, kVector}), kNone);
  EXPECT_EQ(shape_after_layer("UpSampling2D", R"({"size": [1099511627776, 2]})", {kImage}), kNone);
  EXPECT_EQ(shape_after_layer("Conv1D", R"({"filters": 1, "kernel_size": [2], "strides": [1]})", {kImage}), kNone);
  EXPECT_EQ(shape_after_layer("Reshape", R"({"target_shape": [-1, -1]})", {kVector}), kNone);
  EXPECT_EQ(shape_after_layer("AdaptiveMaxPooling", R"({"output_size": [4]})", {kImage}), kNone);
  EXPECT_EQ(shape_after_layer("AdaptiveMaxPooling", R"({"output_size": [4]})", {MaybeShape(SampleShape{})}), kNone);
  for (const char* config :
       {R"({"equation": "ab", "output_shape": [1]})", R"({"equation": ",->", "output_shape": []})",
        R"({"equation": "ab,bc->ac", "output_shape": [-1]})", R"({"equation": "abc,cd->abd", "output_shape": [-1, 3]})",
        R"({"equation": "ab,bc->ac", "output_shape": [1, 2]})"}) {
    EXPECT_EQ(shape_after_layer("EinsumDense", config, {kVector}), kNone) << config;
  }
  EXPECT_EQ(shape_after_layer("Reshape", R"({"target_shape": [0, -1]})", {kVector}), kNone);
  EXPECT_EQ(shape_after_layer("Permute", R"({"dims": [1, 1, 2]})", {kImage}), kNone);
  EXPECT_EQ(shape_after_layer("Cropping2D", R"({"cropping": [5, 4, 0, 0]})", {kImage}), kNone);
  EXPECT_EQ(shape_after_layer("Add", "{}", {kImage, SampleShape{3, 2}}), kNone);
  EXPECT_EQ(shape_after_layer("Concatenate", R"({"axis": 3})", {kImage, kImage}), kNone);
  EXPECT_EQ(shape_after_layer("Concatenate", R"({"axis": 0})", {kImage, kVector}), kNone);
  EXPECT_EQ(after_operation(R"({"operation": "mean", "axes": [1, 4]})", {kImage}), kNone);
  EXPECT_EQ(after_operation(R"({"operation": "slice", "axis": 1, "begin": 5, "end": 5})", {kImage}), kNone);
}

TEST(ModelGraphShapes, AreUnknownBeyond32Axes) {
  const auto with_ones = [](std::size_t axes) {
    Json options;
    options["target_shape"] = std::vector<int>(axes, 1);
    return shape_after_layer("Reshape", options.dump().c_str(), {SampleShape{1}});
  };

  EXPECT_EQ(with_ones(32), SampleShape(32, 1));
  EXPECT_EQ(with_ones(33), kNone);
}

TEST(ModelGraphShapes, AreUnknownBeyondAnyMemory) {
  const MaybeShape wide = SampleShape{std::int64_t{1} << 20, std::int64_t{1} << 20};

  EXPECT_EQ(shape_after_layer("Dense", R"({"units": 2147483648})", {wide}), kNone);
  EXPECT_EQ(
      shape_after_layer("UpSampling2D", R"({"size": [2147483648, 2147483648]})", {SampleShape{1 << 20, 1 << 10, 1}}),
      kNone);
  EXPECT_EQ(shape_after_layer("RepeatVector", R"({"n": 2147483648})", {SampleShape{1 << 20}}), kNone);
  EXPECT_EQ(
      shape_after_layer("Add", "{}", {SampleShape{std::int64_t{1} << 40, 1}, SampleShape{1, std::int64_t{1} << 40}}),
      kNone);
}

}  // namespace
}  // namespace holdfast::format
