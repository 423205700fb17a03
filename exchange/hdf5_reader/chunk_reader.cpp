// Reads the raw chunks of a dataset and decodes them here instead of in HDF5's filter pipeline. HDF5 1.10 trusts the
// length of a decoded chunk (see filters.h). Whole rows of chunks are read at once, so that each chunk is decoded
// once. docs/decisions/exchange.md

#include "chunk_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::hdf5_reader {
namespace {

// Steps through all positions of a box, the last axis fastest. Returns false after the last position.
bool advance(std::vector<std::uint64_t>& position, std::span<const std::uint64_t> begin,
             std::span<const std::uint64_t> end, std::span<const std::uint64_t> step) {
  for (std::size_t axis = position.size(); axis-- > 0;) {
    if (end[axis] - position[axis] > step[axis]) {
      position[axis] += step[axis];
      return true;
    }
    position[axis] = begin[axis];
  }
  return false;
}

// Reads a box of whole chunk rows. The buffer for a chunk is kept between chunks.
class RowReader {
 public:
  RowReader(hid_t dataset, const ChunkedStorage& storage, const format::Checker& check, const std::string& label)
      : dataset_(dataset), storage_(storage), check_(check), label_(label) {}

  std::uint64_t read(std::uint64_t first_row, std::uint64_t rows, std::span<std::byte> out) {
    // Chunks that were never written are missing from the file: their elements are the fill value.
    fill(out);
    if (storage_.stored_bytes == 0) return 0;
    std::vector<std::uint64_t> begin(storage_.shape.size());
    std::vector<std::uint64_t> end = storage_.shape;
    begin[0] = first_row;
    end[0] = first_row + rows;
    std::vector<std::uint64_t> offset = begin;
    std::uint64_t count = 0;
    do {
      if (!read_chunk(offset)) continue;
      copy_chunk(offset, begin, end, out);
      ++count;
    } while (advance(offset, begin, end, storage_.chunk_shape));
    return count;
  }

 private:
  void fill(std::span<std::byte> out) const {
    for (std::size_t i = 0; i < out.size(); i += storage_.element_bytes) {
      std::copy(storage_.fill_value.begin(), storage_.fill_value.end(), out.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  // Reads into `chunk_`. Returns false when the file does not hold the chunk.
  bool read_chunk(const std::vector<std::uint64_t>& position) {
    const std::vector<hsize_t> offset(position.begin(), position.end());
    hsize_t bytes = 0;
    if (H5Dget_chunk_storage_size(dataset_, offset.data(), &bytes) < 0 || bytes == 0) return false;
    // The size of a chunk comes from the file, so it is checked before it is allocated.
    check_.require(bytes <= storage_.stored_bytes,
                   fmt::format("a chunk of {} is larger than all stored bytes of the dataset", label_));
    chunk_.resize(bytes);
    std::uint32_t skipped = 0;
    check_.succeeded(H5Dread_chunk(dataset_, H5P_DEFAULT, offset.data(), &skipped, chunk_.data()),
                     fmt::format("a chunk of {} cannot be read", label_));
    check_.require(decode_chunk(storage_.filters, skipped, storage_.chunk_bytes, chunk_),
                   fmt::format("a chunk of {} does not decode to its {} bytes", label_, storage_.chunk_bytes));
    return true;
  }

  // Copies the part of the chunk at `offset` that lies in the box to its place in `out`, one run of the last axis at
  // a time.
  void copy_chunk(const std::vector<std::uint64_t>& offset, std::span<const std::uint64_t> begin,
                  std::span<const std::uint64_t> end, std::span<std::byte> out) const {
    const std::size_t axes = offset.size();
    std::vector<std::uint64_t> last(axes);
    std::vector<std::uint64_t> step(axes, 1);
    for (std::size_t axis = 0; axis < axes; ++axis) {
      // Chunks at the end of an axis reach beyond the dataset; only their part inside it is copied.
      last[axis] = offset[axis] + std::min(storage_.chunk_shape[axis], end[axis] - offset[axis]);
    }
    step[axes - 1] = last[axes - 1] - offset[axes - 1];
    const std::size_t run_bytes = step[axes - 1] * storage_.element_bytes;
    std::vector<std::uint64_t> position = offset;
    do {
      std::uint64_t from = 0;
      std::uint64_t to = 0;
      for (std::size_t axis = 0; axis < axes; ++axis) {
        from = from * storage_.chunk_shape[axis] + (position[axis] - offset[axis]);
        to = to * (end[axis] - begin[axis]) + (position[axis] - begin[axis]);
      }
      std::copy_n(chunk_.data() + from * storage_.element_bytes, run_bytes, out.data() + to * storage_.element_bytes);
    } while (advance(position, offset, last, step));
  }

  hid_t dataset_;
  const ChunkedStorage& storage_;
  const format::Checker& check_;
  const std::string& label_;
  std::vector<std::byte> chunk_;
};

}  // namespace

std::uint64_t read_chunk_rows(hid_t dataset, const ChunkedStorage& storage, std::uint64_t first_row, std::uint64_t rows,
                              const format::Checker& check, const std::string& label, std::span<std::byte> out) {
  return RowReader(dataset, storage, check, label).read(first_row, rows, out);
}

}  // namespace holdfast::hdf5_reader
