#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

struct z_stream_s;

namespace holdfast::format {

// One raw deflate stream (RFC 1951), as a ZIP archive holds it. Takes memory for a piece of the content, not for all of
// it. Not for several threads at once.
class Inflater {
 public:
  // `bytes` is the stream's uncompressed size. `take` gets them in pieces of at most `piece_bytes`, and says whether it
  // wants more.
  Inflater(std::uint64_t bytes, std::size_t piece_bytes, std::function<bool(std::span<const std::byte>)> take);

  // The next bytes of the stream. False when they are not a deflate stream, when bytes follow its end, when it holds
  // more than `bytes`, or when `take` wants no more.
  [[nodiscard]] bool feed(std::span<const std::byte> bytes);
  // Whether the stream came to its end and had all its bytes.
  bool is_complete() const { return is_at_end_ && left_ == 0; }

 private:
  std::unique_ptr<z_stream_s, void (*)(z_stream_s*)> stream_;
  std::uint64_t left_;  // of the uncompressed bytes
  std::vector<std::byte> piece_;
  std::function<bool(std::span<const std::byte>)> take_;
  bool is_at_end_ = false;
};

}  // namespace holdfast::format
