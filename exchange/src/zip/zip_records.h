#pragma once

// Signatures and constants of the records of a ZIP archive (PKWARE's APPNOTE 6.3, section 4.3).

#include <cstddef>
#include <cstdint>

namespace holdfast::format::zip {

inline constexpr std::uint32_t kLocalHeader = 0x04034B50;
inline constexpr std::uint32_t kDirectoryEntry = 0x02014B50;
inline constexpr std::uint32_t kDataDescriptor = 0x08074B50;
inline constexpr std::uint32_t kEnd = 0x06054B50;
inline constexpr std::uint32_t kEnd64 = 0x06064B50;
inline constexpr std::uint32_t kEnd64Locator = 0x07064B50;

// Sizes without names, extra fields and comments.
inline constexpr std::size_t kLocalHeaderBytes = 30;
inline constexpr std::size_t kDirectoryEntryBytes = 46;
inline constexpr std::size_t kEndBytes = 22;
inline constexpr std::size_t kEnd64Bytes = 56;
inline constexpr std::size_t kEnd64LocatorBytes = 20;

// The extra field that holds sizes and offset in 64 bits, for records whose 16-bit or 32-bit fields are all ones.
inline constexpr std::uint16_t kExtra64 = 0x0001;
inline constexpr std::uint16_t kFull16 = 0xFFFF;
inline constexpr std::uint32_t kFull32 = 0xFFFF'FFFF;

inline constexpr std::uint16_t kStored = 0;
inline constexpr std::uint16_t kDeflated = 8;

inline constexpr std::uint16_t kEncryptedFlag = 1 << 0;
inline constexpr std::uint16_t kDescriptorFlag = 1 << 3;
inline constexpr std::uint16_t kUtf8Flag = 1 << 11;
// Two bits that say how hard deflate tried.
inline constexpr std::uint16_t kEffortFlags = 3 << 1;

}  // namespace holdfast::format::zip
