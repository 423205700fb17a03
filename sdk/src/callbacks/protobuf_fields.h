#pragma once

// Protobuf's wire format, as far as the files of TensorBoard need it: numbers in groups of seven bits, and each field
// after a key of its number and kind (protobuf.dev/programming-guides/encoding).

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::protobuf {

enum class Wire { varint = 0, eight_bytes = 1, text = 2, four_bytes = 5 };

// The lowest byte first.
template <typename Number>
std::string little_endian(Number value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

inline std::string key(int field, Wire wire) {
  return varint(static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire));
}

// Whole fields. A message within a message is a text.
inline std::string text_field(int field, std::string_view text) {
  return key(field, Wire::text) + varint(text.size()) + std::string(text);
}
inline std::string number_field(int field, std::uint64_t value) {
  return key(field, Wire::varint) + varint(value);
}
inline std::string float_field(int field, float value) {
  return key(field, Wire::four_bytes) + little_endian(std::bit_cast<std::uint32_t>(value));
}
inline std::string double_field(int field, double value) {
  return key(field, Wire::eight_bytes) + little_endian(std::bit_cast<std::uint64_t>(value));
}
// Packed.
template <typename Doubles>
std::string doubles_field(int field, const Doubles& values) {
  std::string bytes;
  for (const double value : values) bytes += little_endian(std::bit_cast<std::uint64_t>(value));
  return text_field(field, bytes);
}

}  // namespace holdfast::protobuf
