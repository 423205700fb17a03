#include "exchange/byte_source.h"

#include <algorithm>
#include <utility>

#include "utf8.h"

namespace holdfast::format {

void refuse_file(const std::string& path, const std::string& problem) {
  throw Error(ErrorCode::invalid_file, path + " " + problem);
}

void refuse_memory(const std::string& path, std::uint64_t bytes, std::uint64_t most) {
  throw Error(ErrorCode::out_of_memory, path + " cannot be read: " + std::to_string(bytes) +
                                            " bytes of it have to be in memory at once, and " + std::to_string(most) +
                                            " are allowed" + kAllowMoreMemory);
}

namespace {

// The length of the character that `text` begins with; 0 where that is not UTF-8. U+0000 counts as not UTF-8.
std::size_t bytes_of_character(std::string_view text) {
  for (std::size_t bytes = 1; bytes <= std::min<std::size_t>(4, text.size()); ++bytes) {
    if (is_utf8(text.substr(0, bytes))) return bytes;
  }
  return 0;
}

// U+0001 to U+001F, U+007F, and U+0080 to U+009F.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < ' ' || first == 0x7F;
  return character.size() == 2 && first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

std::string escaped(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result;
  for (const char c : bytes) {
    const auto value = static_cast<unsigned char>(c);
    result += {'\\', 'x', kDigits[value / 16U], kDigits[value % 16U]};
  }
  return result;
}

}  // namespace

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 200;
  std::string result;
  while (!text.empty()) {
    const std::size_t bytes = bytes_of_character(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(1, bytes));
    const std::string part = bytes == 0 || is_control(character) ? escaped(character) : std::string(character);
    if (result.size() + part.size() > kMost) return '"' + result + "...\"";
    result += part;
    text.remove_prefix(character.size());
  }
  return '"' + result + '"';
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
