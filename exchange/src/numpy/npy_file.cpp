#include "numpy/npy_file.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace holdfast::format {

NpyFile::NpyFile(ByteSource& source) : source_(source) {
  // The header says how long it is. So much is read in any case, and a header that claims more is refused.
  std::vector<std::byte> head(std::min<std::uint64_t>(source.size_bytes(), kMaxNpyHeadBytes));
  source.read(0, head);
  NpyHeader header = parse_npy_header(source.path(), "", head);
  check_npy_size(source.path(), "", header, source.size_bytes());
  entries_.push_back({.header = std::move(header)});
}

NamedArray NpyFile::read(const Entry&) const {
  // The file is one array. It is read whole, since big-endian or column-major elements are brought into order.
  std::vector<std::byte> file(source_.size_bytes());
  source_.read(0, file);
  return parse_npy(source_.path(), "", std::move(file));
}

void NpyFile::read_pieces(const Entry& entry, const std::function<void(std::span<const std::byte>)>& take) const {
  // Each size of an element divides it.
  constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;
  std::vector<std::byte> piece;
  for (std::uint64_t offset = entry.header.data_offset; offset < source_.size_bytes(); offset += piece.size()) {
    piece.resize(std::min(kPieceBytes, source_.size_bytes() - offset));
    source_.read(offset, piece);
    check_and_swap(source_.path(), "", entry.header, piece);
    take(piece);
  }
}

}  // namespace holdfast::format
