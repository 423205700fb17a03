#pragma once

// Decodes frames that LiteralsEncoder made, straight to elements. Planes that were stored go to the elements
// without a copy, and only coded planes are decoded first.
//
// A frame may come from anybody. Whatever it contains, only `out` is written. A frame that is accepted gives
// what any zstd decoder gives, except that its checksum is ignored: use it for frames whose digest was
// checked.

#include <cstddef>
#include <span>
#include <vector>

#include "codec/huffman_decoder.h"
#include "codec/literals_blocks.h"
#include "codec/shuffle.h"

namespace holdfast::format {

// One thread at a time.
class LiteralsDecoder {
 public:
  explicit LiteralsDecoder(ShuffleMethod method = ShuffleMethod::vectors) : method_(method) {}

  // Fills `out` with the first elements of a frame of `chunk_bytes`. Both sizes are whole elements of 1, 2, 4
  // or 8 bytes. Returns false, with `out` undefined, for a frame that LiteralsEncoder would not make of planes
  // of such elements. zstd may accept that frame.
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
  std::vector<std::byte> scratch_;  // one block for each plane
  DecodeTable table_;
};

}  // namespace holdfast::format
