// Compares the decoder of literals with zstd: what it accepts, zstd must accept with the same bytes. The first byte of
// the input gives the size of an element. The rest is the frame, whose size is taken from its header.

#include "codec/literals_decoder.h"

// For ZSTD_d_forceIgnoreChecksum.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include <algorithm>

#include "codec/shuffle.h"
#include "fuzz_input.h"

using namespace holdfast;
using namespace holdfast::format;

// The bytes as zstd decodes them; empty for a frame that it refuses.
static std::vector<std::byte> decode_by_zstd(std::span<const std::byte> frame, std::size_t chunk_bytes) {
  static ZSTD_DCtx* const context = ZSTD_createDCtx();
  ZSTD_DCtx_setParameter(context, ZSTD_d_forceIgnoreChecksum, ZSTD_d_ignoreChecksum);
  std::vector<std::byte> planes(chunk_bytes);
  if (ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) return {};
  const std::size_t size = ZSTD_decompressDCtx(context, planes.data(), planes.size(), frame.data(), frame.size());
  return size == chunk_bytes ? planes : std::vector<std::byte>();
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t width = std::size_t{1} << data[0] % 4;
  const auto frame = std::as_bytes(std::span(data, size)).subspan(1);
  const unsigned long long stated = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (stated > std::size_t{1} << 20 || stated % width != 0) return 0;
  const auto chunk_bytes = static_cast<std::size_t>(stated);

  static LiteralsDecoder decoder;
  std::vector<std::byte> out(chunk_bytes);
  if (!decoder.decode(frame, chunk_bytes, width, out)) return 0;
  const std::vector<std::byte> planes = decode_by_zstd(frame, chunk_bytes);
  HOLDFAST_ASSERT(planes.size() == chunk_bytes);
  std::vector<std::byte> expected(chunk_bytes);
  unshuffle(planes.data(), width, chunk_bytes / width, expected);
  HOLDFAST_ASSERT(std::ranges::equal(out, expected));
  return 0;
}
