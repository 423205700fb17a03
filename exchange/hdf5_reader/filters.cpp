// Undoes HDF5's filters: deflate, shuffle, fletcher32, zstd. Each decoder gets the exact length that it must produce
// and fails otherwise. That is what HDF5 1.10's pipeline does not check. Reasons: docs/decisions/exchange.md.

#include "filters.h"

#include <zlib.h>
#include <zstd.h>

#include <utility>

namespace holdfast::hdf5_reader {
namespace {

using format::Filter;

constexpr std::size_t kChecksumBytes = 4;

// The one's complement sum of 16-bit words. It is zero only for zeros.
std::uint32_t fold(std::uint32_t sum) {
  return (sum & 0xFFFFU) + (sum >> 16U);
}

// Computes the checksum as HDF5 does: over 16-bit words, the first byte being the higher one, with a last odd byte
// alone.
std::uint32_t fletcher32(std::span<const std::byte> bytes) {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    const auto high = static_cast<std::uint32_t>(bytes[i]) << 8U;
    const auto low = i + 1 < bytes.size() ? static_cast<std::uint32_t>(bytes[i + 1]) : 0U;
    first = fold(first + (high | low));
    second = fold(second + first);
  }
  return second << 16U | first;
}

bool check_and_remove_checksum(std::vector<std::byte>& bytes) {
  if (bytes.size() < kChecksumBytes) return false;
  const std::size_t size = bytes.size() - kChecksumBytes;
  std::uint32_t stored = 0;
  for (std::size_t i = kChecksumBytes; i-- > 0;) stored = stored << 8U | static_cast<std::uint32_t>(bytes[size + i]);
  bytes.resize(size);
  return fletcher32(bytes) == stored;
}

// Trailing bytes that are not a whole element stay where they are.
void unshuffle(std::size_t element_bytes, std::vector<std::byte>& bytes) {
  const std::size_t count = bytes.size() / element_bytes;
  std::vector<std::byte> plain(bytes);
  for (std::size_t b = 0; b < element_bytes; ++b) {
    const std::byte* plane = bytes.data() + b * count;
    for (std::size_t i = 0; i < count; ++i) plain[i * element_bytes + b] = plane[i];
  }
  bytes = std::move(plain);
}

// `expected` is the exact size: a result that is shorter or longer is damage.
bool inflate(std::size_t expected, std::vector<std::byte>& bytes) {
  std::vector<std::byte> plain(expected);
  uLongf size = expected;
  const int result = ::uncompress(reinterpret_cast<Bytef*>(plain.data()), &size,
                                  reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  bytes = std::move(plain);
  return result == Z_OK && size == expected;
}

bool decode_zstd(std::size_t expected, std::vector<std::byte>& bytes) {
  std::vector<std::byte> plain(expected);
  const std::size_t size = ::ZSTD_decompress(plain.data(), plain.size(), bytes.data(), bytes.size());
  bytes = std::move(plain);
  return ::ZSTD_isError(size) == 0 && size == expected;
}

// Returns the size that a compressing step received: every step before it keeps the length or adds a checksum.
std::size_t size_before(std::span<const FilterStep> earlier, std::uint32_t skipped, std::size_t chunk_bytes) {
  for (std::size_t i = 0; i < earlier.size(); ++i) {
    if (earlier[i].filter == Filter::fletcher32 && (skipped >> i & 1U) == 0) chunk_bytes += kChecksumBytes;
  }
  return chunk_bytes;
}

bool undo(const FilterStep& step, std::size_t expected, std::vector<std::byte>& bytes) {
  switch (step.filter) {
    case Filter::deflate:
      return inflate(expected, bytes);
    case Filter::zstd:
      return decode_zstd(expected, bytes);
    case Filter::fletcher32:
      return check_and_remove_checksum(bytes);
    case Filter::shuffle:
      unshuffle(step.element_bytes, bytes);
      return true;
  }
  return false;
}

}  // namespace

bool decode_chunk(std::span<const FilterStep> steps, std::uint32_t skipped, std::size_t chunk_bytes,
                  std::vector<std::byte>& bytes) {
  // Filters are undone in reverse order.
  for (std::size_t i = steps.size(); i-- > 0;) {
    if ((skipped >> i & 1U) != 0) continue;
    if (!undo(steps[i], size_before(steps.first(i), skipped, chunk_bytes), bytes)) return false;
  }
  return bytes.size() == chunk_bytes;
}

}  // namespace holdfast::hdf5_reader
