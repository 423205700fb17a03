#pragma once

// The base class of all layers. A layer describes one step of a model: its options, its weights and what it computes.
// It holds no weights and no state, never changes after construction, and is safe to use from several threads.
// Applications create layers as values (Dense, Conv2D, ...) and pass them to a Sequential, or call them on values:
//
//   const Dense hidden{128, {.activation = Activation::relu}};
//   const Value y = hidden(x);
//
// A layer that is called several times has the same weights each time, and so have its copies.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/compute/activation.h"
#include "holdfast/core/shape.h"
#include "holdfast/nn/initializer.h"
#include "holdfast/nn/value.h"

namespace holdfast {

class ConfigWriter;
class LayerBuilder;

// Height and width of a kernel, a window or a stride. A single number stands for both.
struct Extent2D {
  // A square.
  Extent2D(std::int64_t both) : Extent2D(both, both) {}  // NOLINT(google-explicit-constructor): Conv2D{6, 5}
  // In this order.
  Extent2D(std::int64_t vertical, std::int64_t horizontal) : height(vertical), width(horizontal) {}

  std::int64_t height;  // down
  std::int64_t width;   // across
};

// The same with a depth, the first axis of a volume.
struct Extent3D {
  // A cube.
  Extent3D(std::int64_t all) : Extent3D(all, all, all) {}  // NOLINT(google-explicit-constructor): Conv3D{6, 5}
  // In this order.
  Extent3D(std::int64_t first, std::int64_t vertical, std::int64_t horizontal)
      : depth(first), height(vertical), width(horizontal) {}

  std::int64_t depth;   // of the first axis
  std::int64_t height;  // down
  std::int64_t width;   // across
};

class Layer {
 public:
  // The largest extent of a layer or an input. With larger ones, products of extents would not fit into
  // 63 bits.
  static constexpr std::int64_t kMaximumExtent = (std::int64_t{1} << 31) - 1;

  virtual ~Layer() = default;

  // The name that was given; empty if the model shall choose one ("dense", "dense_1", ...).
  const std::string& name() const { return name_; }
  // The name of the class in Keras: "Dense".
  virtual std::string_view kind() const = 0;

  // What the layer computes of its inputs, described with functions of values (layer_builder.h). Throws
  // Error{invalid_argument} that says what the layer needs if it cannot take the inputs. It must do the same for the
  // same inputs each time.
  virtual std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const = 0;
  // Writes all options, those with their default too: a later default must not change what a file means.
  virtual void write_config(ConfigWriter& config) const = 0;

  // The activation that made the outputs of this layer if `input` made its inputs; empty if it is not
  // known.
  virtual std::optional<Activation> output_activation(std::optional<Activation> input) const;

  // For Holdfast's own use: what copies of a layer share.
  const std::shared_ptr<const int>& identity() const { return identity_; }

 protected:
  // Throws Error{invalid_argument} unless the name is empty, or has 1 to 100 letters, digits and
  // characters of "_-." and does not begin with a dot. Names become parts of names in files.
  explicit Layer(std::string name);
  Layer(const Layer&) = default;
  Layer& operator=(const Layer&) = delete;

 private:
  std::string name_;
  std::shared_ptr<const int> identity_;
};

// Calls a layer: its outputs for these inputs. Throws Error{invalid_argument} that names the layer, the shapes of the
// inputs and what the layer needs instead.
std::vector<Value> call_layer(std::shared_ptr<const Layer> layer, const std::vector<Value>& inputs);

// The base of each layer that can be called: class Scale final : public LayerOf<Scale>.
template <class Self>
class LayerOf : public Layer {
 public:
  // The only output for one input or several.
  template <class... Values>
  Value operator()(const Value& input, const Values&... further) const {
    return call({input, further...}).at(0);
  }
  Value operator()(const std::vector<Value>& inputs) const { return call(inputs).at(0); }
  // All outputs.
  std::vector<Value> call(const std::vector<Value>& inputs) const {
    return call_layer(std::make_shared<const Self>(static_cast<const Self&>(*this)), inputs);
  }

 protected:
  using Layer::Layer;
};

}  // namespace holdfast
