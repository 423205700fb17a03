#include "holdfast/format/exchange/safetensors.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "exchange/array_checks.h"
#include "exchange/byte_source.h"
#include "exchange/safetensors_header.h"
#include "holdfast/base/error.h"
#include "whole_writer.h"

namespace holdfast::format {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr const char* kHoldfastKey = "holdfast.metadata";

std::string read_header(ByteSource& source) {
  const std::string& path = source.path();
  if (source.size_bytes() < kLengthBytes) {
    refuse_file(path, "is no safetensors file: it has " + std::to_string(source.size_bytes()) + " bytes");
  }
  std::array<std::byte, kLengthBytes> length_bytes{};
  source.read(0, length_bytes);
  const std::uint64_t length = ByteCursor(path, "the length of its header", length_bytes).u64();
  const std::uint64_t most = std::min(kMaxSafetensorsHeaderBytes, source.size_bytes() - kLengthBytes);
  if (length > most) {
    refuse_file(path, "is no whole safetensors file: it claims a header of " + std::to_string(length) +
                          " bytes where at most " + std::to_string(most) + " are possible; use another copy of it");
  }
  std::string header(length, '\0');
  source.read(kLengthBytes, std::as_writable_bytes(std::span(header)));
  return header;
}

std::string metadata_of(const std::string& path, const SafetensorsHeader& header) {
  const auto ours = header.metadata.find(kHoldfastKey);
  if (ours == header.metadata.end()) return nlohmann::json(header.metadata).dump();
  if (!is_json(ours->second)) refuse_file(path, "has metadata of Holdfast that is not JSON; use another copy of it");
  return ours->second;
}

// An object of strings that comes back as it was written stands for itself.
std::map<std::string, std::string> metadata_for(std::string_view metadata_json) {
  const nlohmann::json parsed = nlohmann::json::parse(metadata_json);
  const bool is_flat = parsed.is_object() && !parsed.contains(kHoldfastKey) &&
                       std::all_of(parsed.begin(), parsed.end(), [](const auto& value) { return value.is_string(); });
  if (is_flat && parsed.dump() == metadata_json) return parsed.get<std::map<std::string, std::string>>();
  return {{kHoldfastKey, std::string(metadata_json)}};
}

ArraySet read_source(ByteSource& source) {
  const std::string& path = source.path();
  const std::string json = read_header(source);
  const std::uint64_t data_offset = kLengthBytes + json.size();
  SafetensorsHeader header = parse_safetensors_header(path, json, source.size_bytes() - data_offset);
  ArraySet set{.arrays = {}, .metadata = metadata_of(path, header)};
  for (SafetensorsEntry& entry : header.entries) {
    std::vector<std::byte> bytes(entry.end - entry.begin);
    source.read(data_offset + entry.begin, bytes);
    if (entry.dtype == DType::boolean && !holds_booleans(bytes)) {
      refuse_file(path, "has boolean array " + shown(entry.name) + " with other bytes than 0 and 1; save it as U8");
    }
    set.arrays.push_back({std::move(entry.name), entry.dtype, std::move(entry.shape), std::move(bytes)});
  }
  std::sort(set.arrays.begin(), set.arrays.end(),
            [](const NamedArray& a, const NamedArray& b) { return a.name < b.name; });
  return set;
}

std::string compose_header(const std::string& path, std::string_view metadata_json, std::span<const ArrayView> arrays) {
  std::string header = compose_safetensors_header(metadata_for(metadata_json), arrays);
  // So that the first array is aligned.
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > kMaxSafetensorsHeaderBytes) {
    refuse_to_write(path, "names and metadata take " + std::to_string(header.size()) + " bytes, and the format has " +
                              std::to_string(kMaxSafetensorsHeaderBytes) + " for them; use several files");
  }
  return header;
}

}  // namespace

ArraySet read_safetensors(FileSystem& files, const std::string& path) {
  FileSource source(files, path);
  return within_memory(path, [&] { return read_source(source); });
}

ArraySet parse_safetensors(std::span<const std::byte> bytes, const std::string& name) {
  MemorySource source(name, bytes);
  return read_source(source);
}

void write_safetensors(FileSystem& files, const std::string& path, std::string_view metadata_json,
                       std::span<const ArrayView> arrays) {
  check_metadata(path, metadata_json);
  check_arrays(path, arrays);
  for (const ArrayView& array : arrays) {
    if (array.name == kSafetensorsMetadata) {
      refuse_to_write(path, "\"__metadata__\" is no name for an array in this format; rename it");
    }
  }
  std::vector<ArrayView> sorted(arrays.begin(), arrays.end());
  sort_for_safetensors(sorted);
  const std::string header = compose_header(path, metadata_json, sorted);
  std::array<std::byte, kLengthBytes> length{};
  for (std::size_t i = 0; i < length.size(); ++i) length[i] = static_cast<std::byte>(header.size() >> (8 * i));

  WholeWriter writer(files, path);
  writer.append(length);
  writer.append(std::as_bytes(std::span(header)));
  for (const ArrayView& array : sorted) writer.append(array.bytes);
  writer.commit();
}

}  // namespace holdfast::format
