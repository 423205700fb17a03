// zstd copies every plane before the shuffle is undone, and decodes one byte at a time. This decoder takes
// exactly the frames that our encoder makes: stored planes go from the frame straight to the elements, and
// coded ones are decoded several bytes at a time. Any other frame is left to zstd. See
// docs/decisions/compression.md.

#include "codec/literals_decoder.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "codec/huffman_description.h"

namespace holdfast::format {
namespace {

constexpr std::size_t kMaxPlanes = 8;

std::uint64_t read_little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

// Removes the first `count` bytes and returns them; returns no bytes when there are too few.
std::span<const std::byte> take(std::span<const std::byte>& bytes, std::size_t count) {
  if (count > bytes.size()) return {};
  const std::span<const std::byte> taken = bytes.first(count);
  bytes = bytes.subspan(count);
  return taken;
}

// Whether a coded block contains only literals: its literals' header has the sizes of the block, and no
// sequences follow.
bool is_of_literals(std::span<const std::byte> stored, std::size_t bytes) {
  if (bytes < kMinCodedBytes || stored.size() <= kLiteralsHeaderBytes || stored.back() != std::byte{0}) return false;
  return read_little_endian(stored.first(kLiteralsHeaderBytes)) ==
         literals_header(bytes, stored.size() - kLiteralsHeaderBytes - 1);
}

}  // namespace

bool LiteralsDecoder::decode(std::span<const std::byte> frame, std::size_t chunk_bytes, std::size_t element_bytes,
                             std::span<std::byte> out) {
  if (!find_blocks(frame, chunk_bytes, element_bytes)) return false;
  scratch_.resize(element_bytes * kMaxBlockBytes);
  const std::size_t blocks = blocks_.size() / element_bytes;
  std::size_t first = 0;  // byte of the elements that the blocks begin with
  for (std::size_t b = 0; b < blocks; ++b) {
    std::array<const std::byte*, kMaxPlanes> planes{};
    for (std::size_t p = 0; p < element_bytes; ++p) {
      planes[p] = decode_block(blocks_[p * blocks + b], scratch_.data() + p * kMaxBlockBytes);
      if (planes[p] == nullptr) return false;
    }
    const std::size_t end = first + blocks_[b].bytes * element_bytes;
    if (first < out.size()) {
      unshuffle(std::span(planes).first(element_bytes), out.subspan(first, std::min(end, out.size()) - first), method_);
    }
    first = end;
  }
  return true;
}

// Finds all blocks. Returns false unless the whole frame is one that our encoder makes.
bool LiteralsDecoder::find_blocks(std::span<const std::byte> frame, std::size_t chunk_bytes, std::size_t planes) {
  blocks_.clear();
  if (chunk_bytes == 0 || frame.size() < kFrameHeaderBytes) return false;
  if (read_little_endian(take(frame, 5)) != kFrameBegin || read_little_endian(take(frame, 4)) != chunk_bytes) {
    return false;
  }
  const std::size_t plane_bytes = chunk_bytes / planes;
  for (std::size_t done = 0; done < chunk_bytes;) {
    const std::uint64_t header = read_little_endian(take(frame, kBlockHeaderBytes));
    const std::size_t size = header >> 3;
    Block block{
        static_cast<BlockKind>(header >> 1 & 3), {}, std::min(kMaxBlockBytes, plane_bytes - done % plane_bytes)};
    block.stored = take(frame, block.kind == BlockKind::repeated ? 1 : size);
    done += block.bytes;
    if (block.stored.empty() || (header & 1) != (done == chunk_bytes ? 1U : 0U)) return false;
    const bool is_ours = block.kind == BlockKind::coded
                             ? size < block.bytes && is_of_literals(block.stored, block.bytes)
                             : block.kind <= BlockKind::repeated && size == block.bytes;
    if (!is_ours) return false;
    blocks_.push_back(block);
  }
  return frame.size() == kChecksumBytes;
}

// Returns where the decoded bytes are: in the frame or in `scratch`. Null for a damaged block.
const std::byte* LiteralsDecoder::decode_block(const Block& block, std::byte* scratch) {
  if (block.kind == BlockKind::raw) return block.stored.data();
  if (block.kind == BlockKind::repeated) {
    std::memset(scratch, std::to_integer<int>(block.stored.front()), block.bytes);
    return scratch;
  }
  std::span<const std::byte> stored = block.stored.subspan(kLiteralsHeaderBytes);
  stored = stored.first(stored.size() - 1);
  CodeLengths lengths;
  const std::size_t description = read_description(stored, lengths);
  if (description == 0) return nullptr;
  table_.fill(lengths);
  return decode_streams(stored.subspan(description), table_, {scratch, block.bytes}) ? scratch : nullptr;
}

}  // namespace holdfast::format
