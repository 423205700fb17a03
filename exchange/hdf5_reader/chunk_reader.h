#pragma once

// Reads the elements of a chunked dataset, chunk by chunk, with our own decoders.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "filters.h"
#include "hdf5/hdf5_session.h"

namespace holdfast::hdf5_reader {

// How a dataset is stored. All fields are checked before use.
struct ChunkedStorage {
  std::vector<std::uint64_t> shape;        // at least one axis
  std::vector<std::uint64_t> chunk_shape;  // no extent is 0
  std::size_t element_bytes = 0;
  std::uint64_t chunk_bytes = 0;
  std::vector<FilterStep> filters;
  std::vector<std::byte> fill_value;  // one element
  std::uint64_t stored_bytes = 0;
};

// Reads rows [first_row, first_row + rows) of axis 0 into `out` as they are stored, without swapping bytes. first_row
// must be the first row of a chunk. Elements of missing chunks get the fill value. Returns the number of chunks that
// the file holds there. `label` names the dataset in errors.
std::uint64_t read_chunk_rows(hid_t dataset, const ChunkedStorage& storage, std::uint64_t first_row, std::uint64_t rows,
                              const format::Checker& check, const std::string& label, std::span<std::byte> out);

}  // namespace holdfast::hdf5_reader
