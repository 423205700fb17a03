#pragma once

// Files of the safetensors library (https://github.com/huggingface/safetensors), which PyTorch, JAX and others read and
// write: named arrays behind a JSON header.
//
// All element types of Holdfast exist there, and elements go over bit for bit. Types that Holdfast lacks (F8_E4M3, C64
// and others) are refused by name. A JSON text travels in the header's "__metadata__", which maps strings to strings:
// an object of strings as it is, any other under the key "holdfast.metadata"; either comes back byte for byte.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "holdfast/base/file_system.h"
#include "holdfast/format/array_set.h"

namespace holdfast::format {

// Reads the whole file. Its header is taken strictly: at most 100 MB of UTF-8, no name twice, every byte behind it
// belongs to exactly one array, and each array has the bytes of its shape. The metadata is the JSON that
// write_safetensors was given, in a file of another writer its "__metadata__" as a JSON object ("{}" without one), of
// which other keys are left out beside "holdfast.metadata".
//
// Throws Error{invalid_file} for a file that is damaged or not of this format, Error{unsupported} for an array that
// Holdfast cannot hold, and what the file system threw.
ArraySet read_safetensors(FileSystem& files, const std::string& path);

// The same of bytes in memory; `name` stands for the path in errors.
ArraySet parse_safetensors(std::span<const std::byte> bytes, const std::string& name);

// Whole or not at all, durable on return; the same arguments give the same bytes, in any order of `arrays`. Throws
// Error{invalid_argument} for names that are not UTF-8, empty of meaning ("__metadata__") or twice there, for bytes
// that do not fit their shape, for metadata that is not JSON and for a header above 100 MB.
void write_safetensors(FileSystem& files, const std::string& path, std::string_view metadata_json,
                       std::span<const ArrayView> arrays);

}  // namespace holdfast::format
