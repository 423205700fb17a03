#include "chunk.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

// The width is a constant, so that the compiler can turn the loops into byte shuffles of whole vectors.
template <std::size_t kWidth>
void shuffle_elements(const std::byte* in, std::size_t count, std::byte* out) {
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t b = 0; b < kWidth; ++b) out[b * count + i] = in[i * kWidth + b];
  }
}

template <std::size_t kWidth>
void unshuffle_elements(const std::byte* in, std::size_t plane, std::size_t count, std::byte* out) {
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t b = 0; b < kWidth; ++b) out[i * kWidth + b] = in[b * plane + i];
  }
}

void shuffle(std::span<const std::byte> in, std::size_t element_bytes, std::byte* out) {
  const std::size_t count = in.size() / element_bytes;
  switch (element_bytes) {
    case 1:
      return shuffle_elements<1>(in.data(), count, out);
    case 2:
      return shuffle_elements<2>(in.data(), count, out);
    case 4:
      return shuffle_elements<4>(in.data(), count, out);
    case 8:
      return shuffle_elements<8>(in.data(), count, out);
    default:
      HOLDFAST_ASSERT(!"an element has 1, 2, 4 or 8 bytes");
  }
}

// `in` may hold more elements than `out` takes.
void unshuffle(std::span<const std::byte> in, std::size_t element_bytes, std::span<std::byte> out) {
  const std::size_t plane = in.size() / element_bytes;
  const std::size_t count = out.size() / element_bytes;
  switch (element_bytes) {
    case 1:
      return unshuffle_elements<1>(in.data(), plane, count, out.data());
    case 2:
      return unshuffle_elements<2>(in.data(), plane, count, out.data());
    case 4:
      return unshuffle_elements<4>(in.data(), plane, count, out.data());
    case 8:
      return unshuffle_elements<8>(in.data(), plane, count, out.data());
    default:
      HOLDFAST_ASSERT(!"an element has 1, 2, 4 or 8 bytes");
  }
}

}  // namespace

ChunkGrid::ChunkGrid(std::vector<std::uint64_t> shape, std::size_t element_bytes)
    : shape_(std::move(shape)), chunk_shape_(shape_.size()), inner_bytes_(element_bytes) {
  HOLDFAST_ASSERT(!shape_.empty() && std::find(shape_.begin(), shape_.end(), 0U) == shape_.end());
  std::uint64_t budget = kMaxChunkBytes / element_bytes;
  for (std::size_t axis = shape_.size(); axis-- > 0;) {
    chunk_shape_[axis] = std::min(shape_[axis], budget);
    budget /= chunk_shape_[axis];
  }
  while (cut_axis_ + 1 < shape_.size() && chunk_shape_[cut_axis_] == 1) outer_ *= shape_[cut_axis_++];
  for (std::size_t axis = cut_axis_ + 1; axis < shape_.size(); ++axis) inner_bytes_ *= shape_[axis];
  pieces_per_outer_ = (shape_[cut_axis_] + chunk_shape_[cut_axis_] - 1) / chunk_shape_[cut_axis_];
  chunk_bytes_ = chunk_shape_[cut_axis_] * inner_bytes_;
}

ChunkGrid::Piece ChunkGrid::piece(std::uint64_t index) const {
  HOLDFAST_ASSERT(index < count());
  Piece piece{.offset = std::vector<std::uint64_t>(shape_.size()), .first_byte = 0, .bytes = 0};
  std::uint64_t outer = index / pieces_per_outer_;
  const std::uint64_t begin = index % pieces_per_outer_ * chunk_shape_[cut_axis_];
  piece.first_byte = (outer * shape_[cut_axis_] + begin) * inner_bytes_;
  piece.bytes = std::min(chunk_shape_[cut_axis_], shape_[cut_axis_] - begin) * inner_bytes_;
  piece.offset[cut_axis_] = begin;
  for (std::size_t axis = cut_axis_; axis-- > 0;) {
    piece.offset[axis] = outer % shape_[axis];
    outer /= shape_[axis];
  }
  return piece;
}

std::uint64_t min_frame_bytes(std::size_t chunk_bytes) {
  constexpr std::uint64_t kBlock = std::uint64_t{128} * 1024;
  return 13 + 4 * ((chunk_bytes + kBlock - 1) / kBlock);
}

ChunkEncoder::ChunkEncoder(std::optional<int> level) : context_(ZSTD_createCCtx(), ZSTD_freeCCtx) {
  if (context_ == nullptr) throw std::bad_alloc();
  HOLDFAST_ASSERT(!ZSTD_isError(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level.value_or(1))));
  HOLDFAST_ASSERT(!ZSTD_isError(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1)));
}

std::span<const std::byte> ChunkEncoder::encode(std::span<const std::byte> bytes, std::size_t chunk_bytes,
                                                std::size_t element_bytes) {
  HOLDFAST_ASSERT(bytes.size() <= chunk_bytes);
  if (bytes.size() < chunk_bytes) {
    padded_.assign(chunk_bytes, std::byte{0});
    std::copy(bytes.begin(), bytes.end(), padded_.begin());
    bytes = padded_;
  }
  shuffled_.resize(chunk_bytes);
  shuffle(bytes, element_bytes, shuffled_.data());
  frame_.resize(ZSTD_compressBound(chunk_bytes));
  const std::size_t size =
      ZSTD_compress2(context_.get(), frame_.data(), frame_.size(), shuffled_.data(), shuffled_.size());
  // With room for the worst case, only memory can be wanting.
  if (ZSTD_isError(size)) throw std::bad_alloc();
  return std::span(frame_).first(size);
}

ChunkDecoder::ChunkDecoder(const DecodeOptions&) : context_(ZSTD_createDCtx(), ZSTD_freeDCtx) {
  if (context_ == nullptr) throw std::bad_alloc();
}

bool ChunkDecoder::decode(std::span<const std::byte> frame, std::size_t chunk_bytes, std::size_t element_bytes,
                          std::span<std::byte> out) {
  HOLDFAST_ASSERT(out.size() <= chunk_bytes);
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != chunk_bytes) return false;
  // Anything that follows the frame would be decoded as another one.
  if (ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) return false;
  shuffled_.resize(chunk_bytes);
  const std::size_t size =
      ZSTD_decompressDCtx(context_.get(), shuffled_.data(), shuffled_.size(), frame.data(), frame.size());
  if (ZSTD_isError(size) || size != chunk_bytes) return false;
  unshuffle(shuffled_, element_bytes, out);
  return true;
}

}  // namespace holdfast::format
