#include "links/link_token.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

// The value of a hexadecimal digit as to_text() writes it; -1 for any other character.
int digit_of(char character) {
  if (character >= '0' && character <= '9') return character - '0';
  if (character >= 'a' && character <= 'f') return character - 'a' + 10;
  return -1;
}

void put(std::uint32_t number, std::uint8_t* bytes) {
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
}

std::uint32_t number_at(const std::uint8_t* bytes) {
  std::uint32_t number = 0;
  for (int i = 0; i < 4; ++i) number |= std::uint32_t{bytes[i]} << (8 * i);
  return number;
}

}  // namespace

LinkKey new_link_key() {
  LinkKey key{};
  // So few bytes come whole, once the system has any.
  if (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) {
    throw system_error(errno, "there are no random bytes for a connection between hosts");
  }
  return key;
}

std::string to_text(const LinkKey& key) {
  std::string text;
  for (const std::uint8_t byte : key) text += fmt::format("{:02x}", byte);
  return text;
}

LinkKey link_key_from(std::string_view text) {
  LinkKey key{};
  const bool is_key = text.size() == 2 * key.size() &&
                      std::all_of(text.begin(), text.end(), [](char character) { return digit_of(character) >= 0; });
  // Not quoted: it may be most of a key.
  if (!is_key)
    throw Error(ErrorCode::input_output, "a host sent a key for connections that is not 32 hexadecimal digits");
  for (std::size_t i = 0; i < key.size(); ++i) {
    key[i] = static_cast<std::uint8_t>(16 * digit_of(text[2 * i]) + digit_of(text[2 * i + 1]));
  }
  return key;
}

std::array<std::uint8_t, LinkToken::kBytes> LinkToken::bytes() const {
  std::array<std::uint8_t, kBytes> bytes{};
  std::copy(key.begin(), key.end(), bytes.begin());
  put(exchange, bytes.data() + key.size());
  put(lane, bytes.data() + key.size() + 4);
  return bytes;
}

LinkToken LinkToken::from(const std::array<std::uint8_t, kBytes>& bytes) {
  LinkToken token;
  std::copy_n(bytes.begin(), token.key.size(), token.key.begin());
  token.exchange = number_at(bytes.data() + token.key.size());
  token.lane = number_at(bytes.data() + token.key.size() + 4);
  return token;
}

}  // namespace holdfast::recovery
