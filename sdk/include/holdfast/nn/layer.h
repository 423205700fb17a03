#pragma once

// A layer describes one step of a model: the shapes that it makes of others, its weights, its configuration. It holds
// no weights and no state, never changes after construction, and is safe to use from several threads. Applications make
// layers as values (Dense, Conv2D, ...) and hand them to a model; the functions here are what the model asks them.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/compute/activation.h"
#include "holdfast/core/shape.h"
#include "holdfast/nn/initializer.h"

namespace holdfast {

class ConfigWriter;
class ModelStageBuilder;
namespace compute {
class DeviceKernels;
}

// An array that a layer needs: a parameter (trained) or a buffer (kept up by the layer itself).
struct WeightDescription {
  std::string name;  // "kernel"
  Shape shape;
  Initializer initializer;
  std::int64_t fan_in = 0;
  std::int64_t fan_out = 0;
};

// Height and width of a kernel, a window or a stride; one number stands for both.
struct Extent2D {
  Extent2D(std::int64_t both) : Extent2D(both, both) {}  // NOLINT(google-explicit-constructor): Conv2D{6, 5}
  Extent2D(std::int64_t vertical, std::int64_t horizontal) : height(vertical), width(horizontal) {}

  std::int64_t height;
  std::int64_t width;
};

class Layer {
 public:
  // Of every extent of a layer or an input: above it products no longer fit 63 bits, and no memory would hold the
  // arrays.
  static constexpr std::int64_t kMaximumExtent = (std::int64_t{1} << 31) - 1;

  virtual ~Layer() = default;

  // Empty where the model is to give a name: "dense", "dense_1", ...
  const std::string& name() const { return name_; }
  // The class as Keras names it: "Dense".
  virtual std::string_view kind() const = 0;

  // Shapes are those of one sample. Throws Error{invalid_argument} saying what the layer needs when it cannot take the
  // input; the other functions expect an input that output_shape() accepted.
  virtual Shape output_shape(const Shape& input) const = 0;
  virtual std::vector<WeightDescription> parameters(const Shape& input) const;
  virtual std::vector<WeightDescription> buffers(const Shape& input) const;

  // The activation that made this layer's outputs, given that `input` made its inputs; empty where it is not known.
  virtual std::optional<Activation> output_activation(std::optional<Activation> input) const;

  // Sums over samples from which update_buffers() computes the buffers of the next step: in floats, 0 for most layers.
  virtual std::size_t contribution_count(const Shape& input) const;
  // `contributions` are summed over the global batch; `buffers` has one span for each of buffers().
  virtual void update_buffers(std::span<const float> contributions, std::span<const std::span<float>> buffers) const;

  // The same of arrays on a device.
  virtual void update_buffers_on(compute::DeviceKernels& device, const float* contributions,
                                 std::span<const std::span<float>> buffers) const;

  // For the library's own models: appends the arithmetic of this layer, and its configuration.
  virtual void add_stages(ModelStageBuilder& builder) const = 0;
  virtual void write_config(ConfigWriter& config) const = 0;

 protected:
  // Throws Error{invalid_argument} unless the name is empty or has 1 to 100 letters, digits and characters of "_-.",
  // not beginning with a dot: it becomes part of names in files.
  explicit Layer(std::string name);
  Layer(const Layer&) = default;
  Layer& operator=(const Layer&) = delete;

 private:
  std::string name_;
};

}  // namespace holdfast
