// Readers never trust an offset of a file: every read names its place, and one that reaches past the end says so.

#include "bytes/byte_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast::format {

void refuse_file(const std::string& path, const std::string& problem) {
  throw Error(ErrorCode::invalid_file, fmt::format("{} {}", path, problem));
}

void refuse_missing(const std::string& path, std::string_view array, std::vector<std::string> present) {
  constexpr std::size_t kShown = 20;
  std::ranges::sort(present);
  std::string names;
  for (std::size_t i = 0; i < std::min(present.size(), kShown); ++i) {
    names += (i == 0 ? "" : ", ") + quoted_text(present[i]);
  }
  if (present.size() > kShown) names += fmt::format(" and {} more", present.size() - kShown);
  throw Error(ErrorCode::not_found, fmt::format("{} has no array {}; it has {}; ask for one of these", path,
                                                quoted_text(array), present.empty() ? "none at all" : names));
}

// The file is not damaged, so the advice is about the limit.
void refuse_memory(const std::string& path, std::uint64_t bytes, std::uint64_t most) {
  throw Error(ErrorCode::out_of_memory,
              fmt::format("cannot read {}: {} bytes of it must be in memory at once, and {} are allowed{}", path, bytes,
                          most, kAllowMoreMemory));
}

void report_out_of_memory(const std::string& path) {
  throw Error(ErrorCode::out_of_memory,
              fmt::format("not enough memory to load {}; free some memory and try again", path));
}

namespace {

[[noreturn]] void report_end(const ByteSource& source, std::uint64_t offset, std::size_t bytes) {
  refuse_file(source.path(),
              fmt::format("ends before the {} bytes at offset {}: it was cut off or is damaged; use another copy of it",
                          bytes, offset));
}

}  // namespace

// The size is asked once: checks compare offsets with one number.
FileSource::FileSource(FileSystem& files, std::string path)
    : path_(std::move(path)), file_(files.open_for_reading(path_)), size_bytes_(file_->size_bytes()) {}

void FileSource::read(std::uint64_t offset, std::span<std::byte> out) {
  if (file_->read_at(offset, out) != out.size()) report_end(*this, offset, out.size());
}

void MemorySource::read(std::uint64_t offset, std::span<std::byte> out) {
  // Two comparisons, because offset + size could overflow.
  if (offset > bytes_.size() || out.size() > bytes_.size() - offset) report_end(*this, offset, out.size());
  const auto piece = bytes_.subspan(offset, out.size());
  std::copy(piece.begin(), piece.end(), out.begin());
}

void ByteCursor::refuse_end() const {
  refuse_file(path_, fmt::format("is damaged: {} ends too early; use another copy of it", what_));
}

}  // namespace holdfast::format
