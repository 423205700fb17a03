#include "container/chunk_codec.h"

#include <new>

#include "holdfast/base/error.h"

namespace holdfast::format {

std::uint64_t min_frame_bytes(std::size_t chunk_bytes) {
  constexpr std::uint64_t kBlock = std::uint64_t{128} * 1024;
  return 13 + 4 * ((chunk_bytes + kBlock - 1) / kBlock);
}

ChunkEncoder::ChunkEncoder(std::optional<int> zstd_level) : context_(nullptr, ZSTD_freeCCtx) {
  if (!zstd_level) return;
  context_.reset(ZSTD_createCCtx());
  if (context_ == nullptr) throw std::bad_alloc();
  HOLDFAST_ASSERT(!ZSTD_isError(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, *zstd_level)));
  HOLDFAST_ASSERT(!ZSTD_isError(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1)));
}

std::span<const std::byte> ChunkEncoder::encode(std::span<const std::byte> bytes, std::size_t chunk_bytes,
                                                std::size_t element_bytes) {
  HOLDFAST_ASSERT(bytes.size() <= chunk_bytes && chunk_bytes % element_bytes == 0);
  // A full chunk of single bytes is its own shuffle.
  std::span<const std::byte> shuffled = bytes;
  if (element_bytes > 1 || bytes.size() < chunk_bytes) {
    shuffled_.resize(chunk_bytes);
    shuffle(bytes, element_bytes, chunk_bytes / element_bytes, shuffled_.data());
    shuffled = shuffled_;
  }
  return context_ == nullptr ? literals_.encode(shuffled, chunk_bytes / element_bytes) : encode_by_zstd(shuffled);
}

// Only for a level that the caller chose: zstd looks for matches, which weights hardly have.
std::span<const std::byte> ChunkEncoder::encode_by_zstd(std::span<const std::byte> shuffled) {
  frame_.resize(ZSTD_compressBound(shuffled.size()));
  const std::size_t size =
      ZSTD_compress2(context_.get(), frame_.data(), frame_.size(), shuffled.data(), shuffled.size());
  // The buffer has room for the worst case, so only a lack of memory can fail.
  if (ZSTD_isError(size)) throw std::bad_alloc();
  return std::span(frame_).first(size);
}

ChunkDecoder::ChunkDecoder(const ChunkDecodeOptions& options)
    : options_(options),
      method_(options.past_caches ? ShuffleMethod::vectors_past_caches : ShuffleMethod::vectors),
      literals_(method_),
      context_(ZSTD_createDCtx(), ZSTD_freeDCtx) {
  if (context_ == nullptr) throw std::bad_alloc();
  const int checksum = options.skip_checksum ? ZSTD_d_ignoreChecksum : ZSTD_d_validateChecksum;
  HOLDFAST_ASSERT(!ZSTD_isError(ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_forceIgnoreChecksum, checksum)));
}

bool ChunkDecoder::decode(std::span<const std::byte> frame, std::size_t chunk_bytes, std::size_t element_bytes,
                          std::span<std::byte> out) {
  HOLDFAST_ASSERT(out.size() <= chunk_bytes && chunk_bytes % element_bytes == 0);
  if (options_.skip_checksum && literals_.decode(frame, chunk_bytes, element_bytes, out)) return true;
  // The frame may come from anybody. Its claim is compared before a byte is decoded.
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != chunk_bytes) return false;
  // Bytes after the frame would be decoded as a second one.
  if (ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) return false;
  if (element_bytes == 1 && out.size() == chunk_bytes) return decode_frame(frame, out);
  shuffled_.resize(chunk_bytes);
  if (!decode_frame(frame, shuffled_)) return false;
  unshuffle(shuffled_.data(), element_bytes, chunk_bytes / element_bytes, out, method_);
  return true;
}

bool ChunkDecoder::decode_frame(std::span<const std::byte> frame, std::span<std::byte> out) {
  return ZSTD_decompressDCtx(context_.get(), out.data(), out.size(), frame.data(), frame.size()) == out.size();
}

}  // namespace holdfast::format
