#include "exchange/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

namespace holdfast::format {
namespace {

void end_and_delete(z_stream* stream) {
  inflateEnd(stream);
  delete stream;
}

// zlib counts in 32 bits.
uInt at_most_32_bits(std::size_t bytes) {
  return static_cast<uInt>(std::min<std::size_t>(bytes, std::numeric_limits<uInt>::max()));
}

}  // namespace

Inflater::Inflater(std::span<std::byte> out) : stream_(new z_stream{}, end_and_delete), out_(out) {
  // Negative: no zlib header around the stream.
  if (inflateInit2(stream_.get(), -MAX_WBITS) != Z_OK) throw std::bad_alloc();
}

bool Inflater::feed(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (is_at_end_) return false;
    // zlib wants a place to write to even where nothing is left to be written.
    Bytef nowhere = 0;
    stream_->next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
    stream_->avail_in = at_most_32_bits(bytes.size());
    stream_->next_out = out_.empty() ? &nowhere : reinterpret_cast<Bytef*>(out_.data());
    stream_->avail_out = at_most_32_bits(out_.size());
    const uInt in = stream_->avail_in;
    const uInt out = stream_->avail_out;
    const int result = inflate(stream_.get(), Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END) return false;
    bytes = bytes.subspan(in - stream_->avail_in);
    out_ = out_.subspan(out - stream_->avail_out);
    is_at_end_ = result == Z_STREAM_END;
  }
  return true;
}

}  // namespace holdfast::format
