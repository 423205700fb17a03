// Writers check all arguments first, so that a mistake of a caller never leaves half a file. All formats check the
// same, because a file of one kind must convert to each other kind.

#include "bytes/array_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "bytes/byte_source.h"
#include "bytes/element_bytes.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shape_bytes.h"
#include "holdfast/base/utf8.h"

namespace holdfast::format {

// A mistake of the caller; a file's faults are refuse_file().
void refuse_to_write(const std::string& path, const std::string& problem) {
  throw Error(ErrorCode::invalid_argument, fmt::format("cannot write {}: {}", path, problem));
}

std::string bytes_for_shape(std::span<const std::uint64_t> shape, std::size_t element_bytes) {
  std::uint64_t bytes = 0;
  return multiply_shape(shape, element_bytes, bytes) ? std::to_string(bytes) : "more than 64 bits can count";
}

void check_arrays(const std::string& path, std::span<const ArrayView> arrays) {
  std::set<std::string_view> names;
  for (const ArrayView& array : arrays) {
    if (!is_utf8(array.name)) refuse_to_write(path, "the name of an array is not UTF-8 text; rename the array");
    const std::string label = fmt::format("array {}", quoted_text(array.name));
    if (!names.insert(array.name).second) {
      refuse_to_write(path, fmt::format("{} occurs twice; rename one of the two", label));
    }
    // A writer would otherwise read past the end of the elements, or leave some out.
    std::uint64_t bytes = 0;
    if (!multiply_shape(array.shape, size_bytes(array.dtype), bytes) || bytes != array.bytes.size()) {
      refuse_to_write(path, fmt::format("{} has {} bytes, but its shape needs {}; pass all of its elements", label,
                                        array.bytes.size(), bytes_for_shape(array.shape, size_bytes(array.dtype))));
    }
    if (array.dtype == DType::boolean && !holds_booleans(array.bytes)) {
      refuse_to_write(path, fmt::format("{} is boolean but holds bytes other than 0 and 1; use only these", label));
    }
  }
}

void check_metadata(const std::string& path, std::string_view metadata_json) {
  if (!is_json(metadata_json)) refuse_to_write(path, "the metadata is not JSON; pass a JSON text");
}

bool is_json(std::string_view text) {
  return is_utf8(text) && nlohmann::json::accept(text);
}

}  // namespace holdfast::format
