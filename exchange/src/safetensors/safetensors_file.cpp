// Reads the header once and elements on demand, so that opening a file takes memory for names and shapes alone.

#include "safetensors/safetensors_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "bytes/array_checks.h"
#include "bytes/element_bytes.h"

namespace holdfast::format {
namespace {

// The length is compared with the file before memory is allocated for the header.
std::string read_header(ByteSource& source) {
  const std::string& path = source.path();
  if (source.size_bytes() < kSafetensorsLengthBytes) {
    refuse_file(path,
                fmt::format("is not a safetensors file: it has only {} bytes; check the path", source.size_bytes()));
  }
  std::array<std::byte, kSafetensorsLengthBytes> length_bytes{};
  source.read(0, length_bytes);
  const std::uint64_t length = ByteCursor(path, "the length of its header", length_bytes).u64();
  const std::uint64_t most = std::min(kMaxSafetensorsHeaderBytes, source.size_bytes() - kSafetensorsLengthBytes);
  if (length > most) {
    refuse_file(path, fmt::format("is not a complete safetensors file: it claims a header of {} bytes, and at most {} "
                                  "are possible; use another copy of it",
                                  length, most));
  }
  std::string header(length, '\0');
  source.read(kSafetensorsLengthBytes, std::as_writable_bytes(std::span(header)));
  return header;
}

// Our own metadata wins: the other entries of such a header only accompany it.
std::string metadata_of(const std::string& path, const SafetensorsHeader& header) {
  const auto ours = header.metadata.find(kSafetensorsHoldfastKey);
  if (ours == header.metadata.end()) return nlohmann::json(header.metadata).dump();
  if (!is_json(ours->second)) refuse_file(path, "has Holdfast metadata that is not JSON; use another copy of it");
  return ours->second;
}

}  // namespace

SafetensorsFile::SafetensorsFile(ByteSource& source, UnknownTypes unknown_types) : source_(source) {
  const std::string json = read_header(source);
  data_offset_ = kSafetensorsLengthBytes + json.size();
  // Names and places are checked here, so reads need no further check.
  SafetensorsHeader header =
      parse_safetensors_header(source.path(), json, source.size_bytes() - data_offset_, unknown_types);
  metadata_ = metadata_of(source.path(), header);
  entries_ = std::move(header.entries);
  // By name, as all kinds of files list their arrays; the header is in the order of the bytes.
  std::ranges::sort(entries_, {}, &SafetensorsEntry::name);
}

void SafetensorsFile::read_part(const SafetensorsEntry& entry, std::uint64_t begin, std::span<std::byte> out) const {
  source_.read(data_offset_ + entry.begin + begin, out);
  // C++ gives no meaning to a bool of another value, so the bytes cannot be passed on.
  if (entry.dtype == DType::boolean && !holds_booleans(out)) {
    refuse_file(source_.path(), fmt::format("has a boolean array {} with bytes other than 0 and 1; save it as U8",
                                            quoted_text(entry.name)));
  }
}

std::vector<std::byte> SafetensorsFile::read(const SafetensorsEntry& entry) const {
  std::vector<std::byte> bytes(entry.end - entry.begin);
  read_part(entry, 0, bytes);
  return bytes;
}

void SafetensorsFile::read_pieces(const SafetensorsEntry& entry,
                                  const std::function<void(std::span<const std::byte>)>& take) const {
  // A multiple of every element's size, so that no element is cut.
  constexpr std::uint64_t kPieceBytes = std::uint64_t{8} << 20;
  const std::uint64_t bytes = entry.end - entry.begin;
  std::vector<std::byte> piece;
  for (std::uint64_t begin = 0; begin < bytes; begin += piece.size()) {
    piece.resize(std::min(bytes - begin, kPieceBytes));
    read_part(entry, begin, piece);
    take(piece);
  }
}

}  // namespace holdfast::format
