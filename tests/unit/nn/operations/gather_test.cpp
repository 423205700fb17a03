// Integers in models: gather() and its gradient, cast(), and what refuses them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/base/error.h"
#include "holdfast/nn/conv2d.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/embedding.h"
#include "holdfast/nn/flatten.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/merge_layers.h"
#include "holdfast/nn/model.h"
#include "holdfast/nn/sequential.h"
#include "holdfast/nn/shape_layers.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Model embedding(std::int64_t vocabulary = 4, std::int64_t width = 2) {
  const Value ids = input({3}, {.dtype = DType::i32, .name = "ids"});
  return Model(ids, Embedding{vocabulary, width}(ids));
}

std::vector<float> table_of(const Model& model) {
  std::vector<float> table(model.parameters().float_count());
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i);
  return table;
}

const std::byte* bytes_of(const auto& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

TEST(Gather, ReadsRowsByNumber) {
  Model model = embedding();
  model.set_weights(table_of(model), {});

  const Tensor output = model.predict(Tensor(Shape{2, 3}, std::vector<std::int32_t>{0, 3, 1, 2, 2, 0}));

  EXPECT_EQ(output.shape(), (Shape{2, 3, 2}));
  EXPECT_THAT(output.values(), ElementsAre(0, 1, 6, 7, 2, 3, 4, 5, 4, 5, 0, 1));
}

// Row 2 is asked for twice, row 1 never.
TEST(Gather, SumsTheGradientsOfEqualIdsInTheirOrder) {
  const Model model = embedding();
  const std::vector<std::int32_t> ids = {0, 2, 3, 2};
  const Model one = [] {
    const Value id = input({4}, {.dtype = DType::i32});
    return Model(id, Embedding{4, 1}(id));
  }();
  ModelProgram program(one, 1);
  const std::vector<float> parameters(one.parameters().float_count());
  // The order shows in f32: 1e8 + 1 - 1e8 is 0, and 1e8 - 1e8 + 1 is 1.
  const std::vector<float> output_gradient = {5, 1e8F, 7, 1};
  std::vector<float> gradients(parameters.size(), -1);

  program.prepare_training(1, {});
  program.run_training({bytes_of(ids)}, 1, parameters);
  program.backward(output_gradient, parameters, gradients, {});

  EXPECT_THAT(std::span(gradients).first(4), ElementsAre(5, 0, 1e8F + 1, 7));
}

TEST(Gather, RefusesIdsThatTheTableDoesNotHave) {
  Model model = embedding();
  model.set_weights(table_of(model), {});
  const auto predict = [&](std::int32_t id) {
    return refusal([&] { model.predict(Tensor(Shape{2, 3}, std::vector<std::int32_t>{0, 0, 0, 0, id, 0})); });
  };

  EXPECT_THAT(predict(4), HasSubstr("sample 1 of 2 has the id 4 at position 1, which is not in [0, 4)"));
  EXPECT_THAT(predict(-1), HasSubstr("id -1"));
}

TEST(Cast, MakesFloatsOfEachIntegerType) {
  const auto cast_to_float = [](DType dtype, const Tensor& x) {
    const Value value = input({2}, {.dtype = dtype});
    Model model(value, Rescaling{1}(value));
    model.set_weights(std::vector<float>(model.parameters().float_count()), {});
    return model.predict(std::vector<Tensor>{x})[0];
  };

  EXPECT_THAT(cast_to_float(DType::u8, Tensor(Shape{2, 2}, std::vector<std::uint8_t>{0, 1, 128, 255})).values(),
              ElementsAre(0, 1, 128, 255));
  EXPECT_THAT(cast_to_float(DType::u16, Tensor(Shape{1, 2}, std::vector<std::uint16_t>{65535, 2})).values(),
              ElementsAre(65535, 2));
  EXPECT_THAT(cast_to_float(DType::i32, Tensor(Shape{1, 2}, std::vector<std::int32_t>{-7, 1 << 24})).values(),
              ElementsAre(-7, 16777216));
  EXPECT_THAT(cast_to_float(DType::i64, Tensor(Shape{1, 2}, std::vector<std::int64_t>{-7, 9})).values(),
              ElementsAre(-7, 9));
  EXPECT_THAT(cast_to_float(DType::boolean, Tensor(Shape{1, 2}, std::vector<bool>{true, false})).values(),
              ElementsAre(1, 0));
  Tensor halves(Shape{1, 2}, DType::bf16);
  halves.bytes()[1] = std::byte{0x3F};
  halves.bytes()[0] = std::byte{0x80};
  EXPECT_THAT(cast_to_float(DType::bf16, halves).values(), ElementsAre(1, 0));
}

// The remedy was a cast, which left the type as it was.
TEST(Cast, IsNotNeededForBfloat16) {
  Tensor halves(Shape{1, 2}, DType::bf16);
  halves.bytes()[1] = std::byte{0x3F};
  halves.bytes()[0] = std::byte{0x80};
  const Value x = input({2}, {.dtype = DType::bf16}), whole = input({2});
  const Model tripled(whole, whole * 3.0F);
  for (const Value& y : {x * 2.0F + x, relu(x) + cast(x, DType::f32) * 2.0F, reshape(x, {2}) * 3.0F,
                         concatenate({x, x}) * 3.0F, sum(x, {-1}) * 3.0F, tripled.call({x}, "of_half")[0]}) {
    Model model(x, y);
    model.set_weights({}, {});
    const Tensor result = model.predict(std::vector<Tensor>{halves})[0];
    EXPECT_EQ(result.dtype(), DType::f32);
    EXPECT_EQ(result.values()[0], 3);
  }
}

TEST(Integers, AreMovedButNotComputedWith) {
  const Value ids = input({4}, {.dtype = DType::i32});

  EXPECT_EQ((Reshape{{2, 2}}(ids).dtype()), DType::i32);
  EXPECT_THAT(refusal([&] { Dense{3}(ids); }), HasSubstr("dense takes values of f32, not integers; write cast("));
  EXPECT_THAT(refusal([&] { static_cast<void>(ids + 1.0F); }), HasSubstr("add takes values of f32, not integers"));
  EXPECT_THAT(refusal([&] { Embedding{4, 2}(input({3})); }), HasSubstr("needs ids that are integers, not f32"));
  EXPECT_THAT(refusal([&] { input({3}, {.dtype = DType::f64}); }), HasSubstr("an input of f64"));
}

// They were read as floats, and gave numbers near 0.
TEST(Integers, ArePredictedAsIntegers) {
  const Value ids = input({3}, {.dtype = DType::i32}), marks = input({1}, {.dtype = DType::boolean});
  Model model({ids, marks}, {reshape(ids, {3, 1}), marks, cast(ids, DType::f32)});
  model.set_weights({}, {});
  const Tensor numbers(Shape{2, 3}, std::vector<std::int32_t>{5, 6, 7, 100, -200, 300});
  const Tensor given(Shape{2, 1}, std::vector<bool>{false, true});

  const std::vector<Tensor> results = model.predict({numbers, given}, 1);

  EXPECT_THAT(results[0].elements<std::int32_t>(), ElementsAre(5, 6, 7, 100, -200, 300));
  EXPECT_THAT(results[1].elements<std::int32_t>(), ElementsAre(0, 1));
  EXPECT_THAT(results[2].values(), ElementsAre(5, 6, 7, 100, -200, 300));
}

// The graph has them as i32, whatever the application said.
TEST(Integers, AreNamedByTheTypeOfTheInput) {
  const Value image = input({4, 4, 3}, {.dtype = DType::u8});

  EXPECT_THAT(
      refusal([&] {
        Conv2D{2, 3}(image);
      }),
      HasSubstr("cannot take an input of shape [4, 4, 3] of u8: convolution takes values of f32, not integers"));
}

TEST(Integers, MayBeTheInputOfASequential) {
  Sequential model{Input({3}, {.dtype = DType::i32}), Embedding{4, 2}, Flatten{}};
  const Sequential copy = Sequential::from_graph(model.graph());
  std::vector<float> table(model.parameters().float_count()), buffers(model.buffers().float_count());
  table[2 * 2] = 7;  // row 2
  model.set_weights(table, buffers);

  EXPECT_EQ(copy.graph(), model.graph());
  EXPECT_EQ(copy.inputs()[0].spec.dtype, DType::i32);
  EXPECT_THAT(model.predict(std::vector{Tensor(Shape{1, 3}, std::vector<std::int32_t>{0, 2, 0})})[0].values(),
              ElementsAre(0, 0, 7, 0, 0, 0));
  EXPECT_THAT(refusal([] { Input({3}, {.dtype = DType::f64}); }), HasSubstr("an input of f64"));
}

// 2^32 + 1 would be row 1.
TEST(Integers, AreRefusedByPredictIfTheyDoNotFit) {
  const Value ids = input({2}, {.dtype = DType::i64, .name = "ids"});
  Model model(ids, Flatten{}(Embedding{4, 2}(ids)));
  model.set_weights(std::vector<float>(model.parameters().float_count()), {});
  const auto predict = [&](std::int64_t id) {
    return refusal([&] { model.predict(Tensor(Shape{3, 2}, std::vector<std::int64_t>{0, 1, 2, 3, 0, id})); });
  };

  EXPECT_EQ(predict(3), "");
  EXPECT_THAT(predict(4294967297),
              HasSubstr("element 1 of array 0 (\"ids\" of i64 [2]) of sample 2 is 4294967297, but models compute"));
  EXPECT_THAT(predict(-2147483649), HasSubstr("number the ids anew"));
}

TEST(Integers, StandInTheFileOfAModel) {
  const Value ids = input({3}, {.dtype = DType::u16, .name = "ids"});
  const Model model(ids, Flatten{}(Embedding{9, 2}(ids)));

  const Model read = Model::from_graph(model.graph());

  EXPECT_THAT(model.graph(), HasSubstr(R"({"name":"ids","shape":[3],"dtype":"u16"})"));
  EXPECT_EQ(read.graph(), model.graph());
  EXPECT_EQ(read.inputs()[0].spec.dtype, DType::u16);
}

}  // namespace
}  // namespace holdfast
