#include "linear_regression.h"

#include <algorithm>
#include <nlohmann/json.hpp>

LinearRegression::LinearRegression(std::int64_t features, float learning_rate, float momentum)
    : features_(features),
      learning_rate_(learning_rate),
      momentum_(momentum),
      weights_(static_cast<std::size_t>(features) + 1),
      velocity_(weights_.size()) {}

std::string LinearRegression::graph() const {
  return nlohmann::json{{"class_name", "LinearRegression"}, {"features", features_}}.dump();
}

std::string LinearRegression::configuration() const {
  return nlohmann::json{{"learning_rate", learning_rate_}, {"momentum", momentum_}}.dump();
}

void LinearRegression::initialize(std::uint64_t seed) {
  holdfast::Random random(seed, holdfast::Purpose::initial_weights, 0, 0);
  for (float& weight : weights_) weight = 0.01F * random.normal();
  std::fill(velocity_.begin(), velocity_.end(), 0.0F);
}

std::vector<holdfast::StateSpan> LinearRegression::state() {
  const holdfast::Shape shape{features_ + 1};
  return {{"model/weights", holdfast::StateKind::parameter, shape, weights_},
          {"optimizer/velocity", holdfast::StateKind::optimizer_slot, shape, velocity_}};
}

float LinearRegression::output(std::span<const float> sample) const {
  float sum = weights_.back();
  for (std::size_t i = 0; i < sample.size(); ++i) sum += weights_[i] * sample[i];
  return sum;
}

void LinearRegression::compute_gradients(const holdfast::ShardBatch& batch, holdfast::GradientSink& sink,
                                         std::span<float> sums) {
  const auto features = static_cast<std::size_t>(features_);
  const std::span<float> gradients = sink.gradients();
  std::fill(gradients.begin(), gradients.end(), 0.0F);
  float loss = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch.samples); ++i) {
    const std::span<const float> sample = batch.features.subspan(i * features, features);
    const float error = output(sample) - batch.targets[i];
    loss += error * error;
    const float slope = 2 * error / static_cast<float>(batch.batch_samples);
    for (std::size_t j = 0; j < features; ++j) gradients[j] += slope * sample[j];
    gradients[features] += slope;
  }
  sums[0] = loss;
  sink.ready(0, gradients.size());
}

void LinearRegression::compute_sums(const holdfast::ShardBatch& batch, std::span<float> sums) {
  const auto features = static_cast<std::size_t>(features_);
  sums[0] = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch.samples); ++i) {
    const float error = output(batch.features.subspan(i * features, features)) - batch.targets[i];
    sums[0] += error * error;
  }
}

void LinearRegression::predict(const holdfast::ShardBatch& batch, std::span<float> outputs) {
  const auto features = static_cast<std::size_t>(features_);
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = output(batch.features.subspan(i * features, features));
}

void LinearRegression::apply_update(const holdfast::Update& update) {
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    velocity_[i] = momentum_ * velocity_[i] - learning_rate_ * update.gradients[i];
    weights_[i] += velocity_[i];
  }
}
