#pragma once

// Normalizes each group of channels of each sample over its channels and all positions (Wu and He, "Group
// Normalization", ECCV 2018; so keras.layers.GroupNormalization):
//
//   output = (input - mean) / sqrt(variance + epsilon) * gamma + beta
//
// with the biased variance of the group. Parameters: gamma and beta, [channels]. Training and inference do the same,
// and samples do not depend on each other.
//
//   const Value y = GroupNormalization{8}(x);    // 8 groups
//   const Value z = GroupNormalization{-1}(x);   // each channel is a group: instance normalization

#include <cstdint>
#include <memory>
#include <string>

#include "holdfast/nn/constraint.h"
#include "holdfast/nn/initializer.h"
#include "holdfast/nn/layer.h"
#include "holdfast/nn/regularizer.h"

namespace holdfast {

class ConfigReader;

// The defaults of Keras.
struct GroupNormalizationOptions {
  // The axis of channels. Axis 0 is the first axis of a sample; a negative axis counts from the last one.
  std::int64_t axis = -1;
  float epsilon = 1e-3F;
  bool has_scale = true;   // gamma
  bool has_center = true;  // beta
  // Where the arrays begin.
  Initializer beta_initializer = Initializer::zeros();
  Initializer gamma_initializer = Initializer::ones();
  // Penalties on their size, and bounds, none by default; see regularizer.h and constraint.h.
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  std::string name = {};
};

class GroupNormalization final : public LayerOf<GroupNormalization> {
 public:
  // The number of groups must divide that of the channels; -1 stands for as many groups as channels. Throws
  // Error{invalid_argument} for another number below 1, and unless epsilon is positive and finite.
  explicit GroupNormalization(std::int64_t groups = 32, const GroupNormalizationOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "GroupNormalization"; }
  std::optional<Activation> output_activation(std::optional<Activation>) const override { return Activation::linear; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  std::int64_t groups_;
  GroupNormalizationOptions options_;
};

}  // namespace holdfast
