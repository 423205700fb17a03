#pragma once

// Layers that make one output of several inputs, with the names of Keras:
//
//   const Value sum = Add{}(x, y);
//   const Value row = Concatenate{}(x, y, z);
//
// The shapes of inputs may differ where they can be broadcast (functions.h).

#include <cstdint>
#include <memory>
#include <string>

#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

// An empty name lets the model choose one.
struct MergeOptions {
  std::string name = {};
};

// What the layers below share. `Self::merge` makes the output of two inputs or more, and throws
// Error{invalid_argument} for fewer.
template <class Self>
class MergeLayer : public LayerOf<Self> {
 public:
  explicit MergeLayer(const MergeOptions& options = {}) : LayerOf<Self>(options.name) {}
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader&) {
    return std::make_shared<const Self>(MergeOptions{.name = name});
  }
  // Each does what Layer promises, with the members of Self.
  std::string_view kind() const override { return Self::kKind; }
  std::vector<Value> build(LayerBuilder&, std::span<const Value> inputs) const override {
    return {Self::merge(inputs)};
  }
  void write_config(ConfigWriter&) const override {}
};

// The sum of all inputs, added from the first to the last. It closes the shortcut of a residual block:
//
//   const Value y = Add{}(x, Dense{8}(x));
class Add final : public MergeLayer<Add> {
 public:
  static constexpr std::string_view kKind = "Add";
  using MergeLayer::MergeLayer;
  static Value merge(std::span<const Value> inputs);  // see MergeLayer
};

// The first of two inputs minus the second. Any other number of inputs is refused:
//
//   const Value difference = Subtract{}(x, y);
class Subtract final : public MergeLayer<Subtract> {
 public:
  static constexpr std::string_view kKind = "Subtract";
  using MergeLayer::MergeLayer;
  static Value merge(std::span<const Value> inputs);  // see MergeLayer
};

// The product of all inputs, element by element, as of values and a gate from 0 to 1:
//
//   const Value gated = Multiply{}(x, Dense{8, {.activation = Activation::sigmoid}}(x));
class Multiply final : public MergeLayer<Multiply> {
 public:
  static constexpr std::string_view kKind = "Multiply";
  using MergeLayer::MergeLayer;
  static Value merge(std::span<const Value> inputs);  // see MergeLayer
};

// The sum of all inputs, divided by their number: one division rounds less often than one of each input. It makes one
// answer of those of several branches:
//
//   const Value answer = Average{}(x, y, z);
class Average final : public MergeLayer<Average> {
 public:
  static constexpr std::string_view kKind = "Average";
  using MergeLayer::MergeLayer;
  static Value merge(std::span<const Value> inputs);  // see MergeLayer
};

// The largest of all inputs, element by element. The first of equal ones gets the gradient.
//
//   const Value larger = Maximum{}(x, y);
class Maximum final : public MergeLayer<Maximum> {
 public:
  static constexpr std::string_view kKind = "Maximum";
  using MergeLayer::MergeLayer;
  static Value merge(std::span<const Value> inputs);  // see MergeLayer
};

// The smallest of all inputs, element by element. The first of equal ones gets the gradient.
//
//   const Value smaller = Minimum{}(x, y);
class Minimum final : public MergeLayer<Minimum> {
 public:
  static constexpr std::string_view kKind = "Minimum";
  using MergeLayer::MergeLayer;
  static Value merge(std::span<const Value> inputs);  // see MergeLayer
};

struct ConcatenateOptions {
  // Axis 0 is the first axis of a sample; a negative axis counts from the last one. (Keras counts the axis of samples
  // too, so that its axis 1 is axis 0 here.)
  std::int64_t axis = -1;
  std::string name = {};
};

// The inputs one after another along an axis. All other extents must be equal:
//
//   Concatenate{{.axis = 0}}(x, y)  // [3, 8] and [5, 8] become [8, 8]
class Concatenate final : public LayerOf<Concatenate> {
 public:
  explicit Concatenate(const ConcatenateOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "Concatenate"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  std::int64_t axis_;
};

}  // namespace holdfast
