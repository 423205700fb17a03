#pragma once

// Several parts of memory as if they were one array, from its beginning to its end. Broadcasts read and fill the arrays
// of a state in this way, piece by piece.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace holdfast {

inline std::size_t bytes_of(std::span<const std::span<std::byte>> parts) {
  std::size_t bytes = 0;
  for (const std::span<std::byte> part : parts) bytes += part.size();
  return bytes;
}

class PartsCursor {
 public:
  // The parts must outlive the cursor.
  explicit PartsCursor(std::span<const std::span<std::byte>> parts) : parts_(parts) {}

  // All three go on until so many bytes were passed, or the last part ends.
  void copy_to(std::span<std::byte> piece) {
    advance(piece.size(), [&](std::size_t at, std::span<std::byte> bytes) {
      std::memcpy(piece.data() + at, bytes.data(), bytes.size());
    });
  }
  void copy_from(std::span<const std::byte> piece) {
    advance(piece.size(), [&](std::size_t at, std::span<std::byte> bytes) {
      std::memcpy(bytes.data(), piece.data() + at, bytes.size());
    });
  }
  // The next bytes where they lie.
  std::vector<std::span<std::byte>> take(std::size_t count) {
    std::vector<std::span<std::byte>> taken;
    advance(count, [&](std::size_t, std::span<std::byte> bytes) { taken.push_back(bytes); });
    return taken;
  }

 private:
  template <class Pass>
  void advance(std::size_t bytes, const Pass& pass) {
    for (std::size_t at = 0; at < bytes && part_ < parts_.size();) {
      const std::size_t count = std::min(bytes - at, parts_[part_].size() - begin_);
      if (count > 0) pass(at, parts_[part_].subspan(begin_, count));
      at += count;
      begin_ += count;
      if (begin_ < parts_[part_].size()) continue;
      ++part_;
      begin_ = 0;
    }
  }

  std::span<const std::span<std::byte>> parts_;
  std::size_t part_ = 0;
  std::size_t begin_ = 0;  // in the part
};

}  // namespace holdfast
