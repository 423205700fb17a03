#include "keras_files/keras_class.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::format {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> names(std::string_view class_name, const Json& config) {
  std::vector<std::string> result;
  const std::vector<KerasVariable> variables = keras_variables(class_name, config).value();
  for (const KerasVariable& variable : variables) result.push_back(variable.name);
  return result;
}

// The results of Keras 3.15's to_snake_case.
TEST(KerasClass, FormsTheNamesOfGroupsAsKerasDoes) {
  for (const auto& [class_name, group] :
       std::vector<std::pair<std::string, std::string>>{{"Dense", "dense"},
                                                        {"Conv2D", "conv2d"},
                                                        {"Conv2DTranspose", "conv2d_transpose"},
                                                        {"DepthwiseConv2D", "depthwise_conv2d"},
                                                        {"LSTM", "lstm"},
                                                        {"LSTMCell", "lstm_cell"},
                                                        {"ConvLSTM1D", "conv_lstm1d"},
                                                        {"MultiHeadAttention", "multi_head_attention"},
                                                        {"PReLU", "p_re_lu"},
                                                        {"GlobalAveragePooling2D", "global_average_pooling2d"},
                                                        {"InputLayer", "input_layer"},
                                                        {"ABCDef", "abc_def"},
                                                        {"my layer-2", "mylayer2"},
                                                        {"", ""}}) {
    EXPECT_EQ(keras_snake_case(class_name), group);
  }
}

TEST(KerasClass, LeavesOutWhatTheConfigurationSwitchesOff) {
  EXPECT_THAT(names("Dense", {}), ElementsAre("kernel", "bias"));
  EXPECT_THAT(names("Dense", {{"use_bias", false}}), ElementsAre("kernel"));
  EXPECT_THAT(names("BatchNormalization", {{"scale", false}}), ElementsAre("beta", "moving_mean", "moving_variance"));
  EXPECT_THAT(names("LayerNormalization", {{"center", false}}), ElementsAre("gamma"));
  EXPECT_THAT(names("Dropout", {}), IsEmpty());
}

TEST(KerasClass, KnowsNoVariablesOfOtherClassesAndUnusualOptions) {
  EXPECT_FALSE(keras_variables("MyLayer", {}));
  EXPECT_FALSE(keras_variables("BatchNormalization", {{"renorm", true}}));
  EXPECT_FALSE(keras_variables("Dense", {{"quantization_config", {{"mode", "int8"}}}}));
}

TEST(KerasClass, GuessesOnlyWhatTheNumberOfVariablesDetermines) {
  EXPECT_THAT(guess_keras_variables("dense_12", 2), ElementsAre("kernel", "bias"));
  EXPECT_THAT(guess_keras_variables("dense", 1), ElementsAre("kernel"));
  EXPECT_THAT(guess_keras_variables("dense", 3), IsEmpty());
  EXPECT_THAT(guess_keras_variables("batch_normalization", 2), ElementsAre("moving_mean", "moving_variance"));
  EXPECT_THAT(guess_keras_variables("batch_normalization", 3), IsEmpty());  // gamma or beta
  EXPECT_THAT(guess_keras_variables("cell", 3), ElementsAre("kernel", "recurrent_kernel", "bias"));
  EXPECT_THAT(guess_keras_variables("query_dense", 2), ElementsAre("kernel", "bias"));
  EXPECT_THAT(guess_keras_variables("my_layer", 2), IsEmpty());
}

}  // namespace
}  // namespace holdfast::format
