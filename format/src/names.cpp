#include "names.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace holdfast::format {
namespace {

bool is_valid_part(std::string_view part) {
  return !part.empty() && part != "." && part != "..";
}

}  // namespace

bool is_utf8_text(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return false;
  try {
    // The JSON library is strict about UTF-8 in strings.
    static_cast<void>(nlohmann::json(text).dump());
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

bool is_valid_name(std::string_view name) {
  if (name.size() > kMaxNameBytes || !is_utf8_text(name)) return false;
  std::size_t parts = 1;
  for (std::size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/'), ++parts) {
    if (!is_valid_part(name.substr(0, slash))) return false;
    name.remove_prefix(slash + 1);
  }
  return is_valid_part(name) && parts <= kMaxNameParts;
}

bool multiply_shape(std::span<const std::uint64_t> shape, std::size_t element_bytes, std::uint64_t& bytes) {
  bytes = element_bytes;
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) bytes = 0;
  return std::none_of(shape.begin(), shape.end(),
                      [&](std::uint64_t extent) { return __builtin_mul_overflow(bytes, extent, &bytes); });
}

}  // namespace holdfast::format
