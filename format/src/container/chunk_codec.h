#pragma once

// How a chunk becomes a zstd frame and comes back. Knows nothing of HDF5, and chunks know nothing of each other, so
// that several threads can make and read them, each with an encoder or decoder of its own.

#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "codec/literals_decoder.h"
#include "codec/literals_frame.h"
#include "codec/shuffle.h"

namespace holdfast::format {

// The fewest bytes in which zstd can hold a chunk: 13 bytes of frame and 4 a block of 128 KiB. A file that claims more
// chunks than it could hold is refused before memory is taken for them.
std::uint64_t min_frame_bytes(std::size_t chunk_bytes);

// Makes frames of chunks: HDF5's shuffle (byte b of all elements, then byte b + 1), then one zstd frame with content
// size and checksum. Not for several threads at once.
class ChunkEncoder {
 public:
  // `zstd_level` must lie within zstd's bounds. Without one, frames are of literals only (literals_frame.h): their
  // bytes then depend on the content alone, and not on zstd's version.
  explicit ChunkEncoder(std::optional<int> zstd_level);

  // `bytes` padded with zeros to `chunk_bytes`, encoded; both are whole elements of 1, 2, 4 or 8 bytes. The result is
  // valid until the next call.
  std::span<const std::byte> encode(std::span<const std::byte> bytes, std::size_t chunk_bytes,
                                    std::size_t element_bytes);

 private:
  std::span<const std::byte> encode_by_zstd(std::span<const std::byte> shuffled);

  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context_;  // null without a level
  LiteralsEncoder literals_;
  std::vector<std::byte> shuffled_;
  std::vector<std::byte> frame_;
};

struct DecodeOptions {
  // The frame's own checksum costs about a fifth of the time. Only for frames whose digest was checked already.
  bool skip_checksum = false;
  // Whether what comes out goes to memory past the caches, since nobody reads it soon.
  bool past_caches = false;
};

// The way back, of frames that anybody made. Those that are ours take a way of their own, twice as fast as zstd's,
// where the checksum may be skipped. Not for several threads at once.
class ChunkDecoder {
 public:
  explicit ChunkDecoder(const DecodeOptions& options = {});

  // Fills `out` from the beginning of the chunk. False, with `out` undefined, unless `frame` is exactly one undamaged
  // zstd frame of `chunk_bytes`.
  [[nodiscard]] bool decode(std::span<const std::byte> frame, std::size_t chunk_bytes, std::size_t element_bytes,
                            std::span<std::byte> out);

 private:
  bool decode_frame(std::span<const std::byte> frame, std::span<std::byte> out);

  const DecodeOptions options_;
  const ShuffleMethod method_;
  LiteralsDecoder literals_;
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_;
  std::vector<std::byte> shuffled_;
};

}  // namespace holdfast::format
