#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

struct z_stream_s;

namespace holdfast::format {

// Decompresses one raw deflate stream (RFC 1951), as a ZIP archive stores it. Holds one piece of the content in
// memory at a time. One thread at a time may use it.
class Inflater {
 public:
  // `bytes` is the uncompressed size. `take` receives the content in pieces of at most `piece_bytes` and returns
  // whether it wants more.
  Inflater(std::uint64_t bytes, std::size_t piece_bytes, std::function<bool(std::span<const std::byte>)> take);

  // Consumes the next bytes of the stream. Returns false when they are not a deflate stream, when bytes follow the
  // stream's end, when it holds more than `bytes`, or when `take` wants no more.
  [[nodiscard]] bool feed(std::span<const std::byte> bytes);
  // True when the stream has ended and gave all of its bytes.
  bool is_complete() const { return is_at_end_ && left_ == 0; }

 private:
  std::unique_ptr<z_stream_s, void (*)(z_stream_s*)> stream_;
  std::uint64_t left_;  // uncompressed bytes to come
  std::vector<std::byte> piece_;
  std::function<bool(std::span<const std::byte>)> take_;
  bool is_at_end_ = false;
};

}  // namespace holdfast::format
