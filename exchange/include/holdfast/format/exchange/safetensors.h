#pragma once

// Files of the safetensors library (https://github.com/huggingface/safetensors), which PyTorch, JAX and others use: a
// JSON header, then the bytes of named arrays. Elements keep their bits. Types that Holdfast lacks (F8_E4M3, C64 and
// others) are refused by name.
//
//   write_safetensors(files, "model.safetensors", set.metadata, views(set.arrays));

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "holdfast/base/file_system.h"
#include "holdfast/format/array_set.h"

namespace holdfast::format {

// Reads the whole file and checks it strictly: a header of at most 100 MB in UTF-8, no name twice, each byte after the
// header in exactly one array. The metadata is the JSON that write_safetensors received; in other files it is the
// header's "__metadata__" as a JSON object, "{}" if it is missing. Throws Error{invalid_file} for damaged content,
// Error{unsupported} for an array that Holdfast cannot hold, and what the file system threw.
ArraySet read_safetensors(FileSystem& files, const std::string& path);

// The same for bytes in memory; `name` stands for the path in errors.
ArraySet parse_safetensors(std::span<const std::byte> bytes, const std::string& name);

// Writes the file completely or not at all, durable on return. Equal arguments give equal bytes, in any order of
// `arrays`. Metadata that is an object of strings becomes "__metadata__"; any other is stored in it as text, under
// "holdfast.metadata". Throws Error{invalid_argument} for names that are not UTF-8 or occur twice, for "__metadata__"
// as a name, bytes that do not fit their shape, metadata that is not JSON, and a header above 100 MB.
void write_safetensors(FileSystem& files, const std::string& path, std::string_view metadata_json,
                       std::span<const ArrayView> arrays);

}  // namespace holdfast::format
