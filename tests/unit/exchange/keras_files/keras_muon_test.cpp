#include "keras_files/keras_muon.h"

#include <gtest/gtest.h>

namespace holdfast::format {
namespace {

using Shape = std::vector<std::uint64_t>;

const Shape kMatrix = {2, 3};

TEST(KerasMuon, LeavesToAdamWhatTheSavepointSays) {
  const Json options = {{"adam_arrays", {"out", "*/deep/kernel"}}};

  EXPECT_TRUE(is_for_adam(options, "dense/bias", Shape{3}));
  EXPECT_TRUE(is_for_adam(options, "Word_Embedding/table", kMatrix));
  EXPECT_TRUE(is_for_adam(options, "out/kernel", kMatrix));
  EXPECT_TRUE(is_for_adam(options, "a/b/deep/kernel", kMatrix));
  EXPECT_FALSE(is_for_adam(options, "outer/kernel", kMatrix));
  EXPECT_FALSE(is_for_adam({{"exclude_embeddings", false}}, "embedding/table", kMatrix));
}

TEST(KerasMuon, SaysTheSameOfItsOwnExpressions) {
  for (const char* pattern : {"out", "encoder/dense", "hidden/kernel"}) {
    const Json ours = {{"adam_arrays", Json::array({pattern})}};
    const Json keras = {{"exclude_layers", Json::array({*keras_expression(pattern)})}};
    for (const char* array : {"out/kernel", "outer/kernel", "encoder/dense/kernel", "hidden/kernel", "dense/kernel"}) {
      EXPECT_EQ(is_for_adam_in_keras(keras, array, kMatrix), is_for_adam(ours, array, kMatrix)) << pattern << array;
    }
  }
  EXPECT_EQ(is_for_adam_in_keras({{"exclude_layers", Json::array({*keras_expression("encoder/dense")})}},
                                 "encoder.dense/kernel", kMatrix),
            true);
}

TEST(KerasMuon, FindsPlainTextAnywhereAsKerasDoes) {
  const Json options = {{"exclude_layers", Json::array({"dense_1"})}};

  EXPECT_EQ(is_for_adam_in_keras(options, "dense_12/kernel", kMatrix), true);
  EXPECT_EQ(is_for_adam_in_keras(options, "dense_2/kernel", kMatrix), false);
}

TEST(KerasMuon, SaysNothingOfExpressionsOfStrangers) {
  for (const char* expression : {"(a+)+$", "dense.*", "(^|/)a*(/|$)", "(^|/)"}) {
    EXPECT_EQ(is_for_adam_in_keras({{"exclude_layers", Json::array({expression})}}, "dense/kernel", kMatrix),
              std::nullopt);
  }
  EXPECT_EQ(is_for_adam_in_keras({{"exclude_layers", Json::array({1})}}, "dense/kernel", kMatrix), std::nullopt);
  EXPECT_EQ(keras_expression("out*"), std::nullopt);
}

}  // namespace
}  // namespace holdfast::format
