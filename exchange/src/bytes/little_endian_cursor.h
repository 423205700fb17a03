#pragma once

// Takes little-endian numbers and text from the front of bytes, and never reads past their end. A derived class says
// what happens when the bytes end too early:
//
//   class HeadCursor : public LittleEndianCursor {
//     using LittleEndianCursor::LittleEndianCursor;
//     [[noreturn]] void refuse_end() const override { throw Error(ErrorCode::invalid_file, "the head is cut off"); }
//   };
//   const std::uint32_t version = HeadCursor(head).u32();

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace holdfast::format {

// Does not own the bytes. A copy goes on from the same position by itself.
class LittleEndianCursor {
 public:
  explicit LittleEndianCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}
  virtual ~LittleEndianCursor() = default;
  LittleEndianCursor(const LittleEndianCursor&) = default;
  LittleEndianCursor& operator=(const LittleEndianCursor&) = default;

  std::size_t left() const { return bytes_.size(); }
  // All of these throw what refuse_end() throws when fewer bytes are left.
  std::span<const std::byte> bytes(std::uint64_t count) {
    if (count > bytes_.size()) refuse_end();
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  std::string text(std::uint64_t count) {
    const auto taken = bytes(count);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  // A number of `count` bytes, at most 8.
  std::uint64_t integer(std::size_t count) {
    const auto taken = bytes(count);
    std::uint64_t value = 0;
    for (std::size_t i = count; i-- > 0;) value = value << 8U | static_cast<std::uint64_t>(taken[i]);
    return value;
  }
  std::uint8_t u8() { return static_cast<std::uint8_t>(integer(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(integer(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(integer(4)); }
  std::uint64_t u64() { return integer(8); }

 private:
  [[noreturn]] virtual void refuse_end() const = 0;

  std::span<const std::byte> bytes_;
};

}  // namespace holdfast::format
