#pragma once

// A model without any layer of Holdfast: linear regression, trained by gradient descent with momentum. A class that
// implements holdfast::Trainable is mirrored, saved and recovered like a model of layers.

#include <vector>

#include "holdfast/holdfast.h"

class LinearRegression final : public holdfast::Trainable {
 public:
  LinearRegression(std::int64_t features, float learning_rate, float momentum);

  std::string graph() const override;
  std::string configuration() const override;
  std::string arithmetic() const override { return "plain C++, in the order of the samples"; }
  holdfast::Shape feature_shape() const override { return {features_}; }
  holdfast::Shape target_shape() const override { return {1}; }
  holdfast::Shape output_shape() const override { return {1}; }

  void prepare(const holdfast::Workers&) override {}
  void initialize(std::uint64_t seed) override;
  std::vector<holdfast::StateSpan> state() override;
  std::vector<std::string> sum_names() const override { return {"loss"}; }
  std::size_t gradient_count() const override { return weights_.size(); }
  void compute_gradients(const holdfast::ShardBatch& batch, holdfast::GradientSink& sink,
                         std::span<float> sums) override;
  void compute_sums(const holdfast::ShardBatch& batch, std::span<float> sums) override;
  void predict(const holdfast::ShardBatch& batch, std::span<float> outputs) override;
  void apply_update(const holdfast::Update& update) override;

 private:
  float output(std::span<const float> sample) const;

  const std::int64_t features_;
  const float learning_rate_;
  const float momentum_;
  std::vector<float> weights_;   // one for each feature, then the bias
  std::vector<float> velocity_;  // one for each weight
};
