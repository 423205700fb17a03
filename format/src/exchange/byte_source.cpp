#include "exchange/byte_source.h"

#include <algorithm>
#include <utility>

namespace holdfast::format {

void refuse_file(const std::string& path, const std::string& problem) {
  throw Error(ErrorCode::invalid_file, path + " " + problem);
}

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 200;
  const bool is_cut = text.size() > kMost;
  std::size_t bytes = is_cut ? kMost : text.size();
  // Not within a character.
  while (is_cut && bytes > 0 && (text[bytes] & 0xC0) == 0x80) --bytes;
  std::string result(text.substr(0, bytes));
  std::replace_if(
      result.begin(), result.end(), [](unsigned char c) { return c < ' ' || c == 0x7F; }, '?');
  return '"' + result + (is_cut ? "...\"" : "\"");
}

namespace {

[[noreturn]] void report_end(const ByteSource& source, std::uint64_t offset, std::size_t bytes) {
  refuse_file(source.path(), "ends before the " + std::to_string(bytes) + " bytes at offset " + std::to_string(offset) +
                                 ": it was cut off; use another copy of it");
}

}  // namespace

FileSource::FileSource(FileSystem& files, std::string path)
    : path_(std::move(path)), file_(files.open_for_reading(path_)), size_bytes_(file_->size_bytes()) {}

void FileSource::read(std::uint64_t offset, std::span<std::byte> out) {
  if (file_->read_at(offset, out) != out.size()) report_end(*this, offset, out.size());
}

void MemorySource::read(std::uint64_t offset, std::span<std::byte> out) {
  if (offset > bytes_.size() || out.size() > bytes_.size() - offset) report_end(*this, offset, out.size());
  const auto piece = bytes_.subspan(offset, out.size());
  std::copy(piece.begin(), piece.end(), out.begin());
}

std::span<const std::byte> ByteCursor::bytes(std::size_t count) {
  if (count > bytes_.size()) {
    refuse_file(path_, "is damaged: " + std::string(what_) + " ends too early; use another copy of it");
  }
  const auto taken = bytes_.first(count);
  bytes_ = bytes_.subspan(count);
  return taken;
}

std::string ByteCursor::text(std::size_t count) {
  const auto taken = bytes(count);
  return {reinterpret_cast<const char*>(taken.data()), taken.size()};
}

}  // namespace holdfast::format
