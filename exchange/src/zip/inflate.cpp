#include "zip/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

namespace holdfast::format {
namespace {

// The deleter of the stream: zlib has allocations of its own to free.
void end_and_delete(z_stream* stream) {
  inflateEnd(stream);
  delete stream;
}

// zlib counts bytes in 32 bits.
uInt at_most_32_bits(std::size_t bytes) {
  return static_cast<uInt>(std::min<std::size_t>(bytes, std::numeric_limits<uInt>::max()));
}

}  // namespace

Inflater::Inflater(std::uint64_t bytes, std::size_t piece_bytes, std::function<bool(std::span<const std::byte>)> take)
    : stream_(new z_stream{}, end_and_delete),
      left_(bytes),
      piece_(std::min<std::uint64_t>(bytes, piece_bytes)),
      take_(std::move(take)) {
  // A negative window size tells zlib that no header surrounds the stream.
  if (inflateInit2(stream_.get(), -MAX_WBITS) != Z_OK) throw std::bad_alloc();
}

bool Inflater::feed(std::span<const std::byte> bytes) {
  // When its output is full, zlib keeps bytes back: another round fetches them even when no input is left.
  for (bool is_piece_full = false; !bytes.empty() || is_piece_full;) {
    if (is_at_end_) return bytes.empty();
    // zlib refuses a null output pointer, even when no output is expected.
    Bytef nowhere = 0;
    const std::size_t room = std::min<std::uint64_t>(left_, piece_.size());
    stream_->next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
    stream_->avail_in = at_most_32_bits(bytes.size());
    stream_->next_out = room == 0 ? &nowhere : reinterpret_cast<Bytef*>(piece_.data());
    stream_->avail_out = at_most_32_bits(room);
    const uInt in = stream_->avail_in;
    const uInt out = stream_->avail_out;
    const int result = inflate(stream_.get(), Z_NO_FLUSH);
    // Z_BUF_ERROR without input only says that more input is needed.
    const bool waits_for_input = result == Z_BUF_ERROR && in == 0;
    if (result != Z_OK && result != Z_STREAM_END && !waits_for_input) return false;
    const std::size_t produced = out - stream_->avail_out;
    bytes = bytes.subspan(in - stream_->avail_in);
    left_ -= produced;
    is_at_end_ = result == Z_STREAM_END;
    is_piece_full = room > 0 && produced == room && !is_at_end_ && left_ > 0;
    if (produced > 0 && !take_(std::span(piece_).first(produced))) return false;
  }
  return true;
}

}  // namespace holdfast::format
