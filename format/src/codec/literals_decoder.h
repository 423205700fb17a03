#pragma once

// Frames that LiteralsEncoder made, back to elements: what was stored as it is goes straight to its place among the
// elements' bytes, and only what has a code is decoded first. A frame may come from anybody. Whatever it holds, only
// `out` is written, and what is accepted is what any zstd decoder makes of it, but for the frame's checksum, which
// nobody looks at here: for frames whose digest was checked.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codec/huffman_decoder.h"
#include "codec/literals_blocks.h"
#include "codec/shuffle.h"

namespace holdfast::format {

// Not for several threads at once.
class LiteralsDecoder {
 public:
  explicit LiteralsDecoder(ShuffleMethod method = ShuffleMethod::vectors) : method_(method) {}

  // Fills `out` with the elements that are first among the frame's `chunk_bytes`; all are whole elements of 1, 2, 4 or
  // 8 bytes. False, with `out` undefined, for any frame that LiteralsEncoder would not make of planes of
  // `element_bytes`: it may be a good one all the same.
  [[nodiscard]] bool decode(std::span<const std::byte> frame, std::size_t chunk_bytes, std::size_t element_bytes,
                            std::span<std::byte> out);

 private:
  struct Block {
    BlockKind kind;
    std::span<const std::byte> stored;
    std::size_t bytes;  // decoded
  };

  bool find_blocks(std::span<const std::byte> frame, std::size_t chunk_bytes, std::size_t planes);
  const std::byte* decode_block(const Block& block, std::byte* scratch);

  const ShuffleMethod method_;
  std::vector<Block> blocks_;
  std::vector<std::byte> scratch_;  // a block of each plane
  DecodeTable table_;
};

}  // namespace holdfast::format
