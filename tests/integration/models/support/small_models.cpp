#include "integration/models/support/small_models.h"

#include "drawn_digits.h"
#include "residual_network.h"

namespace holdfast {
namespace {

constexpr std::int64_t kSteps = 50;
constexpr std::int64_t kSamples = 16;

Model lenet5() {
  return Sequential{Input{28, 28, 1},
                    Conv2D{6, 5, {.padding = Padding::same, .activation = Activation::relu}},
                    MaxPooling2D{2},
                    Conv2D{16, 5, {.activation = Activation::relu}},
                    MaxPooling2D{2},
                    Flatten{},
                    Dense{120, {.activation = Activation::relu}},
                    Dense{84, {.activation = Activation::relu}},
                    Dense{10}};
}

Model mlp() {
  return Sequential{Input{28, 28, 1}, Flatten{}, Dense{128, {.activation = Activation::tanh}},
                    Dense{64, {.activation = Activation::gelu}}, Dense{10}};
}

Model batch_normalized() {
  return Sequential{Input{28, 28, 1},       Conv2D{8, 3, {.use_bias = false}},
                    BatchNormalization{},   ActivationLayer{Activation::relu},
                    AveragePooling2D{2},    Conv2D{16, 3, {.use_bias = false}},
                    BatchNormalization{},   ActivationLayer{Activation::relu},
                    GlobalAveragePooling{}, Dense{10}};
}

Model dropout_mlp() {
  return Sequential{Input{28, 28, 1}, Flatten{}, Dropout{0.2F}, Dense{128, {.activation = Activation::relu}},
                    Dropout{0.5F},    Dense{10}};
}

Model separable() {
  return Sequential{Input{28, 28, 1},
                    Conv2D{8, 4, {.strides = 4}},
                    LayerNormalization{},
                    SeparableConv2D{16, 3, {.padding = Padding::same, .activation = Activation::gelu}},
                    UpSampling2D{2},
                    MaxPooling2D{4},
                    Flatten{},
                    Dense{10}};
}

Model elements() {
  const Value image = input({28, 28, 1});
  const Value rows = LayerNormalization{}(reshape(image, {28, 28}));
  const Value y = Dropout{0.1F}(PReLU{}(tanh(BatchNormalization{}(rows)) * 2.0F));
  return Model(image, slice(mean(y, {0}), 0, 9, 19));
}

}  // namespace

std::map<std::string, SmallModel> small_models() {
  const auto sgd = std::make_shared<const SGD>(SGDOptions{.learning_rate = 0.05F, .momentum = 0.9F});
  return {{"lenet5", {lenet5(), std::make_shared<const Adam>(1e-3F)}},
          {"mlp", {mlp(), std::make_shared<const SGD>(SGDOptions{.learning_rate = 0.05F, .global_clip_norm = 1.0F})}},
          {"batch_normalized", {batch_normalized(), sgd}},
          {"dropout_mlp", {dropout_mlp(), std::make_shared<const AdamW>(1e-3F)}},
          {"residual", {residual_network(), sgd}},
          {"separable", {separable(), std::make_shared<const Adam>(1e-3F)}},
          {"elements", {elements(), sgd}}};
}

std::string digest_after_fifty_steps(const SmallModel& small) {
  Replica replica = Replica::alone({.seed = 5, .shards = 2});
  Trainer trainer(replica, small.model, *small.optimizer, SparseCategoricalCrossentropy({.from_logits = true}));
  trainer.fit(drawn_digits(kSteps * kSamples, 5).shuffle().batch(kSamples));
  return trainer.weights_digest().hex();
}

}  // namespace holdfast
