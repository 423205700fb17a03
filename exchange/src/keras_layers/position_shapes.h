#pragma once

// What the shapes of all kinds of layers are derived with: options of a file of anybody, in bounds.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "keras_files/keras_json.h"
#include "keras_layers/layer_shapes.h"

namespace holdfast::format {

// Above the elements of any value, and so above each extent that a product of two others gives.
constexpr std::int64_t kMaxShapeElements = std::int64_t{1} << 40;

// An extent of at least `least`, and small enough that a sum of two does not overflow.
std::optional<std::int64_t> extent(const Json& value, std::int64_t least = 1);
// Empty unless the member is a list of such extents, `count` of them unless that is 0.
std::optional<std::vector<std::int64_t>> extent_list(const Json& config, const char* key, std::size_t count,
                                                     std::int64_t least);
// The shape, unless it has too many axes or elements, or an extent below 1.
MaybeShape checked(SampleShape shape);
// The shape with another last extent.
MaybeShape with_last(SampleShape shape, std::optional<std::int64_t> last);

// Layers that go over positions by windows, with the options of Keras.
MaybeShape convolved(const SampleShape& image, const Json& config);
MaybeShape convolved_by_channel(const SampleShape& image, const Json& config);
MaybeShape convolved_back(const SampleShape& image, const Json& config);
MaybeShape pooled(const SampleShape& image, const Json& config);
MaybeShape globally_pooled(const SampleShape& shape, const Json& config);
MaybeShape adaptively_pooled(const SampleShape& shape, const Json& config);
// `sign` is 1 for margins that are added, and -1 for those that are cut off.
MaybeShape with_margins(const SampleShape& image, const Json& config, const char* key, std::int64_t sign);
MaybeShape enlarged(const SampleShape& image, const Json& config);

}  // namespace holdfast::format
