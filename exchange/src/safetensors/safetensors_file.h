#pragma once

// A safetensors file whose header was read and checked. Elements are read one array at a time.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bytes/byte_source.h"
#include "safetensors/safetensors_header.h"

namespace holdfast::format {

// The length of the header, in front of it.
inline constexpr std::size_t kSafetensorsLengthBytes = 8;
// The key in the header's metadata for JSON that is not an object of strings.
inline constexpr const char* kSafetensorsHoldfastKey = "holdfast.metadata";

class SafetensorsFile {
 public:
  // Throws as read_safetensors does. `source` must outlive the object.
  explicit SafetensorsFile(ByteSource& source, UnknownTypes unknown_types = UnknownTypes::refuse);

  // As read_safetensors returns it.
  const std::string& metadata() const { return metadata_; }
  // Sorted by name.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  // Where the first byte of an array is, from the start of the file.
  std::uint64_t offset(const SafetensorsEntry& entry) const { return data_offset_ + entry.begin; }
  std::vector<std::byte> read(const SafetensorsEntry& entry) const;
  // Calls `take` with the elements in pieces of a few MiB.
  void read_pieces(const SafetensorsEntry& entry, const std::function<void(std::span<const std::byte>)>& take) const;

 private:
  void read_part(const SafetensorsEntry& entry, std::uint64_t begin, std::span<std::byte> out) const;

  ByteSource& source_;
  std::string metadata_;
  std::vector<SafetensorsEntry> entries_;
  std::uint64_t data_offset_ = 0;
};

}  // namespace holdfast::format
