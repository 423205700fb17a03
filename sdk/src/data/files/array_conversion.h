#pragma once

// Elements of one type as those of another.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "holdfast/base/dtype.h"

namespace holdfast {

// The type that elements of `stored` get. `label` names the array in errors. Throws Error{unsupported} if samples
// cannot have it and `asked` is empty, and Error{invalid_argument} if samples cannot have `asked`.
DType converted_type(DType stored, std::optional<DType> asked, const std::string& label);

// Converts whole elements; `to` has as many. `first` is the number of the first one, for errors. Equal types are copied
// bit for bit. Throws Error{invalid_file} that names `label`, the element and its value if it does not fit.
void convert_elements(std::span<const std::byte> from, DType from_type, std::span<std::byte> to, DType to_type,
                      std::uint64_t first, const std::string& label);

}  // namespace holdfast
