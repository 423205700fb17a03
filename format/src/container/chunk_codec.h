#pragma once

// Turns a chunk into a zstd frame and back. Chunks are independent, so several threads can encode and
// decode them, each with an object of its own. HDF5's filter pipeline is not used: nothing is registered
// with HDF5, and no file can make a plug-in load (docs/decisions/compression.md).

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

// The fewest bytes in which zstd can store a chunk: 13 bytes of frame and 4 for each block of 128 KiB. A
// file that claims more chunks than it can contain is refused before memory is allocated for them.
std::uint64_t min_frame_bytes(std::size_t chunk_bytes);

// Makes frames: HDF5's shuffle (byte b of all elements, then byte b + 1), then one zstd frame with content
// size and checksum. One thread at a time.
class ChunkEncoder {
 public:
  // `zstd_level` must lie within zstd's bounds. Without a level, frames contain literals only
  // (literals_frame.h): their bytes then depend on the content alone, and not on zstd's version.
  explicit ChunkEncoder(std::optional<int> zstd_level);

  // Pads `bytes` with zeros to `chunk_bytes` and encodes them. Both are whole elements of 1, 2, 4 or 8
  // bytes. The result is valid until the next call.
  std::span<const std::byte> encode(std::span<const std::byte> bytes, std::size_t chunk_bytes,
                                    std::size_t element_bytes);

 private:
  std::span<const std::byte> encode_by_zstd(std::span<const std::byte> shuffled);

  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context_;  // null without a level
  LiteralsEncoder literals_;
  std::vector<std::byte> shuffled_;
  std::vector<std::byte> frame_;
};

struct ChunkDecodeOptions {
  // Skips the frame's own checksum, which takes about a fifth of the time. Only for frames whose digest
  // was checked already.
  bool skip_checksum = false;
  // Stores the result past the caches: for data that is not read soon.
  bool past_caches = false;
};

// Decodes frames of any origin. Frames of our own encoder take a path that is twice as fast as zstd's, if
// the checksum may be skipped. One thread at a time.
class ChunkDecoder {
 public:
  explicit ChunkDecoder(const ChunkDecodeOptions& options = {});

  // Fills `out` from the beginning of the chunk. Returns false, with `out` undefined, unless `frame` is
  // exactly one undamaged zstd frame of `chunk_bytes`.
  [[nodiscard]] bool decode(std::span<const std::byte> frame, std::size_t chunk_bytes, std::size_t element_bytes,
                            std::span<std::byte> out);

 private:
  bool decode_frame(std::span<const std::byte> frame, std::span<std::byte> out);

  const ChunkDecodeOptions options_;
  const ShuffleMethod method_;
  LiteralsDecoder literals_;
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_;
  std::vector<std::byte> shuffled_;
};

}  // namespace holdfast::format
