#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

struct z_stream_s;

namespace holdfast::format {

// One raw deflate stream (RFC 1951), as a ZIP archive holds it. Not for several threads at once.
class Inflater {
 public:
  // `out` must have exactly the stream's uncompressed size.
  explicit Inflater(std::span<std::byte> out);

  // The next bytes of the stream. False when they are no deflate stream, more follows its end, or it holds more than
  // fits `out`.
  [[nodiscard]] bool feed(std::span<const std::byte> bytes);
  // Whether the stream came to its end and filled `out`.
  bool is_complete() const { return is_at_end_ && out_.empty(); }

 private:
  std::unique_ptr<z_stream_s, void (*)(z_stream_s*)> stream_;
  std::span<std::byte> out_;  // what is still to be filled
  bool is_at_end_ = false;
};

}  // namespace holdfast::format
