#pragma once

// The parts of a frame of literals (RFC 8878, section 3.1.1), for the code that writes and reads it.

#include <cstddef>
#include <cstdint>

namespace holdfast::format {

// Zstd's magic number and the frame's descriptor: one segment (the window is the content), a content size of
// 4 bytes, a checksum. The content size follows.
inline constexpr std::uint64_t kFrameBegin = 0xA4'FD2F'B528;
inline constexpr std::size_t kFrameHeaderBytes = 9;
inline constexpr std::size_t kChecksumBytes = 4;

enum class BlockKind : std::uint32_t { raw = 0, repeated = 1, coded = 2 };
inline constexpr std::size_t kBlockHeaderBytes = 3;
inline constexpr std::size_t kMaxBlockBytes = std::size_t{128} << 10;

// The lowest four bits of a coded block: literals in a code of their own, in four streams, with sizes of 18
// bits.
inline constexpr std::uint64_t kCodedLiterals = 0b1110;
inline constexpr std::size_t kLiteralsHeaderBytes = 5;
constexpr std::uint64_t literals_header(std::uint64_t bytes, std::uint64_t coded_bytes) {
  return kCodedLiterals | bytes << 4 | coded_bytes << 22;
}
inline constexpr std::size_t kStreams = 4;
// It holds the sizes of the first three streams.
inline constexpr std::size_t kJumpTableBytes = 6;
// For fewer bytes, the description of a code takes what the code gains.
inline constexpr std::size_t kMinCodedBytes = 256;

}  // namespace holdfast::format
