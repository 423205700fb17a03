// A text is one string that its parts share, so splitting copies nothing. It is checked once, when it is made; later
// code takes characters by their first byte. Only a text that fails the check is searched for the place.

#include "holdfast/data/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "data/sources/gzip_reader.h"
#include "data/tables/text_characters.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/base/utf8.h"

namespace holdfast {
namespace {

// All bytes of a character but its first are 10xxxxxx in UTF-8, so counting the others counts characters.
bool begins_character(char byte) {
  return (static_cast<std::uint8_t>(byte) & 0xC0U) != 0x80U;
}

std::string problem_at(std::string_view text, std::size_t offset) {
  return fmt::format("{} is {:#04x}, which is not a character of UTF-8", place_in_text(text, offset),
                     static_cast<std::uint8_t>(text[offset]));
}

}  // namespace

std::string place_in_text(std::string_view text, std::size_t offset) {
  return fmt::format("byte {} (line {})", offset + 1, 1 + std::ranges::count(text.substr(0, offset), '\n'));
}

// `offset` never passes the end: is_utf8() refused the text, so one of its characters is refused too.
std::optional<std::size_t> find_bad_character(std::string_view text) {
  // One pass decides about good texts; only bad ones are searched.
  if (is_utf8(text)) return {};
  std::size_t offset = 0;
  while (true) {
    const std::size_t bytes = bytes_of_first_character(text.substr(offset));
    if (!is_utf8(text.substr(offset, bytes))) return offset;
    offset += bytes;
  }
}

Text::Text(std::string content, TextUnit unit)
    // Both parts of a split, and copies, are views of one string that the last of them frees. A text of gigabytes is
    // never copied.
    : owner_(std::make_shared<const std::string>(std::move(content))), content_(*owner_), unit_(unit) {
  if (unit == TextUnit::bytes) {
    size_ = static_cast<std::int64_t>(content_.size());
    return;
  }
  if (const auto bad = find_bad_character(content_)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a text cannot be taken: {}; convert it to UTF-8 or use TextUnit::bytes",
                            problem_at(content_, *bad)));
  }
  size_ = std::ranges::count_if(content_, begins_character);
}

// Cut once, and not drawn: windows of drawn pieces would hold characters of both parts at their borders.
TextSplit Text::split(double for_validation) const {
  if (!(for_validation > 0 && for_validation < 1) || size_ < 2) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("split() needs a fraction between 0 and 1 and a text of two units, not {} of {}",
                            for_validation, size_));
  }
  const auto wanted = static_cast<std::int64_t>(std::floor(for_validation * static_cast<double>(size_)));
  const std::int64_t validation = std::clamp<std::int64_t>(wanted, 1, size_ - 1);
  // Units are counted from the end, one at a time. The loop body steps over a whole character, so the cut never lies
  // within one.
  std::size_t begin = content_.size();
  for (std::int64_t units = 0; units < validation; ++units) {
    do --begin;
    while (unit_ == TextUnit::characters && !begins_character(content_[begin]));
  }
  return {.training = Text(owner_, content_.substr(0, begin), unit_, size_ - validation),
          .validation = Text(owner_, content_.substr(begin), unit_, validation)};
}

Text read_text(const std::string& path, const TextOptions& options) {
  GzipReader reader(path, "text");
  std::string content;
  std::vector<std::uint8_t> piece(1 << 20);
  for (std::size_t count = piece.size(); count == piece.size();) {
    count = reader.read(piece);
    // Before it is appended: a small gzip stream may hold terabytes.
    if (static_cast<std::int64_t>(content.size() + count) > options.max_bytes) {
      throw Error(ErrorCode::invalid_file, fmt::format("{} has more than the {} bytes of content that "
                                                       "TextOptions::max_bytes allows; raise the limit to read it",
                                                       quoted_path(path), options.max_bytes));
    }
    content.append(reinterpret_cast<const char*>(piece.data()), count);
  }
  if (options.unit == TextUnit::characters) {
    if (const auto bad = find_bad_character(content)) {
      reader.refuse(fmt::format("{}; convert it to UTF-8 or read it as TextUnit::bytes", problem_at(content, *bad)));
    }
    // Not a part of the text: it would be a character of the vocabulary. In bytes it stays, as any other byte.
    if (content.starts_with("\xEF\xBB\xBF")) content.erase(0, 3);
  }
  if (content.empty()) reader.refuse("it is empty");
  return Text(std::move(content), options.unit);
}

}  // namespace holdfast
