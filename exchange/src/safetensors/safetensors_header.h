#pragma once

// The JSON header of a safetensors file:
//   {"__metadata__": {KEY: VALUE, ...}, NAME: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/dtype.h"
#include "holdfast/format/array_file.h"

namespace holdfast::format {

inline constexpr std::uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;  // first byte, counted from the end of the header
  std::uint64_t end = 0;
  std::string unknown_type = {};  // the name of a type that Holdfast lacks; `dtype` then means nothing
};

enum class UnknownTypes {
  refuse,
  keep,  // the caller reads some of the arrays alone, and looks at their unknown_type
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes
};

// Checks all entries against `data_bytes`, the number of bytes after the header, so that no array claims more than
// the file holds. Throws as read_safetensors does.
SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view json, std::uint64_t data_bytes,
                                           UnknownTypes unknown_types = UnknownTypes::refuse);
// Throws Error{unsupported} for the array of a type that Holdfast lacks.
[[noreturn]] void refuse_unknown_type(const std::string& path, const std::string& array, const std::string& type);

// Returns the JSON alone. The bytes of `arrays` must follow it in the same order.
std::string compose_safetensors_header(const std::map<std::string, std::string>& metadata,
                                       std::span<const ArrayView> arrays);

// Sorts as the safetensors library does: the largest elements first, so that all arrays are aligned.
void sort_for_safetensors(std::vector<ArrayView>& arrays);

}  // namespace holdfast::format
