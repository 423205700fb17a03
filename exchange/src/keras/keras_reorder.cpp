// A dense layer after a flattened image has its rows in the image's order of axes. Keras models may keep channels
// first; Holdfast keeps them last. So these rows must be reordered, and 16-bit weights widened, before values can
// move between the two.

#include "keras/keras_reorder.h"

#include <bit>
#include <cstring>
#include <optional>

namespace holdfast::format {
namespace {

// The state of a walk through the layers in order.
struct ReorderWalk {
  bool is_channels_first = false;             // what the last layer with a data format produces
  std::size_t flattens = 0;                   // Flatten layers so far
  std::optional<std::size_t> turned_flatten;  // the Flatten whose order the next weights see
  std::map<std::string, std::size_t> found;
};

void visit(const KerasLayer& layer, ReorderWalk& walk) {
  if (layer.class_name == "Flatten") {
    // A Flatten that knows of channels first has turned the elements itself, so rows need no other order.
    const bool is_turned = walk.is_channels_first && layer.data_format != "channels_first";
    walk.turned_flatten = is_turned ? std::optional(walk.flattens) : std::nullopt;
    walk.is_channels_first = false;
    ++walk.flattens;
  } else if (!layer.data_format.empty()) {
    walk.is_channels_first = layer.data_format == "channels_first";
  }
  if (walk.turned_flatten) {
    const bool is_dense = layer.class_name == "Dense";
    for (const KerasVariable& variable : layer.variables) {
      // The bias belongs to the outputs of the layer.
      const bool sees_input = !is_dense || variable.name == "kernel";
      if (sees_input) walk.found.emplace(layer.array_path + "/" + variable.name, *walk.turned_flatten);
    }
    // The output of a dense layer has an order of its own.
    if (is_dense) walk.turned_flatten.reset();
  }
  for (const KerasLayer& child : layer.children) visit(child, walk);
}

// IEEE binary16 to binary32, exact for every value.
float from_half(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits >> 15) << 31;
  const std::uint32_t exponent = (bits >> 10) & 31;
  std::uint32_t mantissa = bits & 1023;
  // Infinity and NaN keep their meaning and the bits of the mantissa.
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F80'0000 | mantissa << 13);
  // The exponents differ in their bias: 127 - 15 = 112.
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  // A subnormal is its mantissa times 2^-24.
  const float value = static_cast<float>(mantissa) * 0x1p-24F;
  return sign == 0 ? value : -value;
}

float from_bfloat(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace

std::map<std::string, std::size_t> variables_after_flatten(const KerasModel& model) {
  ReorderWalk walk;
  for (const KerasLayer& layer : model.layers()) visit(layer, walk);
  return std::move(walk.found);
}

bool reorder_rows(NamedArray& array, const std::array<std::uint64_t, 3>& image) {
  const auto [height, width, channels] = image;
  const std::uint64_t rows = array.shape.empty() ? 0 : array.shape[0];
  // Each factor is checked first, so that no product overflows.
  if (rows == 0 || rows > std::uint64_t{1} << 31 || height > rows || width > rows || channels > rows) return false;
  if (height * width > rows || height * width * channels != rows) return false;
  const std::size_t row_bytes = array.bytes.size() / rows;
  std::vector<std::byte> turned(array.bytes.size());
  std::byte* to = turned.data();
  for (std::uint64_t position = 0; position < height * width; ++position) {
    for (std::uint64_t channel = 0; channel < channels; ++channel, to += row_bytes) {
      // Rows come in the order [channel, position] and go to [position, channel].
      std::memcpy(to, array.bytes.data() + (channel * height * width + position) * row_bytes, row_bytes);
    }
  }
  array.bytes = std::move(turned);
  return true;
}

bool widen_to_f32(NamedArray& array) {
  if (array.dtype == DType::f32) return true;
  // Every 16-bit value is a float exactly. Numbers of 64 bits would have to be rounded.
  if (array.dtype != DType::f16 && array.dtype != DType::bf16) return false;
  std::vector<std::byte> wide(2 * array.bytes.size());
  for (std::size_t i = 0; i < array.bytes.size() / 2; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, array.bytes.data() + 2 * i, sizeof(bits));
    const float value = array.dtype == DType::f16 ? from_half(bits) : from_bfloat(bits);
    std::memcpy(wide.data() + 4 * i, &value, sizeof(value));
  }
  array.dtype = DType::f32;
  array.bytes = std::move(wide);
  return true;
}

}  // namespace holdfast::format
