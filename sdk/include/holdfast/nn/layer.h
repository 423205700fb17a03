#pragma once

// The base class of all layers. A layer describes one step of a model: which shape it makes of its
// input, its weights and its configuration. It holds no weights and no state, never changes after
// construction, and is safe to use from several threads. Applications create layers as values (Dense,
// Conv2D, ...) and pass them to a Sequential; the model calls the functions below.

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

// An array that a layer needs: a parameter, which is trained, or a buffer, which the layer updates
// itself.
struct WeightDescription {
  std::string name;  // unique in the layer: "kernel"
  Shape shape;
  Initializer initializer;
  std::int64_t fan_in = 0;
  std::int64_t fan_out = 0;
};

// Height and width of a kernel, a window or a stride. A single number stands for both.
struct Extent2D {
  Extent2D(std::int64_t both) : Extent2D(both, both) {}  // NOLINT(google-explicit-constructor): Conv2D{6, 5}
  Extent2D(std::int64_t vertical, std::int64_t horizontal) : height(vertical), width(horizontal) {}

  std::int64_t height;
  std::int64_t width;
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

  // The shape of one sample of the output, for one of the input. Throws Error{invalid_argument} that
  // says what the layer needs if it cannot take the input. All functions below expect an input that
  // this function accepts.
  virtual Shape output_shape(const Shape& input) const = 0;
  // The arrays that the layer needs for this input; the defaults have none.
  virtual std::vector<WeightDescription> parameters(const Shape& input) const;
  virtual std::vector<WeightDescription> buffers(const Shape& input) const;

  // The activation that made the outputs of this layer if `input` made its inputs; empty if it is not
  // known.
  virtual std::optional<Activation> output_activation(std::optional<Activation> input) const;

  // Floats of the sums over samples from which update_buffers() computes the next buffers; 0 for most
  // layers.
  virtual std::size_t contribution_count(const Shape& input) const;
  // `contributions` are summed over the global batch. `buffers` has one span for each of buffers().
  virtual void update_buffers(std::span<const float> contributions, std::span<const std::span<float>> buffers) const;

  // The same for arrays on a device: queues the work and does not wait.
  virtual void update_buffers_on(compute::DeviceKernels& device, const float* contributions,
                                 std::span<const std::span<float>> buffers) const;

  // For Holdfast's own models: these append the arithmetic and the configuration of the layer.
  virtual void add_stages(ModelStageBuilder& builder) const = 0;
  virtual void write_config(ConfigWriter& config) const = 0;

 protected:
  // Throws Error{invalid_argument} unless the name is empty, or has 1 to 100 letters, digits and
  // characters of "_-." and does not begin with a dot. Names become parts of names in files.
  explicit Layer(std::string name);
  Layer(const Layer&) = default;
  Layer& operator=(const Layer&) = delete;

 private:
  std::string name_;
};

}  // namespace holdfast
