// The options come from a file of anybody, so every number is checked before it is used. Windows have one formula for
// all numbers of axes: each axis of positions is on its own.

#include "keras_layers/position_shapes.h"

#include <algorithm>
#include <utility>

#include "holdfast/base/shape_bytes.h"

namespace holdfast::format {
namespace {

constexpr std::int64_t kMaxExtent = std::int64_t{1} << 31;

// The lists that say how a window moves along the axes of positions.
struct WindowLists {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> dilation;
};

std::optional<WindowLists> window_lists(const SampleShape& image, const Json& config, const char* size_key) {
  // What a window with gaps reaches over. An extent of 2^20 is more than any image has.
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  if (image.size() < 2) return std::nullopt;
  const std::size_t positions = image.size() - 1;
  const auto sizes = extent_list(config, size_key, positions, 1);
  const auto strides = extent_list(config, "strides", positions, 1);
  const auto dilation = member(config, "dilation_rate").is_null()
                            ? std::optional(std::vector<std::int64_t>(positions, 1))
                            : extent_list(config, "dilation_rate", positions, 1);
  if (!sizes || !strides || !dilation) return std::nullopt;
  for (std::size_t axis = 0; axis < positions; ++axis) {
    if ((*sizes)[axis] > kMost || (*strides)[axis] > kMost || (*dilation)[axis] > kMost) return std::nullopt;
  }
  return WindowLists{*sizes, *strides, *dilation};
}

MaybeShape windows(const SampleShape& image, const Json& config, const char* size_key) {
  const auto lists = window_lists(image, config, size_key);
  if (!lists) return std::nullopt;
  // Causal padding keeps as many places as "same", all of them before the first.
  const bool is_padded = text_member(config, "padding") != "valid" && !text_member(config, "padding").empty();
  SampleShape result = image;
  for (std::size_t axis = 0; axis + 1 < image.size(); ++axis) {
    const std::int64_t size = (lists->sizes[axis] - 1) * lists->dilation[axis] + 1;
    // No window fits, and the formula below would give 1 or less.
    if (!is_padded && image[axis] < size) return std::nullopt;
    // ceil(extent / stride) with padding "same", and otherwise the number of windows that fit.
    result[axis] = ((is_padded ? image[axis] - 1 : image[axis] - size)) / lists->strides[axis] + 1;
  }
  return result;
}

}  // namespace

std::optional<std::int64_t> extent(const Json& value, std::int64_t least) {
  const auto number = integer_value(value);
  return number && *number >= least && *number <= kMaxExtent ? number : std::nullopt;
}

std::optional<std::vector<std::int64_t>> extent_list(const Json& config, const char* key, std::size_t count,
                                                     std::int64_t least) {
  const Json& list = member(config, key);
  if (!list.is_array() || (count != 0 && list.size() != count)) return std::nullopt;
  std::vector<std::int64_t> result;
  for (const Json& value : list) {
    const auto number = extent(value, least);
    if (!number) return std::nullopt;
    result.push_back(*number);
  }
  return result;
}

MaybeShape checked(SampleShape shape) {
  if (shape.size() > kMaxAxes) return std::nullopt;
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) {
    // Divided first: a product of extents of an unknown file may overflow.
    if (size < 1 || size > kMaxShapeElements / elements) return std::nullopt;
    elements *= size;
  }
  return shape;
}

MaybeShape with_last(SampleShape shape, std::optional<std::int64_t> last) {
  if (shape.empty() || !last) return std::nullopt;
  shape.back() = *last;
  return checked(std::move(shape));
}

MaybeShape convolved(const SampleShape& image, const Json& config) {
  const MaybeShape result = windows(image, config, "kernel_size");
  return result ? with_last(*result, extent(member(config, "filters"))) : std::nullopt;
}

MaybeShape convolved_by_channel(const SampleShape& image, const Json& config) {
  const MaybeShape result = windows(image, config, "kernel_size");
  const auto multiplier = extent(member(config, "depth_multiplier"));
  if (!result || !multiplier || result->back() > kMaxShapeElements / *multiplier) return std::nullopt;
  return with_last(*result, result->back() * *multiplier);
}

// As keras.layers.Conv2DTranspose: without an output padding, each step adds a stride, and "valid" what a window has
// beyond it.
MaybeShape convolved_back(const SampleShape& image, const Json& config) {
  const auto lists = window_lists(image, config, "kernel_size");
  if (!lists) return std::nullopt;
  const bool is_same = text_member(config, "padding") == "same";
  const bool has_padding = !member(config, "output_padding").is_null();
  const auto padding = has_padding ? extent_list(config, "output_padding", image.size() - 1, 0) : std::nullopt;
  if (has_padding && !padding) return std::nullopt;
  SampleShape result = image;
  for (std::size_t axis = 0; axis + 1 < image.size(); ++axis) {
    const std::int64_t size = (lists->sizes[axis] - 1) * lists->dilation[axis] + 1;
    const std::int64_t stride = lists->strides[axis];
    // An extent has at most 40 bits and a stride 20, so no product overflows.
    if (has_padding) {
      const std::int64_t removed = is_same ? 2 * (size / 2) : 0;
      result[axis] = (image[axis] - 1) * stride + size - removed + (*padding)[axis];
    } else {
      result[axis] = image[axis] * stride + (is_same ? 0 : std::max<std::int64_t>(size - stride, 0));
    }
  }
  const MaybeShape whole = checked(std::move(result));
  return whole ? with_last(*whole, extent(member(config, "filters"))) : std::nullopt;
}

MaybeShape pooled(const SampleShape& image, const Json& config) {
  return windows(image, config, "pool_size");
}

MaybeShape globally_pooled(const SampleShape& shape, const Json& config) {
  // There must be at least one axis of positions besides that of the channels.
  if (shape.size() < 2) return std::nullopt;
  if (!flag_member(config, "keepdims", false)) return SampleShape{shape.back()};
  SampleShape result(shape.size(), 1);
  result.back() = shape.back();
  return result;
}

MaybeShape adaptively_pooled(const SampleShape& shape, const Json& config) {
  if (shape.size() < 2) return std::nullopt;
  auto result = extent_list(config, "output_size", shape.size() - 1, 1);
  if (!result) return std::nullopt;
  result->push_back(shape.back());
  return checked(*result);
}

MaybeShape with_margins(const SampleShape& image, const Json& config, const char* key, std::int64_t sign) {
  const auto margins = extent_list(config, key, 0, 0);
  if (!margins || margins->size() % 2 != 0 || image.size() != margins->size() / 2 + 1) return std::nullopt;
  SampleShape result = image;
  // A cropping that leaves nothing gives an extent below 1, which checked() refuses.
  for (std::size_t axis = 0; axis + 1 < image.size(); ++axis) {
    result[axis] += sign * ((*margins)[2 * axis] + (*margins)[2 * axis + 1]);
  }
  return checked(std::move(result));
}

MaybeShape enlarged(const SampleShape& image, const Json& config) {
  const auto one = extent(member(config, "size"));
  const auto list = one ? std::optional(std::vector<std::int64_t>{*one}) : extent_list(config, "size", 0, 1);
  if (!list || image.size() != list->size() + 1) return std::nullopt;
  SampleShape result = image;
  for (std::size_t axis = 0; axis < list->size(); ++axis) {
    // Checked first, so that no product overflows.
    if (image[axis] > kMaxShapeElements / (*list)[axis]) return std::nullopt;
    result[axis] *= (*list)[axis];
  }
  return checked(std::move(result));
}

}  // namespace holdfast::format
