// Writes the bytes that the safetensors library would write for the same arrays and metadata, so that files can be
// compared. The library's metadata maps strings to strings, and any other JSON travels as one string in it.

#include "holdfast/format/exchange/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "bytes/array_checks.h"
#include "bytes/byte_source.h"
#include "holdfast/base/error.h"
#include "holdfast/base/whole_writer.h"
#include "safetensors/safetensors_file.h"

namespace holdfast::format {
namespace {

// An object of strings is stored as such if it comes back byte for byte; any other JSON is stored as one text.
std::map<std::string, std::string> metadata_for(std::string_view metadata_json) {
  const nlohmann::json parsed = nlohmann::json::parse(metadata_json);
  const bool is_flat = parsed.is_object() && !parsed.contains(std::string(kSafetensorsHoldfastKey)) &&
                       std::all_of(parsed.begin(), parsed.end(), [](const auto& value) { return value.is_string(); });
  if (is_flat && parsed.dump() == metadata_json) return parsed.get<std::map<std::string, std::string>>();
  return {{std::string(kSafetensorsHoldfastKey), std::string(metadata_json)}};
}

ArraySet read_safetensors_from(ByteSource& source) {
  const SafetensorsFile file(source);
  ArraySet set{.arrays = {}, .metadata = file.metadata()};
  for (const SafetensorsEntry& entry : file.entries()) {
    set.arrays.push_back({entry.name, entry.dtype, entry.shape, file.read(entry)});
  }
  return set;
}

void check_header_size(const std::string& path, std::size_t bytes) {
  if (bytes <= kMaxSafetensorsHeaderBytes) return;
  refuse_to_write(path, fmt::format("names and metadata take {} bytes, and the format allows {}; use several files",
                                    bytes, kMaxSafetensorsHeaderBytes));
}

std::string compose_header(const std::string& path, std::string_view metadata_json, std::span<const ArrayView> arrays) {
  std::string header = compose_safetensors_header(metadata_for(metadata_json), arrays);
  // Padding aligns the first array.
  header.resize((header.size() + 7) / 8 * 8, ' ');
  check_header_size(path, header.size());
  return header;
}

}  // namespace

ArraySet read_safetensors(FileSystem& files, const std::string& path) {
  FileSource source(files, path);
  return within_memory(path, [&] { return read_safetensors_from(source); });
}

ArraySet parse_safetensors(std::span<const std::byte> bytes, const std::string& name) {
  MemorySource source(name, bytes);
  return read_safetensors_from(source);
}

void write_safetensors(FileSystem& files, const std::string& path, std::string_view metadata_json,
                       std::span<const ArrayView> arrays) {
  // Before it is read: the header has all of its bytes.
  check_header_size(path, metadata_json.size());
  check_metadata(path, metadata_json);
  check_arrays(path, arrays);
  for (const ArrayView& array : arrays) {
    // A reader would take this array for the metadata.
    if (array.name == kSafetensorsMetadata) {
      refuse_to_write(path, "an array cannot be named \"__metadata__\" in this format; rename it");
    }
  }
  std::vector<ArrayView> sorted(arrays.begin(), arrays.end());
  // The order of the bytes is also that of the header.
  sort_for_safetensors(sorted);
  const std::string header = compose_header(path, metadata_json, sorted);
  // The header's own length comes first, in eight bytes.
  std::array<std::byte, kSafetensorsLengthBytes> length{};
  for (std::size_t i = 0; i < length.size(); ++i) length[i] = static_cast<std::byte>(header.size() >> (8 * i));

  WholeWriter writer(files, path);
  writer.append(length);
  writer.append(std::as_bytes(std::span(header)));
  for (const ArrayView& array : sorted) writer.append(array.bytes);
  writer.commit();
}

}  // namespace holdfast::format
