#pragma once

// A safetensors file whose header was read and checked; its arrays are read one at a time.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bytes/byte_source.h"
#include "safetensors/safetensors_header.h"

namespace holdfast::format {

// Of the header's own length, in front of it.
inline constexpr std::size_t kSafetensorsLengthBytes = 8;
// In the header's metadata: JSON that is no object of strings.
inline constexpr const char* kSafetensorsHoldfastKey = "holdfast.metadata";

class SafetensorsFile {
 public:
  // Throws as read_safetensors does. `source` must outlive the object.
  explicit SafetensorsFile(ByteSource& source);

  // As read_safetensors gives it.
  const std::string& metadata() const { return metadata_; }
  // Sorted by name.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  std::vector<std::byte> read(const SafetensorsEntry& entry) const;
  // In pieces of a few MiB.
  void read_pieces(const SafetensorsEntry& entry, const std::function<void(std::span<const std::byte>)>& take) const;

 private:
  void read_part(const SafetensorsEntry& entry, std::uint64_t begin, std::span<std::byte> out) const;

  ByteSource& source_;
  std::string metadata_;
  std::vector<SafetensorsEntry> entries_;
  std::uint64_t data_offset_ = 0;
};

}  // namespace holdfast::format
